"""What the ledger holds of a question, as an answer: numbers, intervals, labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from deniable.answer import Answer
from deniable.intervals import Floats
from deniable.privacy.losses.base import Loss
from deniable.query.plan.levels import Norms
from deniable.query.plan.measures import ColumnNoise, Linear
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.plan.tail import UPPER_END, Profile
from deniable.query.price.estimate import as_released
from deniable.query.price.price import Priced
from deniable.query.price.profile import single
from deniable.query.show.beyond import Beyond, Heavy, beyond_groups, beyond_one
from deniable.query.show.ends import Cut
from deniable.query.show.shape import Noisy, shape
from deniable.release import Answer as Recorded

_MUCH = 0.05  # of the rows: a declared bound that cuts off more is worth a word


def shown(priced: Priced, recorded: Recorded, paid: Sequence[Loss] = ()) -> Answer:
    """The answer, from what the ledger holds; `paid` was spent on estimates before it."""
    value = recorded.value
    assert isinstance(value, dict)
    plan = priced.plan
    kinds = [group.kind for group in plan.groups]
    keys = [as_released(key, kinds) for key in value["keys"]]
    x = np.zeros((len(keys), plan.columns))
    for place, column in enumerate(value["columns"]):
        x[:, place] = column
    cut, beyond = _cut(priced, x, value), _beyond(priced, x, value)
    labels = tuple(_labels(priced, x, value, beyond))
    shaped = shape(plan, Noisy(keys, x, priced.noise, cut, beyond))
    return Answer(
        data=shaped.data,
        noise=shaped.noise,
        truth=shaped.truth,
        total=shaped.total,
        cost=sum((loss.price for loss in paid), recorded.cost),
        number=recorded.number,
        head=recorded.head,
        repeated=recorded.repeated and not paid,
        labels=labels,
    )


def nothing(plan: Plan, recorded: Recorded, paid: Sequence[Loss]) -> Answer:
    """The answer where no group was selected; nothing more was spent."""
    unknown = (ColumnNoise(math.nan, None),) * plan.columns
    shaped = shape(plan, Noisy([], np.zeros((0, plan.columns)), unknown))
    cost = sum((loss.price for loss in paid[1:]), paid[0].price) if paid else recorded.cost
    return Answer(
        data=shaped.data,
        noise=shaped.noise,
        cost=cost,
        number=recorded.number,
        head=recorded.head,
        repeated=not paid,
        labels=("no group has so many people that it can be shown at this price",),
    )


def _labels(
    priced: Priced, x: Floats, stored: Mapping[str, Any], beyond: Beyond | None
) -> Iterator[str]:
    plan = priced.plan
    if plan.profile is not None and beyond is not None:
        yield from _of_profile(plan, plan.profile, x, beyond)
    elif (share := _cut_share(priced, x, stored)) > _MUCH:
        yield f"max_rows cuts off about {share:.0%} of the rows; leave it out to estimate it"
    if plan.estimated and (plan.distinct or plan.ranks):
        what = " and ".join(
            each
            for each, asked in (("distinct values", plan.distinct), ("quantiles", plan.ranks))
            if asked
        )
        yield f"{what}: each person counts with at most {plan.rows:,} rows (estimated privately)"
    if plan.left_out and plan.cap is None:  # else that is promised not to happen
        yield plan.rows_left_out
    yield from plan.notes


def _of_profile(plan: Plan, profile: Profile, x: Floats, beyond: Beyond) -> Iterator[str]:
    """The bound, how much it took away, and what the upper end rests on."""
    assert plan.norm is not None
    rows, heavy = (
        plan.norm / profile.largest_row,
        profile.tail.beyond(plan.norm / profile.least_row),
    )
    people, lost = float(np.median(heavy.beyond)), float(np.median(heavy.least + heavy.most)) / 2
    kept = _kept(plan, profile, x)
    part = None if kept is None else lost / max(1.0, lost + kept)
    restored = " and put back" if any(isinstance(m, Linear) for m in plan.measures) else ""
    of = " of one group" if plan.groups and profile.norms != Norms.WHOLE else ""
    share = f", about {part:.1%} of rows clipped{restored}" if part is not None else ""
    yield (
        f"each person counts with at most {_few(rows)} rows{of} (estimated privately); about "
        f"{people:,.0f} have more{share}"
    )
    if len(plan.sets) > 1:
        yield "at least: several groupings have no upper ends; ask for each of them, or max_rows="
        return
    if beyond.one_sided:
        least = UPPER_END * profile.deviation
        yield (
            "at least: an upper end needs max_rows=, or a larger epsilon, or about "
            f"{least:,.0f} people at this one"
        )
    else:
        seen = profile.tail.seen * profile.least_row / profile.largest_row
        yield (
            f"upper ends hold if beyond {_few(max(rows, seen))} rows the number of people falls at "
            "least as fast as x^-1.2 and as just before, and nobody has more than a quarter"
        )


def _few(rows: float) -> str:
    return f"{math.floor(rows):,}" if rows >= 10 else f"{rows:.3g}"


def _kept(plan: Plan, profile: Profile, x: Floats) -> float | None:
    """How much was kept, in norms of one row, where rows are counted."""
    counts = [n for n, each in enumerate(plan.statistics) if each.counts and not each.missing]
    if not counts:
        return None
    kept = float(np.maximum(x[:, counts[0]], 0.0).sum())
    return kept * plan.weights[counts[0]] / profile.least_row


def _beyond(priced: Priced, x: Floats, stored: Mapping[str, Any]) -> Beyond | None:
    """What a bound that was estimated took away."""
    plan = priced.plan
    if plan.profile is None or plan.norm is None or priced.joint is None or not len(x):
        return None
    profile, l2 = plan.profile, priced.joint.norm == "l2"
    cap = math.inf if plan.cap is None else plan.cap * profile.largest_row / profile.least_row
    lost = profile.tail.beyond(plan.norm / profile.least_row, cap)
    one_sided = profile.open_above or profile.few
    if single(plan):
        return beyond_one(lost, one_sided=one_sided)
    statistics = x[:, : len(plan.statistics)]
    if priced.heavy is None:  # several groupings: where heavy units are is not known
        none = np.zeros((*statistics.shape, 1))
        return Beyond(none, none, none[:, :, 0], one_sided=True)
    kept = np.array(stored["heavy"], dtype=float).T.reshape(statistics.shape)
    spread = [priced.heavy.deviation(n) / SCALE for n in range(statistics.shape[1])]
    heavy = Heavy(kept, np.array(spread))
    return beyond_groups(plan, lost, statistics, heavy, l2=l2, one_sided=one_sided)


def _cut(priced: Priced, x: Any, stored: Mapping[str, Any]) -> Cut | None:
    """What bounds cut off: nothing, or what was bought about it; None where that is not known."""
    if not priced.plan.cuts(l2=priced.joint is None or priced.joint.norm == "l2"):
        return Cut(x, priced.noise)
    law = priced.cut
    if law is None:
        return None
    noise = ColumnNoise(law.deviation(0) / SCALE, law.law(0), SCALE)
    return Cut(x, priced.noise, float(stored["cut"]), noise)


def _cut_share(priced: Priced, x: Any, stored: Mapping[str, Any]) -> float:
    """The share of rows that a declared bound surely cuts off, where that was bought."""
    counts = [
        n for n, each in enumerate(priced.plan.statistics) if each.counts and not each.missing
    ]
    if priced.cut is None or not counts:
        return 0.0
    least = float(stored["cut"]) - priced.cut.error(0, confidence=0.95) / SCALE
    return max(0.0, least) / max(1.0, least + float(x[:, counts[0]].sum()))
