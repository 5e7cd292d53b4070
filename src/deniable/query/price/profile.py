"""Contribution bounds that are bought: noisy histograms of units.

Every unit lies in one bin of each histogram. What is made of them is post-processing: where columns
are centred, below which size units are never looked at, the norm to which heavier ones are scaled
down, and in how many groups a unit counts while groups are selected.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from deniable.engines.base import LazySnapshot, Rows, Step
from deniable.mechanisms.joint import JointNoise, additive
from deniable.privacy.amount import Amount
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.privacy.price import GRID, on_grid
from deniable.query.plan.moments import Centres
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.run.emit import groups_step, norms_step, rows_step, upper_step, values_step
from deniable.release import Door

_SHARE = Fraction(1, 20)
_ROUNDED = 64 * GRID  # the ledger rounds every draw of a question up
_MOST_ROWS = 33  # bits: more rows than an engine can hold
_NORM_BINS = 4 * 63
_CELLS = 64
_LEAST_SPREAD = 0.02
_BY_CHANCE = Fraction(1, 10_000)  # that noise alone makes a bin count, in one histogram
_MOST_NORM = 10**18 // (SCALE * 64)  # noise for more cannot be drawn
_RANKS = 4.0  # how many units lie beyond the norm, in units of the noise on all groups together
_LIGHT = 8.0  # how many more are looked at
_BEYOND_GROUPS = 0.05
_USUAL_GROUPS = 100


def _edges(first: int, steps: int) -> list[int]:
    """Whole numbers that grow by the fourth root of two."""
    return sorted({math.floor(first * 2 ** (step / 4)) for step in range(steps + 1)})


Recentre = Callable[[Centres], Plan]

_ROW_EDGES = _edges(1, 4 * _MOST_ROWS)
_UPPER_EDGES = [math.floor(2 ** (step / 4)) for step in range(_NORM_BINS)]


@dataclass(frozen=True)
class Purchase:
    """What is estimated privately before a question can be priced: histograms of units."""

    plan: Plan
    """The plan whose bounds are not known."""
    parts: tuple[str, ...]
    """Which histograms."""
    noise: JointNoise
    """The noise of each of them."""
    rest: Amount
    """What is left for the question."""
    centred: Recentre
    """Compiles the plan again, with columns centred elsewhere."""
    rank: float
    """How many units may lie beyond a bound."""

    @property
    def loss(self) -> Loss:
        """What all of them cost."""
        losses = [self.noise.loss] * len(self.parts)
        return losses[0] if len(losses) == 1 else compose(*losses)

    @property
    def l2(self) -> bool:
        """Whether norms are Euclidean."""
        return self.noise.norm == "l2"

    def steps(self) -> list[Step]:
        """What the engine runs, with made-up bounds."""
        light = replace(self.plan, rows=1, floor=1, norm=1)
        made: dict[str, Callable[[], Step]] = {
            **{_values(place): partial(_values_step, self.plan, place) for place in self.sums},
            "rows": partial(rows_step, self.plan),
            "upper": partial(upper_step, self.plan, l2=self.l2),
            "norms": partial(norms_step, light, l2=self.l2),
            "groups": partial(groups_step, self.plan),
        }
        return [made[part]() for part in self.parts]

    @property
    def sums(self) -> list[int]:
        """The statistics whose columns are centred anew."""
        if not self.plan.buys_rows:
            return []
        return [place for place, each in enumerate(self.plan.statistics) if each.marks is not None]

    def draw(self, door: Door, edges: Sequence[int], read: Callable[[], Rows]) -> list[int]:
        """A noisy histogram of values between edges; what lies below all is in the first bin."""

        def histogram() -> list[list[int]]:
            bins = [0] * len(edges)
            for value, units in read():
                bins[max(0, bisect_right(edges, int(value)) - 1)] += int(units)
            return [[count] for count in bins]

        drawn: Any = door.draw(self.noise, histogram)
        return [int(row[0]) for row in drawn]

    def cleaned(self, noisy: Sequence[int]) -> list[int]:
        """No counts below 0, and none beyond the last that noise alone would not make."""
        wide = self.noise.error(0, confidence=1 - _BY_CHANCE / len(noisy))
        last = max((place for place, count in enumerate(noisy) if count > wide), default=-1)
        return [max(0, count) if place <= last else 0 for place, count in enumerate(noisy)]


def _values(place: int) -> str:
    return f"values {place}"


def _values_step(plan: Plan, place: int) -> Step:
    return values_step(plan, place, _CELLS)


def placeholder(plan: Plan) -> Plan:
    """The plan with made-up bounds where none are known yet, to see that it can be run."""
    if plan.buys_rows:
        plan = replace(plan, rows=1)
    return replace(plan, max_groups=1) if plan.buys_groups else plan


def purchase(plan: Plan, amount: Amount, centred: Recentre) -> Purchase | None:
    """What is to be bought before a plan is priced, for a twentieth of its price or less.

    Prices are powers of two, so that questions of similar prices share what they buy.
    """
    parts = []
    if plan.buys_rows:
        sums = [place for place, each in enumerate(plan.statistics) if each.marks is not None]
        parts += [_values(place) for place in sums]
        parts += ["upper", "norms"] if plan.statistics else []
        parts += ["rows"] if plan.distinct or plan.ranks else []
    if plan.buys_groups:
        parts.append("groups")
    if not parts:
        return None
    price = Fraction(2) ** math.floor(math.log2(amount.value * _SHARE / len(parts)) - 1e-9)
    rest = amount.less(on_grid(price) * len(parts) + _ROUNDED)
    rank = rank_of(plan, rest)
    return Purchase(plan, tuple(parts), additive(amount.of(price), 1), rest, centred, rank)


def buy(bought: Purchase, door: Door, snapshot: LazySnapshot) -> dict[str, Any]:
    """The noisy histograms, as the ledger stores them."""
    plan, stored = bought.plan, dict[str, Any]()
    for place in bought.sums:
        read = partial(snapshot.run, _values_step(plan, place))
        stored[_values(place)] = bought.draw(door, range(_CELLS), read)
    if "upper" in bought.parts:
        made = bought.centred(_centres(bought, stored))
        read = partial(snapshot.run, upper_step(made, l2=bought.l2))
        stored["upper"] = bought.draw(door, range(_NORM_BINS), read)
        counts = bought.cleaned(stored["upper"])
        floor = _ranked(_UPPER_EDGES, counts, _LIGHT * bought.rank)
        stored["floor"] = floor
        light = replace(made, rows=1, floor=floor, norm=floor)
        step = norms_step(light, l2=bought.l2)
        stored["norms"] = bought.draw(
            door, _norm_edges(floor), lambda: _roots(snapshot.run(step), l2=bought.l2)
        )
    for part, make in (("rows", rows_step), ("groups", groups_step)):
        if part in bought.parts:
            read = partial(snapshot.run, make(plan))
            stored[part] = bought.draw(door, _ROW_EDGES, read)
    return stored


def _norm_edges(floor: int) -> list[int]:
    return _edges(floor, _NORM_BINS)


def _roots(rows: Rows, *, l2: bool) -> Rows:
    return [(math.isqrt(int(q)) if l2 else int(q), units) for q, units in rows]


def _centres(bought: Purchase, stored: Mapping[str, Any]) -> Centres:
    """Where the means of units lie, and how far from there, as a share of the farthest."""
    found = {}
    for place in bought.sums:
        statistic = bought.plan.statistics[place]
        assert statistic.marks is not None
        low, _, high = statistic.marks
        width = (high - low + 1) / _CELLS
        counts = bought.cleaned(stored[_values(place)])
        total = sum(counts)
        if total:
            mean = sum((cell + 0.5) * count for cell, count in enumerate(counts)) / total
            apart = sum(abs(cell + 0.5 - mean) * count for cell, count in enumerate(counts)) / total
            centre = min(max(low + math.floor(mean * width), low), high)
            farthest = max(high - centre, centre - low, 1)
            share = min(1.0, max(_LEAST_SPREAD, apart * width / farthest))
            found[statistic.column] = (centre, share)
    return found


def bounded(bought: Purchase, stored: Mapping[str, Any]) -> Plan:
    """The plan with the bounds that were bought."""
    plan, rank = bought.plan, bought.rank
    if plan.buys_rows:
        plan = replace(bought.centred(_centres(bought, stored)), rows=1)
    if "rows" in stored:
        counts = bought.cleaned(stored["rows"])
        plan = replace(plan, rows=_ranked(_ROW_EDGES, counts, rank))
    if "norms" in stored:
        floor = int(stored["floor"])
        edges, counts = _norm_edges(floor), bought.cleaned(stored["norms"])
        seen = max((place for place, count in enumerate(counts) if count), default=0)
        norm = min(max(floor, _ranked(edges, counts, rank)), max(floor, _MOST_NORM))
        top = max(norm, min(edges[min(seen + 1, len(edges) - 1)], _MOST_NORM))
        plan = replace(plan, floor=floor, norm=norm, top=top)
    if "groups" in stored:
        counts = bought.cleaned(stored["groups"])
        groups = _ranked(_ROW_EDGES, counts, max(_BEYOND_GROUPS * sum(counts), 1.0))
        plan = replace(plan, max_groups=groups)
    return plan


def rank_of(plan: Plan, amount: Amount) -> float:
    """How many units may lie beyond the bound.

    A wider bound adds noise to every group, a narrower one takes from every unit beyond it; both
    are in balance where so many units lie beyond as all groups have noise for one unit's bound
    (Amin, Kulesza, Munoz & Vassilvitskii 2019); more, for what is cut off is estimated.
    """
    return max(1.0, _RANKS * (plan.cells or _USUAL_GROUPS) * amount.deviation)


def _ranked(edges: Sequence[int], counts: Sequence[int], rank: float) -> int:
    """The value that so many units exceed, between the edges of its bin by their logarithms."""
    above = 0.0
    for place in range(len(counts) - 1, -1, -1):
        if counts[place] and above + counts[place] >= rank:
            low = edges[place]
            high = edges[place + 1] if place + 1 < len(edges) else 2 * low
            down = (rank - above) / counts[place]
            return max(1, math.ceil(low * math.pow(high / low, 1 - down)))
        above += counts[place]
    return max(1, edges[0])
