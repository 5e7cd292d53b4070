"""Quantiles of values counted in cells, group by group, by the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import ByAmount, Pairs
from deniable.mechanisms.gaps import Gap, by_norm, misshapen
from deniable.privacy.exact import Number, exact, sqrt_up, whole
from deniable.privacy.parameters import Parameter, flag, optional, parameter, parameters
from deniable.randomness.categorical import CategoricalSampler
from deniable.randomness.source import SECURE
from deniable.trace import traced

_FINEST_SHARE = 10**6
_WORD = 1 << 62


def read_share(share: Number, argument: str = "share") -> Fraction:
    """The share of the weight that lies below: 1/2 for the median."""
    found = exact(share, argument)
    if not 0 <= found <= 1 or found.denominator > _FINEST_SHARE:
        raise ParameterError(argument, share, "lies between 0 and 1, with six decimals at most")
    return found


def _read_offset(offset: int, argument: str) -> int:
    if type(offset) is not int:
        raise ParameterError(argument, offset, "must be a whole number of steps")
    return offset


def _read_prior(prior: Sequence[int], argument: str) -> tuple[int, ...]:
    read = tuple(whole(each, argument) for each in prior)
    if sum(read) >= _WORD:
        raise ParameterError(argument, len(read), "must be below 2^62 together")
    return read


@parameters
class GridQuantile(ByAmount):
    """For each group, the cell in which the value of rank share·W + offset lies, W its weight.

    Cells lie in order and hold weights, whole numbers of steps. The score of a cell is minus the
    distance of that rank from [weight before the cell, weight up to its end]. With `ends`, -1 and
    `cells` may come out too, for ranks below and above all weight.

    Formal guarantee. Let a unit add weight w_g to the cells of group g, with sum of w_g at most
    `bound` (given epsilon=), or of w_g² at most `bound`² (given rho=); under "replace", `bound`
    is that of what it takes away and adds together. A score in group g moves by at most
    max(share, 1 - share)·w_g =: m_g, for the weight before a cell moves by between 0 and w_g and
    the rank by share·w_g. So, with weights exp(η·score), the choice in g has a range of 2ηm_g, and

    * given epsilon=, all choices together are ε-DP with η = ε/(2·max(share, 1 - share)·bound)
      (McSherry & Talwar 2007, Thm 6);
    * given rho=, they are ρ-zCDP with η = sqrt(2ρ)/(max(share, 1 - share)·bound): a choice of range
      r is r²/8-zCDP (Cesar & Rogers 2021, Lemma 3.4);
    * choices are drawn with exactly these probabilities (η rounded down); a group without weight
      gives any cell;
    * a `prior`, public whole numbers, multiplies the probabilities of cells before they are
      normalised, those of neighbours alike: the range of their logarithms stays as it is.

    A bare release is unledgered: the caller keeps the budget.
    """

    share: Parameter[Number, Fraction] = parameter(read_share)
    offset: Parameter[int, int] = parameter(_read_offset, default=0)
    bound: Parameter[int, int] = parameter(whole)
    cells: Parameter[int, int] = parameter(whole)
    ends: Parameter[bool, bool] = parameter(flag, default=False)
    prior: Parameter[Sequence[int] | None, tuple[int, ...] | None] = parameter(
        optional(_read_prior), default=None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior is not None and len(self.prior) != self.cells + 2 * self.ends:
            raise ParameterError("prior", len(self.prior), "one whole number a cell")

    @lazy
    def rate(self) -> Fraction:
        """η, what one step of weight is worth in a score; rounded down."""
        reach = max(self.share, 1 - self.share) * self.bound
        if self.amount.pure:
            return self.amount.value / (2 * reach)
        return 1 / sqrt_up(reach**2 / (2 * self.amount.value), 30)

    def rank_error(self, *, confidence: Number) -> int:
        """Steps of weight by which the rank is missed at most, with this probability.

        Some cell has a score of 0, and each of the others a probability below e^(-η·missed) times
        what the prior says of both.
        """
        risk = 1 - float(exact(confidence, "confidence"))
        if not 0 < risk < 1:
            raise ParameterError("confidence", confidence, "lies between 0 and 1")
        prior = self.prior or (1,) * (self.cells + 2)
        odds = sum(prior) / min(prior)
        return math.ceil(math.log(odds / risk) / float(self.rate) * (1 + 1e-12))

    @traced
    def release(self, value: Any) -> list[int]:
        """The cells, one for each group, from rows of weights."""
        return [self._choose(row) for row in read_weights(value, self.cells)]

    def scores(self, weights: Sequence[int]) -> list[int]:
        """Minus the distance of the rank from each cell, in parts of a step: 1/denominator each."""
        total, bottom = sum(weights), self.share.denominator
        wanted = self.share.numerator * total + bottom * self.offset
        small = bottom * (total + abs(self.offset)) < _WORD
        upto = np.cumsum(np.array(weights, dtype=np.int64 if small else object)) * bottom
        before = upto - bottom * np.array(weights, dtype=upto.dtype)
        missed = np.maximum(np.maximum(before - wanted, wanted - upto), 0)
        found = [-int(each) for each in missed]
        if not self.ends:
            return found
        return [-max(wanted, 0), *found, -max(bottom * total - wanted, 0)]

    def _choose(self, weights: Sequence[int]) -> int:
        scores = self.scores(weights)
        small = all(-each < _WORD for each in scores)
        given: Any = np.array(scores, dtype=np.int64) if small else list(map(Fraction, scores))
        sizes = None if self.prior is None else np.array(self.prior, dtype=np.int64)
        sampler = CategoricalSampler(given, self.rate / self.share.denominator, sizes)
        chosen = int(sampler.sample(1, SECURE)[0])
        return chosen - 1 if self.ends else chosen

    def gap(self, x: Any, y: Any) -> Gap:
        before, after = (read_weights(value, self.cells) for value in (x, y))
        order = self.norm.order
        if len(before) != len(after):
            return misshapen(f"weights, L{order}")
        moves = [
            Fraction(sum(abs(a - b) for a, b in zip(old, new, strict=True)))
            for old, new in zip(before, after, strict=True)
        ]
        return by_norm(moves, order, Fraction(self.bound))

    def neighbours(self) -> Pairs:
        """All of the bound in the first cell, or in the last."""
        rest = [0] * (self.cells - 1)
        return [([[self.bound, *rest]], [[0] * self.cells]), ([[0, *rest]], [[*rest, self.bound]])]


def read_weights(value: Any, cells: int) -> list[list[int]]:
    """Rows of weights, one for each group."""
    rows = [[int(each) for each in row] for row in value] if isinstance(value, list) else None
    if not rows or any(len(row) != cells or min(row) < 0 for row in rows):
        raise PrivateValueError(f"one row or more of {cells} weights, none below 0, is needed")
    return rows
