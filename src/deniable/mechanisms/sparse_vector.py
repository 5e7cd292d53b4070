"""The sparse vector technique: pay for the few answers that are above a threshold."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from deniable.errors import ParameterError, ParameterTypeError, StreamExhaustedError
from deniable.lazy import lazy
from deniable.mechanisms.base import represent
from deniable.mechanisms.laplace import Laplace
from deniable.mechanisms.values import read_real
from deniable.privacy.exact import Number, exact, positive, whole
from deniable.privacy.losses.base import check_ratio
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.fork import process_mark
from deniable.randomness.lattice import Lattice, lattice_for
from deniable.randomness.noise import LaplaceLaw, noise
from deniable.trace import opened, traced


@dataclass(frozen=True, init=False, repr=False)
class SparseVector:
    """Ask whether one value after another is above a threshold, until `positives` were.

    Formal guarantee. For any values, chosen adaptively, each of which moves by at most
    `sensitivity` between neighbours under `relation`:

    * one stream, from `open` to its last answer, is ε-DP however many questions it answers (Lyu, Su
      & Li 2017, Alg. 1 and Thm 2): noise of scale sensitivity/ε₁ on the threshold, drawn once, and
      of scale 2·positives·sensitivity/ε₂ on each value (positives·sensitivity/ε₂ for monotone
      values), afresh;
    * it ends after the last positive answer; negative answers cost nothing;
    * with `numeric=True` a positive answer comes with the value, under fresh noise of scale
      positives·sensitivity/ε₃; the noise of the comparison is never shown;
    * ε₁ : ε₂ = 1 : (2·positives)^(2/3) (1 : positives^(2/3) if monotone), which is the best split;
      ε₃ is half of ε where there are numbers.

    The whole price is paid on opening. A bare stream is unledgered: the caller keeps the budget.
    """

    epsilon: Fraction
    threshold: Fraction
    sensitivity: Fraction
    positives: int
    monotone: bool
    numeric: bool
    relation: Relation

    def __init__(
        self,
        *,
        epsilon: Number,
        threshold: Number,
        sensitivity: Number,
        positives: int = 1,
        monotone: bool = False,
        numeric: bool = False,
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        for name, flag in (("monotone", monotone), ("numeric", numeric)):
            if not isinstance(flag, bool):
                raise ParameterTypeError(name, flag, "must be True or False")
            object.__setattr__(self, name, flag)
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "threshold", exact(threshold, "threshold"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, "sensitivity"))
        object.__setattr__(self, "positives", whole(positives, "positives"))
        object.__setattr__(self, "relation", read_relation(relation))
        check_ratio("epsilon", self.epsilon)
        for law in (self.threshold_law, self.value_law):
            law.check()
        _ = self.numbers  # refused here, not after the first positive answer

    def __repr__(self) -> str:
        return represent(self)

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

    def open(self) -> SparseStream:
        """Start a stream: the threshold's noise is drawn now, and never again."""
        return SparseStream(self)


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

    def __init__(self, mechanism: SparseVector) -> None:
        self._mechanism = mechanism
        self._lock = threading.Lock()
        self._mark = process_mark()
        self._left = mechanism.positives
        level = mechanism.lattice.nearest_exact(mechanism.threshold) / mechanism.lattice.step
        drawn = opened(self, lambda: noise(mechanism.threshold_law).one())
        self._threshold = int(level) + drawn

    @property
    def mechanism(self) -> SparseVector:
        """What it is a stream of."""
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
