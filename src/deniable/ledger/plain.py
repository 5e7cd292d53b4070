"""Plain values and names: what questions, answers and entries are made of."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping

import numpy as np

from deniable.errors import LedgerError, ParameterError, ParameterTypeError

_LONGEST = 200
_DEEPEST = 50
_LARGEST = 10**300


def plain(value: object, depth: int = 0) -> object:
    """The same value as numbers, text, lists and dicts with text for keys; arrays become lists."""
    if depth > _DEEPEST:
        raise LedgerError("an answer or a question is nested too deeply")
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < _LARGEST:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [plain(each, depth + 1) for each in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: plain(each, depth + 1) for name, each in value.items()}
    raise LedgerError("answers and questions are made of finite numbers, text, lists and dicts")


def read_name(value: str, argument: str) -> str:
    """Text that people can tell apart: printable, normalised, without spaces around it."""
    if not isinstance(value, str):
        raise ParameterTypeError(argument, type(value).__name__, "must be text")
    if not value or len(value) > _LONGEST or not value.isprintable():
        raise ParameterError(argument, value, f"must be 1 to {_LONGEST} printable characters")
    if value != value.strip() or value != unicodedata.normalize("NFC", value):
        raise ParameterError(argument, value, "must have no spaces around it, and be in NFC form")
    return value
