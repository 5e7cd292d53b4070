"""A respondent's submission on its way in: read strictly, or refused whole."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from deniable.errors import ReportError
from deniable.lazy import lazy
from deniable.service.document import SurveyDocument
from deniable.strict_json import read_json

VERSION = 1
LONGEST = 8_192

_FIELDS = {"version", "survey", "message", "signature", "nonce", "reports"}
_HEX = re.compile(r"(?:[0-9a-f]{2})*")
_NONCE = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Submission:
    """A token and one report for each question, in the document's order.

    `fingerprint` and `key` are hashes over a nonce of 128 bits that the device drew and nobody
    stores: a repeated submission is recognised by them, and a store without the nonce cannot tell
    from them which reports came with which token.
    """

    message: bytes
    signature: bytes
    nonce: bytes
    reports: tuple[int, ...]

    @lazy
    def token(self) -> str:
        """What is stored of the token."""
        return hashlib.sha256(b"token\0" + self.message).hexdigest()

    @lazy
    def key(self) -> str:
        """Where the reports lie: the same each time this is sent, and random without the nonce."""
        return hashlib.sha256(b"key\0" + self.nonce + b"\0" + self.message).hexdigest()[:32]

    @lazy
    def fingerprint(self) -> str:
        """What is stored to know the same submission again."""
        parts = (self.nonce, self.message, written(self.reports).encode())
        return hashlib.sha256(b"deposit\0" + b"\0".join(parts)).hexdigest()


def read_submission(document: SurveyDocument, body: bytes) -> Submission:
    """A submission to this survey; ReportError says what is wrong and quotes nothing of it."""
    if len(body) > LONGEST:
        raise ReportError(f"a submission has {LONGEST:,} bytes at most")
    try:
        data = read_json(body)
    except ValueError as cause:
        raise ReportError(f"a submission is JSON in UTF-8: {cause}") from None
    if not isinstance(data, dict) or data.keys() != _FIELDS:
        raise ReportError(f"a submission is an object of exactly {', '.join(sorted(_FIELDS))}")
    if type(data["version"]) is not int or data["version"] != VERSION:
        raise ReportError(f"this submission is of another version; this one is {VERSION}")
    if data["survey"] != document.id:
        raise ReportError("this submission belongs to another survey, or to another text of it")
    nonce = data["nonce"]
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        raise ReportError("the nonce must be 32 hexadecimal digits")
    return Submission(
        _hex(data["message"], "message", least=1, most=256),
        _hex(data["signature"], "signature", least=0, most=1_024),
        bytes.fromhex(nonce),
        read_reports(document, data["reports"]),
    )


def read_reports(document: SurveyDocument, given: object) -> tuple[int, ...]:
    """One report for each question, each in its range."""
    if not isinstance(given, list) or len(given) != len(document.items):
        raise ReportError(f"reports are a list of {len(document.items)}, one for each question")
    for item, report in zip(document.items, given, strict=True):
        if type(report) is not int or not 0 <= report < item.reports:
            raise ReportError(
                f"the report on {item.id} must be a whole number from 0 to {item.reports - 1}"
            )
    return tuple(given)


def written(reports: Sequence[int]) -> str:
    """Reports as they are stored."""
    return json.dumps(list(reports), separators=(",", ":"))


def _hex(given: object, what: str, *, least: int, most: int) -> bytes:
    if (
        not isinstance(given, str)
        or not 2 * least <= len(given) <= 2 * most
        or not _HEX.fullmatch(given)
    ):
        raise ReportError(f"the {what} must be {least} to {most} bytes as hexadecimal digits")
    return bytes.fromhex(given)
