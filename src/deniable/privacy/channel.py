"""A finite mechanism as its channel: one row of exact probabilities for each input."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np
import numpy.typing as npt

from deniable.closed import read_fraction
from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import Number, exact, float_above, log_float, log_up, not_negative


@dataclass(frozen=True)
class Channel:
    """P(output | input) for finitely many inputs and outputs, as rationals.

    Rows are inputs, columns outputs; each row sums to one exactly.
    """

    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    rows: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", read_rows(self.rows))
        if any(len(set(labels)) != len(labels) for labels in (self.inputs, self.outputs)):
            raise ParameterError("inputs, outputs", "repeated", "labels must differ")
        if len(self.inputs) != len(self.rows) or len(self.outputs) != len(self.rows[0]):
            raise ParameterError("rows", len(self.rows), "must match the inputs and outputs")

    def probability(self, output: Hashable, given: Hashable) -> Fraction:
        """P(output | given)."""
        if output not in self.outputs:
            raise ParameterError("output", output, "is none of the channel's outputs")
        return self.row(given)[self.outputs.index(output)]

    def row(self, given: Hashable) -> tuple[Fraction, ...]:
        """The probabilities of all outputs for one input."""
        if given not in self.inputs:
            raise ParameterError("input", given, "is none of the channel's inputs")
        return self.rows[self.inputs.index(given)]

    def ratio(self, x: Hashable, y: Hashable) -> Fraction | float:
        """The largest P(output | x) / P(output | y), exactly; infinity where supports differ."""
        return worst_ratio(self.row(x), self.row(y))

    def epsilon(self) -> float:
        """The worst log ratio over all pairs of inputs."""
        worst = worst_of_all(self.rows)
        return math.inf if worst == math.inf else log_float(Fraction(worst))

    def delta(self, epsilon: Number) -> float:
        """The worst sum of positive parts P(o | x) - e^ε P(o | y) over all pairs of inputs."""
        return worst_delta(self.rows, not_negative(epsilon, "epsilon"))


def read_rows(matrix: Sequence[Sequence[Number]]) -> tuple[tuple[Fraction, ...], ...]:
    """Read a matrix of probabilities exactly; floats mean their shortest decimals."""
    try:
        rows = tuple(tuple(_probability(p) for p in row) for row in matrix)
    except TypeError as cause:
        if isinstance(cause, ParameterTypeError):
            raise
        raise ParameterTypeError(
            "matrix", type(matrix).__name__, "must be rows of numbers"
        ) from None
    check_stochastic(rows)
    return rows


def _probability(value: Number) -> Fraction:
    """A fraction as it is, however small; other numbers by what they mean."""
    return read_fraction(value, "matrix") if type(value) is Fraction else exact(value, "matrix")


def check_stochastic(rows: Sequence[Sequence[Fraction]]) -> None:
    """Refuse what is not a matrix of conditional probabilities."""
    if not rows or not rows[0]:
        raise ParameterError("matrix", "empty", "a channel has at least one input and one output")
    if len({len(row) for row in rows}) > 1:
        raise ParameterError("matrix", "ragged", "every row of a channel has the same length")
    for number, row in enumerate(rows):
        if min(row) < 0:
            raise ParameterError("matrix", f"row {number}", "probabilities are not negative")
        if sum(row) != 1:
            total = sum(row, Fraction(0))
            shown = repr(float(total)) if total < 10**300 else "more than 1e300"
            raise ParameterError(
                "matrix", f"row {number} sums to {shown}", "every row sums to exactly 1"
            )


def worst_ratio(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction | float:
    """The largest p_i / q_i; infinity where q_i is 0 and p_i is not."""
    if any(a > 0 and b == 0 for a, b in zip(p, q, strict=True)):
        return math.inf
    return max(a / b for a, b in zip(p, q, strict=True) if b > 0)


def worst_of_all(rows: Sequence[Sequence[Fraction]]) -> Fraction | float:
    """The largest ratio over all pairs of rows: column by column, the largest over the least."""
    worst = Fraction(1)
    for column in zip(*rows, strict=True):
        least, most = min(column), max(column)
        if most > 0 and least == 0:
            return math.inf
        worst = max(worst, most / least) if most else worst
    return worst


def worst_delta(rows: Sequence[Sequence[Fraction]], epsilon: Fraction) -> float:
    """The worst (P - e^ε Q)_+ over ordered pairs of rows; exact at ε = 0, never rounded down."""
    if epsilon == 0:
        pairs = permutations(rows, 2)
        gaps = [sum(max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)) for p, q in pairs]
        return float_above(Fraction(max(gaps, default=0)))
    worst = worst_of_all(rows)
    if worst != math.inf and epsilon >= log_up(Fraction(worst)):
        return 0.0
    return float_delta(np.array([[float(p) for p in row] for row in rows]), float(epsilon))


def float_delta(rows: npt.NDArray[np.float64], epsilon: float) -> float:
    """The same in floats, rounded up by more than they can be wrong."""
    grown = math.exp(min(epsilon, 700.0))
    found = max(float(np.maximum(row - grown * rows, 0.0).sum(axis=1).max()) for row in rows)
    # Where P > e^ε Q, e^ε Q is at most 1: terms are wrong by a few last places of 1, and by
    # those of ε in the exponent.
    return min(1.0, found + float(rows.shape[1] + epsilon + 8) * 2.0**-51)
