"""Whether the first line of a CSV file names its columns, or is already somebody's row."""

from __future__ import annotations

import re
from collections.abc import Sequence

from deniable.errors import ParameterError

_LONGEST = 64
_NO_NAME = re.compile(
    r"[\W\d_]*"  # no letter in it: empty, a number, a day, a telephone
    r"|[-+]?(\d+\.?\d*|\.\d+)e[-+]?\d+|[-+]?(nan|inf|infinity)"  # a number all the same
    r"|true|false|null|none"
    r"|\d{1,4}[-/. ]([a-z]{3,9}|\d{1,2})[-/. ]\d{1,4}.*"  # a day, with or without a time
    r"|.*(@|\d{5}|[\x00-\x1f\x7f]|[0-9a-f]{8}-[0-9a-f]{4}-).*",  # an address, an identifier
    re.IGNORECASE | re.DOTALL,
)


def check_header(source: str, names: Sequence[str]) -> None:
    """Refuse a first line that looks like a row; nothing of it is quoted."""
    told_apart = len({name.strip().lower() for name in names}) == len(names)
    if told_apart and not any(_is_no_name(name.strip()) for name in names):
        return
    raise ParameterError(
        "source",
        source,
        "the first line of a CSV file names its columns; this one does not look like names, but "
        "like a row (a field is empty, repeated, long, a number, a day or an identifier); add a "
        "line of names, or rename such columns",
    )


def _is_no_name(name: str) -> bool:
    return len(name) > _LONGEST or _NO_NAME.fullmatch(name) is not None
