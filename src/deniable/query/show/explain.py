"""What a question would cost and how wrong its answer would be: nothing is spent, nothing read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from deniable.engines.base import Step
from deniable.ledger.filters import Budget
from deniable.mechanisms.keys import WEIGHT, KeySelection
from deniable.privacy.composition import Composed, compose
from deniable.privacy.guarantees import ApproxDP, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.price import Price
from deniable.query.plan.measures import Linear, Located, Measure
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.plan.tail import farther_end
from deniable.query.price.estimate import in_words
from deniable.query.price.price import Priced
from deniable.query.price.profile import share_of_lost
from deniable.query.run.emit import KEY_PLACEHOLDER
from deniable.query.show.rows import many
from deniable.query.show.truth import ClippedSum, clipped_of

_ON_TOP = "of noise, and what is clipped"


@dataclass(frozen=True)
class Unknown:
    """What is still to be estimated before a question can be answered, and its price."""

    parts: tuple[str, ...]
    loss: Loss
    bounds: bool = True
    """Whether the noise of the answer depends on it."""


@dataclass(frozen=True)
class ColumnError:
    """A column of the answer: the law of its noise, and its expected 95 % half-width."""

    name: str
    noise: str
    half_width: float | None
    condition: str

    def __str__(self) -> str:
        if self.half_width is None:
            return "± ?"
        return f"± {self.half_width:,.4g}{' ' + self.condition if self.condition else ''}"


@dataclass(frozen=True)
class Explanation:
    """A question before it is asked."""

    cost: Price
    guarantee: str
    columns: tuple[ColumnError, ...]
    groups: str
    contributions: str
    threshold: int | None
    statements: tuple[str, ...]
    labels: tuple[str, ...] = ()
    free: bool = False
    """Whether it was answered before, and costs nothing."""
    covered: bool = True
    """Whether the budget pays for it."""
    more: int = 0
    """How many like it the budget pays for, this one included."""

    def to_json(self) -> str:
        """For machines."""
        told = {
            "cost": self.cost.to_json(),
            "guarantee": self.guarantee,
            "columns": [vars(column) for column in self.columns],
            "groups": self.groups,
            "contributions": self.contributions,
            "threshold": self.threshold,
            "labels": self.labels,
            "free": self.free,
            "covered": self.covered,
            "more": self.more,
            "statements": self.statements,
        }
        return json.dumps(told, indent=2, ensure_ascii=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        if self.free:
            yield Text(f"cost: nothing, for it was given before; {self.guarantee}")
        else:
            yield Text(f"cost: {self.cost}; {self.guarantee}")
        table = Table("column", "noise", "95 % half-width")
        for column in self.columns:
            table.add_row(Text(column.name), column.noise, str(column))
        yield table
        yield Text(f"groups: {self.groups}")
        yield Text(f"one unit: {self.contributions}")
        yield Text(f"budget: {self._budget()}")
        for label in self.labels:
            yield Text(f"note: {label}")
        for statement in self.statements:
            yield Text(f"SQL: {statement}")

    def _budget(self) -> str:
        if self.free:
            return "is not touched"
        if not self.covered:
            return "does not cover it: ask for less, or have the owner top it up"
        return f"covers it; {self.more:,} like it at this price, this one included"

    def __str__(self) -> str:
        console = Console(width=100, no_color=True, legacy_windows=False)
        with console.capture() as capture:
            console.print(self)
        return capture.get().rstrip()


def explain(
    priced: Priced,
    budget: Budget,
    write: Callable[[Step], list[str]],
    *,
    size: int | None,
    unknown: Sequence[Unknown] = (),
    keys: KeySelection | None = None,
) -> Explanation:
    """Tell everything that is known before the question is asked; `unknown` is estimated first."""
    plan, noise = priced.plan, priced.noise
    groups = plan.counted.cells
    rows = None if size is None or groups is None else size / groups

    def column(name: str, measure: Measure | None) -> ColumnError:
        if measure is None:
            return ColumnError(name, "arithmetic on noisy numbers", None, "")
        if any(each.bounds for each in unknown):
            return _by_row(priced, name, measure)
        law = _law(priced, measure)
        if isinstance(measure, Linear):
            return _expected(priced, name, measure, above=bool(unknown))
        if rows is None or isinstance(measure, Located):
            return ColumnError(name, law, None, "")
        x = np.zeros((1, len(noise)))
        for place in range(len(noise)):
            x[0, place] = rows if _counts(priced, place) else 0.0
        low, high = measure.interval(x, noise, 0.95)
        wide = float(high[0] - low[0]) / 2
        return ColumnError(
            name, law, wide if math.isfinite(wide) else None, f"if a group has {rows:,.0f} rows"
        )

    columns = tuple(
        column(output.name, plan.shown.measure_of(output))
        for output in plan.shown.outputs
        if output.group is None
    )
    loss = compose(*(each.loss for each in unknown), priced.loss) if unknown else priced.loss
    return Explanation(
        cost=budget.named(loss.price),
        guarantee=_guarantee(loss, budget),
        columns=columns,
        groups=_groups(priced, keys),
        contributions=_told(priced, unknown) + _multiplied(plan),
        threshold=None if keys is None else _people(keys),
        statements=tuple(
            dict.fromkeys(
                text for step in priced.steps(KEY_PLACEHOLDER).values() for text in write(step)
            )
        ),
        labels=plan.shown.notes,
    )


def _counts(priced: Priced, place: int) -> bool:
    statistics = priced.plan.counted.statistics
    if place >= len(statistics):
        return False
    return statistics[place].size == 1 and not statistics[place].missing


def _by_row(priced: Priced, name: str, measure: Measure) -> ColumnError:
    """While bounds are unknown: of counts, how wide noise is for each row that a unit adds."""
    noise, asked = "known once the bounds are estimated", priced.plan.counted
    counted = asked.statistics and all(each.counts for each in asked.statistics)
    if not (isinstance(measure, Linear) and counted and not (asked.distinct or asked.ranks)):
        return ColumnError(name, noise, None, "")
    wide, each = measure.half_width(priced.noise, 0.95), "for each row that a person counts with"
    return ColumnError(name, noise, wide, f"or more {each}; how many rows is estimated first")


def _expected(priced: Priced, name: str, measure: Linear, *, above: bool) -> ColumnError:
    """A count or a sum: noise, and what a bound takes away from one group.

    `above` says that it is still to be estimated how much a declared one does.
    """
    unit, statistics = priced.plan.contribution, priced.plan.counted.statistics
    law, wide = _law(priced, measure), measure.half_width(priced.noise, 0.95)
    if above:
        return ColumnError(name, law, wide, _ON_TOP)
    clipped = clipped_of(priced)
    if clipped is not None and not clipped.nothing:
        if clipped.above.unknown:
            return ColumnError(name, law, wide, "below it alone: too few people for an upper end")
        if not clipped.restores:
            return ColumnError(name, law, wide, _ON_TOP)
        sums = ClippedSum(measure, np.zeros((1, len(priced.noise))), priced.noise, clipped)
        return ColumnError(name, law, sums.expected(0.95), "about the truth")
    told = unit.by_rows is not None and max(measure.columns(), default=0) >= len(statistics)
    profile = unit.profile
    if not told and (profile is None or unit.norm is None or wide == 0):
        return ColumnError(name, law, wide, "")
    counts = all(each.counts and not each.missing for each in statistics)
    if told or not counts or profile is None or unit.norm is None:
        return ColumnError(name, law, wide, _ON_TOP)
    if profile.few or profile.open_above:
        why = "too few people" if profile.few else "some people have too many rows"
        return ColumnError(name, law, wide, f"below it alone: {why} for an upper end")
    cap = math.inf if unit.cap is None else unit.cap * profile.largest_row / profile.least_row
    lost = profile.tail.beyond(unit.norm / profile.least_row, cap)
    expected = farther_end(lost, wide, share_of_lost(priced.plan))
    return ColumnError(name, law, expected, "about the truth")


def _law(priced: Priced, measure: Measure) -> str:
    if isinstance(measure, Located):
        behind = len(priced.plan.counted.statistics) + len(priced.plan.counted.distinct)
        law = priced.ranks[(measure.place - behind) // Located.WIDTH].value
        missed = law.rank_error(confidence=Fraction(19, 20)) / SCALE
        return f"exponential mechanism in {law.cells:,} cells, ± {missed:,.4g} rows of rank"
    parts = []
    for place in measure.columns():
        deviation = priced.noise[place].deviation
        kind = "discrete Gaussian, σ" if priced.noise[place].gaussian else "discrete Laplace, sd"
        parts.append(f"{kind} = {deviation:,.4g}")
    return " and ".join(dict.fromkeys(parts)) or "none"


def _guarantee(loss: Loss, budget: Budget) -> str:
    if isinstance(budget.guarantee, PureDP):
        return f"ε-DP with ε = {float(loss.price.epsilon or 0):g}"
    if isinstance(budget.guarantee, ApproxDP):
        delta = budget.conversion_delta + loss.price.delta
        return f"alone it is ({_epsilon(loss, delta):.4g}, {float(delta):.3g})-DP"
    return f"ρ-zCDP with ρ = {float(loss.price.rho):.4g}"


def _epsilon(loss: Loss, delta: Fraction) -> float:
    """By a formula where losses compose: the numerical way may take long, and saves little."""
    if isinstance(loss, Composed):
        return loss.closed_epsilon(delta=delta)
    return loss.epsilon(delta=delta)


def _groups(priced: Priced, keys: KeySelection | None) -> str:
    plan = priced.plan
    if not plan.counted.groups:
        return "one"
    if keys is None and plan.counted.selected is not None:
        return f"{plan.counted.cells:,}, chosen privately before"
    if keys is None:
        return f"{plan.counted.cells:,}, all of them public: every one is shown, empty ones too"
    return (
        f"chosen privately: shown where {_people(keys):,} units or more are counted, under noise; "
        f"a unit of g groups, {keys.max_groups:,} at most, counts with 1/√g in each"
    )


def _people(keys: KeySelection) -> int:
    """How many units of one group each show it with probability one half."""
    return math.ceil(keys.threshold / WEIGHT)


def _told(priced: Priced, unknown: Sequence[Unknown]) -> str:
    """What one unit adds, or how that is found."""
    if any(each.bounds for each in unknown):
        listed = in_words([part for each in unknown for part in each.parts])
        cost = compose(*(each.loss for each in unknown)).price
        return f"its bounds are estimated privately first, by {listed}, for {cost}"
    above = "".join(
        f"; how many have more is estimated first, for {each.loss.price}" for each in unknown
    )
    return _contributions(priced) + above


def _contributions(priced: Priced) -> str:
    unit = priced.plan.contribution
    if unit.one_row:
        return "is one row"
    if priced.plan.counted.counts_units:
        return "counts once"
    parts = []
    if unit.profile is not None and unit.norm is not None:
        rows = many(unit.norm / unit.profile.largest_row)
        parts.append(f"counts with at most {rows}, as was estimated privately before")
    if unit.by_rows is not None:
        rows = many(unit.rows)
        parts.append(f"is ranked or told apart with at most {rows}, estimated privately before")
    if parts:
        return "; ".join(parts)
    return (
        f"counts in full with up to {many(unit.rows)}; one with more is scaled down to what "
        f"{many(unit.rows)} can add, all its numbers together"
    )


def _multiplied(plan: Plan) -> str:
    """How joins multiply rows, and what they leave out."""
    parts = [plan.contribution.rows_left_out] if plan.contribution.left_out else []
    if plan.contribution.fan > 1:
        parts.insert(0, f"by its joins one row becomes up to {plan.contribution.fan:,}")
    return "".join(f"; {part}" for part in parts)
