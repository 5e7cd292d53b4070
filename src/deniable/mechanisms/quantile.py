"""Quantiles by the exponential mechanism on an interval."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import Pairs
from deniable.mechanisms.gaps import Gap, records_apart
from deniable.mechanisms.labels import Places
from deniable.mechanisms.values import read_reals
from deniable.privacy.exact import Number, probability, read_bounds, whole
from deniable.privacy.losses.base import ratio
from deniable.privacy.losses.selection import ExponentialLoss
from deniable.privacy.parameters import Parameter, Related, parameter, parameters
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.categorical import CategoricalSampler
from deniable.randomness.lattice import Lattice, floor_log2
from deniable.randomness.source import SECURE
from deniable.trace import traced

_STEPS = 40  # bits: grid points between the bounds
_FINEST_SHARE = 10**6


@parameters
class Quantile:
    """The exponential mechanism over an interval, scoring x by how well it splits the values.

    The score of x is minus the distance of q·n from the interval [#{values < x}, #{values <= x}].

    Formal guarantee. For any list of numbers, each clamped to the public `bounds`, of which one is
    added or removed (or, under "replace", exchanged), or up to `reach` of them:

    * one release is ε-DP (Smith 2011, Alg. 2): a score moves by reach·max(q, 1-q), or by `reach`
      under "replace";
    * the output is a point of a power-of-two grid within the bounds, about 2^40 of them, drawn with
      exactly the probabilities of the mechanism on that grid;
    * no values at all give a uniform point.

    A bare release is unledgered: the caller keeps the budget.
    """

    epsilon: Parameter[Number, Fraction] = parameter(ratio)
    share: Parameter[Number, Fraction] = parameter(probability)
    bounds: Parameter[tuple[Number, Number], tuple[Fraction, Fraction]] = parameter(read_bounds)
    reach: Parameter[int, int] = parameter(whole, default=1)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    def __post_init__(self) -> None:
        if self.share.denominator > _FINEST_SHARE:
            raise ParameterError("share", self.share, "must be a decimal of six places at most")
        if floor_log2(max(map(abs, self.bounds))) - self.lattice.exponent > 52:
            raise ParameterError(
                "bounds", self.bounds, "lie too far from 0 for their width; shift them"
            )

    @lazy
    def lattice(self) -> Lattice:
        """The grid of possible answers."""
        return Lattice(floor_log2(self.bounds[1] - self.bounds[0]) - _STEPS)

    @lazy
    def loss(self) -> ExponentialLoss:
        return ExponentialLoss(bound=self.epsilon, relation=self.relation)

    @traced
    def release(self, value: Any) -> float:
        """Release the quantile of an array of numbers; an empty list is allowed."""
        low = math.ceil(self.bounds[0] / self.lattice.step)
        high = math.floor(self.bounds[1] / self.lattice.step)
        places = np.sort(self._places(value, low, high)) - low
        starts, sizes, below, upto = _candidates(places, high - low)
        # The distance of q n from [#{v < x}, #{v <= x}], in units of 1/denominator.
        wanted = self.share.numerator * places.size
        bottom = self.share.denominator
        scores = -np.maximum(np.maximum(bottom * below - wanted, wanted - bottom * upto), 0)
        some = sizes > 0
        chosen = CategoricalSampler(scores[some], self._factor, sizes[some]).sample(1, SECURE)[0]
        start, size = int(starts[some][chosen]), int(sizes[some][chosen])
        place = start + int(uniform_below(size, 1, SECURE)[0])
        return float((low + place) * self.lattice.step)

    @property
    def _factor(self) -> Fraction:
        """ε over twice the sensitivity, of scores counted in units of 1/denominator."""
        one = Fraction(1) if self.relation == Relation.REPLACE else max(self.share, 1 - self.share)
        return self.epsilon / (2 * self.reach * one * self.share.denominator)

    def _places(self, value: Any, low: int, high: int) -> Places:
        if isinstance(value, list | tuple | np.ndarray) and len(value) == 0:
            return np.empty(0, dtype=np.int64)
        reals = read_reals(value)
        if len(reals.shape) != 1:
            raise PrivateValueError("a quantile is taken of a flat list of numbers")
        if reals.doubles is None:
            steps = [
                int(self.lattice.nearest_exact(r) / self.lattice.step) for r in reals.rationals
            ]
            return np.array([max(low, min(high, s)) for s in steps], dtype=np.int64)
        inside = np.clip(reals.doubles, float(self.bounds[0]), float(self.bounds[1]))
        scaled = np.ldexp(self.lattice.nearest(inside), -self.lattice.exponent)
        return np.clip(scaled, low, high).astype(np.int64)

    def gap(self, x: Any, y: Any) -> Gap:
        """How many values, clamped, are added or removed, or exchanged."""
        low, high = self.bounds
        before, after = (
            [min(max(number, low), high) for number in _numbers(values)] for values in (x, y)
        )
        return records_apart(before, after, self.relation, self.reach, "values")

    def neighbours(self) -> Pairs:
        """A value at an end, more or instead of another."""
        low, high = (float(end) for end in self.bounds)
        usual = [low + (high - low) * k / 10 for k in range(11)]
        if self.relation == Relation.REPLACE:
            return [([*usual, low], [*usual, high])]
        return [(usual, [*usual, high]), (usual, [*usual, low]), ([low] * 5, [low] * 5 + [high])]


def _numbers(values: Any) -> list[Fraction]:
    return read_reals(values).exactly() if len(values) else []


def _candidates(places: Places, top: int) -> tuple[Places, Places, Places, Places]:
    """Grid points 0, ..., top in runs of one score: each value by itself, and the gaps between.

    Returns where each run starts, its size, and how many values lie below it and at or below it.
    """
    values, first = np.unique(places, return_index=True)
    after = np.append(first[1:], places.size)[: values.size]
    ends = np.append(values, top + 1)
    gap_starts = np.concatenate([[0], values + 1])
    starts = np.concatenate([gap_starts, values])
    sizes = np.concatenate([ends - gap_starts, np.ones(values.size, dtype=np.int64)])
    ranks = np.append(first, places.size)
    return starts, sizes, np.concatenate([ranks, first]), np.concatenate([ranks, after])
