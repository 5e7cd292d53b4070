"""What a question costs, and which noise that buys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from deniable.engines.base import Step
from deniable.errors import CalibrationError, ParameterError, QueryError
from deniable.lazy import lazy
from deniable.ledger.filters import Budget
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.mechanisms.joint import JointNoise, additive
from deniable.privacy.amount import Amount, Kind
from deniable.privacy.composition import compose
from deniable.privacy.exact import Number, positive
from deniable.privacy.losses.base import Loss
from deniable.privacy.search import least
from deniable.query.plan.measures import ColumnNoise, Linear, Located
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.plan.quantiles import Rank
from deniable.query.price.profile import HEAVY_SHARE, single
from deniable.query.run.emit import (
    cells_step,
    cut_step,
    distinct_step,
    heavy_step,
    totals_step,
)
from deniable.query.show.shape import measure_of

_CUT_SHARE = Fraction(1, 20)
_GRID = 10**15


_UNKNOWN = ColumnNoise(math.nan, None)
_ENDS_SHARE = Fraction(1, 25)  # of a quantile's price, for each end of its interval


@dataclass(frozen=True)
class RankNoise:
    """What is drawn for one quantile: its cell, and the ends of its interval where bought."""

    value: GridQuantile
    low: GridQuantile | None
    high: GridQuantile | None

    @property
    def drawn(self) -> tuple[GridQuantile, ...]:
        """All of them."""
        return tuple(each for each in (self.value, self.low, self.high) if each is not None)


@dataclass(frozen=True)
class Priced:
    """A plan with its noise: what is drawn, in order, and what that costs together."""

    plan: Plan
    joint: JointNoise | None
    distinct: tuple[JointNoise, ...]
    ranks: tuple[RankNoise, ...]
    heavy: JointNoise | None
    """For what is kept of units beyond a bound that was estimated: where those are."""
    cut: JointNoise | None

    @property
    def loss(self) -> Loss:
        """What the whole question costs."""
        ranks = [each for rank in self.ranks for each in rank.drawn]
        joint = [self.joint] * len(self.plan.sets)
        drawn = (*joint, self.heavy, self.cut, *self.distinct, *ranks)
        parts = [each.loss for each in drawn if each is not None]
        return parts[0] if len(parts) == 1 else compose(*parts)

    @lazy
    def totals(self) -> tuple[Step, ...]:
        """What the engine runs for the joint statistics, for each grouping."""
        if self.joint is None:
            return ()
        l2 = self.joint.norm == "l2"
        return tuple(totals_step(plan, l2=l2) for plan in self.plan.groupings)

    def steps(self, secret: str) -> dict[str, Step]:
        """What the engine runs for the question, by name."""
        plan, steps = self.plan, {}
        for number, step in enumerate(self.totals):
            steps[f"totals {number}"] = step
        if self.heavy is not None:
            steps["heavy"] = heavy_step(plan, l2=self.heavy.norm == "l2")
        if self.cut is not None and self.joint is not None:
            steps["cut"] = cut_step(plan, _most_cut(plan), l2=self.joint.norm == "l2")
        for number in range(len(plan.distinct)):
            steps[f"distinct {number}"] = distinct_step(plan, number, secret)
        for number in range(len(plan.grids)):
            l2 = self.ranks[0].value.norm == "l2"
            steps[f"cells {number}"] = cells_step(plan, number, l2=l2)
        return steps

    @lazy
    def noise(self) -> tuple[ColumnNoise, ...]:
        """The noise on each statistic, counts of distinct values last."""
        found = []
        if self.joint is not None:
            found += [_column(self.joint, place, SCALE) for place in range(len(self.joint.weights))]
        found += [_column(each, 0, 1) for each in self.distinct]
        return tuple(found + [_UNKNOWN] * (Located.WIDTH * len(self.ranks)))


def _column(mechanism: JointNoise, place: int, scale: int) -> ColumnNoise:
    return ColumnNoise(
        deviation=mechanism.deviation(place) / scale,
        law=mechanism.law(place),
        steps=scale,
    )


def price(plan: Plan, amount: Amount) -> Priced:
    """Spend an amount on a plan."""
    pure = amount.pure
    if pure and len(plan.sets) > 1:
        raise QueryError(
            "ROLLUP, CUBE and GROUPING SETS need a budget with δ or ρ; ask for each grouping"
        )
    left = len(plan.distinct) + bool(plan.statistics) + len(plan.ranks)
    each = amount.part(Fraction(1, left))
    try:
        joint = heavy = cut = None
        if plan.statistics:
            bound = SCALE * max(one.bound(l2=not pure) for one in plan.groupings)
            joined = each.part(Fraction(1, len(plan.sets)))
            if plan.profile is not None and not single(plan) and len(plan.sets) == 1:
                heavy = additive(joined.part(HEAVY_SHARE), bound, plan.weights)
                joined = joined.part(1 - HEAVY_SHARE)
            if _promised(plan, l2=not pure):
                cut = additive(joined.part(_CUT_SHARE), _most_cut(plan))
                joined = joined.part(1 - _CUT_SHARE)
            joint = additive(joined, bound, plan.weights)
        distinct = tuple(additive(each, plan.rows) for _ in plan.distinct)
        ranks = tuple(_rank(plan, rank, each) for rank in plan.ranks)
    except ParameterError as cause:
        raise QueryError(f"no noise fits this price and these bounds: {cause}") from None
    return Priced(plan, joint, distinct, ranks, heavy, cut)


def _most_cut(plan: Plan) -> int:
    """What is cut off of one unit at most: all rows that it may have, and rounding by group."""
    assert plan.cap is not None
    return SCALE * plan.cap + min(plan.cells or plan.cap, plan.cap)


def _promised(plan: Plan, *, l2: bool) -> bool:
    """Whether what is cut off has a public end, and rows are counted that tell how much it is."""
    counted = any(each.counts and not each.missing for each in plan.statistics)
    alone = plan.known_keys and len(plan.sets) == 1
    return plan.cap is not None and plan.cuts(l2=l2) and counted and alone


def _located(
    plan: Plan, rank: Rank, amount: Amount, offset: int = 0, *, ends: bool = False
) -> GridQuantile:
    return GridQuantile(
        epsilon=amount.epsilon,
        rho=amount.rho,
        share=rank.share,
        offset=offset,
        bound=amount.relation.changed * SCALE * plan.rows,
        cells=plan.grids[rank.grid].cells,
        ends=ends,
        relation=amount.relation,
    )


def _rank(plan: Plan, rank: Rank, amount: Amount) -> RankNoise:
    """A quantile and its interval.

    The ends aim so far below and above the rank as they may miss it, so that each lies on its side
    with probability 97.5 %. MIN and MAX have a public end on one side; they aim at the rank that
    may be missed by chance, for beyond the last value all cells are alike.
    """
    each = amount.part(_ENDS_SHARE)
    low = high = None
    least, most = rank.share == 0, rank.share == 1
    apart = _located(plan, rank, each, ends=True).rank_error(confidence=Fraction(39, 40))
    if not least:
        low = _located(plan, rank, each, -apart, ends=True)
    if not most:
        high = _located(plan, rank, each, apart, ends=True)
    rest = amount.part(1 - _ENDS_SHARE * sum(end is not None for end in (low, high)))
    value = _located(plan, rank, rest)
    if least or most:
        inwards = SCALE // 2 + math.ceil(math.log(value.cells) / float(value.rate))
        value = _located(plan, rank, rest, inwards if least else -inwards)
    return RankNoise(value, low, high)


def amount_for_error(plan: Plan, budget: Budget, kind: Kind, error: Mapping[str, Number]) -> Amount:
    """The least amount at which every named column has at most this 95 % half-width."""
    if not error:
        raise ParameterError("error", "empty", "name a column: error={'n': 50}")
    outputs = {output.name.lower(): output for output in plan.outputs}
    wanted = []
    for name, width in error.items():
        output = outputs.get(name.lower())
        if output is None:
            listed = ", ".join(output.name for output in plan.outputs)
            raise ParameterError("error", name, f"the question has {listed}")
        measure = measure_of(plan, output)
        if not isinstance(measure, Linear) or not measure.columns():
            raise ParameterError(
                "error", name, "only of counts and sums is the error known beforehand; use epsilon="
            )
        wanted.append((measure, float(positive(width, "error"))))

    def amount(value: Fraction) -> Amount:
        return Amount(kind, value, budget.relation)

    def enough(log_amount: float) -> bool:
        try:
            noise = price(plan, amount(Fraction(math.exp(log_amount)))).noise
        except QueryError:
            return log_amount > 0  # no such noise: too wide below, too narrow above
        return all(measure.half_width(noise, 0.95) <= width for measure, width in wanted)

    top = math.log(1e9)
    if not enough(top):
        raise CalibrationError("no price makes the error that small; allow a larger one")
    found = math.exp(least(enough, math.log(1e-15), top))
    return amount(Fraction(math.ceil(found * (1 + 1e-9) * _GRID), _GRID))
