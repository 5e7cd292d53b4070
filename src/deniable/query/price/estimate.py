"""What is estimated privately before a question can be priced: one after the other.

Which groups there are, and how far one unit may move the answer. Each is a release of its own,
recorded by what it depends on, so that later questions find it. Its price is a power of two:
questions of similar prices share it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any, Protocol

from deniable.engines.base import LazySnapshot, Rows, Step
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.mechanisms.joint import JointNoise, additive
from deniable.mechanisms.keys import KeySelection
from deniable.privacy.amount import Amount
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.privacy.price import on_grid
from deniable.query.plan.plan import Plan
from deniable.query.run.emit import units_step
from deniable.query.run.emit_profile import rows_step
from deniable.release import Door
from deniable.tables import ColumnType

KEYS_SHARE = Fraction(1, 5)
_SHARE = Fraction(1, 20)
_LARGEST = 10**6 - 1  # ε or ρ of one loss, and of what rounding adds to a part
_MOST_ROWS = 33  # bits: more rows than an engine can hold
_BY_CHANCE = Fraction(1, 10_000)  # that noise alone makes a bin count, in one histogram
_RANKS = 4.0  # how many units lie beyond a bound, in units of the noise on all groups together
_USUAL_GROUPS = 100
_WORDS = {"norms": "contributions", "rows above what is declared": "who has more than max_rows"}


class PrivateEstimate(Protocol):
    """One release that comes before the answer."""

    @property
    def plan(self) -> Plan:
        """The plan that lacks it."""

    @property
    def parts(self) -> tuple[str, ...]:
        """What is estimated: it is found by that in ledgers."""

    @property
    def subject(self) -> str:
        """Of which column, where it is of one."""

    @property
    def by_statistics(self) -> bool:
        """Whether it hangs on what is counted and summed, and on the weight of each."""

    @property
    def loss(self) -> Loss:
        """What it costs."""

    @property
    def left(self) -> Amount:
        """What is left for the rest of the question, whoever paid for this."""

    def steps(self) -> list[Step]:
        """What the engine runs, with made-up numbers where others come first."""

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """Noisy numbers, as the ledger stores them."""

    def applied(self, stored: Any) -> Plan:
        """The plan with what was found."""

    def assumed(self) -> Plan:
        """The plan with something made up, to see that it can be run."""


def in_words(parts: Sequence[str]) -> str:
    """What is estimated, for people."""
    *most, last = (_WORDS.get(part, part) for part in parts)
    return f"{', '.join(most)} and {last}" if most else last


def rounded_share(amount: Amount, share: Fraction) -> Amount:
    """A share of an amount or less: a power of two."""
    return amount.of(Fraction(2) ** math.floor(math.log2(amount.value * share) - 1e-9))


def finer_share(amount: Amount, share: Fraction) -> Amount:
    """A share of an amount or less: a power of two, and so many quarters of it."""
    whole = rounded_share(amount, share).value
    quarters = math.floor(4 * (amount.value * share / whole - 1) - Fraction(1, 10**9))
    return amount.of(whole * (1 + Fraction(min(max(quarters, 0), 3), 4)))


def less(amount: Amount, *spent: Amount) -> Amount:
    """What is left of an amount, in the ledger's rounding: with what is spent, all of it."""
    return amount.less(sum((on_grid(each.value) for each in spent), Fraction(0))).on_grid()


def to_hold(left: Amount) -> Loss:
    """What is held for the rest of a question: all that is left.

    Whatever comes of it, its parts add up to that (`Amount.split`). The ρ of pure parts hangs on
    how many there are, and is largest where there is one; the μ of Gaussian ones hangs on bounds
    that are not known yet, and is not held. An amount too large for one loss is held as several.
    """
    times = math.ceil(left.value / _LARGEST)
    return compose(*(each.loss for each in left.split(*[Fraction(1, times)] * times)))


def edges(first: int, steps: int) -> list[int]:
    """Whole numbers that grow by the fourth root of two."""
    return sorted({math.floor(first * 2 ** (step / 4)) for step in range(steps + 1)})


_ROW_EDGES = edges(1, 4 * _MOST_ROWS)


def draw_counts(door: Door, noise: JointNoise, counts: Callable[[], Sequence[int]]) -> list[int]:
    """Noisy numbers of units, each of which is counted in one of them."""
    drawn: Any = door.draw(noise, lambda: [[count] for count in counts()])
    return [int(row[0]) for row in drawn]


def draw_place(door: Door, law: GridQuantile, counts: Callable[[], Sequence[int]]) -> int:
    """A place among cells, chosen by how many units are in each."""
    drawn: Any = door.draw(law, lambda: [list(counts())])
    return int(drawn[0])


def by_edges(rows: Rows, edges: Sequence[int]) -> list[int]:
    """How many units have values between edges; what lies below all is in the first bin."""
    bins = [0] * len(edges)
    for value, units in rows:
        bins[max(0, bisect_right(edges, int(value)) - 1)] += int(units)
    return bins


def cleaned(noise: JointNoise, noisy: Sequence[int]) -> list[int]:
    """No counts below 0, and none beyond the last that noise alone would not make."""
    wide = noise.error(0, confidence=1 - _BY_CHANCE / len(noisy))
    last = max((place for place, count in enumerate(noisy) if count > wide), default=-1)
    return [max(0, count) if place <= last else 0 for place, count in enumerate(noisy)]


@dataclass(frozen=True)
class RowsOfUnits:
    """How many rows units have: the number up to which they count in full."""

    plan: Plan
    noise: JointNoise
    left: Amount
    rank: float
    """How many units may lie beyond the bound."""
    parts = ("rows",)
    subject = ""
    by_statistics = False

    @classmethod
    def of(cls, plan: Plan, amount: Amount, share: Fraction = _SHARE) -> RowsOfUnits:
        """For a share of an amount.

        A wider bound adds noise to every group, a narrower one takes from every unit beyond it;
        both are in balance where so many units lie beyond as all groups have noise for one unit's
        bound (Amin, Kulesza, Munoz & Vassilvitskii 2019).
        """
        price = rounded_share(amount, share)
        left = less(amount, price)
        rank = max(1.0, _RANKS * (plan.counted.cells or _USUAL_GROUPS) * left.deviation)
        return cls(plan, additive(price, 1), left, rank)

    @property
    def loss(self) -> Loss:
        """That of one histogram."""
        return self.noise.loss

    def steps(self) -> list[Step]:
        """Rows are counted."""
        return [rows_step(self.plan)]

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """The noisy histogram."""
        del secret
        (step,) = self.steps()
        return draw_counts(door, self.noise, lambda: by_edges(snapshot.run(step), _ROW_EDGES))

    def applied(self, stored: Any) -> Plan:
        """With the number of rows that so many units exceed."""
        return self.plan.with_rows(ranked(_ROW_EDGES, cleaned(self.noise, stored), self.rank))

    def assumed(self) -> Plan:
        """One row a unit."""
        return self.plan.with_rows(1)


@dataclass(frozen=True)
class Keys:
    """Which groups have many units."""

    plan: Plan
    selection: KeySelection
    """As it would be if it were the first; its δ is known when it is charged."""
    left: Amount
    parts = ("keys",)
    subject = ""
    by_statistics = False

    @property
    def loss(self) -> Loss:
        """That of the selection's noise; the ledger adds a δ."""
        return self.selection.counted

    def steps(self) -> list[Step]:
        """Units are weighed."""
        return [units_step(self.plan, self.selection.max_groups, "")]

    def at(self, delta: Fraction) -> KeySelection:
        """The selection with the δ of its turn."""
        first = self.selection
        return KeySelection(
            rho=first.rho, delta=delta, max_groups=first.max_groups, relation=first.relation
        )

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """The groups that were selected."""
        step = units_step(self.plan, self.selection.max_groups, secret)
        width = len(self.plan.counted.groups)

        def weights() -> Mapping[tuple[Any, ...], int]:
            found = {row[:width]: int(row[width]) for row in snapshot.run(step)}
            return {tuple(map(storable, key)): steps for key, steps in found.items()}

        drawn: Any = door.draw(self.at(door.cost.delta), weights)
        return [list(key) for key in drawn]

    def applied(self, stored: Any) -> Plan:
        """With these groups."""
        kinds = [group.kind for group in self.plan.counted.groups]
        return self._selected(as_released(key, kinds) for key in stored)

    def assumed(self) -> Plan:
        """A group whose columns are all NULL."""
        return self._selected([(None,) * len(self.plan.counted.groups)])

    def _selected(self, keys: Iterable[tuple[Any, ...]]) -> Plan:
        plan = self.plan
        return replace(plan, counted=replace(plan.counted, selected=tuple(keys)))


def as_released(key: Sequence[Any], kinds: Sequence[ColumnType | None]) -> tuple[Any, ...]:
    """A key as it was stored, with dates as dates again."""
    pairs = zip(key, kinds, strict=True)
    return tuple(_DATED[k](p) if isinstance(p, str) and k in _DATED else p for p, k in pairs)


_DATED: dict[ColumnType | None, Callable[[str], date]] = {
    ColumnType.DATE: lambda text: date.fromisoformat(text[:10]),
    ColumnType.TIMESTAMP: datetime.fromisoformat,
}


def storable(part: Any) -> Any:
    """A key as the ledger stores it."""
    return part.isoformat() if hasattr(part, "isoformat") else part


def ranked(edges: Sequence[int], counts: Sequence[int], rank: float) -> int:
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
