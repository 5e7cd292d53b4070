"""A chain as this process has seen it: checked whole at first, then each entry that is new.

Nothing is decided, answered or spent on a chain of which any entry was changed, cut off or put
back, nor on one that lacks what the key's folder remembers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

from deniable.errors import LedgerError, LedgerTamperedError
from deniable.ledger.entries import EntryKind, Row, check_row
from deniable.ledger.memory import Memory, Remembered
from deniable.ledger.stores.base import Decide, LedgerStore, View
from deniable.randomness.fork import process_mark
from deniable.trace import Heard

_SPENDS_NOTHING = frozenset({EntryKind.ANSWER, EntryKind.FAIL, EntryKind.NOTE})


class Watch:
    """The chains of one store, under one key."""

    def __init__(self, store: LedgerStore, key: bytes, memory: Memory | None) -> None:
        self._store, self._key, self._memory = store, key, memory
        self._seen: dict[str, Row] = {}
        self.heard = Heard()

    def settle(self, name: str) -> Row | None:
        """The last entry of a chain that holds; None where there is none."""
        self.heard.check()
        before = seen = self._seen.get(name)
        rows = self._store.rows(name, after=0 if seen is None else seen.number - 1)
        if seen is None:
            before = self._checked(None, rows)
            with self._turn(name):
                known = self._compare(name, before, self._store)
                self._place(known, before)
        else:
            _check_still(seen, next(rows, None))
            before = self._checked(seen, rows)
            self._compare(name, before, self._store)
        if before is not None:
            self._seen[name] = before
        return before

    def append(self, name: str, decide: Decide) -> Row:
        """Append, unless the chain no longer holds what this process has seen of it.

        Nor unless it holds what is remembered: looked up in the store, where others may have
        appended, and in one turn with the append, so that no copy of the ledger goes on beside it.
        """
        self.settle(name)

        def watched(last: Row | None, view: View) -> Row:
            self._compare(name, last, view)
            seen = self._seen.get(name)
            if seen is not None:
                _check_still(seen, view.row(name, seen.number))
            start = 0 if seen is None else seen.number
            for number in range(start + 1, 1 + (0 if last is None else last.number)):
                row = view.row(name, number)
                if row is None:
                    raise LedgerTamperedError(f"entry {number} of {name!r} is missing")
                check_row(self._key, seen, row)
                seen = row
            row = decide(last, view)
            _check_unforked(process)
            if self._memory is not None and row.kind not in _SPENDS_NOTHING:
                self._memory.draft(self._remembered(row))
            return row

        process = process_mark()
        with self._turn(name):
            row = self._store.append(name, watched)
            _check_unforked(process)
            if self._memory is not None and row.kind not in _SPENDS_NOTHING:
                self._memory.keep(name)
        self._seen[name] = row
        return row

    def authentic(self, row: Row, view: View) -> Row:
        """A row whose MAC holds: nothing is decided or answered by any other."""
        before = view.row(row.population, row.number - 1) if row.number > 1 else None
        if row.number > 1 and before is None:
            raise LedgerTamperedError(f"entry {row.number - 1} of {row.population!r} is missing")
        check_row(self._key, before, row)
        return row

    def accept(self, name: str, told: Mapping[str, object]) -> Row | None:
        """Take the chain as it is now for the one that is meant, whatever is remembered."""
        if self._memory is None:
            raise LedgerError("nothing is remembered of ledgers whose key is given as key=")
        before = self._checked(None, self._store.rows(name))
        seen = None if before is None else self._remembered(before)
        self._memory.exchange(name, seen, told)
        return before

    def _checked(self, before: Row | None, rows: Iterable[Row]) -> Row | None:
        """The last of some rows that follow one."""
        for row in rows:
            check_row(self._key, before, row)
            before = row
        return before

    def _compare(self, name: str, last: Row | None, view: View) -> Remembered | None:
        """Refuse a chain that lacks what is remembered, or give that."""
        known = None if self._memory is None else self._memory.recall(name)
        if known is not None:
            near = last is not None and last.number == known.number
            found = last if near else view.row(name, known.number)
            if found is None or found.mac != known.mac:
                raise LedgerError(_lacking(name, known, self._store.place, last))
        return known

    def _place(self, known: Remembered | None, last: Row | None) -> None:
        """Remember a chain that was not known, or was elsewhere."""
        elsewhere = known is None or known.place != self._store.place
        if self._memory is not None and last is not None and elsewhere:
            self._memory.remember(self._remembered(last))

    def _turn(self, name: str) -> AbstractContextManager[None]:
        return nullcontext() if self._memory is None else self._memory.turn(name)

    def _remembered(self, row: Row) -> Remembered:
        return Remembered(row.population, self._store.place, row.number, row.mac)


def _check_unforked(process: tuple[int, int]) -> None:
    """An entry is its parent's, and what it reserves: a child would draw at the same price."""
    if process != process_mark():
        raise LedgerError("this process was forked in the middle of an entry, which is not its own")


def _check_still(seen: Row, now: Row | None) -> None:
    if now is None or now.number != seen.number or now.mac != seen.mac:
        raise LedgerTamperedError(
            f"the chain of {seen.population!r} was set back behind entry {seen.number}"
        )


def _lacking(name: str, known: Remembered, place: str, last: Row | None) -> str:
    state = (
        "has no entries for it"
        if last is None
        else "has another history"
        if last.number >= known.number
        else f"ends at entry {last.number}"
    )
    return (
        f"{name!r} has a ledger with {known.number} entries, last seen at {known.place}; {place} "
        f"{state}, and would give its people a budget they have spent. Nothing was released. Put "
        "the ledger back, or name the place where it is now; if its loss is meant, the owner says "
        f"so: deniable ledger accept {place} --population {name!r} --who ... --reason ..."
    )
