"""Quantiles of values counted in cells, group by group, by the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import exactly_one, represent
from deniable.mechanisms.joint import Norm, amount_of
from deniable.privacy.exact import Number, exact, positive, sqrt_up, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import ConcentratedLoss, PureLoss
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.categorical import CategoricalSampler
from deniable.randomness.source import SECURE
from deniable.trace import traced

_FINEST_SHARE = 10**6
_WORD = 1 << 62


@dataclass(frozen=True, init=False, repr=False)
class GridQuantile:
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

    norm: Norm
    amount: Fraction
    share: Fraction
    offset: int
    bound: int
    cells: int
    ends: bool
    relation: Relation
    prior: tuple[int, ...] | None

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        share: Number,
        offset: int = 0,
        bound: int,
        cells: int,
        ends: bool = False,
        relation: Relation | str = Relation.ADD_REMOVE,
        prior: Sequence[int] | None = None,
    ) -> None:
        name, given = exactly_one(epsilon=epsilon, rho=rho)
        object.__setattr__(self, "norm", Norm.L1 if name == "epsilon" else Norm.L2)
        object.__setattr__(self, "amount", positive(given, name))
        object.__setattr__(self, "share", read_share(share))
        if type(offset) is not int:
            raise ParameterError("offset", offset, "must be a whole number of steps")
        object.__setattr__(self, "offset", offset)
        object.__setattr__(self, "bound", whole(bound, "bound"))
        object.__setattr__(self, "cells", whole(cells, "cells"))
        object.__setattr__(self, "ends", bool(ends))
        object.__setattr__(self, "relation", read_relation(relation))
        object.__setattr__(self, "prior", None if prior is None else self._read_prior(prior))

    def _read_prior(self, prior: Sequence[int]) -> tuple[int, ...]:
        read = tuple(whole(each, "prior") for each in prior)
        if len(read) != self.cells + 2 * self.ends or sum(read) >= _WORD:
            raise ParameterError("prior", len(read), "one whole number a cell, below 2^62 together")
        return read

    @classmethod
    def of_fields(
        cls,
        *,
        norm: Norm,
        amount: Fraction,
        share: Fraction,
        offset: int,
        bound: int,
        cells: int,
        ends: bool,
        relation: Relation,
        prior: tuple[int, ...] | None = None,
    ) -> GridQuantile:
        """Made again of what another one holds."""
        return cls(
            **amount_of(norm, amount),
            share=share,
            offset=offset,
            bound=bound,
            cells=cells,
            ends=ends,
            relation=relation,
            prior=prior,
        )

    def __repr__(self) -> str:
        return represent(self)

    @lazy
    def rate(self) -> Fraction:
        """η, what one step of weight is worth in a score; rounded down."""
        reach = max(self.share, 1 - self.share) * self.bound
        if self.norm == Norm.L1:
            return self.amount / (2 * reach)
        return 1 / sqrt_up(reach**2 / (2 * self.amount), 30)

    @lazy
    def loss(self) -> Loss:
        """What one release costs."""
        if self.norm == Norm.L1:
            return PureLoss(bound=self.amount, relation=self.relation)
        return ConcentratedLoss(bound=self.amount, relation=self.relation)

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


def read_share(share: Number) -> Fraction:
    """The share of the weight that lies below: 1/2 for the median."""
    found = exact(share, "share")
    if not 0 <= found <= 1 or found.denominator > _FINEST_SHARE:
        raise ParameterError("share", share, "lies between 0 and 1, with six decimals at most")
    return found


def read_weights(value: Any, cells: int) -> list[list[int]]:
    """Rows of weights, one for each group."""
    rows = [[int(each) for each in row] for row in value] if isinstance(value, list) else None
    if not rows or any(len(row) != cells or min(row) < 0 for row in rows):
        raise PrivateValueError(f"one row or more of {cells} weights, none below 0, is needed")
    return rows
