"""Submissions on their way into the store: first the tokens are spent, then the reports laid down.

A token and its report are never written together. Between the two transactions lies no danger: a
report's key follows from the device's nonce, so that whoever sends the same again after a crash
completes what was begun, and adds nothing that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import sqlalchemy as sa

from deniable.errors import AdmissionError, DeniableError
from deniable.service.database import Database
from deniable.service.document import SurveyDocument
from deniable.service.pool import REPORTS, TOKENS, Name, Row, clean, keeps_replaced
from deniable.service.tables import CLOSED, SURVEYS


class Outcome(Enum):
    """What became of a submission."""

    STORED = "stored"
    ALREADY = "already stored"
    SPENT = "the token was used for another submission"


_COUNT = (Outcome.STORED, Outcome.ALREADY)


@dataclass(frozen=True)
class Deposit:
    """A token with its fingerprint, and reports by their keys.

    `admit` raises where the token is not to be taken.
    """

    document: SurveyDocument
    token: str
    fingerprint: str
    answers: Mapping[str, str]
    admit: Callable[[sa.Connection], None]

    @property
    def name(self) -> Name:
        """The token's."""
        return self.document.id, self.token

    def check(self, connection: sa.Connection) -> None:
        """Raise where it is not to be taken now; asked in each turn that writes a part of it."""
        check_open(connection, self.document)
        self.admit(connection)

    @property
    def rows(self) -> dict[Name, Row]:
        """What is stored of the reports."""
        survey = self.document.id
        return {
            (survey, key): {"survey": survey, "key": key, "reports": reports}
            for key, reports in self.answers.items()
        }


def take(database: Database, deposits: Sequence[Deposit]) -> list[Outcome | Exception]:
    """Store all of them, each once; what became of each, in their order."""
    outcomes = _spend(database, deposits)
    taken = [at for at, outcome in enumerate(outcomes) if outcome in _COUNT]
    with database.looking() as connection:
        there = _there(connection, [deposits[at] for at in taken])
    missing = [at for at in taken if not deposits[at].rows.keys() <= there]
    if missing:
        for at, problem in _lay_down(database, deposits, missing).items():
            outcomes[at] = problem
    return outcomes


def check_open(connection: sa.Connection, document: SurveyDocument) -> None:
    """AdmissionError where the survey is closed, or was never added."""
    added = sa.select(SURVEYS.c.survey).where(SURVEYS.c.survey == document.id)
    if connection.execute(added).scalar() is None:
        raise AdmissionError("there is no such survey here; check the link")
    if is_closed(connection, document):
        raise AdmissionError("this survey is closed; no more answers are taken")


def is_closed(connection: sa.Connection, document: SurveyDocument) -> bool:
    """Whether it takes no more answers."""
    query = sa.select(CLOSED.c.survey).where(CLOSED.c.survey == document.id)
    return connection.execute(query).scalar() is not None


def _spend(database: Database, deposits: Sequence[Deposit]) -> list[Outcome | Exception]:
    """Judged in a turn, and once more in another where files had to be cleaned between them."""
    cleaned = not keeps_replaced(database)
    while True:
        with database.turn() as connection:
            outcomes, spent = _judged(connection, deposits)
            if cleaned or not spent:
                TOKENS.put(connection, spent)
                return outcomes
        clean(database, TOKENS)
        cleaned = True


def _judged(
    connection: sa.Connection, deposits: Sequence[Deposit]
) -> tuple[list[Outcome | Exception], list[Row]]:
    """What becomes of each, and the tokens that are to be spent."""
    outcomes: list[Outcome | Exception] = []
    known = TOKENS.known(connection, [each.name for each in deposits])
    spent: dict[Name, Row] = {}
    for each in deposits:
        before = spent.get(each.name) or known.get(each.name)
        if before is not None:
            same = before["fingerprint"] == each.fingerprint
            outcomes.append(Outcome.ALREADY if same else Outcome.SPENT)
            continue
        try:
            each.check(connection)
        except DeniableError as refused:
            outcomes.append(refused)
            continue
        survey, token = each.name
        spent[each.name] = {
            "survey": survey, "token": token, "fingerprint": each.fingerprint,
        }  # fmt: skip
        outcomes.append(Outcome.STORED)
    return outcomes, list(spent.values())


def _lay_down(
    database: Database, deposits: Sequence[Deposit], missing: Sequence[int]
) -> dict[int, Exception]:
    """Store reports whose tokens are spent; refused where their survey was closed meanwhile."""
    refused: dict[int, Exception] = {}
    rows: dict[Name, Row] = {}
    clean(database, REPORTS)
    with database.turn() as connection:
        there = _there(connection, [deposits[at] for at in missing])
        for at in missing:
            try:
                deposits[at].check(connection)
            except DeniableError as problem:
                refused[at] = problem
                continue
            rows |= {name: row for name, row in deposits[at].rows.items() if name not in there}
        REPORTS.put(connection, list(rows.values()))
    return refused


def _there(connection: sa.Connection, deposits: Sequence[Deposit]) -> set[Name]:
    names = [name for each in deposits for name in each.rows]
    return set(REPORTS.known(connection, names))
