"""Plain values and names: what questions, answers and entries are made of."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deniable.closed import read_text
from deniable.errors import LedgerError, ParameterError
from deniable.ledger.entries import canonical
from deniable.privacy.losses.base import Loss
from deniable.privacy.wire import loss_to_json

_LONGEST = 200
_DEEPEST = 50
_LARGEST = 10**300
_LARGEST_ANSWER = 50_000_000


def plain(value: Any, depth: int = 0) -> object:
    """The same value as numbers, text, lists and dicts with text for keys; arrays become lists."""
    if depth > _DEEPEST:
        raise LedgerError("an answer or a question is nested too deeply")
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    kind = type(value)  # and not what it says that it is
    if value is None or kind is bool:
        return value
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int) and abs(number := int.__int__(value)) < _LARGEST:
        return number
    if issubclass(kind, float) and math.isfinite(real := float.__float__(value)):
        return real
    if isinstance(value, list | tuple):
        return [plain(each, depth + 1) for each in value]
    if issubclass(kind, Mapping):
        items = [*value.items()]  # once
        if all(isinstance(name, str) for name, _ in items):
            return {str.__str__(name): plain(each, depth + 1) for name, each in items}
    raise LedgerError("answers and questions are made of finite numbers, text, lists and dicts")


def answer_data(value: object, drawn: Sequence[Loss] | None) -> dict[str, object]:
    """What an entry says of an answer: its value, and what was drawn where that is apart."""
    kept = plain(value)
    if len(canonical({"answer": kept})) > _LARGEST_ANSWER:
        raise LedgerError("an answer this large is not kept; release less, or in parts")
    told = {} if drawn is None else {"drawn": [loss_to_json(loss) for loss in drawn]}
    return {"answer": kept, **told}


def question_digest(population: str, loss: str, question: Mapping[str, object]) -> str:
    """What an answer is found by: population, loss and question, as one hash."""
    try:
        asked = plain(question)
    except LedgerError as cause:
        raise ParameterError("question", "...", str(cause)) from None
    text = canonical({"population": population, "loss": loss, "question": asked})
    return hashlib.sha256(text.encode()).hexdigest()


def read_name(value: str, argument: str) -> str:
    """Text that people can tell apart: printable, normalised, without spaces around it."""
    value = read_text(value, argument)
    if not value or len(value) > _LONGEST or not value.isprintable():
        raise ParameterError(argument, value, f"must be 1 to {_LONGEST} printable characters")
    if value != value.strip() or value != unicodedata.normalize("NFC", value):
        raise ParameterError(argument, value, "must have no spaces around it, and be in NFC form")
    return value
