"""Surveys and their reports in SQLite or Postgres.

What is kept, and what is not:

* a report lies under a random key: no time, no address, no order of arrival, no token;
* a spent token lies beside a fingerprint that only who sent the submission can recompute;
* an invitation that bought a token is marked in a table of marks, under the hash of its code;
* no two of these are written together (see `deposits.py`), and each is mixed with others of its
  kind before it is laid down (see `pool.py`): a store that is seen once, at whatever moment, pairs
  none;
* a submission is acknowledged after both are on disk: whenever the server is killed, a device that
  asks again has its report stored once, and is told the same.

Whatever is written is written in a turn, together with what was checked for it (see `database.py`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from deniable.errors import BudgetError, ParameterError
from deniable.held import frameless
from deniable.service.admission import Tokens, tokens_of
from deniable.service.batches import Batches
from deniable.service.blind_tokens import paper_secret
from deniable.service.codes import new_code
from deniable.service.database import Database
from deniable.service.deposits import Deposit, Outcome, check_open, is_closed, take
from deniable.service.document import SurveyDocument, is_survey_id, read_document
from deniable.service.invitations import (
    Waves,
    check_invitation,
    mark_invitation,
    move_marks,
    write_invitations,
)
from deniable.service.pool import MARKS, REPORTS, TOKENS, clean, forbid_statistics, settle
from deniable.service.submission import Submission, read_reports, written
from deniable.service.tables import CLOSED, INVITATIONS, METADATA, SURVEYS

_LONGEST_BATCH = 200
_MOST_SIGNED = 10_000


@dataclass(frozen=True)
class Status:
    """How far a collection is."""

    invited: int
    answered: int
    closed: bool


class SurveyStore:
    """A database by SQLAlchemy URL, or the path of an SQLite file.

    The keys of surveys with blind tokens, and what marks batches of paper, are files in the
    folder `keys`. Without `create` a store that does not exist is refused, not made.
    """

    @frameless
    def __init__(self, where: str | Path, *, keys: Path | None = None, create: bool = True) -> None:
        self._database = Database(where, create=create)
        self._keys = keys
        self._tokens: dict[str, Tokens] = {}
        self._documents: dict[str, SurveyDocument] = {}  # a document never changes under its id
        self._signed: dict[tuple[str, str], bytes] = {}  # by survey, for each has its own key
        self._deposits = Batches(partial(take, self._database))
        try:
            self._make(create=create)
        except BaseException:
            self._database.close()
            raise

    def _make(self, *, create: bool) -> None:
        with self._database.looking() as connection:
            held = self._database.check(connection)
        if not create and SURVEYS.name not in held:
            raise ParameterError("store", "a database", "holds no surveys; check --store")
        if not METADATA.tables.keys() <= held:
            with self._database.turn() as connection:
                METADATA.create_all(connection)
                self._database.check(connection)
                move_marks(connection)
                forbid_statistics(connection)
            if SURVEYS.name in held:  # of an older version, which kept the order of arrival
                self.settle()

    def add(self, document: SurveyDocument) -> str:
        """Keep a document; the same one again changes nothing.

        A wave has one text. Until its first token or answer another text takes its place, and the
        codes of the old one are void; afterwards it is refused: who answered would throw again.
        """
        tokens_of(document, self._keys, create=True)
        with self._database.turn() as connection:
            others = [
                each
                for each in self._surveys(connection)
                if (each.name, each.wave) == (document.name, document.wave)
            ]
            if document.id in {each.id for each in others}:
                return document.id
            for each in others:
                self._replace(connection, each)
            row = {"survey": document.id, "document": document.text}
            connection.execute(sa.insert(SURVEYS).values(row))
        return document.id

    def _replace(self, connection: sa.Connection, old: SurveyDocument) -> None:
        """Take back a text under which nobody has a token or has answered."""
        begun = (
            MARKS.rows(old.id, ["code"]),
            TOKENS.rows(old.id, ["token"]),
            REPORTS.rows(old.id, ["key"]),
        )
        if any(connection.execute(each.limit(1)).first() for each in begun):
            raise BudgetError(
                f"wave {old.wave} of {old.name} has begun with another text, and nobody throws "
                'twice for one wave; give this text another "wave"'
            )
        for table in (INVITATIONS, CLOSED, SURVEYS):
            connection.execute(sa.delete(table).where(table.c.survey == old.id))

    def document(self, survey: str) -> SurveyDocument | None:
        """The document of this id."""
        if not is_survey_id(survey):
            return None
        if survey not in self._documents:
            query = sa.select(SURVEYS.c.document).where(SURVEYS.c.survey == survey)
            with self._database.looking() as connection:
                text = connection.execute(query).scalar()
            if text is None:
                return None
            self._documents[survey] = read_document(text)
        return self._documents[survey]

    def check_known(self, document: SurveyDocument) -> None:
        """ParameterError where this text was never added, with those of its name and wave."""
        if self.document(document.id) is not None:
            return
        others = [
            each.id
            for each in self.documents()
            if (each.name, each.wave) == (document.name, document.wave)
        ]
        raise ParameterError(
            "document",
            document.id,
            f"is another text than the store has of {document.name}, wave {document.wave}: "
            f"{', '.join(others) or 'none'}. Take the document as it was served",
        )

    def documents(self) -> list[SurveyDocument]:
        """All surveys, by name and wave."""
        with self._database.looking() as connection:
            found = self._surveys(connection)
        return sorted(found, key=lambda each: (each.name, each.wave, each.id))

    def _surveys(self, connection: sa.Connection) -> list[SurveyDocument]:
        rows = connection.execute(sa.select(SURVEYS.c.survey, SURVEYS.c.document)).all()
        for key, text in rows:
            if key not in self._documents:
                self._documents[key] = read_document(text)
        return [self._documents[key] for key, _ in rows]

    def _waves(self, connection: sa.Connection, document: SurveyDocument) -> Waves:
        found = [document, *self._surveys(connection)]
        return Waves({each.id: each for each in found if each.population == document.population})

    def invite(self, survey: SurveyDocument, people: Sequence[str | None]) -> list[str]:
        """One fresh code for each person; a person without a name is None.

        A respondent's ε over all waves of a population is kept here: where one of its surveys
        states a limit, everybody needs a name, and nobody is invited beyond the lowest one (the
        losses add up). Either all are invited or none is.
        """
        codes = [new_code() for _ in people]
        with self._database.turn() as connection:
            check_open(connection, survey)
            write_invitations(connection, survey, people, codes, self._waves(connection, survey))
        return codes

    def first_codes(self, survey: SurveyDocument, count: int) -> list[str]:
        """Codes without names where nobody is invited yet; none where codes need names."""
        with self._database.turn() as connection:
            waves = self._waves(connection, survey)
            begun = is_closed(connection, survey) or waves.limit is not None
            if begun or _count(connection, _invited(survey)):
                return []
            codes = [new_code() for _ in range(count)]
            write_invitations(connection, survey, [None] * count, codes, waves)
        return codes

    def close_survey(self, document: SurveyDocument) -> None:
        """No more tokens and no more answers from now on; once and for all.

        What was acknowledged before is acknowledged again to a device that asks again.
        """
        with self._database.turn() as connection:
            if not is_closed(connection, document):
                connection.execute(sa.insert(CLOSED).values(survey=document.id))
        self.settle()

    def settle(self) -> None:
        """Lay the rows down again in an order that says nothing about their arrival."""
        settle(self._database)

    def tokens(self, document: SurveyDocument) -> Tokens:
        """The token system of a survey that was added."""
        if document.id not in self._tokens:
            self._tokens[document.id] = tokens_of(document, self._keys)
        return self._tokens[document.id]

    def issue(self, document: SurveyDocument, invitation: str, blinded: bytes) -> bytes:
        """A signed token for an invitation, once.

        An invitation is marked with a hash of the blinded message, which is independent of the
        token: a device that lost the answer may ask for the same signature again, and for no
        other. The signature is made between two looks, so that others do not wait for it, and is
        handed out only when the mark is on disk.
        """
        mark = hashlib.sha256(blinded).hexdigest()
        asked = document.id, mark
        with self._database.looking() as connection:
            marked = self._check_issue(connection, document, invitation, mark)
        signed = self._signed.get(asked) or self.tokens(document).sign(blinded)
        if not marked:
            clean(self._database, MARKS)
        with self._database.turn() as connection:
            if not self._check_issue(connection, document, invitation, mark):
                mark_invitation(connection, document, invitation, mark)
        if len(self._signed) >= _MOST_SIGNED:
            self._signed.clear()
        self._signed[asked] = signed  # who asks for the same over and over costs no signature
        return signed

    def _check_issue(
        self, connection: sa.Connection, document: SurveyDocument, invitation: str, mark: str
    ) -> bool:
        check_open(connection, document)
        waves = self._waves(connection, document)
        return check_invitation(connection, document, invitation, mark, waves)

    def accept(self, document: SurveyDocument, submission: Submission) -> Outcome:
        """Store a submission once.

        Raises:
            ReportError: it is not one report in its range for each question.
            AdmissionError: its token is not genuine.
        """
        read_reports(document, list(submission.reports))
        answers = {submission.key: written(submission.reports)}

        def admit(connection: sa.Connection) -> None:
            message, signature = submission.message, submission.signature
            self.tokens(document).verify(connection, document.id, message, signature)

        return self._deposits.ask(
            Deposit(document, submission.token, submission.fingerprint, answers, admit)
        )

    def enter(
        self, document: SurveyDocument, batch: str, sheets: Sequence[tuple[int, ...]]
    ) -> Outcome:
        """Store reports from paper, under the name of their batch: a batch counts once.

        Nobody knows whose a sheet is, so a population with a limit on ε takes none.
        """
        if not 1 <= len(batch.strip()) <= _LONGEST_BATCH:
            raise ParameterError("batch", "a name", f"must have 1 to {_LONGEST_BATCH} signs")
        for sheet in sheets:
            read_reports(document, list(sheet))
        # A few sheets could be guessed from a plain hash of them.
        whole = json.dumps([batch, *(written(sheet) for sheet in sheets)]).encode()
        nonce = hmac.digest(paper_secret(self._keys), whole, "sha256")
        mark = Submission(f"paper\0{batch}".encode(), b"", nonce, ())
        answers = {
            Submission(f"sheet {place}".encode(), b"", nonce, sheet).key: written(sheet)
            for place, sheet in enumerate(sheets)
        }

        def admit(connection: sa.Connection) -> None:
            if self._waves(connection, document).limit is not None:
                raise BudgetError(
                    "this population was promised a limit on ε, and nobody knows whose a sheet "
                    "of paper is; invite people by name instead"
                )

        return self._deposits.ask(Deposit(document, mark.token, mark.fingerprint, answers, admit))

    def reports(self, document: SurveyDocument) -> list[tuple[int, ...]]:
        """All submissions' reports, in the order of their random keys."""
        with self._database.looking() as connection:
            found = connection.execute(REPORTS.rows(document.id, ["key", "reports"])).all()
        return [tuple(json.loads(row.reports)) for row in sorted(found)]

    def status(self, document: SurveyDocument) -> Status:
        """Invitations sent and answers in."""
        with self._database.looking() as connection:
            invited = _count(connection, _invited(document))
            answered = _count(connection, REPORTS.rows(document.id, ["key"]))
            return Status(invited, answered, is_closed(connection, document))

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def _invited(document: SurveyDocument) -> sa.Select[tuple[str]]:
    return sa.select(INVITATIONS.c.code).where(INVITATIONS.c.survey == document.id)


def _count(connection: sa.Connection, query: sa.Select[tuple[str]] | sa.CompoundSelect[Any]) -> int:
    return int(
        connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
    )
