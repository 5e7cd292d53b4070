"""Propose, test, release: little noise where the data allow it, no answer where they do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import represent
from deniable.mechanisms.laplace import Laplace, laplace_tail_threshold
from deniable.mechanisms.values import is_scalar, read_integer, read_reals
from deniable.privacy.exact import Number, positive, probability, read_bounds
from deniable.privacy.losses.base import check_ratio
from deniable.privacy.losses.generic import ApproxLoss
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.noise import LaplaceLaw, noise
from deniable.trace import traced

# Interquartile ranges below this count as none.
_LEAST_SPREAD = 1e-290


@dataclass(frozen=True, init=False, repr=False)
class ProposeTestRelease:
    """Propose a bound on the local sensitivity, test privately whether it holds, release if so.

    Formal guarantee (Dwork & Lei 2009, section 3). For a function and its distance to instability,
    the number of units to change before its local sensitivity exceeds `bound` (0 if it does):

    * one release is (ε, δ)-DP: the distance moves by one between neighbours and is compared under
      geometric noise of scale 2/ε with the least whole t for which P(Z >= t) <= δ for the noise Z
      that is drawn; the value is released with Laplace noise of scale 2·bound/ε;
    * a failed test returns None, and costs as much;
    * `median` computes its own distance (Nissim, Raskhodnikova & Smith 2007, Prop. 3.4), `scale`
      releases the interquartile range up to a constant factor (Dwork & Lei 2009, Alg. S); both
      are stated for one unit replaced.

    A bare release is unledgered: the caller keeps the budget.
    """

    epsilon: Fraction
    delta: Fraction
    bound: Fraction
    relation: Relation

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bound: Number,
        relation: Relation | str = Relation.REPLACE,
    ) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", probability(delta, "delta"))
        object.__setattr__(self, "bound", positive(bound, "bound"))
        object.__setattr__(self, "relation", read_relation(relation))
        check_ratio("epsilon", self.epsilon)
        self._test_law.check()
        _ = self._value_noise

    def __repr__(self) -> str:
        return represent(self)

    @lazy
    def loss(self) -> ApproxLoss:
        """What one release costs, whether the test passes or fails."""
        return ApproxLoss(bound=self.epsilon, slack=self.delta, relation=self.relation)

    @property
    def _test_law(self) -> LaplaceLaw:
        return LaplaceLaw(2 / self.epsilon)

    @lazy
    def threshold(self) -> int:
        """The noisy distance that a test must reach."""
        return laplace_tail_threshold(self._test_law.scale, self.delta)

    @lazy
    def _value_noise(self) -> Laplace:
        return Laplace(epsilon=self.epsilon / 2, sensitivity=self.bound, relation=self.relation)

    @traced
    def release(self, value: Any, distance: int) -> float | None:
        """Release a private value whose private distance to instability is known."""
        far = read_integer(distance)
        if far < 0:
            raise PrivateValueError("a distance to instability is 0 or more")
        if not is_scalar(value):
            raise PrivateValueError("one number is released at a time")
        released = self._value_noise.release(value)  # checks the value before anything is drawn
        assert isinstance(released, float)
        passed = far + noise(self._test_law).one() >= self.threshold
        return released if passed else None

    @traced
    def median(self, values: Any, *, bounds: tuple[Number, Number]) -> float | None:
        """Release the median of numbers clamped to public bounds, if it is stable enough."""
        self._needs_replace("median")
        low, high = read_bounds(bounds)
        ordered = _clamped(values, low, high)
        distance = median_distance(ordered, self.bound, float(low), float(high))
        return self.release(float(ordered[(ordered.size - 1) // 2]), distance)

    @traced
    def scale(self, values: Any, *, bounds: tuple[Number, Number]) -> float | None:
        """Release the interquartile range, to within a constant factor, if it is stable enough.

        The logarithm of the range lies in a bin of width 1 of two staggered grids; a bin is
        released, by its middle, if many units would have to change to leave it. Two tests at half
        of ε and δ each; `bound` plays no part.
        """
        self._needs_replace("scale")
        ordered = _clamped(values, *read_bounds(bounds))
        law = LaplaceLaw(2 / self.epsilon)
        least = laplace_tail_threshold(law.scale, self.delta / 2)
        spread = float(_interquartile(ordered, np.zeros(1, int), np.zeros(1, int))[0])
        answer = None
        for offset in (0.0, 0.5):
            drawn = noise(law).one()
            if spread < _LEAST_SPREAD or answer is not None:
                continue
            low, high = scale_bin(spread, offset)
            if bin_distance(ordered, low, high) + drawn >= least:
                answer = low * math.sqrt(2)
        return answer

    def _needs_replace(self, name: str) -> None:
        if self.relation != Relation.REPLACE:
            raise ParameterError(
                "relation", str(self.relation), f"{name} is proved for relation='replace' only"
            )


def median_distance(
    ordered: npt.NDArray[np.float64], bound: Fraction, low: float, high: float
) -> int:
    """How many values to replace before the median's local sensitivity exceeds `bound`.

    The least k with max over 0 <= t <= k+1 of x_(m+t) - x_(m+t-k-1) > bound, x padded by the
    bounds; at most the size of the list. The maximum rises with k, so k is found by bisection.
    """
    n, m = ordered.size, (ordered.size - 1) // 2
    padded = np.concatenate([np.full(n + 2, low), ordered, np.full(n + 2, high)])
    centre = n + 2 + m

    def unstable(k: int) -> bool:
        t = np.arange(k + 2)
        return bool(exceeds(padded[centre + t], padded[centre + t - k - 1], bound).any())

    return first_true(unstable, n)


def exceeds(
    upper: npt.NDArray[np.float64], lower: npt.NDArray[np.float64], bound: Fraction
) -> npt.NDArray[np.bool_]:
    """Whether upper - lower > bound, exactly: a difference of doubles is a double and its error."""
    difference = upper - lower
    back = difference - upper
    error = (upper - (difference - back)) - (lower + back)
    nearest = float(bound)
    left = float(bound - Fraction(nearest))
    over: npt.NDArray[np.bool_] = (difference > nearest) | (
        (difference == nearest) & (error > left)
    )
    return over


def scale_bin(spread: float, offset: float) -> tuple[float, float]:
    """The bin [low, 2 low) of the grid 2^(k + offset) that holds `spread`, as compared later."""
    k = math.floor(math.log2(spread) - offset)
    while spread < 2.0 ** (k + offset):
        k -= 1
    while spread >= 2.0 ** (k + 1 + offset):
        k += 1
    return 2.0 ** (k + offset), 2.0 ** (k + 1 + offset)


def bin_distance(ordered: npt.NDArray[np.float64], low: float, high: float) -> int:
    """How many values to replace before one more can move the interquartile range out of the bin.

    Replacing k values moves the two quartiles by k places in all.
    """

    def leaves(k: int) -> bool:
        t = np.arange(k + 1)
        widest = _interquartile(ordered, -t, k - t).max()
        narrowest = _interquartile(ordered, t, t - k).min()
        return bool(widest >= high or narrowest < low)

    return max(0, first_true(leaves, ordered.size) - 1)


def first_true(holds: Callable[[int], bool], most: int) -> int:
    """The least k in 0, ..., most at which `holds`, which is false below and true above."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _interquartile(
    ordered: npt.NDArray[np.float64], below: npt.NDArray[np.int64], above: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """x_(3n/4 + above) - x_(n/4 + below), places beyond the ends counting as infinitely far."""
    n = ordered.size
    first, third = n // 4 + below, (3 * n) // 4 + above
    spread = ordered[third.clip(0, n - 1)] - ordered[first.clip(0, n - 1)]
    spread = np.where((first < 0) | (third >= n), math.inf, spread)
    return np.where(first > third, 0.0, spread)


def _clamped(values: Any, low: Fraction, high: Fraction) -> npt.NDArray[np.float64]:
    reals = read_reals(values)
    if len(reals.shape) != 1:
        raise PrivateValueError("a flat list of numbers is needed")
    doubles = reals.doubles
    if doubles is None:
        doubles = np.array([float(min(max(real, low), high)) for real in reals.rationals])
    return np.sort(np.clip(doubles, float(low), float(high)))
