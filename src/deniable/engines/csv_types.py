"""The types of the columns of a CSV file, read from its rows: for the owner, who confirms them.

A column has the narrowest type that all its cells have. What is no more than spelt like a number
has none: a code with a leading zero would lose it. Words that stand for nothing are passed over;
questions take them for NULL, as they do every cell that is no value of its column's type.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb as driver

from deniable.engines.base import quoted
from deniable.engines.files import Files
from deniable.engines.sources import string_literal
from deniable.engines.stored_cells import opened_file
from deniable.errors import EngineError
from deniable.tables import SQL_TYPES, ColumnType

MISSING = ("na", "n/a", "nan", "null", "none", "?", "-", ".")
"""Words for nothing, in lower case."""

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_SPELT = {
    ColumnType.INTEGER: r"[-+]?(0|[1-9][0-9]{0,18})",
    ColumnType.NUMBER: r"[-+]?(0|[1-9][0-9]*)?([.][0-9]*)?([eE][-+]?[0-9]+)?",
    ColumnType.BOOLEAN: "(?i)true|false",
    ColumnType.DATE: _DAY,
    ColumnType.TIMESTAMP: f"{_DAY}([ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,6}})?)?)?",
}


def csv_types(files: Files, path: str) -> dict[str, ColumnType]:
    """The types of one file's columns; text where cells differ, or where there are none."""
    try:
        with opened_file(files, path) as (connection, stored):
            return _types(connection, stored.relation, stored.found)
    except driver.Error:
        pass
    # Out here: what the engine says may quote a row.
    raise EngineError(f"{path}: the rows of the file cannot be read as such")


def _types(
    connection: driver.DuckDBPyConnection, relation: str, found: Mapping[str, str]
) -> dict[str, ColumnType]:
    listed = ", ".join(string_literal(word) for word in MISSING)
    asked = []
    for name in found:
        cell = f"trim({quoted(name)})"
        asked.append(f"COUNT({cell}) FILTER (WHERE lower({cell}) NOT IN ({listed}))")
        for kind, spelt in _SPELT.items():
            # Most cells are spared the pattern, which takes longer.
            read = f"TRY_CAST({cell} AS {SQL_TYPES[kind]}) IS NOT NULL"
            fits = f"regexp_full_match({cell}, {string_literal(spelt)})"
            asked.append(f"COUNT(CASE WHEN {read} THEN CASE WHEN {fits} THEN 1 END END)")
    (counts,) = connection.execute(f"SELECT {', '.join(asked)} FROM {relation}").fetchall()
    types, each = {}, iter(counts)
    for name in found:
        cells = next(each)
        fitting = {kind: next(each) for kind in _SPELT}
        whole = [kind for kind, count in fitting.items() if count == cells]
        types[name] = whole[0] if whole and cells else ColumnType.TEXT
    return types
