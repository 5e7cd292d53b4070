"""An interrupt in the middle of a connection leaves no lock behind, for anybody."""

import pytest
import sqlalchemy as sa

import deniable as dp
from clinic import CLINIC, reserve
from deniable.ledger.filters import Budget
from deniable.ledger.ledger import Ledger
from deniable.ledger.stores import own, sql


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(own, "PATIENCE", 1)  # seconds that who writes waits for a lock
    with Ledger(tmp_path / "ledger.db") as made:
        made.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
        for _ in range(3):
            made.answer(reserve(made, CLINIC), 7)
        yield made


def interrupted(*_):
    raise KeyboardInterrupt


def test_rows_that_were_not_read_to_their_end_hold_up_nobody(ledger, monkeypatch, tmp_path):
    """The frames of the interrupt have the cursor, as a notebook keeps those of the last one."""
    with monkeypatch.context() as planted:
        planted.setattr(sql, "_row", interrupted)
        with pytest.raises(KeyboardInterrupt) as kept:
            list(ledger.history(CLINIC))
    reserve(ledger, CLINIC)
    with Ledger(tmp_path / "ledger.db") as other:
        reserve(other, CLINIC)
    assert kept.value.__traceback__ is not None


def test_a_connection_that_was_not_given_back_holds_up_nobody(ledger, monkeypatch, tmp_path):
    with monkeypatch.context() as planted:
        planted.setattr(sa.Connection, "close", interrupted)
        with pytest.raises(KeyboardInterrupt) as kept:
            ledger.balance(CLINIC)
    reserve(ledger, CLINIC)
    with Ledger(tmp_path / "ledger.db") as other:
        reserve(other, CLINIC)
    assert kept.value.__traceback__ is not None
