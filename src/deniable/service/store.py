"""Surveys and their reports in SQLite or Postgres.

What is kept, and what is not:

* a report lies under a random key: no time, no address, no order of arrival, no token;
* a spent token lies beside a fingerprint that only who sent the submission can recompute;
* both are written in one transaction, and acknowledged after it is on disk: a server that is
  killed at any moment has stored a submission once or not at all, and a device that asks again is
  told the same.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from deniable.errors import BudgetError, MissingExtraError, ParameterError, SurveyStoreError
from deniable.privacy.exact import show
from deniable.service.admission import Tokens, tokens_of
from deniable.service.codes import code_mark, new_code
from deniable.service.document import SurveyDocument, read_document
from deniable.service.submission import Submission, written
from deniable.service.tables import ANSWERS, INVITATIONS, METADATA, SPENT, SURVEYS

_PATIENCE = 60  # seconds that a writer waits for others


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


class SurveyStore:
    """A database by SQLAlchemy URL, or the path of an SQLite file.

    The keys of surveys with blind tokens are files in the folder `keys`.
    """

    def __init__(self, where: str | Path, *, keys: Path | None = None) -> None:
        self._engine = _engine(where)
        self._keys = keys
        self._tokens: dict[str, Tokens] = {}
        self._dialect = self._engine.dialect.name
        self._turn = threading.Lock()  # threads queue here: SQLite's own wait is a slow poll
        self._documents: dict[str, SurveyDocument] = {}  # a document never changes under its id
        with self._told():
            METADATA.create_all(self._engine)

    def add(self, document: SurveyDocument) -> str:
        """Keep a document; the same one again changes nothing."""
        tokens_of(document, self._keys, create=True)
        with self._writing() as connection:
            known = sa.select(SURVEYS.c.survey).where(SURVEYS.c.survey == document.id)
            if connection.execute(known).scalar() is None:
                row = {"survey": document.id, "document": document.text}
                connection.execute(sa.insert(SURVEYS).values(row))
        return document.id

    def document(self, survey: str) -> SurveyDocument | None:
        """The document of this id."""
        if survey not in self._documents:
            query = sa.select(SURVEYS.c.document).where(SURVEYS.c.survey == survey)
            with self._reading() as connection:
                text = connection.execute(query).scalar()
            if text is None:
                return None
            self._documents[survey] = read_document(text)
        return self._documents[survey]

    def documents(self) -> list[SurveyDocument]:
        """All surveys, by name and wave."""
        with self._reading() as connection:
            texts = connection.execute(sa.select(SURVEYS.c.document)).scalars().all()
        return sorted(map(read_document, texts), key=lambda each: (each.name, each.wave, each.id))

    def invite(self, survey: SurveyDocument, people: Sequence[str | None]) -> list[str]:
        """One fresh code for each person; a person without a name is None.

        A respondent's ε over all waves of a population is kept here: where the document states a
        limit, everybody needs a name, and nobody is invited beyond it (the losses add up). Either
        all are invited or none is.
        """
        if survey.limit is not None and None in people:
            raise ParameterError(
                "people", "no names", "a survey with a limit on ε knows whom it invites; give names"
            )
        codes = [new_code() for _ in people]
        rows = [
            {"code": code_mark(code), "survey": survey.id, "person": person}
            for code, person in zip(codes, people, strict=True)
        ]
        with self._writing() as connection:
            self._check_limit(connection, survey, [one for one in people if one is not None])
            if rows:
                try:
                    connection.execute(sa.insert(INVITATIONS), rows)
                except IntegrityError:
                    raise BudgetError(
                        "a person is invited already: one token per wave; nobody was invited"
                    ) from None
        return codes

    def _check_limit(
        self, connection: sa.Connection, survey: SurveyDocument, people: Sequence[str]
    ) -> None:
        if survey.limit is None:
            return
        texts = connection.execute(sa.select(SURVEYS.c.document)).scalars().all()
        waves = {each.id: each for each in map(read_document, texts)}
        others = [key for key, each in waves.items() if each.population == survey.population]
        query = sa.select(INVITATIONS.c.person, INVITATIONS.c.survey).where(
            INVITATIONS.c.survey.in_(others) & INVITATIONS.c.person.is_not(None)
        )
        spent: dict[str, Fraction] = {}
        for person, key in connection.execute(query):
            spent[person] = spent.get(person, Fraction(0)) + waves[key].epsilon
        beyond = sum(spent.get(one, Fraction(0)) + survey.epsilon > survey.limit for one in people)
        if beyond:
            raise BudgetError(
                f"{beyond} of {len(people)} people would be asked for more than the limit of "
                f"ε = {show(survey.limit)} over all waves; this one costs "
                f"{float(survey.epsilon):.6g}. Nobody was invited"
            )

    def tokens(self, document: SurveyDocument) -> Tokens:
        """The token system of a survey that was added."""
        if document.id not in self._tokens:
            self._tokens[document.id] = tokens_of(document, self._keys)
        return self._tokens[document.id]

    def issue(self, document: SurveyDocument, invitation: str, blinded: bytes) -> bytes:
        """A signed token for an invitation, once."""
        with self._writing() as connection:
            return self.tokens(document).issue(connection, document.id, invitation, blinded)

    def accept(self, document: SurveyDocument, submission: Submission) -> Outcome:
        """Store a submission once; AdmissionError where its token is not genuine."""
        mine = (SPENT.c.survey == document.id) & (SPENT.c.token == submission.token)
        known = sa.select(SPENT.c.fingerprint).where(mine)
        try:
            with self._writing() as connection:
                before = connection.execute(known).scalar()
                if before is None:
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
        """Store reports from paper, under the name of their batch: a batch counts once."""
        whole = json.dumps([batch, *(written(sheet) for sheet in sheets)])
        mark = Submission(f"paper\0{batch}".encode(), b"", whole.encode(), ())
        known = sa.select(SPENT.c.fingerprint).where(
            (SPENT.c.survey == document.id) & (SPENT.c.token == mark.token)
        )
        with self._writing() as connection:
            before = connection.execute(known).scalar()
            if before is not None:
                return Outcome.ALREADY if before == mark.fingerprint else Outcome.SPENT
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
        return Status(int(invited or 0), int(answered or 0))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        options = {"deniable_write": True}
        with (
            self._turn if self._dialect == "sqlite" else nullcontext(),
            self._told(),
            self._engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            if self._dialect == "postgresql":
                connection.execute(sa.text("SET LOCAL synchronous_commit = on"))
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


def _answer(document: SurveyDocument, reports: Sequence[int]) -> dict[str, str]:
    return {"survey": document.id, "key": secrets.token_hex(16), "reports": written(reports)}


def _engine(where: str | Path) -> sa.Engine:
    text = str(where)
    if "://" not in text:
        return _sqlite(Path(text).absolute())
    try:
        url = sa.make_url(text)
        if url.get_backend_name() == "sqlite":
            return _sqlite(Path(url.database or "").absolute())
        if url.get_backend_name() != "postgresql":
            raise ParameterError("store", url.get_backend_name(), "must be SQLite or Postgres")
        return sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
            hide_parameters=True,
        )
    except ImportError:
        raise MissingExtraError("surveys in Postgres", "postgres") from None
    except SQLAlchemyError:
        raise ParameterError("store", "a URL", "must be postgresql://... or a file") from None


def _sqlite(file: Path) -> sa.Engine:
    if not file.parent.is_dir() or file.is_dir():
        raise ParameterError("store", str(file), "must be a file in a folder that exists")
    if not file.exists():
        file.touch(mode=0o600)
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        connect_args={"timeout": _PATIENCE},
        hide_parameters=True,
        max_overflow=-1,
    )

    @sa.event.listens_for(engine, "connect")
    def configure(connection: Any, _: object) -> None:
        # The driver must not open transactions itself; commits are synced before they are told,
        # by one write to the disk each.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("deniable_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
