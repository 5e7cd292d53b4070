"""What the ledger holds of a question, as an answer: numbers, intervals, labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from deniable.answer import Answer
from deniable.intervals import Floats
from deniable.privacy.price import Price
from deniable.query.plan.levels import Norms
from deniable.query.plan.measures import ColumnNoise, Linear, Located
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.plan.reach import Reach
from deniable.query.plan.tail import UPPER_END, Profile
from deniable.query.price.estimate import as_released
from deniable.query.price.price import Priced
from deniable.query.price.profile import single
from deniable.query.show.beyond import Beyond, Heavy, beyond_groupings, beyond_groups, beyond_one
from deniable.query.show.columns import beyond_columns
from deniable.query.show.rows import many
from deniable.query.show.shape import Noisy, shape
from deniable.query.show.truth import Clipped, Cut, clipped_of, counts_of_rows
from deniable.release import Release

_MUCH = 0.05  # of the rows: a declared bound that cuts off more is worth a word


def shown(priced: Priced, recorded: Release, paid: Price | None = None) -> Answer:
    """The answer, from what the ledger holds; `paid` was spent on estimates before it."""
    value = recorded.value
    assert isinstance(value, dict)
    plan = priced.plan
    kinds = [group.kind for group in plan.counted.groups]
    keys = [as_released(key, kinds) for key in value["keys"]]
    x = np.zeros((len(keys), plan.counted.columns))
    for place, column in enumerate(value["columns"]):
        x[:, place] = [math.nan if each is None else each for each in column]
    cut, beyond = _cut(priced, x, value), _beyond(priced, x, value)
    clipped = clipped_of(priced)
    labels = dict.fromkeys((*_labels(priced, x, value, beyond), *_of_clipped(plan, x, clipped)))
    # Of what was given before for nothing, what it cost then.
    cost = recorded.cost if paid is None else paid
    if paid is not None and not recorded.repeated:
        cost = paid + recorded.cost
    shaped = shape(plan, Noisy(keys, x, priced.noise, cut, beyond, clipped))
    return Answer(
        data=shaped.data,
        noise=shaped.noise,
        truth=shaped.truth,
        total=shaped.total,
        cost=cost,
        number=recorded.number,
        head=recorded.head,
        repeated=recorded.repeated and paid is None,
        labels=tuple(labels),
    )


def nothing(plan: Plan, recorded: Release, paid: Price | None) -> Answer:
    """The answer where no group was selected; nothing more was spent."""
    unknown = (ColumnNoise(math.nan, None),) * plan.counted.columns
    shaped = shape(plan, Noisy([], np.zeros((0, plan.counted.columns)), unknown))
    return Answer(
        data=shaped.data,
        noise=shaped.noise,
        cost=recorded.cost if paid is None else paid,
        number=recorded.number,
        head=recorded.head,
        repeated=paid is None,
        labels=("no group has so many people that it can be shown at this price",),
    )


def _labels(
    priced: Priced, x: Floats, stored: Mapping[str, Any], beyond: Beyond | None
) -> Iterator[str]:
    plan = priced.plan
    unit = plan.contribution
    if unit.profile is not None and beyond is not None:
        yield from _of_profile(plan, unit.profile, x, beyond)
    yield from _of_reaches(plan)
    yield from _of_ends(priced, x)
    if unit.profile is None and (share := _cut_share(priced, x, stored)) > _MUCH:
        yield f"max_rows cuts off about {share:.0%} of the rows; leave it out to estimate it"
    if unit.by_rows is not None:
        yield from _of_rows(plan, unit.by_rows)
    if unit.left_out and unit.cap is None:  # else that is promised not to happen
        yield unit.rows_left_out
    if plan.shown.picks_by_noise:
        yield (
            "noisy numbers decide which rows are shown: intervals of rows near that limit miss "
            "more often than 1 in 20"
        )
    yield from plan.shown.notes


def _of_clipped(plan: Plan, x: Floats, clipped: Clipped | None) -> Iterator[str]:
    """How many people a declared bound cuts, and what is made of it."""
    if clipped is None:
        return
    above = clipped.above
    rows = many(above.rows)
    sums = any(isinstance(each, Linear) for each in plan.shown.measures)
    others = any(not isinstance(each, Linear) for each in plan.shown.measures)
    advice = "promise cap_rows=, or ask with profile=True"
    if above.unknown:
        if sums:
            yield f"at least: too few people to tell how many have more than {rows}; {advice}"
        else:
            yield f"of rows cut at {above.rows:,} per person; {advice}"
        return
    people = clipped.people
    of = " of one group" if plan.counted.groups else ""
    if people < 1:
        yield f"nobody is seen with more than {rows}{of}"
        return
    put_back = ""
    if clipped.likely >= 1:
        share = clipped.likely / max(1.0, clipped.likely + float(x[:, 0].sum()))
        put_back = f"; about {share:.1%} of rows clipped and put back"
    yield f"at most {math.ceil(people):,} people have more than {rows}{of}{put_back}"
    if not clipped.is_seldom and others:
        yield f"of rows cut at {above.rows:,} per person, where no interval is given; {advice}"
    elif clipped.is_seldom and not clipped.restores:
        yield "what they have beyond that is taken to be like the rest"
    if clipped.most(0.975) >= 1 and above.cap is None:
        yield _assumed(above.tail.seen)


def _of_profile(plan: Plan, profile: Profile, x: Floats, beyond: Beyond) -> Iterator[str]:
    """The bound, how much it took away, and what the upper end rests on."""
    assert plan.contribution.norm is not None
    rows = plan.contribution.norm / profile.largest_row
    heavy = profile.tail.beyond(plan.contribution.norm / profile.least_row)
    people, lost = float(np.median(heavy.beyond)), float(np.median(heavy.least + heavy.most)) / 2
    kept = _kept(plan, profile, x)
    part = None if kept is None else lost / max(1.0, lost + kept)
    restored = " and put back" if any(isinstance(m, Linear) for m in plan.shown.measures) else ""
    usual = " of usual size" if plan.buys_norm else ""
    of = " in one group" if plan.counted.groups and profile.norms != Norms.WHOLE else ""
    share = f", about {part:.1%} of rows clipped{restored}" if part is not None else ""
    yield (
        f"each person counts with at most {many(rows)}{usual}{of} (estimated privately); about "
        f"{people:,.0f} have more{share}"
    )
    if beyond.one_sided:
        yield _without_ends(plan, profile)
    else:
        seen = profile.tail.seen * profile.least_row / profile.largest_row
        yield _assumed(max(rows, seen))


def _without_ends(plan: Plan, profile: Profile) -> str:
    """Why sums have no upper end and other numbers no interval, and what would give them one."""
    sums = [isinstance(each, Linear) for each in plan.shown.measures]
    what = "at least: an upper end" if all(sums) else "an interval"
    what = what if all(sums) or not any(sums) else f"at least: an upper end, or {what} of the rest,"
    if profile.few:
        return (
            f"{what} needs max_rows=, or a larger epsilon, or about "
            f"{UPPER_END * profile.deviation:,.0f} people at this one"
        )
    rows = many(profile.open_from * profile.least_row / profile.largest_row)
    return (
        f"{what} needs max_rows=: people are visible above the noise in the last bin, from {rows} "
        "on, and nothing tells how many rows they have"
    )


def _of_rows(plan: Plan, profile: Profile) -> Iterator[str]:
    """The same where values are ranked, or told apart."""
    rows, asked = plan.contribution.rows, plan.counted
    parts = (("distinct values", asked.distinct), ("quantiles", asked.ranks))
    what = " and ".join(each for each, there in parts if there)
    lost = profile.tail.beyond(rows)
    yield (
        f"{what}: each person counts with at most {many(rows)} (estimated privately); about "
        f"{np.median(lost.beyond):,.0f} have more"
    )
    if profile.few or profile.open_above:
        yield (
            f"intervals of {what} are as wide as the bounds: narrower ones need max_rows=, or a "
            f"larger epsilon, or about {UPPER_END * profile.deviation:,.0f} people at this one"
        )
    else:
        yield _assumed(max(rows, profile.tail.seen))


def _assumed(rows: float) -> str:
    """What upper ends rest on."""
    return (
        f"upper ends assume that beyond {many(rows)} the number of people falls at least as fast "
        "as x^-1.2 and as just before, and that nobody has more than a quarter of all rows"
    )


def _of_ends(priced: Priced, x: Floats) -> Iterator[str]:
    """Which rank a MIN or MAX is, and where it is not told."""
    plan = priced.plan
    first = len(plan.counted.statistics) + len(plan.counted.distinct)
    who = "people" if plan.contribution.one_row else "rows"
    for output in plan.shown.outputs:
        measure = plan.shown.measure_of(output)
        if isinstance(measure, Located):
            law = priced.ranks[(measure.place - first) // Located.WIDTH]
            if law.rows is not None:
                beyond = law.beyond / SCALE
                missing = np.isnan(x[:, measure.place]).any()
                none = f"; not told of fewer than about {2 * beyond:,.0f}" if missing else ""
                yield f"{output.name}: up to about {beyond:,.0f} {who} lie beyond{none}"


def _of_reaches(plan: Plan) -> Iterator[str]:
    """Between which values columns count, and how many are beyond."""
    for reach in plan.contribution.reaches.values():
        low, high = (f"{float(each):,.6g}" for each in reach.bounds)
        declare = f"declare bounds={{'{reach.name}': (low, high)}} for a smaller error"
        if reach.usual is not None:
            yield (
                f"{reach.name}: no bounds are declared; what a person adds is bounded as a whole, "
                f"around {float(reach.centre):,.6g} (estimated privately); {declare}"
            )
            continue
        if reach.sides is None:
            continue
        if reach.ranked:
            yield f"{reach.name}: ranked between {low} and {high} (estimated privately); {declare}"
            continue
        above, below = (float(np.median(reach.lost(side).beyond)) for side in (0, 1))
        yield (
            f"{reach.name}: values count from {low} to {high} (estimated privately); about "
            f"{above:,.0f} are above and {below:,.0f} below; {declare}"
        )
        if any(reach.open):
            yield _open(reach)
            continue
        yield (
            f"intervals of {reach.name} assume that beyond what is visible above the noise the "
            "number of values falls at least as fast as x^-1.2 and as just before, and that none "
            "is more than a quarter of the total"
        )


def _open(reach: Reach) -> str:
    """On which sides nothing tells how far values reach."""
    above, below = reach.open
    side = "above and below" if above and below else "above" if above else "below"
    return (
        f"{reach.name}: {side}, values are visible above the noise beyond all that was looked at; "
        "nothing tells how far they reach, so no interval ends there"
    )


def _kept(plan: Plan, profile: Profile, x: Floats) -> float | None:
    """How much was kept, in norms of one row, where rows are counted."""
    counts = counts_of_rows(plan)
    if not counts:
        return None
    kept = float(np.maximum(x[:, counts[0]], 0.0).sum())
    return kept * plan.weights[counts[0]] / profile.least_row


def _beyond(priced: Priced, x: Floats, stored: Mapping[str, Any]) -> Beyond | None:
    """What a bound that was estimated took away."""
    plan = priced.plan
    if plan.clips and len(x):
        return beyond_columns(plan, x, priced.noise)
    if (
        plan.contribution.profile is None
        or plan.contribution.norm is None
        or priced.joint is None
        or not len(x)
    ):
        return None
    profile, l2 = plan.contribution.profile, priced.joint.norm == "l2"
    cap = (
        math.inf
        if plan.contribution.cap is None or plan.buys_norm
        else plan.contribution.cap * profile.largest_row / profile.least_row
    )
    lost = profile.tail.beyond(plan.contribution.norm / profile.least_row, cap)
    one_sided = profile.open_above or profile.few
    if single(plan):
        return beyond_one(lost, one_sided=one_sided)
    statistics = x[:, : len(plan.counted.statistics)]
    if priced.heavy is None:
        return beyond_groupings(plan, lost, statistics, one_sided=one_sided)
    kept = np.array(stored["heavy"], dtype=float).T.reshape(statistics.shape)
    spread = [priced.heavy.deviation(n) / SCALE for n in range(statistics.shape[1])]
    heavy = Heavy(kept, np.array(spread))
    found = beyond_groups(plan, lost, statistics, heavy, l2=l2, one_sided=one_sided)
    return found.without(plan.once)


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
    counts = counts_of_rows(priced.plan)
    if priced.cut is None or not counts:
        return 0.0
    least = float(stored["cut"]) - priced.cut.error(0, confidence=0.95) / SCALE
    return max(0.0, least) / max(1.0, least + float(x[:, counts[0]].sum()))
