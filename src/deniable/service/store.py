"""Surveys and their reports in SQLite or Postgres.

What is kept, and what is not:

* a report lies under a random key: no time, no address, no order of arrival, no token;
* a spent token lies beside a fingerprint that only who sent the submission can recompute;
* both are written in one transaction, and acknowledged after it is on disk: a server that is
  killed at any moment has stored a submission once or not at all, and a device that asks again is
  told the same.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from deniable.errors import AdmissionError, BudgetError, ParameterError, SurveyStoreError
from deniable.service.admission import Tokens, tokens_of
from deniable.service.blind_tokens import paper_secret
from deniable.service.codes import new_code
from deniable.service.database import open_engine, settle, take_turn
from deniable.service.document import SurveyDocument, is_survey_id, read_document
from deniable.service.invitations import (
    Waves,
    check_invitation,
    mark_invitation,
    write_invitations,
)
from deniable.service.submission import Submission, read_reports, written
from deniable.service.tables import ANSWERS, CLOSED, INVITATIONS, METADATA, SPENT, SURVEYS

_LONGEST_BATCH = 200
_MOST_SIGNED = 10_000


class Outcome(Enum):
    """What became of a submission."""

    STORED = "stored"
    ALREADY = "already stored"
    SPENT = "the token was used for another submission"


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

    def __init__(self, where: str | Path, *, keys: Path | None = None, create: bool = True) -> None:
        self._engine = open_engine(where, create=create)
        self._keys = keys
        self._tokens: dict[str, Tokens] = {}
        self._dialect = self._engine.dialect.name
        self._turn = threading.Lock()  # threads queue here: SQLite's own wait is a slow poll
        self._documents: dict[str, SurveyDocument] = {}  # a document never changes under its id
        self._signed: dict[str, bytes] = {}
        with self._told():
            if create:
                METADATA.create_all(self._engine)
            elif not sa.inspect(self._engine).has_table(SURVEYS.name):
                raise ParameterError("store", "a database", "holds no surveys; check --store")

    def add(self, document: SurveyDocument) -> str:
        """Keep a document; the same one again changes nothing.

        A wave has one text. Until its first token or answer another text takes its place, and the
        codes of the old one are void; afterwards it is refused: who answered would throw again.
        """
        tokens_of(document, self._keys, create=True)
        with self._writing(turn=True) as connection:
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
        mine = INVITATIONS.c.survey == old.id
        # The row is locked first: who answers or gets a token at this moment holds it too.
        connection.execute(_row_of(old).with_for_update())
        known = sa.select(INVITATIONS.c.code).where(mine & INVITATIONS.c.blinded.is_not(None))
        answers = sa.select(ANSWERS.c.key).where(ANSWERS.c.survey == old.id)
        if any(connection.execute(each.limit(1)).first() for each in (known, answers)):
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
            with self._reading() as connection:
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
        with self._reading() as connection:
            found = self._surveys(connection)
        return sorted(found, key=lambda each: (each.name, each.wave, each.id))

    def _surveys(self, connection: sa.Connection) -> list[SurveyDocument]:
        rows = connection.execute(sa.select(SURVEYS.c.survey, SURVEYS.c.document)).all()
        for key, text in rows:
            if key not in self._documents:
                self._documents[key] = read_document(text)
        return [self._documents[key] for key, _ in rows]

    def waves(self, document: SurveyDocument) -> Waves:
        """All surveys of the same population."""
        with self._reading() as connection:
            return self._waves(connection, document)

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
        with self._writing(turn=True) as connection:
            self._check_open(connection, survey)
            write_invitations(connection, survey, people, codes, self._waves(connection, survey))
        return codes

    def close_survey(self, document: SurveyDocument) -> None:
        """No more tokens and no more answers from now on; once and for all.

        What was acknowledged before is acknowledged again to a device that asks again.
        """
        with self._writing(turn=True) as connection:
            connection.execute(_row_of(document).with_for_update())
            known = sa.select(CLOSED.c.survey).where(CLOSED.c.survey == document.id)
            if connection.execute(known).scalar() is None:
                connection.execute(sa.insert(CLOSED).values(survey=document.id))
        self.settle()

    def settle(self) -> None:
        """Lay the rows down again in an order that says nothing about their arrival."""
        with self._turn if self._dialect == "sqlite" else nullcontext(), self._told():
            settle(self._engine)

    def _check_open(self, connection: sa.Connection, document: SurveyDocument) -> None:
        """AdmissionError where the survey is closed, or was never added."""
        if connection.execute(_row_of(document).with_for_update(read=True)).scalar() is None:
            raise AdmissionError("there is no such survey here; check the link")
        closed = sa.select(CLOSED.c.survey).where(CLOSED.c.survey == document.id)
        if connection.execute(closed).scalar() is not None:
            raise AdmissionError("this survey is closed; no more answers are taken")

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
        with self._reading() as connection:
            self._check_issue(connection, document, invitation, mark)
        signed = self._signed.get(mark) or self.tokens(document).sign(blinded)
        with self._writing() as connection:
            self._check_issue(connection, document, invitation, mark)
            mark_invitation(connection, document, invitation, mark)
        if len(self._signed) >= _MOST_SIGNED:
            self._signed.clear()
        self._signed[mark] = signed  # who asks for the same over and over costs no signature
        return signed

    def _check_issue(
        self, connection: sa.Connection, document: SurveyDocument, invitation: str, mark: str
    ) -> None:
        self._check_open(connection, document)
        waves = self._waves(connection, document)
        check_invitation(connection, document, invitation, mark, waves)

    def accept(self, document: SurveyDocument, submission: Submission) -> Outcome:
        """Store a submission once.

        Raises:
            ReportError: it is not one report in its range for each question.
            AdmissionError: its token is not genuine.
        """
        read_reports(document, list(submission.reports))
        mine = (SPENT.c.survey == document.id) & (SPENT.c.token == submission.token)
        known = sa.select(SPENT.c.fingerprint).where(mine)
        try:
            with self._writing() as connection:
                before = connection.execute(known).scalar()
                if before is None:
                    self._check_open(connection, document)
                    self.tokens(document).verify(
                        connection, document.id, submission.message, submission.signature
                    )
                    self._write(connection, document, submission)
                    return Outcome.STORED
        except IntegrityError:  # another connection spent the same token in the meantime
            with self._reading() as connection:
                before = connection.execute(known).scalar()
        return Outcome.ALREADY if before == submission.fingerprint else Outcome.SPENT

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
        known = sa.select(SPENT.c.fingerprint).where(
            (SPENT.c.survey == document.id) & (SPENT.c.token == mark.token)
        )
        with self._writing() as connection:
            before = connection.execute(known).scalar()
            if before is not None:
                return Outcome.ALREADY if before == mark.fingerprint else Outcome.SPENT
            self._check_open(connection, document)
            if self._waves(connection, document).limit is not None:
                raise BudgetError(
                    "this population was promised a limit on ε, and nobody knows whose a sheet "
                    "of paper is; invite people by name instead"
                )
            row = {"survey": document.id, "token": mark.token, "fingerprint": mark.fingerprint}
            connection.execute(sa.insert(SPENT).values(row))
            connection.execute(sa.insert(ANSWERS), [_answer(document, each) for each in sheets])
        return Outcome.STORED

    def _write(
        self, connection: sa.Connection, document: SurveyDocument, submission: Submission
    ) -> None:
        row = {
            "survey": document.id,
            "token": submission.token,
            "fingerprint": submission.fingerprint,
        }
        connection.execute(sa.insert(SPENT).values(row))
        connection.execute(sa.insert(ANSWERS).values(_answer(document, submission.reports)))

    def reports(self, document: SurveyDocument) -> list[tuple[int, ...]]:
        """All submissions' reports, in the order of their random keys."""
        query = sa.select(ANSWERS.c.reports).where(ANSWERS.c.survey == document.id)
        with self._reading() as connection:
            found = connection.execute(query.order_by(ANSWERS.c.key)).scalars().all()
        return [tuple(json.loads(each)) for each in found]

    def status(self, document: SurveyDocument) -> Status:
        """Invitations sent and answers in."""
        with self._reading() as connection:
            invited, answered = (
                connection.execute(
                    sa.select(sa.func.count()).select_from(table).where(column == document.id)
                ).scalar()
                for table, column in (
                    (INVITATIONS, INVITATIONS.c.survey),
                    (ANSWERS, ANSWERS.c.survey),
                )
            )
            closed = connection.execute(
                sa.select(CLOSED.c.survey).where(CLOSED.c.survey == document.id)
            ).scalar()
        return Status(int(invited or 0), int(answered or 0), closed is not None)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _writing(self, *, turn: bool = False) -> Iterator[sa.Connection]:
        options = {"deniable_write": True}
        with (
            self._turn if self._dialect == "sqlite" else nullcontext(),
            self._told(),
            self._engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            if self._dialect == "postgresql":
                connection.execute(sa.text("SET LOCAL synchronous_commit = on"))
            if turn:
                take_turn(connection)
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._told(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in our own words what a database reports: its own may quote a row."""
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as cause:
            raise SurveyStoreError(
                f"the survey store failed ({type(cause).__name__}); nothing was acknowledged"
            ) from None


def _row_of(document: SurveyDocument) -> sa.Select[tuple[str]]:
    return sa.select(SURVEYS.c.survey).where(SURVEYS.c.survey == document.id)


def _answer(document: SurveyDocument, reports: Sequence[int]) -> dict[str, str]:
    return {"survey": document.id, "key": secrets.token_hex(16), "reports": written(reports)}
