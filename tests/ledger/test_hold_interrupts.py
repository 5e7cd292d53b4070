"""An interrupt right after an entry was kept in memory: it is found, as on a disk."""

import deniable as dp
from deniable.ledger.entries import EntryKind, make_row

PEOPLE = "clinic/patient"


def test_an_entry_in_memory_is_found_though_an_interrupt_came_when_it_was_kept():
    with dp.Ledger(key=bytes(32)) as ledger:
        ledger.open(PEOPLE, dp.Budget(dp.PureDP(1)), who="owner")
        store = ledger.store
        *_, last = store.rows(PEOPLE)
        row = make_row(ledger.key, last, population=PEOPLE, kind=EntryKind.NOTE,
                       who="ana", data={}, question="q", refers=1)  # fmt: skip
        store._rows[PEOPLE].append(row)  # nothing after this was run
        assert store.asked(PEOPLE, "q") == [row]
        assert store.referring(PEOPLE, 1) == [row]
