"""TOML, as the command line reads it: what no TOML of ours could be has one error."""

from __future__ import annotations

import tomllib
from typing import Any

_DEEPEST, _MOST_BITS = 20, 4_096


def read_toml(text: str) -> dict[str, Any]:
    """Keys and values; ValueError with a reason, whatever the text is.

    Numbers may have more digits than Python reads or prints, and sections may lie in each other
    without end: neither is of any use here, and both would end the reader or whoever shows them.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None
    except ValueError:
        raise ValueError("a number or a time is not one that can be read") from None
    _check(found)
    return found


def _check(found: object) -> None:
    """Refuse what is nested too deeply, and whole numbers that have no shown form."""
    layer = [found]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for each in layer:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
            elif isinstance(each, int) and each.bit_length() > _MOST_BITS:
                raise ValueError("a whole number has too many digits")
        layer = inner
    if layer:
        raise ValueError("brackets or sections are nested too deeply")
