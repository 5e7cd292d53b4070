"""Propose, test, release: little noise where the data allow it, no answer where they do not."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import Pairs, Plain
from deniable.mechanisms.gaps import Gap, by_norm, moved_by, real_moves, records_apart
from deniable.mechanisms.laplace import Laplace
from deniable.mechanisms.laws import tail_threshold
from deniable.mechanisms.values import is_scalar, read_integer, read_real, read_reals
from deniable.privacy.exact import Number, positive, probability, read_bounds
from deniable.privacy.losses.base import ratio
from deniable.privacy.losses.generic import ApproxLoss
from deniable.privacy.parameters import Parameter, Related, one_of, optional, parameter, parameters
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.noise import LaplaceLaw, noise
from deniable.trace import traced

# Interquartile ranges below this count as none.
_LEAST_SPREAD = 1e-290


class Robust(StrEnum):
    """Functions whose distance to instability is known."""

    MEDIAN = "median"
    SCALE = "scale"


Proposal = Callable[[Any], tuple[float, int]]
Bounds = tuple[Fraction, Fraction]


def _read_function(function: Proposal | str | None, argument: str) -> Proposal | Robust | None:
    return (
        function if function is None or callable(function) else one_of(Robust)(function, argument)
    )


@parameters
class ProposeTestRelease:
    """Propose a bound on the local sensitivity, test privately whether it holds, release if so.

    Formal guarantee (Dwork & Lei 2009, section 3). For a function and its distance to instability,
    the number of units to change before its local sensitivity exceeds `bound` (0 if it does):

    * one release is (ε, δ)-DP: the distance moves by one between neighbours and is compared under
      geometric noise of scale 2/ε with the least whole t for which P(Z >= t) <= δ for the noise Z
      that is drawn; the value is released with Laplace noise of scale 2·bound/ε;
    * a failed test returns None, and costs as much;
    * `function="median"` has its own distance (Nissim, Raskhodnikova & Smith 2007, Prop. 3.4),
      `"scale"` is the interquartile range up to a constant factor (Dwork & Lei 2009, Alg. S), for
      which `bound` plays no part; both clamp values to `bounds` and are stated for one unit
      replaced.

    A function of your own takes the data and gives the pair of a value and its distance. Without
    one, what is released is such a pair itself. At distance 0 the value may be anything, NaN too.

    A bare release is unledgered: the caller keeps the budget.
    """

    epsilon: Parameter[Number, Fraction] = parameter(ratio)
    delta: Parameter[Number, Fraction] = parameter(probability)
    bound: Parameter[Number, Fraction] = parameter(positive)
    function: Parameter[Proposal | str | None, Proposal | Robust | None] = parameter(
        _read_function, default=None
    )
    bounds: Parameter[tuple[Number, Number] | None, Bounds | None] = parameter(
        optional(read_bounds), default=None
    )
    relation: Related = parameter(read_relation, default=Relation.REPLACE)

    def __post_init__(self) -> None:
        self._test_law.check()
        _ = self._value_noise
        known = isinstance(self.function, Robust)
        if known and self.relation != Relation.REPLACE:
            raise ParameterError(
                "relation",
                str(self.relation),
                f"{self.function} is proved for relation='replace' only",
            )
        if known != (self.bounds is not None):
            raise ParameterError(
                "bounds", self.bounds, "go with function='median' or 'scale', which need them"
            )

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
        return tail_threshold(self._test_law, self.delta)

    @lazy
    def _value_noise(self) -> Laplace:
        return Laplace(epsilon=self.epsilon / 2, sensitivity=self.bound, relation=self.relation)

    @traced
    def release(self, value: Any) -> float | None:
        """Release the function of the data, if it is stable enough."""
        if self.function == Robust.SCALE:
            return self._scale(self._clamped(value))
        found, far = self._proposed(value)
        released = self._value_noise.release(found)  # checks the value before anything is drawn
        assert isinstance(released, float)
        return released if far + noise(self._test_law).one() >= self.threshold else None

    def median(self, values: Any, *, bounds: tuple[Number, Number]) -> float | None:
        """Release the median of numbers clamped to public bounds, if it is stable enough."""
        return replace(self, function=Robust.MEDIAN, bounds=bounds).release(values)

    def scale(self, values: Any, *, bounds: tuple[Number, Number]) -> float | None:
        """Release the interquartile range, to within a constant factor, if it is stable enough."""
        return replace(self, function=Robust.SCALE, bounds=bounds).release(values)

    def _proposed(self, data: Any) -> tuple[Any, int]:
        """The private value, and its private distance to instability."""
        if self.function == Robust.MEDIAN:
            ordered = self._clamped(data)
            low, high = map(float, self.bounds or ())
            distance = median_distance(ordered, self.bound, low, high)
            return float(ordered[(ordered.size - 1) // 2]), distance
        try:
            value, distance = self.function(data) if callable(self.function) else data
        except (Exception, SystemExit):  # its own message may quote what it was given
            raise PrivateValueError(
                "a pair of a value and its distance to instability is needed, or a function that "
                "gives one"
            ) from None
        far = read_integer(distance)
        if far < 0:
            raise PrivateValueError("a distance to instability is 0 or more")
        if far == 0 and not _is_number(value):
            return 0.0, far  # at no distance it may be anything; that it is no number must not show
        if not is_scalar(value):
            raise PrivateValueError("one number is released at a time")
        return value, far

    def _scale(self, ordered: npt.NDArray[np.float64]) -> float | None:
        """The logarithm of the range lies in a bin of width 1 of two staggered grids.

        A bin is released, by its middle, if many units would have to change to leave it. Two tests
        at half of ε and δ each.
        """
        least = tail_threshold(self._test_law, self.delta / 2)
        spread = float(_interquartile(ordered, np.zeros(1, int), np.zeros(1, int))[0])
        answer = None
        for offset in (0.0, 0.5):
            drawn = noise(self._test_law).one()
            if spread < _LEAST_SPREAD or answer is not None:
                continue
            low, high = scale_bin(spread, offset)
            if bin_distance(ordered, low, high) + drawn >= least:
                answer = low * math.sqrt(2)
        return answer

    def _clamped(self, values: Any) -> npt.NDArray[np.float64]:
        """In rising order."""
        reals = read_reals(values)
        if len(reals.shape) != 1 or self.bounds is None:
            raise PrivateValueError("a flat list of numbers is needed")
        low, high = self.bounds
        doubles = reals.doubles
        if doubles is None:
            doubles = np.array([float(min(max(real, low), high)) for real in reals.rationals])
        return np.sort(np.clip(doubles, float(low), float(high)))

    def view(self, value: Any, plain: Plain) -> Any:
        """The pair of value and distance; of a known function, the values."""
        del plain
        if isinstance(self.function, Robust):
            return read_reals(value).exactly()
        return self._proposed(value)

    def without_code(self) -> ProposeTestRelease:
        """With the pair itself in place of a function of the caller's."""
        return self if isinstance(self.function, Robust) else replace(self, function=None)

    def gap(self, x: Any, y: Any) -> Gap:
        """The distance moves by one, and a value at some distance by the bound.

        Of a known function: how many values are exchanged.
        """
        if isinstance(self.function, Robust):
            return records_apart(x, y, self.relation, 1, "values")
        (before, here), (after, there) = x, y
        if abs(here - there) > 1:
            return moved_by(abs(here - there), 1, "distance to instability")
        if max(here, there) == 0:  # the local sensitivity may be anything, and the test says so
            return Gap(0.0, float(self.bound), "value, at no distance", ok=True)
        return by_norm(real_moves(before, after), 1, self.bound)

    def neighbours(self) -> Pairs | None:
        """Pairs as far apart as is charged for; what data are is the caller's to say."""
        if isinstance(self.function, Robust):
            low, high = map(float, self.bounds or ())
            middle = [(low + high) / 2] * 9
            return [([*middle, low], [*middle, high]), ([low, high], [low, low])]
        if self.function is not None:
            return None
        return [((0.0, 3), (float(self.bound), 4)), ((0.0, 0), (0.0, 1))]


def _is_number(value: Any) -> bool:
    try:
        read_real(value)
    except PrivateValueError:
        return False
    return is_scalar(value)


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

    return bisect_left(range(n), True, key=unstable)


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

    return max(0, bisect_left(range(ordered.size), True, key=leaves) - 1)


def _interquartile(
    ordered: npt.NDArray[np.float64], below: npt.NDArray[np.int64], above: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """x_(3n/4 + above) - x_(n/4 + below), places beyond the ends counting as infinitely far."""
    n = ordered.size
    first, third = n // 4 + below, (3 * n) // 4 + above
    spread = ordered[third.clip(0, n - 1)] - ordered[first.clip(0, n - 1)]
    spread = np.where((first < 0) | (third >= n), math.inf, spread)
    return np.where(first > third, 0.0, spread)
