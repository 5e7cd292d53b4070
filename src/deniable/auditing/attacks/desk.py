"""Where attackers ask: a real session, with a ledger in memory and a budget for it all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from deniable.errors import BudgetError, QueryError
from deniable.ledger.ledger import Ledger
from deniable.privacy.exact import Number
from deniable.privacy.guarantees import PureDP
from deniable.session import Session
from deniable.tables import PrivateTable


@contextmanager
def desk(name: str, table: PrivateTable, *, budget: Number) -> Iterator[Session]:
    """A session of its own: nothing of it survives, and no file is written."""
    with (
        Ledger(key=secrets.token_bytes(32)) as ledger,
        Session({name: table}, budget=PureDP(budget), ledger=ledger) as session,
    ):
        yield session


def refused(session: Session, question: str, *, epsilon: Number) -> bool:
    """Whether a question is turned away: it is no question about groups, or nothing is left."""
    try:
        session.sql(question, epsilon=epsilon)
    except (BudgetError, QueryError):
        return True
    return False
