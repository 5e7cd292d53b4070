"""Invitations: each buys one token, and nobody is asked for more than was promised.

What was promised to a population is the lowest `limit` that any of its surveys states. It is kept
twice: nobody is invited to more than it, and no token is issued beyond it, should a later survey
state less.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from deniable.errors import AdmissionError, BudgetError, ParameterError
from deniable.privacy.exact import show
from deniable.service.codes import code_mark, is_code
from deniable.service.database import named
from deniable.service.document import SurveyDocument
from deniable.service.pool import MARKS
from deniable.service.tables import INVITATIONS

_ZERO = Fraction(0)
# Logarithms are rounded up by 1e-40 each: two of ln 3 are not more than ln 9.
_ROUNDING = Fraction(1, 10**30)
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Waves:
    """All surveys of one population in a store, by id."""

    surveys: Mapping[str, SurveyDocument]

    @property
    def limit(self) -> Fraction | None:
        """The lowest limit that one of them states: it was promised for all waves."""
        stated = [each.limit for each in self.surveys.values() if each.limit is not None]
        return min(stated, default=None)


def plain_name(person: str) -> str:
    """One spelling of a name: composed signs, single spaces."""
    name = " ".join(unicodedata.normalize("NFC", person).split())
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise ParameterError(
            "people", "a name", f"must be a line of 1 to {_LONGEST_NAME} printable signs"
        )
    return name


def write_invitations(
    connection: sa.Connection,
    survey: SurveyDocument,
    people: Sequence[str | None],
    codes: Sequence[str],
    waves: Waves,
) -> None:
    """Invite all or nobody."""
    names = [None if one is None else plain_name(one) for one in people]
    if waves.limit is not None:
        if None in names:
            raise ParameterError(
                "people",
                "no names",
                "a population with a limit on ε knows whom it invites; give names",
            )
        spent = _spent(connection, waves, issued_only=False)
        most = waves.limit + _ROUNDING
        beyond = sum(spent.get(one or "", _ZERO) + survey.epsilon > most for one in names)
        if beyond:
            raise BudgetError(
                f"{beyond} of {len(names)} people would be asked for more than the limit of "
                f"ε = {show(waves.limit)} over all waves; this one costs "
                f"{float(survey.epsilon):.6g}. Nobody was invited"
            )
    rows = [
        {"code": code_mark(code), "survey": survey.id, "person": name}
        for code, name in zip(codes, names, strict=True)
    ]
    if rows:
        try:
            connection.execute(sa.insert(INVITATIONS), rows)
        except IntegrityError:
            raise BudgetError(
                "a person is invited already: one token per wave; nobody was invited"
            ) from None


def check_invitation(
    connection: sa.Connection, survey: SurveyDocument, code: str, mark: str, waves: Waves
) -> bool:
    """Whether this code has this mark; AdmissionError or BudgetError if it may not have it."""
    if not is_code(code):
        raise AdmissionError(_UNKNOWN)
    found = connection.execute(sa.select(INVITATIONS.c.person).where(_mine(survey, code))).first()
    if found is None:
        raise AdmissionError(_UNKNOWN)
    name = survey.id, code_mark(code)
    if (before := MARKS.known(connection, [name]).get(name)) is not None:
        if before["blinded"] == mark:
            return True  # the device never heard the answer, and asks for the same again
        raise AdmissionError("this invitation got its token on another device, or before")
    if waves.limit is None:
        return False
    if found.person is None:
        raise BudgetError(
            "this code has no name, and a limit on ε was promised since it was made; no token is "
            "issued. Ask for a code of your own"
        )
    spent = _spent(connection, waves, issued_only=True, person=found.person)[found.person]
    if spent + survey.epsilon > waves.limit + _ROUNDING:
        raise BudgetError(
            f"this survey costs ε = {float(survey.epsilon):.6g}, and with what was answered "
            f"before that is more than the {show(waves.limit)} promised; no token is issued"
        )
    return False


def mark_invitation(
    connection: sa.Connection, survey: SurveyDocument, code: str, mark: str
) -> None:
    """Remember what was signed for this code."""
    MARKS.put(connection, [{"survey": survey.id, "code": code_mark(code), "blinded": mark}])


def move_marks(connection: sa.Connection) -> None:
    """Marks of an older version, which lay beside names in the order in which they were made."""
    table = named(connection, INVITATIONS)
    found = connection.exec_driver_sql(f"SELECT * FROM {table}")  # noqa: S608
    if "blinded" not in found.keys():  # noqa: SIM118  (a result is no mapping)
        return
    marked = [row for row in found.mappings() if row["blinded"] is not None]
    columns = [column.name for column in MARKS.rest.c]
    MARKS.put(connection, [{name: row[name] for name in columns} for row in marked])
    connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN blinded")


_UNKNOWN = "this invitation code is not one of this survey; check the link"


def _mine(survey: SurveyDocument, code: str) -> sa.ColumnElement[bool]:
    return (INVITATIONS.c.code == code_mark(code)) & (INVITATIONS.c.survey == survey.id)


def _spent(
    connection: sa.Connection, waves: Waves, *, issued_only: bool, person: str | None = None
) -> dict[str, Fraction]:
    """ε of each person's invitations, or of those whose token was issued.

    A linkable code is a token from the start.
    """
    query = sa.select(INVITATIONS.c.person, INVITATIONS.c.survey, INVITATIONS.c.code).where(
        INVITATIONS.c.survey.in_(list(waves.surveys)) & INVITATIONS.c.person.is_not(None)
    )
    if person is not None:
        query = query.where(INVITATIONS.c.person == person)
    spent: dict[str, Fraction] = {} if person is None else {person: _ZERO}
    found = connection.execute(query).all()
    issued = MARKS.known(connection, [(key, code) for _, key, code in found]) if issued_only else {}
    for name, key, code in found:
        wave = waves.surveys[key]
        if issued_only and (key, code) not in issued and wave.admission == "blind tokens":
            continue
        spent[name] = spent.get(name, _ZERO) + wave.epsilon
    return spent
