"""One answer per invitation: what the survey asks of a token system.

`tokens_of` chooses the system by the document's `admission`. A system signs tokens and says whether
a token is genuine. Counting is the store's: one signature per invitation, and the spent mark and
the answer are written in one transaction, or neither is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

import sqlalchemy as sa

from deniable.errors import AdmissionError, ParameterError
from deniable.service.blind_tokens import BlindTokens, survey_key
from deniable.service.codes import code_mark, is_code
from deniable.service.document import SurveyDocument
from deniable.service.invitations import plain_name
from deniable.service.tables import INVITATIONS
from deniable.service.token_keys import PublicKey


class Tokens(Protocol):
    """What the survey needs. `verify` runs inside the caller's transaction."""

    kind: ClassVar[str]

    @property
    def public(self) -> PublicKey | None:
        """The key that devices blind under, if there is one; its fingerprint is compared."""

    def sign(self, blinded: bytes) -> bytes:
        """Sign a blinded token; AdmissionError where it is none. The store counts."""

    def verify(
        self, connection: sa.Connection, survey: str, message: bytes, signature: bytes
    ) -> None:
        """AdmissionError unless this token was issued for this survey."""


@dataclass(frozen=True)
class LinkableCodes:
    """The invitation code is the token itself, and nothing is signed.

    Honest about what it is: an operator who keeps a list of who got which code, and who records
    submissions on their way in, can tell whose report is whose. The report is randomised all the
    same: ε holds against that operator too. What is stored holds no link (see `store.py`).
    """

    kind: ClassVar[str] = "linkable codes"

    @property
    def public(self) -> None:
        return None

    def sign(self, blinded: bytes) -> bytes:
        del blinded
        raise AdmissionError("this survey takes the invitation code itself; nothing is signed")

    def verify(
        self, connection: sa.Connection, survey: str, message: bytes, signature: bytes
    ) -> None:
        """The message is a code of this survey, and there is no signature."""
        code = message.decode("ascii", "replace")
        known = sa.select(INVITATIONS.c.survey).where(INVITATIONS.c.code == code_mark(code))
        # One spelling only: a token is spent under its bytes.
        if signature or not is_code(code) or connection.execute(known).scalar() != survey:
            raise AdmissionError("this invitation code is not one of this survey; check the link")


def tokens_of(document: SurveyDocument, keys: Path | None, *, create: bool = False) -> Tokens:
    """The token system of a survey; blind tokens have a key in the folder `keys`."""
    if document.admission == LinkableCodes.kind:
        return LinkableCodes()
    if keys is None:
        raise ParameterError("keys", None, "blind tokens need a folder for the survey's key")
    return BlindTokens(survey_key(keys, document.id, create=create))


def read_people(lines: Iterable[str]) -> list[str]:
    """Names of those invited, one to a line; twice the same is refused."""
    people = [plain_name(line) for line in lines if line.strip()]
    if not people:
        raise ParameterError("people", 0, "must be one name or more, one to a line")
    if len(set(people)) != len(people):
        raise ParameterError("people", "a name", "is there twice; each is invited once")
    return people
