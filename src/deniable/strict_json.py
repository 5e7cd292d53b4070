"""JSON that is read strictly: one meaning for one text, in every language."""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str | bytes) -> Any:
    """JSON in UTF-8, no field twice, no NaN; ValueError, quoting nothing, for all else."""
    try:
        # json.loads guesses UTF-16 and UTF-32 from bytes; what is hashed is UTF-8.
        plain = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(plain, object_pairs_hook=_once, parse_constant=_refuse)
    except (json.JSONDecodeError, UnicodeError):
        raise ValueError("it is not JSON in UTF-8") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a field is given twice")
    return data


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no number")
