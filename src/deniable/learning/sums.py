"""The sums through which estimators read private rows, and how far one row moves them.

A sum is frozen public data: what it does to a row depends on the row and on released numbers alone.
Each row's contribution has a length that is checked in whole numbers (`rows.on_grid`), so that the
stated sensitivities hold for any rows, in any order, on any machine. Arrays are summed here; tables
are summed where they are (`pushed.py`), where a unit with more rows than count in full is scaled
down to what those can add.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from deniable.learning.rows import (
    GRID,
    SQUARE_GRID,
    Floats,
    Labels,
    Rows,
    added,
    lengths,
    most_steps,
    on_grid,
    steps,
    times,
)
from deniable.privacy.units import Relation

Integers = npt.NDArray[np.int64]

# Off the diagonal each product stands for two of the matrix: weighted by 41/29, just below sqrt(2),
# the triangle has the length of the whole matrix, and its noise is less by that factor.
DIAGONAL, OFF_DIAGONAL = 29, 41
_CHUNK = 1 << 18  # of rows: sums of products stay below 2^53, where doubles are exact


class Bounded(Protocol):
    """Whole numbers that one unit moves by so much."""

    def moved(self, relation: Relation) -> int:
        """How far one unit moves the sums in L2, in steps, at most."""

    def moved_l1(self, relation: Relation, width: int) -> int:
        """The same in L1, for rows of `width` columns."""


class Sums(Bounded, Protocol):
    """Whole numbers in each row, to be summed."""

    def totals(self, rows: Rows) -> Integers:
        """The exact sums, flat."""


@dataclass(frozen=True)
class Moments:
    """All products of the entries of v = (row·u, one, target·t), summed: counts, means, X'X, X'y.

    The weights satisfy row² + one² + target² <= 1, so v has length 1 at most. The matrix vv' of
    whole numbers z has Frobenius norm z'z <= grid² in steps; two such matrices are sqrt(2) grid²
    apart at most, since ‖aa' - bb'‖² = |a|⁴ + |b|⁴ - 2(a'b)².

    So are the sums V and W of two units that are scaled down to one norm B: the inner product of
    their weighted triangles is 840.5 tr(VW) + ½ Σ V_ii W_ii, and no part of it is negative.
    Rounding K numbers toward zero takes 2 sqrt(K) B + K off it at most, so that they are
    sqrt(2) (B + sqrt(K)) apart at most; K is below 2^32.
    """

    row: float
    one: float
    target: float = 0.0

    def width(self, columns: int) -> int:
        """The length of v."""
        return columns + 1 + (self.target > 0)

    def totals(self, rows: Rows) -> Integers:
        """The weighted upper triangle of Z'Z."""
        parts = [self.row * rows.units, np.full((len(rows.units), 1), self.one)]
        if self.target > 0:
            assert rows.target is not None
            parts.append(self.target * rows.target[:, None])
        most = self.most(rows.units.shape[1])
        whole = on_grid(np.hstack(parts), rows.present, SQUARE_GRID, most)
        return weighted_triangle(products(whole))

    def moved(self, relation: Relation) -> int:
        """DIAGONAL·grid², and sqrt(2) of it, and of 2^16 for rounding, where one is exchanged."""
        one = DIAGONAL * SQUARE_GRID**2
        return math.isqrt(2 * (one + (1 << 16)) ** 2) + 1 if relation == Relation.REPLACE else one

    def moved_l1(self, relation: Relation, width: int) -> int:
        """Σz² on the diagonal; off it (|z|₁² - Σz²)/2."""
        twice = (2 * DIAGONAL - OFF_DIAGONAL) * SQUARE_GRID**2 + OFF_DIAGONAL * self.most(
            width
        ) ** 2
        return twice + 2 if relation == Relation.REPLACE else twice // 2 + 1

    def most(self, columns: int) -> int:
        """What the sizes of a row's whole numbers add up to; |u|₁ <= sqrt(d)|u|."""
        size = self.row * math.sqrt(columns) + self.one + self.target
        return most_steps(size, self.width(columns), SQUARE_GRID)

    def matrix(self, noisy: Integers, columns: int) -> Floats:
        """The released triangle as the symmetric matrix of (u, 1, t)."""
        k = self.width(columns)
        scale = np.array([self.row] * columns + [self.one] + [self.target] * (self.target > 0))
        full = from_weighted_triangle(noisy, k) / float(steps(k, SQUARE_GRID)) ** 2
        return full / np.outer(scale, scale)

    def noise(self, deviation: float, columns: int) -> float:
        """The deviation of the noise off the diagonal of vv', v of length 1."""
        return deviation / OFF_DIAGONAL / float(steps(self.width(columns), SQUARE_GRID)) ** 2


class OnGrid(ABC):
    """Sums of rows whose whole numbers have length GRID at most; twice that where exchanged."""

    @abstractmethod
    def most(self, columns: int) -> int:
        """What the sizes of a row's whole numbers add up to, at most."""

    def moved(self, relation: Relation) -> int:
        return relation.changed * GRID

    def moved_l1(self, relation: Relation, width: int) -> int:
        return relation.changed * self.most(width)


@dataclass(frozen=True)
class GroupSums(OnGrid):
    """Of each class or cluster: how many rows, the sum of u, and of squares, in one vector.

    A row adds (one, row·u, square·s) to its group, with one² + row² + square² <= 1 and
    s = (2d·u² - 1)/sqrt(d), which is of length 1 at most where u² is 1/d at most in each column.
    Exchanged for another, in its own group or in a second one, it moves all by twice its length.
    `centres` assign rows to the nearest; without them the label does; one group has neither.
    """

    groups: int
    one: float
    row: float
    square: float = 0.0
    centres: tuple[tuple[float, ...], ...] = ()

    def block(self, columns: int) -> int:
        return 1 + columns * ((self.row > 0) + (self.square > 0))

    def totals(self, rows: Rows) -> Integers:
        columns = rows.units.shape[1]
        parts = [np.full((len(rows.units), 1), self.one)]
        if self.row > 0:
            parts.append(self.row * rows.units)
        if self.square > 0:
            parts.append(self.square * centred_squares(rows.units))
        most = self.most(columns)
        whole = on_grid(np.hstack(parts), rows.present, GRID, most).astype(np.int64)
        label = self._labels(rows)
        found = [whole[label == group].sum(axis=0) for group in range(self.groups)]
        made: Integers = np.array(found).reshape(self.groups * self.block(columns))
        return made

    def _labels(self, rows: Rows) -> Labels:
        if self.centres:
            return nearest(rows.units, np.array(self.centres))
        return np.zeros(len(rows.units), np.int64) if rows.label is None else rows.label

    def most(self, columns: int) -> int:
        """|u|₁ <= sqrt(d)|u|, and so for s."""
        size = self.one + (self.row + self.square) * math.sqrt(columns)
        return most_steps(size, self.block(columns), GRID)

    def read(self, noisy: Integers, columns: int) -> tuple[Floats, Floats, Floats]:
        """Counts, sums of u, and sums of u² by group, from released numbers."""
        scaled = noisy.reshape(self.groups, -1) / steps(self.block(columns), GRID)
        count = scaled[:, 0] / self.one
        empty = np.zeros((self.groups, columns))
        row = scaled[:, 1 : 1 + columns] / self.row if self.row > 0 else empty
        if not self.square:
            return count, row, empty
        squares = scaled[:, 1 + columns * (self.row > 0) :] / self.square
        return count, row, (squares * math.sqrt(columns) + count[:, None]) / (2 * columns)

    def noise(self, deviation: float, columns: int) -> float:
        """The deviation of the noise on a contribution of length 1."""
        return deviation / steps(self.block(columns), GRID)


class GradientSums(OnGrid):
    """The sum of the gradients of a loss at released weights, each of length 1 at most."""

    weights: Floats

    @abstractmethod
    def each(self, rows: Rows) -> Floats:
        """The whole numbers of each row, in doubles."""

    def totals(self, rows: Rows) -> Integers:
        whole: Integers = self.each(rows).astype(np.int64).sum(axis=0)
        return whole

    def read(self, noisy: Integers) -> Floats:
        return noisy.reshape(self.weights.shape) / steps(self.weights.size, GRID)

    def noise(self, deviation: float) -> float:
        """The deviation of the noise on each entry of the gradient."""
        return deviation / steps(self.weights.size, GRID)


@dataclass(frozen=True, eq=False)
class Gradients(GradientSums):
    """The sum of clipped gradients of a logistic or softmax loss at released weights.

    Rows (u, 1) are multiplied by a released matrix and clipped to length 1; the residual, one
    number for each direction, is clipped to length 1: their product has length 1 at most.
    """

    transform: Floats
    weights: Floats

    def each(self, rows: Rows) -> Floats:
        assert rows.label is not None
        with np.errstate(all="ignore"):  # a warning would tell of rows
            inputs = self.inputs(rows.units)
            residual = residuals(times(inputs, self.weights.T), rows.label)
            parts = (residual[:, :, None] * inputs[:, None, :]).reshape(-1, self.weights.size)
        return on_grid(parts, rows.present, GRID, self.most(inputs.shape[1] - 1))

    def inputs(self, units: Floats) -> Floats:
        """The rows in the coordinates of the optimiser, of length 1 at most."""
        rows = times(np.hstack([units, np.ones((len(units), 1))]), self.transform)
        return rows / np.maximum(lengths(rows), 1.0)[:, None]

    def most(self, columns: int) -> int:
        """Σ|p - e_y| is 2 at most."""
        directions = len(self.weights)
        size = min(math.sqrt(directions), 2.0) * math.sqrt(columns + 1)
        return most_steps(size, directions * (columns + 1), GRID)


def residuals(scores: Floats, label: Labels) -> Floats:
    """p - e_y, of length 1 at most: sigmoid for one direction, softmax for several."""
    if scores.shape[1] == 1:
        margin = np.clip(scores, -500, 500)
        return np.asarray(1 / (1 + np.exp(-margin)) - (label == 1)[:, None], np.float64)
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    found = shifted / added(shifted)[:, None]
    found = found - (label[:, None] == np.arange(scores.shape[1]))
    made: Floats = found / np.maximum(lengths(found), 1.0)[:, None]
    return made


def centred_squares(units: Floats) -> Floats:
    """(2d·u² - 1)/sqrt(d), in each column at most 1/sqrt(d) in size; beyond, it is clipped."""
    columns = units.shape[1]
    made: Floats = np.clip(2 * columns * units**2 - 1, -1, 1) / math.sqrt(columns)
    return made


def nearest(units: Floats, centres: Floats) -> Labels:
    """The nearest centre of each row."""
    distance = added(np.square(centres)) - 2 * times(units, centres.T)
    return np.asarray(np.argmin(distance, axis=1), np.int64)


def products(whole: Floats) -> Any:
    """Z'Z in exact integers: each chunk's sums of products are below 2^53."""
    total = np.zeros((whole.shape[1], whole.shape[1]), dtype=object)
    for start in range(0, len(whole), _CHUNK):
        chunk = whole[start : start + _CHUNK]
        total += (chunk.T @ chunk).astype(np.int64).astype(object)
    return total


def weighted_triangle(matrix: Any) -> Integers:
    """The upper triangle, weighted; sums beyond 64 bits saturate, which moves nothing further."""
    above = np.triu_indices(len(matrix))
    weights = np.where(above[0] == above[1], DIAGONAL, OFF_DIAGONAL).astype(object)
    limits = np.iinfo(np.int64)
    made: Integers = np.clip(matrix[above] * weights, limits.min, limits.max).astype(np.int64)
    return made


def from_weighted_triangle(flat: Integers, size: int) -> Floats:
    """The symmetric matrix of a released triangle."""
    above = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[above] = flat / np.where(above[0] == above[1], DIAGONAL, OFF_DIAGONAL)
    return matrix + np.triu(matrix, 1).T


@dataclass(frozen=True, eq=False)
class CellCounts:
    """How many rows lie in each cell of a grid along released directions.

    Along each direction the line is cut into `bins` cells of width `width` about `origin`; what
    lies beyond is counted in the last ones.
    """

    origin: Floats
    axes: Floats
    width: Floats
    bins: int

    def totals(self, rows: Rows) -> Integers:
        cell = self.cells(rows.units)[rows.present]
        counts: Integers = GRID * np.bincount(cell, minlength=self.size).astype(np.int64)
        return counts

    @property
    def size(self) -> int:
        return int(self.bins ** len(self.axes))

    def cells(self, units: Floats) -> Labels:
        along = times(units - self.origin, self.axes.T) / self.width
        place = np.clip(np.floor(along + self.bins / 2), 0, self.bins - 1).astype(np.int64)
        return place @ self.bins ** np.arange(len(self.axes))

    def middles(self) -> Floats:
        """The middle of each cell, as a row."""
        place = np.arange(self.size)[:, None] // self.bins ** np.arange(len(self.axes)) % self.bins
        return self.origin + ((place + 0.5 - self.bins / 2) * self.width) @ self.axes

    def moved(self, relation: Relation) -> int:
        """One row is in one cell; exchanged, it may leave one and enter another.

        So do units that are scaled down: counts are not negative, nor are their products.
        """
        return math.isqrt(2 * GRID**2) + 1 if relation == Relation.REPLACE else GRID

    def moved_l1(self, relation: Relation, width: int) -> int:
        """The same, two cells adding up."""
        del width
        return relation.changed * GRID
