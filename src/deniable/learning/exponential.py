"""The exponential mechanism over convex sets: where it can be sampled exactly.

p(w) is proportional to exp(-k Σ l(w; z)) on a convex set. One record changes the exponent by k
times a function that oscillates by `moved`·B over the set, B bounding the oscillation of one
record's loss: constants cancel in the normalisation. So k = ε/(moved·B) is ε-DP, with moved 1 for
a record added or removed and 2 for one exchanged (McSherry & Talwar 2007, by oscillation; Bassily,
Smith & Thakurta 2014, section 3, for the rate MDd/nε).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.held import frameless
from deniable.learning.reals import normals, uniforms
from deniable.learning.rows import Floats, Rows, read_numbers, signed
from deniable.mechanisms.selection import Exponential
from deniable.privacy.exact import Number, positive, read_bounds, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.parameters import Parameter, Related, parameter, parameters
from deniable.privacy.units import Relation, read_relation
from deniable.trace import traced

_MOST_PROPOSALS = 1_000_000
_LARGEST = 1e300  # of κ: the law is one point to a double long before


class Label(StrEnum):
    """What a sampler's guarantee rests on."""

    PURE = "pure"
    PURE_REAL = "pure, real-arithmetic model"
    SAMPLED = "(ε, δ) with δ_sampling, real-arithmetic model"


class ForRows(ABC):
    """A draw for rows whose number is public, one of which is exchanged."""

    relation: ClassVar[Relation] = Relation.REPLACE
    size: int

    @abstractmethod
    def draw(self, rows: Floats) -> Floats:
        """One draw for rows that are multiplied by their signs."""

    @traced
    def release(self, value: Rows) -> Floats:
        if len(value.units) != self.size or value.label is None:
            raise ParameterError("size", self.size, "must be the number of rows, which is public")
        return self.draw(signed(value))


@parameters
class LineExponential:
    """The minimiser of Σ|w - x| over an interval, by the exponential mechanism on a fine grid.

    Formal guarantee. For numbers that differ in one under `relation`, ε-DP, in machine arithmetic
    ("pure"): distances are whole numbers of steps, their sums are exact, and the choice among the
    cells is exact (`mechanisms.Exponential`). Numbers beyond the bounds are clamped; what is no
    finite number counts as nothing.
    """

    label: ClassVar[Label] = Label.PURE
    epsilon: Parameter[Number, Fraction] = parameter(positive)
    bounds: Parameter[tuple[Number, Number], tuple[Fraction, Fraction]] = parameter(read_bounds)
    cells: Parameter[int, int] = parameter(partial(whole, least=2), default=1024)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    @property
    def loss(self) -> Loss:
        return PureLoss(bound=self.epsilon, relation=self.relation)

    def points(self) -> Floats:
        low, high = map(float, self.bounds)
        return np.linspace(low, high, self.cells)

    @frameless
    def release(self, value: Any) -> float:
        low, high = map(float, self.bounds)
        numbers = read_numbers(value)
        numbers = np.clip(numbers[np.isfinite(numbers)], low, high)
        places = np.rint((numbers - low) / (high - low) * (self.cells - 1)).astype(np.int64)
        places = np.clip(places, 0, self.cells - 1)
        count = np.bincount(places, minlength=self.cells)
        at = np.arange(self.cells)
        below, under = np.cumsum(count), np.cumsum(count * at)
        total = under[-1] if len(under) else 0
        # Σ|w - x| = w·#{x <= w} - Σ{x <= w} x + Σ{x > w} x - w·#{x > w}
        distance = at * below - under + (total - under) - at * (len(places) - below)
        # Added, removed or exchanged, a record moves each score by the span at most.
        chooser = Exponential(
            epsilon=self.epsilon, sensitivity=self.cells - 1, relation=self.relation
        )
        return float(self.points()[chooser.release(-distance)])


@dataclass(frozen=True, init=False)
class BallExponential:
    """A point of a ball by exp(-k Σ <z, w>), for linear losses |z| <= 1.

    Formal guarantee. For records that differ in one under `relation`, ε-DP in real arithmetic: the
    losses oscillate by the ball's diameter, k = ε/(moved·2·radius), and the draw is exact: along
    the sum the density is exp(-κt)(1 - t²)^((d-1)/2), drawn by rejection (Wood 1994, for d + 2
    dimensions), and across it the point is uniform on a ball. Longer records are shortened; those
    with anything that is no finite number count as nothing.
    """

    label: ClassVar[Label] = Label.PURE_REAL
    epsilon: float
    radius: float
    relation: Relation

    def __init__(
        self, epsilon: float, radius: float, relation: Relation | str = Relation.ADD_REMOVE
    ) -> None:
        object.__setattr__(self, "epsilon", float(positive(epsilon, "epsilon")))
        object.__setattr__(self, "radius", float(positive(radius, "radius")))
        object.__setattr__(self, "relation", read_relation(relation))

    @property
    def loss(self) -> Loss:
        return PureLoss(bound=positive(self.epsilon, "epsilon"), relation=self.relation)

    @property
    def rate(self) -> float:
        """k."""
        return self.epsilon / (self.relation.changed * 2 * self.radius)

    @traced
    def release(self, value: Floats) -> Floats:
        """One draw for records in rows."""
        known = np.where(np.isfinite(value).all(axis=1, keepdims=True), value, 0.0)
        with np.errstate(over="ignore"):  # what is too long for doubles counts as nothing
            long = np.sqrt(np.square(known).sum(axis=1))
        return self.draw((known / np.maximum(long, 1.0)[:, None]).sum(axis=0))

    def draw(self, total: Floats) -> Floats:
        """One draw for a sum of records."""
        size = float(np.linalg.norm(total))
        width = len(total)
        along = -total / size if size > 0 else np.eye(width)[0]
        t = cap_height(self.rate * size * self.radius, width)
        across = normals(width)
        across -= (across @ along) * along
        far = max(float(np.linalg.norm(across)), 1e-300)
        spread = math.sqrt(max(1 - t * t, 0.0)) * float(uniforms(1)[0]) ** (1 / max(width - 1, 1))
        made: Floats = self.radius * (t * along + (spread / far) * across * (width > 1))
        return made


def cap_height(kappa: float, width: int) -> float:
    """t in [-1, 1] with density proportional to exp(κt)(1 - t²)^((width - 1)/2) (Wood 1994)."""
    p = width + 1  # the sphere's dimension less one, for which (1 - t²)^((p - 2)/2) is the factor
    kappa = min(kappa, _LARGEST)
    b = p / (math.hypot(2 * kappa, p) + 2 * kappa)
    # By depths 1 - x0 and 1 - t, for x0 = (1 - b)/(1 + b) is 1 to a double where κ is large.
    top = 2 * b / (1 + b)
    for _ in range(_MOST_PROPOSALS):
        z = _symmetric_beta(p / 2)
        depth = 2 * b * z / (1 - (1 - b) * z)
        gain = kappa * (top - depth)
        ratio = (top + (1 - top) * depth) / (top * (2 - top))  # (1 - x0·t)/(1 - x0²)
        if gain + p * math.log(ratio) >= math.log(float(uniforms(1)[0])):
            return 1 - depth
    raise ParameterError("kappa", kappa, "no draw was accepted; the law is too narrow for floats")


def _symmetric_beta(shape: float) -> float:
    """Beta(a, a): (1 + x/|x, y...|)/2 of a normal vector of 2a + 1 entries."""
    draws = normals(round(2 * shape) + 1)
    return 0.5 * (1 + float(draws[0]) / float(np.linalg.norm(draws)))
