"""Submissions on their way into the store: first the tokens are spent, then the reports laid down.

A token and its report are never written together. Between the two transactions lies no danger: a
report's key follows from the device's nonce, so that whoever sends the same again after a crash
completes what was begun, and adds nothing that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from deniable.errors import DeniableError
from deniable.service.database import Database
from deniable.service.document import SurveyDocument
from deniable.service.opened import check_open
from deniable.service.outcome import Outcome
from deniable.service.pool import REPORTS, TOKENS, Name, Row


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
    taken = [at for at, outcome in enumerate(outcomes) if _counts(outcome)]
    with database.looking() as connection:
        there = _there(connection, [deposits[at] for at in taken])
    missing = [at for at in taken if not deposits[at].rows.keys() <= there]
    if missing:
        for at, problem in _lay_down(database, deposits, missing).items():
            outcomes[at] = problem
    return outcomes


def _spend(database: Database, deposits: Sequence[Deposit]) -> list[Outcome | Exception]:
    outcomes: list[Outcome | Exception] = []
    with database.turn() as connection:
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
        if spent:
            REPORTS.erase(connection)
        TOKENS.put(connection, list(spent.values()))
    return outcomes


def _lay_down(
    database: Database, deposits: Sequence[Deposit], missing: Sequence[int]
) -> dict[int, Exception]:
    """Store reports whose tokens are spent; refused where their survey was closed meanwhile."""
    refused: dict[int, Exception] = {}
    rows: dict[Name, Row] = {}
    with database.turn() as connection:
        there = _there(connection, [deposits[at] for at in missing])
        for at in missing:
            try:
                deposits[at].check(connection)
            except DeniableError as problem:
                refused[at] = problem
                continue
            rows |= {name: row for name, row in deposits[at].rows.items() if name not in there}
        TOKENS.erase(connection)
        REPORTS.put(connection, list(rows.values()))
    return refused


def _there(connection: sa.Connection, deposits: Sequence[Deposit]) -> set[Name]:
    names = [name for each in deposits for name in each.rows]
    return set(REPORTS.known(connection, names))


def _counts(outcome: Outcome | Exception) -> bool:
    return outcome in (Outcome.STORED, Outcome.ALREADY)
