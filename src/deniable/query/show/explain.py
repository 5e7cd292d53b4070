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
from deniable.privacy.composition import Composed, compose
from deniable.privacy.guarantees import ApproxDP, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.price import Price
from deniable.query.plan.asked import Unknown
from deniable.query.plan.measures import Linear, Located, Measure
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.price.estimate import Keys
from deniable.query.price.price import Priced
from deniable.query.run.emit import KEY_PLACEHOLDER
from deniable.query.show.shape import measure_of


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

    def to_json(self) -> str:
        """For machines."""
        told = {
            "cost": {
                "epsilon": None if self.cost.epsilon is None else float(self.cost.epsilon),
                "rho": float(self.cost.rho),
                "delta": float(self.cost.delta),
            },
            "guarantee": self.guarantee,
            "columns": [vars(column) for column in self.columns],
            "groups": self.groups,
            "contributions": self.contributions,
            "threshold": self.threshold,
            "labels": self.labels,
            "statements": self.statements,
        }
        return json.dumps(told, indent=2, ensure_ascii=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        yield Text(f"cost: {self.cost}; {self.guarantee}")
        table = Table("column", "noise", "95 % half-width")
        for column in self.columns:
            table.add_row(Text(column.name), column.noise, str(column))
        yield table
        yield Text(f"groups: {self.groups}")
        yield Text(f"one unit: {self.contributions}")
        for label in self.labels:
            yield Text(f"note: {label}")
        for statement in self.statements:
            yield Text(f"SQL: {statement}")

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
    keys: Keys | None = None,
) -> Explanation:
    """Tell everything that is known before the question is asked; `unknown` is estimated first."""
    plan, noise = priced.plan, priced.noise
    groups = plan.cells
    rows = None if size is None or groups is None else size / groups

    def column(name: str, measure: Measure | None) -> ColumnError:
        if measure is None:
            return ColumnError(name, "arithmetic on noisy numbers", None, "")
        if unknown:
            return ColumnError(name, "known once the bounds are estimated", None, "")
        law = _law(priced, measure)
        if isinstance(measure, Linear):
            return ColumnError(name, law, measure.half_width(noise, 0.95), "")
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
        column(output.name, measure_of(plan, output))
        for output in plan.outputs
        if output.group is None
    )
    loss = compose(*(each.loss for each in unknown), priced.loss) if unknown else priced.loss
    return Explanation(
        cost=budget.named(loss.price),
        guarantee=_guarantee(loss, budget),
        columns=columns,
        groups=_groups(priced, keys),
        contributions=(_bought(unknown) if unknown else _contributions(priced)) + _multiplied(plan),
        threshold=None if keys is None or unknown else keys.selection.threshold,
        statements=tuple(
            dict.fromkeys(
                text for step in priced.steps(KEY_PLACEHOLDER).values() for text in write(step)
            )
        ),
        labels=plan.notes,
    )


def _counts(priced: Priced, place: int) -> bool:
    statistics = priced.plan.statistics
    if place >= len(statistics):
        return False
    return statistics[place].size == 1 and not statistics[place].missing


def _law(priced: Priced, measure: Measure) -> str:
    if isinstance(measure, Located):
        behind = len(priced.plan.statistics) + len(priced.plan.distinct)
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


def _groups(priced: Priced, keys: Keys | None) -> str:
    plan = priced.plan
    if not plan.groups:
        return "one"
    if keys is None:
        return f"{plan.cells:,}, all of them public: every one is shown, empty ones too"
    chosen, several = keys.selection, keys.plan.max_groups
    return (
        f"chosen privately: shown where {chosen.threshold:,} units or more are counted, under "
        f"noise; a unit counts in {several:,} groups while they are chosen"
    )


def _bought(unknown: Sequence[Unknown]) -> str:
    listed = " and ".join(part for each in unknown for part in each.parts)
    cost = compose(*(each.loss for each in unknown)).price
    return f"its bounds are estimated privately, by {listed} of units, for {cost}"


def _contributions(priced: Priced) -> str:
    plan = priced.plan
    if plan.one_row:
        return "is one row"
    if plan.counts_units:
        return "counts once"
    if plan.profile is not None and plan.norm is not None:
        rows = plan.norm / plan.profile.largest_row
        return f"counts with at most {rows:,.4g} rows, as was estimated privately before"
    return (
        f"counts in full with up to {plan.rows:,} rows; one with more is scaled down to what "
        f"{plan.rows:,} rows can add, all its numbers together"
    )


def _multiplied(plan: Plan) -> str:
    """How joins multiply rows, and what they leave out."""
    parts = [plan.rows_left_out] if plan.left_out else []
    if plan.fan > 1:
        parts.insert(0, f"by its joins one row becomes up to {plan.fan:,}")
    return "".join(f"; {part}" for part in parts)
