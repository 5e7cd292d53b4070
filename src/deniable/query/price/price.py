"""What a question costs, and which noise that buys."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
from deniable.query.plan.tail import lost_rows
from deniable.query.price.profile import HEAVY_SHARE, single
from deniable.query.price.rows import ENDS_SHARE, ROWS_SHARE
from deniable.query.run.emit import (
    cells_step,
    cut_step,
    distinct_step,
    heavy_step,
    totals_step,
)
from deniable.query.run.emit_profile import once_step

_CUT_SHARE = Fraction(1, 20)
_ONCE_SHARE = Fraction(1, 8)  # for counts of units, which a row more or less does not move
_GRID = 10**15


_UNKNOWN = ColumnNoise(math.nan, None)


@dataclass(frozen=True)
class RankNoise:
    """What is drawn for one quantile: its cell, and the ends of its interval where bought."""

    value: GridQuantile
    low: GridQuantile | None
    high: GridQuantile | None
    rows: JointNoise | None = None
    """Of MIN and MAX: for how many rows a group has."""

    @property
    def drawn(self) -> tuple[GridQuantile | JointNoise, ...]:
        """All of them."""
        each = (self.value, self.low, self.high, self.rows)
        return tuple(one for one in each if one is not None)

    @property
    def beyond(self) -> int:
        """How many steps of weight lie beyond a MIN or MAX: those aimed at, and 97.5 % of misses.

        Of a group with fewer than twice as many, neither is told.
        """
        return abs(self.value.offset) + self.value.rank_error(confidence=Fraction(39, 40))


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
    once: JointNoise | None = None
    """For counts of units that need no bound (`Plan.once`)."""

    @property
    def loss(self) -> Loss:
        """What the whole question costs."""
        ranks = [each for rank in self.ranks for each in rank.drawn]
        joint = [self.joint] * len(self.plan.counted.sets)
        drawn = (*joint, self.heavy, self.cut, self.once, *self.distinct, *ranks)
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
        if self.once is not None:
            steps["once"] = once_step(plan)
        if self.cut is not None and self.joint is not None:
            steps["cut"] = cut_step(plan, _most_cut(plan), l2=self.joint.norm == "l2")
        for number in range(len(plan.counted.distinct)):
            steps[f"distinct {number}"] = distinct_step(plan, number, secret)
        for number in range(len(plan.counted.grids)):
            l2 = self.ranks[0].value.norm == "l2"
            steps[f"cells {number}"] = cells_step(plan, number, l2=l2)
        return steps

    @lazy
    def noise(self) -> tuple[ColumnNoise, ...]:
        """The noise on each statistic, counts of distinct values last."""
        found = []
        if self.joint is not None:
            found += [_column(self.joint, place, SCALE) for place in range(len(self.joint.weights))]
        if self.once is not None:
            for number, place in enumerate(self.plan.once):
                found[place] = _column(self.once, number, 1)
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
    if pure and len(plan.counted.sets) > 1:
        raise QueryError(
            "ROLLUP, CUBE and GROUPING SETS need a budget with δ or ρ; ask for each grouping"
        )
    left = len(plan.counted.distinct) + bool(plan.counted.statistics) + len(plan.counted.ranks)
    parts = iter(amount.split(*[Fraction(1, left)] * left))
    try:
        joint = heavy = cut = once = None
        if plan.counted.statistics:
            bound = SCALE * max(one.bound(l2=not pure) for one in plan.groupings)
            joined = next(parts)
            if plan.once:
                alone, joined = joined.split(_ONCE_SHARE, 1 - _ONCE_SHARE)
                many = len(plan.once)  # a unit adds one to each
                most = many if pure else math.isqrt(many - 1) + 1
                once = additive(alone, most, (1,) * many)
            if len(plan.counted.sets) > 1:
                joined = joined.part(Fraction(1, len(plan.counted.sets))).on_grid()
            if (
                plan.contribution.profile is not None
                and not single(plan)
                and len(plan.counted.sets) == 1
            ):
                where, joined = joined.split(HEAVY_SHARE, 1 - HEAVY_SHARE)
                heavy = additive(where, bound, plan.weights)
            if _promised(plan, l2=not pure):
                lost, joined = joined.split(_CUT_SHARE, 1 - _CUT_SHARE)
                cut = additive(lost, _most_cut(plan))
            joint = additive(joined, bound, plan.weights)
        rows = plan.contribution.rows
        distinct = tuple(additive(next(parts), rows) for _ in plan.counted.distinct)
        ranks = tuple(_rank(plan, rank, next(parts)) for rank in plan.counted.ranks)
    except ParameterError as cause:
        raise QueryError(f"no noise fits this price and these bounds: {cause}") from None
    return Priced(plan, joint, distinct, ranks, heavy, cut, once)


def _most_cut(plan: Plan) -> int:
    """What is cut off of one unit at most: all rows that it may have, and rounding by group."""
    cap = plan.contribution.cap
    assert cap is not None
    return SCALE * cap + min(plan.counted.cells or cap, cap)


def _promised(plan: Plan, *, l2: bool) -> bool:
    """Whether what is cut off has a public end, and rows are counted that tell how much it is."""
    counted = any(each.counts and not each.missing for each in plan.counted.statistics)
    alone = plan.counted.known_keys and len(plan.counted.sets) == 1
    return plan.contribution.cap is not None and plan.cuts(l2=l2) and counted and alone


def _located(
    plan: Plan, rank: Rank, amount: Amount, offset: int = 0, *, ends: bool = False
) -> GridQuantile:
    return GridQuantile(
        epsilon=amount.epsilon,
        rho=amount.rho,
        share=rank.share,
        offset=offset,
        bound=amount.relation.changed * SCALE * plan.contribution.rows,
        cells=plan.counted.grids[rank.grid].cells,
        ends=ends,
        relation=amount.relation,
    )


def _rank(plan: Plan, rank: Rank, amount: Amount) -> RankNoise:
    """A quantile and its interval.

    The ends aim so far below and above the rank as they may miss it, so that each lies on its side
    with probability 97.5 %. MIN and MAX have a public end on one side; they aim at the rank that
    may be missed by chance, for beyond the last value all cells are alike. A noisy number of rows
    tells whether there are enough: what a unit has in all cells is within the bound of its rows.

    About the truth: let F count all rows up to a value, F' their weights after a bound took ℓ rows
    away, F - ℓ <= F' <= F, of n and W' = n - ℓ rows in all. The quantile x of a share p, between
    two rows where it is interpolated, has F(x) > pn - 1 and at most pn + 1 rows below it. So
    F'(x) > pW' - (1 - p)ℓ - 1, and weights below x are at most pW' + pℓ + 1: ends whose ranks lie
    beyond these hold x between them. Where nothing bounds ℓ, the public bounds do.
    """
    lost = _most_lost(plan)
    low = high = None
    least, most = rank.share == 0, rank.share == 1
    counts = least or most
    ends = 0 if lost is None else 2 - counts
    shares = [ENDS_SHARE] * ends + [ROWS_SHARE] * counts
    *parts, rest = amount.split(*shares, 1 - sum(shares, Fraction(0)))
    each = parts[0] if ends else amount.part(ENDS_SHARE)
    apart = SCALE + _located(plan, rank, each, ends=True).rank_error(confidence=Fraction(39, 40))
    if not least and lost is not None:
        below = apart + math.ceil((1 - rank.share) * lost)
        low = _located(plan, rank, each, -below, ends=True)
    if not most and lost is not None:
        above = apart + math.ceil(rank.share * lost)
        high = _located(plan, rank, each, above, ends=True)
    rows = additive(parts[-1], SCALE * plan.contribution.rows) if counts else None
    value = _located(plan, rank, rest)
    if least or most:
        inwards = SCALE // 2 + math.ceil(math.log(value.cells) / float(value.rate))
        value = _located(plan, rank, rest, inwards if least else -inwards)
    return RankNoise(value, low, high, rows)


def _most_lost(plan: Plan) -> Fraction | None:
    """How much weight any group loses at most, in steps; None where nothing tells."""
    unit = plan.contribution
    if unit.by_rows is None:
        return Fraction(0)
    lost = lost_rows(unit.by_rows, unit.rows, unit.cap, 0.95)
    return None if lost is None else Fraction(lost) * SCALE


def amount_for_error(
    plan: Plan,
    budget: Budget,
    kind: Kind,
    error: Mapping[str, Number],
    left: Callable[[Amount], tuple[Plan, Amount]],
) -> Amount:
    """The least amount at which every named column has at most this 95 % half-width of noise.

    `left` tells what is left of an amount, after what is estimated first.
    """
    if not error:
        raise ParameterError("error", "empty", "name a column: error={'n': 50}")
    outputs = {output.name.lower(): output for output in plan.shown.outputs}
    wanted = []
    for name, width in error.items():
        output = outputs.get(name.lower())
        if output is None:
            listed = ", ".join(output.name for output in plan.shown.outputs)
            raise ParameterError("error", name, f"the question has {listed}")
        measure = plan.shown.measure_of(output)
        if not isinstance(measure, Linear) or not measure.columns():
            raise ParameterError(
                "error", name, "only of counts and sums is the error known beforehand; use epsilon="
            )
        wanted.append((measure, float(positive(width, "error"))))

    def amount(value: Fraction) -> Amount:
        return Amount(kind, value, budget.relation)

    def enough(log_amount: float) -> bool:
        try:
            noise = price(*left(amount(Fraction(math.exp(log_amount))))).noise
        except QueryError:
            return log_amount > 0  # no such noise: too wide below, too narrow above
        return all(measure.half_width(noise, 0.95) <= width for measure, width in wanted)

    left(amount(Fraction(1)))  # what cannot be estimated at any price is refused
    top = math.log(1e9)
    if not enough(top):
        raise CalibrationError("no price makes the error that small; allow a larger one")
    found = math.exp(least(enough, math.log(1e-15), top))
    return amount(Fraction(math.ceil(found * (1 + 1e-9) * _GRID), _GRID))
