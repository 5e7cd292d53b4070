"""A finite mechanism as its channel: one row of exact probabilities for each input."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import Number, exact


@dataclass(frozen=True)
class Channel:
    """P(output | input) for finitely many inputs and outputs, as rationals.

    Rows are inputs, columns outputs; each row sums to one exactly.
    """

    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    rows: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        check_stochastic(self.rows)
        if len(self.inputs) != len(self.rows) or len(self.outputs) != len(self.rows[0]):
            raise ParameterError("rows", len(self.rows), "must match the inputs and outputs")

    def probability(self, output: Hashable, given: Hashable) -> Fraction:
        """P(output | given)."""
        return self.rows[self.inputs.index(given)][self.outputs.index(output)]

    def ratio(self, x: Hashable, y: Hashable) -> Fraction | float:
        """The largest P(output | x) / P(output | y), exactly; infinity where supports differ."""
        return worst_ratio(self.rows[self.inputs.index(x)], self.rows[self.inputs.index(y)])

    def epsilon(self) -> float:
        """The worst log ratio over all pairs of inputs."""
        worst = max(
            (self.ratio(x, y) for x, y in permutations(self.inputs, 2)), default=Fraction(1)
        )
        return math.inf if worst == math.inf else math.log(worst)

    def delta(self, epsilon: Number) -> float:
        """The worst sum of positive parts P(o | x) - e^ε P(o | y) over all pairs of inputs."""
        return worst_delta(self.rows, exact(epsilon, "epsilon"))


def read_rows(matrix: Sequence[Sequence[Number]]) -> tuple[tuple[Fraction, ...], ...]:
    """Read a matrix of probabilities exactly; floats mean their shortest decimals."""
    try:
        rows = tuple(tuple(exact(p, "matrix") for p in row) for row in matrix)
    except TypeError as cause:
        if isinstance(cause, ParameterTypeError):
            raise
        raise ParameterTypeError(
            "matrix", type(matrix).__name__, "must be rows of numbers"
        ) from None
    check_stochastic(rows)
    return rows


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
            raise ParameterError(
                "matrix", f"row {number} sums to {float(sum(row))!r}", "every row sums to exactly 1"
            )


def worst_ratio(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction | float:
    """The largest p_i / q_i; infinity where q_i is 0 and p_i is not."""
    if any(a > 0 and b == 0 for a, b in zip(p, q, strict=True)):
        return math.inf
    return max(a / b for a, b in zip(p, q, strict=True) if b > 0)


def worst_delta(rows: Sequence[Sequence[Fraction]], epsilon: Fraction) -> float:
    """The worst (P - e^ε Q)_+ over ordered pairs of rows; exact at ε = 0."""
    if epsilon == 0:
        gaps = [_positive_part(p, q, Fraction(1)) for p, q in permutations(rows, 2)]
        return float(max(gaps, default=Fraction(0)))
    grown = Fraction(math.exp(float(epsilon))) if epsilon < 700 else Fraction(10) ** 300
    found = max(
        (_positive_part(p, q, grown) for p, q in permutations(rows, 2)), default=Fraction(0)
    )
    # exp is right to the last digit or two; each row sums to one, so δ is right to as much.
    return min(1.0, float(found) + float(grown) * 2.0**-50 if found else 0.0)


def _positive_part(p: Sequence[Fraction], q: Sequence[Fraction], grown: Fraction) -> Fraction:
    return sum((max(a - grown * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


def channel_of(function: Callable[[Hashable], Hashable], inputs: Sequence[Hashable]) -> Channel:
    """The channel of a deterministic function: ε is infinite unless the function is constant."""
    values = [function(value) for value in inputs]
    outputs = tuple(dict.fromkeys(values))
    rows = tuple(tuple(Fraction(value == output) for output in outputs) for value in values)
    return Channel(tuple(inputs), outputs, rows)
