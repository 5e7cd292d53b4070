"""The sparse vector technique: pay for the few answers that are above a threshold."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from deniable.errors import ParameterError, PrivateValueError, StreamExhaustedError
from deniable.held import frameless
from deniable.lazy import lazy
from deniable.mechanisms.base import Pairs
from deniable.mechanisms.gaps import Gap, largest, misshapen
from deniable.mechanisms.laplace import Laplace
from deniable.mechanisms.values import is_scalar, read_real
from deniable.privacy.exact import Number, exact, positive, whole
from deniable.privacy.losses.base import ratio
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.parameters import Parameter, Related, flag, parameter, parameters
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.fork import process_mark
from deniable.randomness.lattice import Lattice, lattice_for
from deniable.randomness.noise import LaplaceLaw, noise
from deniable.trace import opened, traced


@parameters
class SparseVector:
    """Ask whether one value after another is above a threshold, until `positives` were.

    Formal guarantee. For any values, chosen adaptively, each of which moves by at most
    `sensitivity` between neighbours under `relation`:

    * one stream, from `release` to its last answer, is ε-DP however many questions it answers (Lyu,
      Su & Li 2017, Alg. 1 and Thm 2): noise of scale sensitivity/ε₁ on the threshold, drawn once,
      and of scale 2·positives·sensitivity/ε₂ on each value (positives·sensitivity/ε₂ for monotone
      values), afresh;
    * it ends after the last positive answer; negative answers cost nothing;
    * with `numeric=True` a positive answer comes with the value, under fresh noise of scale
      positives·sensitivity/ε₃; the noise of the comparison is never shown;
    * ε₁ : ε₂ = 1 : (2·positives)^(2/3) (1 : positives^(2/3) if monotone), which is the best split;
      ε₃ is half of ε where there are numbers.

    The whole price is paid on opening. A bare stream is unledgered: the caller keeps the budget.
    """

    epsilon: Parameter[Number, Fraction] = parameter(ratio)
    threshold: Parameter[Number, Fraction] = parameter(exact)
    sensitivity: Parameter[Number, Fraction] = parameter(positive)
    positives: Parameter[int, int] = parameter(whole, default=1)
    monotone: Parameter[bool, bool] = parameter(flag, default=False)
    numeric: Parameter[bool, bool] = parameter(flag, default=False)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    def __post_init__(self) -> None:
        for law in (self.threshold_law, self.value_law):
            law.check()
        _ = self.numbers  # refused here, not after the first positive answer

    @lazy
    def loss(self) -> PureLoss:
        """What one whole stream costs."""
        return PureLoss(bound=self.epsilon, relation=self.relation)

    @lazy
    def shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """ε₁ for the threshold, ε₂ for the comparisons, ε₃ for the numbers; they sum to ε."""
        numbers = self.epsilon / 2 if self.numeric else Fraction(0)
        rest = self.epsilon - numbers
        queries = self.positives if self.monotone else 2 * self.positives
        weight = Fraction(round(queries ** (2 / 3) * 10**6), 10**6)
        return rest / (1 + weight), rest * weight / (1 + weight), numbers

    @lazy
    def lattice(self) -> Lattice:
        """The multiples of a power of two on which comparisons are made."""
        return lattice_for(
            sensitivity=self.sensitivity,
            scale=2 * self.positives * self.sensitivity / self.shares[1],
        )

    @property
    def threshold_law(self) -> LaplaceLaw:
        """The noise on the threshold, in steps."""
        return LaplaceLaw(self.lattice.l1_steps(self.sensitivity, 1) / self.shares[0])

    @property
    def value_law(self) -> LaplaceLaw:
        """The noise on each value, in steps."""
        times = self.positives if self.monotone else 2 * self.positives
        return LaplaceLaw(times * self.lattice.l1_steps(self.sensitivity, 1) / self.shares[1])

    @lazy
    def numbers(self) -> Laplace | None:
        """The mechanism that releases the value of a positive answer."""
        if not self.numeric:
            return None
        moved = self.positives * self.sensitivity
        return Laplace(epsilon=self.shares[2], sensitivity=moved, relation=self.relation)

    @frameless
    def release(self, value: Any) -> SparseStream:
        """Open a stream, and put these private values to it, until it ends; a list, or none yet.

        The threshold's noise is drawn now, and never again.
        """
        if not isinstance(value, list | tuple | np.ndarray):
            raise PrivateValueError("a stream is opened with a list of values; [] for none yet")
        for each in value:
            read_real(each)  # what cannot be compared is refused before anything is drawn
        return SparseStream(self, value)

    def open(self) -> SparseStream:
        """Start a stream that is asked later: `release([])`."""
        return self.release([])

    def gap(self, x: Any, y: Any) -> Gap:
        """The largest move of a value, of one question or of a whole stream."""
        before, after = ([each] if is_scalar(each) else list(each) for each in (x, y))
        if len(before) != len(after):
            return misshapen("values")
        moves = [
            Fraction(read_real(b)) - Fraction(read_real(a))
            for a, b in zip(before, after, strict=True)
        ]
        return largest(moves, self.sensitivity, "each value", monotone=self.monotone)

    def neighbours(self) -> Pairs:
        """Streams at the threshold, each value as far apart as is charged for."""
        low, moved = float(self.threshold), float(self.sensitivity)
        some = 2 + 2 * self.positives
        if self.monotone:
            return [([low] * some, [low + moved] * some)]
        return [([low] * some + [low + moved], [low + moved] * some + [low])]


@dataclass(frozen=True)
class AboveThreshold:
    """The answer to one question: above or not, and the noisy value where that was asked."""

    above: bool
    value: float | None = None

    def __bool__(self) -> bool:
        return self.above


class SparseStream:
    """An open sparse vector. It can be neither copied, stored nor used in a forked child.

    A second copy would answer again on the same threshold noise.
    """

    def __init__(self, mechanism: SparseVector, values: Iterable[Any] = ()) -> None:
        self._mechanism = mechanism
        self._lock = threading.RLock()
        self._asked = False
        self._mark = process_mark()
        self._left = mechanism.positives
        level = mechanism.lattice.nearest_exact(mechanism.threshold) / mechanism.lattice.step
        drawn = opened(self, lambda: noise(mechanism.threshold_law).one())
        self._threshold = int(level) + drawn
        self._answers: list[AboveThreshold] = []
        for value in values:
            if self._left == 0:
                break
            self._answers.append(self.ask(value))

    @property
    def answers(self) -> list[AboveThreshold]:
        """What it answered to the values that it was opened with."""
        return list(self._answers)

    @property
    def mechanism(self) -> SparseVector:
        return self._mechanism

    @property
    def positives_left(self) -> int:
        """How many more positive answers the stream will give."""
        return self._left

    def ask(self, value: Any) -> AboveThreshold:
        """Is this private value above the threshold? Raises `StreamExhaustedError` at the end."""
        if self._mark != process_mark():
            raise StreamExhaustedError("this stream was opened in another process; open one here")
        read_real(value)  # what cannot be compared is refused, even at the end
        with self._lock:
            if self._asked:  # by the very thread that holds the lock: it would be its own wait
                raise StreamExhaustedError(
                    "a signal handler asks a stream in the midst of its answer; open another one"
                )
            self._asked = True
            try:
                return self._answer(value)
            finally:
                self._asked = False

    def _answer(self, value: Any) -> AboveThreshold:
        if self._left == 0:
            raise StreamExhaustedError(
                f"this stream has given its {self.mechanism.positives} positive answers; "
                "open another one, at its full price"
            )
        answer = self._compare(value)
        self._left -= answer.above
        return answer

    @traced
    def _compare(self, value: Any) -> AboveThreshold:
        """One comparison, which `ask` counts."""
        mechanism = self.mechanism
        point = mechanism.lattice.nearest_exact(Fraction(read_real(value)))
        steps = int(point / mechanism.lattice.step)
        above = steps + noise(mechanism.value_law).one() >= self._threshold
        if not above or mechanism.numbers is None:
            return AboveThreshold(above)
        released = mechanism.numbers.release(value)
        assert isinstance(released, float)
        return AboveThreshold(above, released)

    def __reduce__(self) -> NoReturn:
        raise ParameterError("stream", "a copy", "an open stream is not copied: its noise would be")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce__()
