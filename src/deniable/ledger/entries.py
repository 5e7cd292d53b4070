"""Entries: what the ledger records, as canonical JSON in a keyed chain.

A row's MAC is HMAC-SHA256 over the MAC of the row before it and its own text, under a key that is
not in the database. One chain per population, numbered from 1 without gaps. Fields are never
removed and never change their meaning.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from deniable.errors import BudgetError, LedgerError, LedgerTamperedError
from deniable.ledger.filters import Budget, Totals
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP

VERSION = 1
# Of entries about a hold, and of those that hand a part of one on: who does not know of these
# reads no ledger that has one.
HOLDING, HANDING_ON = 2, 3
START = "0" * 64

_KINDS: Mapping[str, type[PureDP] | type[ApproxDP] | type[ZCDP] | type[GDP]] = {
    "pure": PureDP,
    "approx": ApproxDP,
    "zcdp": ZCDP,
    "gdp": GDP,
}


class EntryKind(StrEnum):
    """What an entry says."""

    OPEN = "open"  # a population gets its budget
    RESERVE = "reserve"  # a price is spent
    DEBIT = "debit"  # part of a reservation is about to be drawn
    ANSWER = "answer"  # what a reservation gave
    FAIL = "fail"  # a reservation gave nothing; it stays spent
    SETTLE = "settle"  # what a part gave; its hold becomes the next reservation, or is let go
    TOP_UP = "top-up"  # the budget grows
    LOWER = "lower"  # the budget shrinks
    SHARE = "share"  # what one analyst may spend of it
    RENEW = "renew"  # a new promise: totals start again
    NOTE = "note"  # for information: nothing is spent


ANSWERS = frozenset({EntryKind.ANSWER, EntryKind.SETTLE})


@dataclass(frozen=True)
class Row:
    """One entry as stores keep it: its text, and the few fields they look up."""

    population: str
    number: int
    kind: EntryKind
    who: str
    question: str | None
    refers: int | None
    body: str
    mac: str

    @property
    def data(self) -> dict[str, Any]:
        try:
            found = json.loads(self.body)
        except (TypeError, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise LedgerTamperedError(f"entry {self.number} of {self.population!r} is no entry")
        return found


def make_row(
    key: bytes,
    last: Row | None,
    *,
    population: str,
    kind: EntryKind,
    who: str,
    data: Mapping[str, object],
    question: str | None = None,
    refers: int | None = None,
) -> Row:
    """The entry that follows `last`."""
    number = 1 if last is None else last.number + 1
    settles, holds = kind == EntryKind.SETTLE, "hold" in data
    version = HANDING_ON if settles and holds else HOLDING if settles or holds else VERSION
    body = canonical(
        {
            "version": version,
            "population": population,
            "number": number,
            "kind": str(kind),
            "who": who,
            "question": question,
            "refers": refers,
            **data,
        }
    )
    mac = chain(key, START if last is None else last.mac, body)
    return Row(population, number, kind, who, question, refers, body, mac)


def head_of(row: Row) -> str:
    """The name of an entry that nobody can forge: its number and its MAC."""
    return f"{row.number}:{row.mac}"


def chain(key: bytes, before: str, body: str) -> str:
    """The MAC of an entry."""
    return hmac.new(key, f"{before}\n{body}".encode(), hashlib.sha256).hexdigest()


def check_row(key: bytes, before: Row | None, row: Row) -> None:
    """Refuse a row that does not follow the one before it, or whose fields were changed."""
    where = f"entry {row.number} of {row.population!r}"
    expected = 1 if before is None else before.number + 1
    if row.number != expected:
        raise LedgerTamperedError(f"entry {expected} of {row.population!r} is missing")
    expected_mac = chain(key, START if before is None else before.mac, row.body)
    if not hmac.compare_digest(expected_mac.encode(), str(row.mac).encode("utf-8", "replace")):
        raise LedgerTamperedError(f"{where} was changed, or the key is another one")
    data = row.data
    if data.get("version") not in (VERSION, HOLDING, HANDING_ON):
        raise LedgerError(f"{where} was written by another version of the software")
    stored = (row.population, row.number, str(row.kind), row.who, row.question, row.refers)
    told = tuple(data.get(n) for n in ("population", "number", "kind", "who", "question", "refers"))
    if stored != told:
        raise LedgerTamperedError(f"{where} was changed outside its text")


def canonical(data: Mapping[str, object]) -> str:
    """One text for one value."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Tranche:
    """A budget and what was spent of it."""

    budget: Budget
    totals: Totals = field(default_factory=Totals)


@dataclass(frozen=True)
class Hold:
    """What is kept free for later parts of a question, until the part before decides."""

    who: str
    tranche: int
    """The place of the tranche that it is held of."""
    totals: Totals


@dataclass(frozen=True)
class State:
    """All that the next decision needs; every entry carries it.

    Several tranches: (ε, δ) budgets that were topped up. Each keeps its own totals, and all
    together keep the sum of the budgets: interactive mechanisms that run side by side compose
    (Lyu 2022, Thm 4). The totals of tranches and shares are charges, without holds.
    """

    tranches: tuple[Tranche, ...]
    shares: Mapping[str, Tranche]
    named: Budget  # what a session has to name
    doors: Mapping[str, Totals] = field(default_factory=dict)  # drawn of open resumable doors
    releases: int = 0
    time: str = ""  # the day of the last entry that is no answer
    holds: Mapping[str, Hold] = field(default_factory=dict)  # by the number of the reservation
    selections: int = 0  # how many selections of keys were charged under this promise

    def counted(self) -> tuple[Tranche, ...]:
        """The tranches, holds counted as spent."""
        return tuple(
            _with(each, [hold for hold in self.holds.values() if hold.tranche == place])
            for place, each in enumerate(self.tranches)
        )

    def counted_share(self, who: str) -> Tranche | None:
        """An analyst's share, holds counted as spent."""
        share = self.shares.get(who)
        if share is None:
            return None
        return _with(share, [hold for hold in self.holds.values() if hold.who == who])

    def to_json(self) -> dict[str, object]:
        data: dict[str, object] = {
            "tranches": [_tranche_to_json(each) for each in self.tranches],
            "shares": {who: _tranche_to_json(each) for who, each in sorted(self.shares.items())},
            "named": budget_to_json(self.named),
            "doors": {number: asdict(drawn) for number, drawn in sorted(self.doors.items())},
            "releases": self.releases,
            "time": self.time,
        }
        if self.holds:  # absent without any, as in entries that were written before there were
            data["holds"] = {number: asdict(each) for number, each in sorted(self.holds.items())}
        if self.selections:
            data["selections"] = self.selections
        return data


def _with(tranche: Tranche, holds: list[Hold]) -> Tranche:
    return replace(tranche, totals=sum((hold.totals for hold in holds), tranche.totals))


def state_of(row: Row) -> State:
    """The state after an entry."""
    try:
        data = row.data["state"]
        return State(
            tuple(_tranche_from_json(each) for each in data["tranches"]),
            {who: _tranche_from_json(each) for who, each in data["shares"].items()},
            budget_from_json(data["named"]),
            {number: Totals(**drawn) for number, drawn in data["doors"].items()},
            data["releases"],
            data["time"],
            {
                number: Hold(each["who"], each["tranche"], Totals(**each["totals"]))
                for number, each in data.get("holds", {}).items()
            },
            data.get("selections", 0),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        raise LedgerTamperedError(
            f"entry {row.number} of {row.population!r} is no entry"
        ) from cause


def has_ended(rows: list[Row]) -> bool:
    """Whether one of the entries about a reservation ends it."""
    return any(row.kind == EntryKind.FAIL or row.kind in ANSWERS for row in rows)


def of_open(last: Row | None, name: str) -> Row:
    """The last entry of a population that has a budget."""
    if last is None:
        raise BudgetError(f"{name!r} has no budget; open it with a budget first")
    return last


def day_of(time: str) -> str:
    """The day of a time; older versions kept times to the microsecond."""
    return time[:10]


def _tranche_to_json(tranche: Tranche) -> dict[str, object]:
    return {"budget": budget_to_json(tranche.budget), "totals": asdict(tranche.totals)}


def _tranche_from_json(data: Mapping[str, Any]) -> Tranche:
    return Tranche(budget_from_json(data["budget"]), Totals(**data["totals"]))


def budget_to_json(budget: Budget) -> dict[str, object]:
    """A budget as plain data, rationals as text."""
    names = {kind: name for name, kind in _KINDS.items()}
    numbers = {name: str(value) for name, value in vars(budget.guarantee).items()}
    return {
        "kind": names[type(budget.guarantee)],
        "numbers": numbers,
        "relation": str(budget.relation),
        "keys_delta": str(budget.keys_delta),
    }


def budget_from_json(data: Mapping[str, Any]) -> Budget:
    """The budget of that data."""
    numbers = {name: Fraction(value) for name, value in data["numbers"].items()}
    guarantee: Guarantee = _KINDS[data["kind"]](**numbers)
    keys = Fraction(data["keys_delta"])
    return Budget(guarantee, relation=data["relation"], keys_delta=keys)
