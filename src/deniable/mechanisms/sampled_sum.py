"""A noisy sum over a random part of the rows: Poisson sampling, with the secret kept inside."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.mechanisms.gaps import Gap, misshapen, records_apart
from deniable.mechanisms.values import Integers, saturating_add
from deniable.privacy.exact import Number, positive, probability, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.gaussian import GaussianLoss
from deniable.privacy.losses.sampled import poisson_sampled
from deniable.privacy.parameters import Parameter, Related, parameter, parameters
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.bernoulli import bernoulli
from deniable.randomness.noise import GaussianLaw, Noise, noise
from deniable.randomness.source import SECURE
from deniable.trace import traced

_LARGEST_BOUND = 1 << 26  # squares of rows stay below 2^53, where doubles are exact
_SMOOTHING = 25


class Contributions(Protocol):
    """Rows of whole numbers, made when they are asked for: a row depends on one record alone."""

    @property
    def count(self) -> int:
        """How many records there are."""

    @property
    def width(self) -> int:
        """How many numbers a row has."""

    def rows(self, at: npt.NDArray[np.int64]) -> Integers:
        """The rows of these records."""


@parameters
class SampledSum:
    """The sum of the rows of a Poisson sample, with discrete Gaussian noise.

    Formal guarantee. For records that each make one row, whatever the others are:

    * each record is taken with probability `rate`, exactly, apart from all others; who was taken,
      and how many, is not told;
    * a row longer than `bound` in L2, in exact whole numbers, counts as nothing;
    * one release has the loss `poisson_sampled` of Gaussian noise of deviation `sigma`, under
      `relation`: the noise drawn is discrete, of variance sigma² + 25, and as such a
      post-processing of the continuous one (`privacy/losses/gaussian.py`, "smoothing");
    * sums saturate at 64 bits instead of wrapping.

    A bare release is unledgered: the caller keeps the budget.
    """

    rate: Parameter[Number, Fraction] = parameter(probability)
    bound: Parameter[int, int] = parameter(whole)
    sigma: Parameter[Number, Fraction] = parameter(positive)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    def __post_init__(self) -> None:
        if self.bound > _LARGEST_BOUND:
            raise ParameterError("bound", self.bound, f"must be {_LARGEST_BOUND} or less")
        self._law.check()

    @lazy
    def loss(self) -> Loss:
        base = GaussianLoss(sigma=self.sigma, sensitivity=Fraction(self.bound))
        return poisson_sampled(base, rate=self.rate, relation=self.relation)

    @property
    def _law(self) -> GaussianLaw:
        return GaussianLaw(self.sigma**2 + _SMOOTHING)

    @lazy
    def _noise(self) -> Noise:
        return noise(self._law)

    @traced
    def release(self, value: Contributions) -> Integers:
        """Draw a sample, sum its rows, add noise."""
        taken = np.flatnonzero(bernoulli(self.rate, value.count, SECURE)).astype(np.int64)
        total = self.bounded(value.rows(taken)).sum(axis=0, dtype=np.int64)
        return saturating_add(total.reshape(value.width), self._noise.many(value.width))

    def bounded(self, rows: Integers) -> Integers:
        """The rows, those that are too long as zeros."""
        as_floats = rows.astype(np.float64)
        fits = np.square(as_floats).sum(axis=1) <= float(self.bound) ** 2
        return np.where(fits[:, None], rows, 0)

    def gap(self, x: Contributions, y: Contributions) -> Gap:
        """How many rows, those that are too long as zeros, are added or removed, or exchanged."""
        if x.width != y.width:
            return misshapen("rows")
        before, after = (
            list(map(tuple, self.bounded(each.rows(np.arange(each.count))).tolist()))
            for each in (x, y)
        )
        if self.relation == Relation.ADD_REMOVE:  # what adds nothing does not matter
            before, after = ([row for row in rows if any(row)] for rows in (before, after))
        return records_apart(before, after, self.relation, 1, "rows")

    def neighbours(self) -> None:
        """What records are is the caller's to say."""
