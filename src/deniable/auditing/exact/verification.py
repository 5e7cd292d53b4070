"""Exact verification of finite mechanisms: nothing is sampled, every pair of neighbours is read.

Fractions in, fractions out: a table of rationals gives e^ε, δ and trade-off curves as rationals. A
table of floats is read in floats, and what it says is rounded against the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.auditing.exact.pairs import FloatPairs, Pairs, RationalPairs
from deniable.auditing.exact.streams import stream_channel
from deniable.auditing.gaps import gap, plain_subject, view
from deniable.auditing.report import Report, Reported
from deniable.errors import ParameterError, ParameterTypeError
from deniable.mechanisms.noisy_max import ReportNoisyMax
from deniable.mechanisms.selection import Exponential, PermuteAndFlip
from deniable.mechanisms.sparse_vector import SparseVector
from deniable.plots import lines
from deniable.privacy.channel import Channel, read_rows
from deniable.privacy.exact import (
    Number,
    decimal,
    exact,
    float_above,
    high_precision,
    log_float,
    log_up,
    not_negative,
    probability,
    show,
)
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import ApproxLoss

Matrix = Sequence[Sequence[Number]] | npt.NDArray[Any] | Channel
Adjacency = Iterable[tuple[Hashable, Hashable]]

_ROUNDING = 1e-9  # how far a row of floats may sum from one
_SLACK = Fraction(1, 10**30)  # of channels whose probabilities are stated to 128 bits or more


@dataclass(frozen=True)
class Witness:
    """The output that tells two neighbours apart best."""

    output: Hashable
    more_likely_on: Hashable
    less_likely_on: Hashable


@dataclass(frozen=True)
class PosteriorBounds:
    """What a suspicion can become: from `low` to `high`, but for a chance of `miss`."""

    low: Fraction | float
    high: Fraction | float
    miss: Fraction | float


@dataclass(frozen=True, eq=False)
class Verified(Reported):
    """What a finite mechanism does to any two neighbours."""

    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    pairs: Pairs
    claim: Loss | None = None

    @property
    def ratio(self) -> Fraction | float:
        """e^ε: the largest ratio of probabilities; infinity where supports differ."""
        return self.pairs.worst()[0]

    @property
    def epsilon(self) -> float:
        """The least ε for which the mechanism is ε-DP, as the nearest float."""
        worst = self.ratio
        return math.log(worst) if isinstance(worst, float) else log_float(worst)

    @property
    def witness(self) -> Witness:
        """Where the largest ratio is met."""
        _, output, x, y = self.pairs.worst()
        return Witness(self.outputs[output], self.inputs[x], self.inputs[y])

    def delta(
        self, *, epsilon: Number | None = None, ratio: Fraction | int | None = None
    ) -> Fraction | float:
        """The least δ for which the mechanism is (ε, δ)-DP, never rounded down.

        Exact for ε = 0, and for `ratio` = e^ε given as a rational; otherwise e^ε is taken to sixty
        digits.
        """
        if (epsilon is None) == (ratio is None):
            raise ParameterError("epsilon", epsilon, "give either epsilon= or ratio=")
        if ratio is None:
            grown = _exp_down(not_negative(epsilon if epsilon is not None else 0, "epsilon"))
        else:
            grown = exact(ratio, "ratio")
            if grown < 1:
                raise ParameterError("ratio", ratio, "is e^ε, and so 1 or more")
        return self.pairs.delta(grown)

    def tradeoff(self, alpha: Number) -> Fraction | float:
        """The least type-II error of any test of level alpha between two neighbours.

        Neyman-Pearson: outputs are rejected by their likelihood ratio, the last one by a coin.
        """
        level = not_negative(alpha, "alpha")
        if level > 1:
            raise ParameterError("alpha", alpha, "a type-I error lies between 0 and 1")
        return self.pairs.tradeoff(level)

    def posterior(self, prior: Number, *, epsilon: Number | None = None) -> PosteriorBounds:
        """What a suspicion of `prior`, one neighbour against another, can become by one output.

        The odds move by a factor of e^ε at most: for the exact ε always, for a smaller one except
        on outputs whose ratio is larger; `miss` is their probability, on the worse side.
        """
        p = probability(prior, "prior")
        if epsilon is None:
            grown, miss = self.ratio, Fraction(0) if self.pairs.exact else 0.0
        else:
            grown = 1 / _exp_down(-not_negative(epsilon, "epsilon"))
            miss = self.pairs.beyond(grown)
        if grown == math.inf:
            return PosteriorBounds(Fraction(0), Fraction(1), miss)
        factor = Fraction(grown)
        low, high = p / (p + (1 - p) * factor), p * factor / (p * factor + 1 - p)
        if self.pairs.exact:
            return PosteriorBounds(low, high, miss)
        return PosteriorBounds(-float_above(-low), float_above(high), miss)

    @property
    def holds(self) -> bool:
        """Whether the mechanism's own claim is kept: its ε, or its δ(ε) where there is none.

        δ(ε) is compared where the claim is stated, at 0, and wherever the table's own curve bends.
        Probabilities that are stated to so many bits may miss it by 1e-30, floats by 1e-9.
        """
        if self.claim is None:
            raise ParameterError("claim", None, "a bare channel claims nothing; read epsilon")
        if self.claim.pure is not None:
            if self.ratio == math.inf:
                return False
            slack = _SLACK if self.pairs.exact else Fraction(1, 10**9)
            return log_up(Fraction(self.ratio)) <= self.claim.pure + slack
        slack = Fraction(_SLACK if self.pairs.exact else Fraction(1, 10**9))
        claimed = [self.claim.bound] if isinstance(self.claim, ApproxLoss) else []
        return all(
            self.delta(epsilon=each) <= Fraction(self.claim.delta(epsilon=each)) + slack
            for each in [Fraction(0), *claimed, *map(_log_down, self.pairs.ratios())]
        )

    @property
    def report(self) -> Report:
        worst = self.ratio
        shown = _shown(worst)
        seen = self.witness
        facts = {
            "inputs": len(self.inputs),
            "outputs": len(self.outputs),
            "pairs of neighbours": self.pairs.count,
            "ε": f"ln {shown} = {self.epsilon:.10g}",
            "δ(0)": _shown(self.delta(epsilon=0)),
            "met at output": f"{seen.output!r}, on {seen.more_likely_on!r} against "
            f"{seen.less_likely_on!r}",
        }
        kept = self.claim is None or self.holds
        verdict = f"exactly {self.epsilon:.10g}-differentially private"
        if self.claim is not None:
            verdict += "; the claim holds" if kept else "; the claim is broken"
        if worst == math.inf:
            verdict = (
                "not ε-differentially private for any ε: an output is possible on one side only"
            )
        return Report("A finite mechanism, verified", kept, verdict, facts)

    def plot(self, path: str | Path) -> Path:
        """Draw the trade-off curve."""
        x = np.linspace(0, 1, 41)
        floats = self.pairs.as_floats()
        curve = [floats.tradeoff(Fraction(i, 40)) for i in range(41)]
        return lines(
            x,
            {"no information": 1 - x, "this mechanism": curve},
            title="Trade-off curve",
            x_label="type-I error",
            y_label="least type-II error",
            path=path,
        )


def verify_channel(matrix: Matrix, adjacency: Adjacency | None = None) -> Verified:
    """Verify a finite mechanism from its probabilities: rows are inputs, columns outputs.

    `adjacency` lists the pairs of inputs that are neighbours: row numbers, or the labels of a
    `Channel`; without it every two inputs are. Rationals, integers and decimals are read exactly,
    and so are floats whose decimals sum to one; other tables of floats may miss one by 1e-9.
    """
    if isinstance(matrix, Channel):
        return _verified(matrix.inputs, matrix.outputs, matrix.rows, adjacency, None)
    rows = _read(matrix)
    return _verified(range(len(rows)), range(len(rows[0])), rows, adjacency, None)


def verify(mechanism: Any, inputs: Sequence[Any], adjacency: Adjacency | None = None) -> Verified:
    """Verify a mechanism with finitely many outputs on these inputs, against its own loss.

    Inputs are what `release` takes; for selections lists of scores; for `SparseVector` streams of
    values. Neighbours are the inputs that the mechanism charges for, unless `adjacency` says.
    """
    loss = getattr(mechanism, "loss", None)
    if not isinstance(loss, Loss):
        raise ParameterTypeError("mechanism", type(mechanism).__name__, "must have a loss")
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Iterable):
        inputs = list(inputs) if isinstance(inputs, str) else []
    given = [_label(value) for value in inputs]
    if not given:
        raise ParameterError("inputs", "empty", "give two inputs or more")
    try:
        outputs, rows = _channel(mechanism, list(inputs), given)
    except (TypeError, ValueError) as cause:
        if isinstance(cause, ParameterError):
            raise
        raise ParameterTypeError(
            "inputs", type(inputs).__name__, "must be a list of what the mechanism takes"
        ) from None
    if adjacency is None:
        adjacency = _neighbours(mechanism, list(inputs), given)
    return _verified(given, outputs, rows, adjacency, loss)


def _label(value: Any) -> Hashable:
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(_label(part) for part in value)
    label: Hashable = value.item() if isinstance(value, np.generic) else value
    return label


def _channel(mechanism: Any, inputs: list[Any], given: list[Hashable]) -> tuple[Any, Any]:
    """The outputs and rows of a mechanism."""
    if isinstance(mechanism, SparseVector):
        if mechanism.numeric:
            raise ParameterError(
                "numeric",
                True,
                "the numbers of a stream are no finite outputs; verify without them",
            )
        return stream_channel(
            inputs,
            threshold=float(mechanism.threshold),
            threshold_scale=float(mechanism.threshold_law.scale * mechanism.lattice.step),
            value_scale=float(mechanism.value_law.scale * mechanism.lattice.step),
            positives=mechanism.positives,
        )
    if isinstance(mechanism, Exponential | PermuteAndFlip | ReportNoisyMax):
        return _choices(mechanism, inputs)
    if not callable(getattr(mechanism, "channel", None)):
        raise ParameterTypeError(
            "mechanism",
            type(mechanism).__name__,
            "has no finite channel; verify mechanisms with finitely many outputs, such as "
            "TruncatedGeometric or RandomizedResponse, or replay a pipeline",
        )
    channel = mechanism.channel(given)
    return channel.outputs, channel.rows


def _choices(
    mechanism: Exponential | PermuteAndFlip | ReportNoisyMax, inputs: list[Any]
) -> tuple[Any, Any]:
    """The probabilities of each candidate, for lists of scores."""
    exact_law = mechanism.same_law() if isinstance(mechanism, ReportNoisyMax) else mechanism
    if exact_law is None:
        _close_scores(mechanism, inputs)
    rows = [(exact_law or mechanism).probabilities(scores) for scores in inputs]
    if len({len(row) for row in rows}) > 1:
        raise ParameterError("inputs", "ragged", "all inputs score the same candidates")
    return range(len(rows[0])), np.array(rows, dtype=float) if exact_law is None else rows


def _close_scores(mechanism: Any, inputs: list[Any]) -> None:
    """Noisy maxima are integrated: probabilities of far losers would be lost to rounding."""
    for scores in inputs:
        read = [exact(score, "inputs") for score in scores]
        if (max(read) - min(read)) * mechanism.factor > 50:
            raise ParameterError("inputs", "scores", "lie too far apart to be verified: 50/factor")


def _neighbours(
    mechanism: Any, inputs: list[Any], labels: list[Hashable]
) -> list[tuple[Hashable, Hashable]]:
    """The pairs that lie within what the mechanism charges for."""
    found = []
    for i, j in combinations(range(len(inputs)), 2):
        x, y = (view(mechanism, (value,)) for value in (inputs[i], inputs[j]))
        apart = gap(plain_subject(mechanism), x, y)
        if apart is not None and apart.ok:
            found.append((labels[i], labels[j]))
    if not found:
        raise ParameterError("inputs", len(inputs), "hold no two neighbours; nothing to verify")
    return found


def _verified(
    inputs: Sequence[Hashable],
    outputs: Sequence[Hashable],
    rows: Any,
    adjacency: Adjacency | None,
    claim: Loss | None,
) -> Verified:
    labels = tuple(inputs)
    if len(labels) < 2:
        raise ParameterError("inputs", len(labels), "give two inputs or more")
    if len(set(labels)) != len(labels):
        raise ParameterError("inputs", "repeated", "inputs must differ")
    places = None if adjacency is None else _places(labels, adjacency)
    made: Pairs = (
        FloatPairs(rows, places) if isinstance(rows, np.ndarray) else RationalPairs(rows, places)
    )
    return Verified(labels, tuple(outputs), made, claim)


def _places(labels: tuple[Hashable, ...], adjacency: Adjacency) -> tuple[tuple[int, int], ...]:
    """Pairs of labels as pairs of row numbers, each once."""
    at = {label: place for place, label in enumerate(labels)}
    found: dict[tuple[int, int], None] = {}
    try:
        for x, y in adjacency:
            if x not in at or y not in at or x == y:
                raise ParameterError(
                    "adjacency", (x, y), "every pair names two different inputs of the channel"
                )
            found[(min(at[x], at[y]), max(at[x], at[y]))] = None
    except (TypeError, ValueError) as cause:
        if isinstance(cause, ParameterError):
            raise
        raise ParameterTypeError(
            "adjacency", type(adjacency).__name__, "must be pairs of inputs"
        ) from None
    if not found:
        raise ParameterError("adjacency", "empty", "name one pair of neighbours or more")
    return tuple(found)


def _read(matrix: Any) -> Any:
    """Rationals where the table is one of rationals, an array of floats otherwise."""
    if isinstance(matrix, np.ndarray) and matrix.dtype.kind == "f":
        return _floats(matrix)
    try:
        return read_rows(matrix)
    except ParameterTypeError:
        raise
    except ParameterError as cause:
        has_floats = any(isinstance(p, float | np.floating) for row in matrix for p in row)
        if not has_floats or "sums to" not in str(cause):
            raise
    lost = any(p != 0 and float(p) == 0 for row in matrix for p in row)
    if lost:
        raise ParameterError("matrix", "an entry below 1e-308", "give such tables as Fractions")
    return _floats(np.array(matrix, dtype=np.float64))


def _floats(matrix: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ParameterError(
            "matrix", matrix.shape, "a channel has inputs as rows, outputs as columns"
        )
    rows = matrix.astype(np.float64)
    if bool(((rows == 0) & (matrix != 0)).any()):
        raise ParameterError("matrix", "an entry below 1e-308", "give such tables as Fractions")
    if not bool(np.isfinite(rows).all()) or bool((rows < 0).any()):
        raise ParameterError("matrix", "NaN, infinite or negative", "probabilities lie in [0, 1]")
    off = np.abs(rows.sum(axis=1) - 1)
    if bool((off > _ROUNDING).any()):
        worst = int(off.argmax())
        raise ParameterError(
            "matrix", f"row {worst} sums to {rows[worst].sum()!r}", "every row sums to 1"
        )
    return rows


def _exp_down(epsilon: Fraction) -> Fraction:
    """A rational at or below e^ε, within sixty digits; exact at 0."""
    if epsilon == 0:
        return Fraction(1)
    if epsilon > 10**6:
        raise ParameterError("epsilon", show(epsilon), "must be 1e6 or less")
    with localcontext(high_precision()):
        return Fraction(decimal(epsilon).exp()) * (1 - Fraction(1, 10**58))


def _log_down(ratio: Fraction | float) -> Fraction:
    """A rational at or below ln(ratio), and 0 at least."""
    return max(Fraction(0), log_up(Fraction(ratio)) - Fraction(2, 10**40))


def _shown(number: Fraction | float) -> str:
    if not isinstance(number, Fraction):
        return repr(number)
    return show(number) if number < 10**300 else f"about 1e{len(str(int(number))) - 1}"
