"""Verification: every entry computed again from the first, under the key."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from deniable.errors import (
    BudgetError,
    DeniableError,
    DoorError,
    LedgerTamperedError,
    ParameterError,
)
from deniable.ledger.entries import (
    ANSWERS,
    EntryKind,
    Row,
    State,
    budget_from_json,
    check_row,
    day_of,
    head_of,
)
from deniable.ledger.ledger import Ledger
from deniable.ledger.policy import (
    changed,
    door_drawn,
    door_ended,
    hold_kept,
    opened,
    reserved,
    settled,
)
from deniable.privacy.losses.base import Loss
from deniable.privacy.wire import loss_from_json, loss_to_json

_ABOUT = ANSWERS | {EntryKind.FAIL, EntryKind.DEBIT}  # kinds about a reservation


@dataclass(frozen=True)
class VerifiedChain:
    """A chain that holds together."""

    population: str
    entries: int
    reservations: int
    answers: int
    head: str


def verify(ledger: Ledger, population: str, *, head: str | None = None) -> VerifiedChain:
    """Check the chain of a population: MACs, numbers, totals, filters, references.

    `head` is what an answer carried ("12:ab34..."): the chain must still hold that entry, which
    shows a cut tail and a full rewrite. Raises LedgerTamperedError at the first fault.
    """
    wanted = None if head is None else _read_head(head)
    before: Row | None = None
    state: State | None = None
    reservations: set[int] = set()
    ended: set[int] = set()
    doors: dict[int, Loss] = {}
    seen = wanted is None
    for row in ledger.history(population):
        check_row(ledger.key, before, row)
        state = _next(state, row, doors)
        if row.data["state"] != state.to_json():
            raise LedgerTamperedError(f"entry {row.number} of {population!r} has wrong totals")
        if row.refers is not None or row.kind in _ABOUT:
            _check_reference(row, reservations, ended)
        if row.kind == EntryKind.RESERVE or (row.kind == EntryKind.SETTLE and "loss" in row.data):
            reservations.add(row.number)
        if wanted is not None and row.number == wanted[0]:
            seen = True
            if row.mac != wanted[1]:
                raise LedgerTamperedError(f"entry {row.number} is not the one of that head")
        before = row
    if before is None:
        raise LedgerTamperedError(f"there are no entries for {population!r}")
    if wanted is not None and not seen:
        raise LedgerTamperedError(
            f"the chain of {population!r} ends at entry {before.number}, before {wanted[0]}"
        )
    return VerifiedChain(population, before.number, len(reservations), len(ended), head_of(before))


def _check_reference(row: Row, reservations: set[int], ended: set[int]) -> None:
    """An entry about a reservation: of one that exists, before its end."""
    number = row.refers
    if number is None or number not in reservations:
        raise LedgerTamperedError(f"entry {row.number} refers to no reservation")
    if number in ended:
        raise LedgerTamperedError(f"entry {row.number} follows the end of its reservation")
    if row.kind != EntryKind.DEBIT:
        ended.add(number)


def _next(state: State | None, row: Row, doors: dict[int, Loss]) -> State:
    """The state that an entry must leave behind."""
    data: dict[str, Any] = row.data
    try:
        after = _applied(state, row, data, doors)
    except (BudgetError, DoorError) as cause:
        raise LedgerTamperedError(f"entry {row.number} passed no filter: {cause}") from cause
    except (DeniableError, KeyError, TypeError, ValueError) as cause:
        raise LedgerTamperedError(f"entry {row.number} cannot be read") from cause
    time = data["state"]["time"]
    if state is not None and day_of(time) < day_of(state.time):
        raise LedgerTamperedError(f"entry {row.number} is earlier than the one before")
    return replace(after, time=time)


def _applied(state: State | None, row: Row, data: dict[str, Any], doors: dict[int, Loss]) -> State:
    if row.kind == EntryKind.OPEN and state is None:
        return opened(budget_from_json(data["budget"]))
    if state is None or row.kind == EntryKind.OPEN:
        raise LedgerTamperedError(f"entry {row.number} of {row.population!r} opens it wrongly")
    if row.kind == EntryKind.NOTE:
        return state
    if row.kind == EntryKind.RESERVE:
        selects, resumable = "selects" in data, data["resumable"]
        after, taken = reserved(
            state,
            row.number,
            loss_from_json(data["selects" if selects else "loss"]),
            row.who,
            rest=loss_from_json(data["hold"]) if "hold" in data else None,
            selects=selects,
            resumable=resumable,
        )
        if selects and loss_to_json(taken) != data["loss"]:
            raise BudgetError("it takes another δ than is its turn")
        if resumable:
            doors[row.number] = taken
        return after
    if row.kind == EntryKind.SETTLE:
        second, rest = (
            loss_from_json(data[name]) if name in data else None for name in ("loss", "hold")
        )
        return settled(state, row.refers or 0, second, rest, at=row.number)
    if row.kind in _ABOUT:
        whole = doors.get(row.refers or 0)
        if whole is None or row.refers is None:
            return hold_kept(state, row.refers or 0)
        if row.kind == EntryKind.DEBIT:
            return door_drawn(state, row.refers, whole, loss_from_json(data["loss"]))
        return door_ended(state, row.refers)
    return changed(state, row.kind, budget_from_json(data["budget"]), data["analyst"])


def _read_head(head: str) -> tuple[int, str]:
    number, _, mac = str(head).partition(":")
    if not re.fullmatch(r"[1-9][0-9]{0,17}", number) or not re.fullmatch(r"[0-9a-f]{64}", mac):
        raise ParameterError("head", head, 'must be what an answer carries, such as "12:ab34..."')
    return int(number), mac
