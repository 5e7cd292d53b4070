"""Room for a question: what it could take in memory and on disk, from public numbers alone.

A limit that rows reach would tell something about them: a question that could reach it with as many
rows as are promised is refused for everybody, before it is charged.
"""

from __future__ import annotations

from collections.abc import Mapping

from deniable.errors import QueryError
from deniable.query.plan import Plan
from deniable.tables import ColumnType, PrivateTable

_CELL = 16  # bytes of a number
_TEXT = 256  # and of a text: longer ones are as long on average only in strange tables


def check_room(plan: Plan, tables: Mapping[str, PrivateTable], room: int | None) -> None:
    """Refuse a plan whose rows could fill the engine's memory and disk.

    The rows are those of its tables, as many as their `most_rows` promise, times what public tables
    make of each, and those of one unit whose rows were joined with each other. Where nothing
    multiplies, or a table promises nothing, nothing is refused.
    """
    promised = [tables[name].most_rows for name in plan.tables]
    if room is None or None in promised or plan.growth == 1:
        return
    rows = sum(each for each in promised if each is not None)
    needed = min(rows * plan.growth, rows * plan.fan + (plan.most or 0)) * _width(plan)
    if needed > room:
        raise QueryError(
            f"with most_rows= of its tables this question could take {_size(needed)}, and the "
            f"engine has {_size(room)} in memory and on disk: join fewer public rows, or give the "
            "engine more room"
        )


def _width(plan: Plan) -> int:
    """Bytes of a row that is stored: whose, in which groups, with what numbers."""
    texts = sum(group.kind in {ColumnType.TEXT, None} for group in plan.groups)
    numbers = len(plan.groups) - texts + len(plan.statistics) + len(plan.grids)
    return _TEXT * (1 + texts + len(plan.distinct)) + _CELL * numbers


def _size(bytes_: int) -> str:
    return f"{bytes_ / 1e9:,.1f} GB"
