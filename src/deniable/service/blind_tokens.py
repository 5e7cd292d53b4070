"""Blind-signed tokens as the survey's admission: the operator signs what it cannot recognise."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import sqlalchemy as sa

from deniable.errors import AdmissionError, ParameterError, TokenError
from deniable.secret_file import write_secret
from deniable.service.token_keys import IssuerKey, PublicKey
from deniable.service.tokens import PREFIX, blind_sign, verify

_SECRET_BYTES = 32


@dataclass(frozen=True)
class BlindTokens:
    """A token is a random prefix and the survey's id, signed blindly once per invitation.

    Formal guarantee: that of `deniable.service.tokens`; what was signed for an invitation says
    nothing about which token is handed in with which report. An invitation is marked with a hash
    of the blinded message, which is independent of the token: a device that lost the answer may
    ask for the same signature again, and for no other.
    """

    key: IssuerKey
    kind: ClassVar[str] = "blind tokens"

    @property
    def public(self) -> PublicKey:
        return self.key.public

    def sign(self, blinded: bytes) -> bytes:
        try:
            return blind_sign(self.key, blinded)
        except TokenError as cause:
            raise AdmissionError(str(cause)) from None

    def verify(
        self, connection: sa.Connection, survey: str, message: bytes, signature: bytes
    ) -> None:
        """The message is of this survey, and the signature of this message."""
        del connection
        if message[PREFIX:] != survey.encode():
            raise AdmissionError("this token was made for another survey")
        try:
            verify(self.key.public, message, signature)
        except TokenError as cause:
            raise AdmissionError(str(cause)) from None


def paper_secret(folder: Path | None) -> bytes:
    """What marks batches of paper: 32 random bytes that only the owner may read."""
    if folder is None:
        raise ParameterError("keys", None, "paper needs a folder for the secret that marks it")
    file = folder / "paper.secret"
    if not file.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError):  # another process was faster
            write_secret(file, secrets.token_bytes(_SECRET_BYTES))
    secret = file.read_bytes()
    if len(secret) != _SECRET_BYTES:
        raise ParameterError("keys", file.name, f"must hold {_SECRET_BYTES} bytes; restore it")
    return secret


def survey_key(folder: Path, survey: str, *, create: bool) -> IssuerKey:
    """The key of a survey: a file that only its owner may read, made when the survey is added."""
    file = folder / f"{survey}.pem"
    if create and not file.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        with suppress(TokenError):  # another process was faster, or loading says what is wrong
            IssuerKey.generate().save(file)
    return IssuerKey.load(file)
