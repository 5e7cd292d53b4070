"""Room for a question: what it could take in memory and on disk, from public numbers alone.

A limit that rows reach would tell something about them: a question that could reach it with as many
rows as are promised is refused for everybody, before it is charged.
"""

from __future__ import annotations

from collections.abc import Mapping

from deniable.errors import QueryError
from deniable.query.plan.plan import Plan
from deniable.tables import PrivateTable

COPIES = 4
"""Rows that are kept, their sums by unit and group, and both once more while they are sorted."""


def check_room(plan: Plan, tables: Mapping[str, PrivateTable], room: int | None) -> None:
    """Refuse a plan whose rows could fill the engine's memory and disk.

    The rows are those of its tables, as many as their `most_rows` promise, times what joins make of
    each; the texts in them are as long as texts can be. Where a table promises nothing, nothing is
    refused.
    """
    promised = [tables[name].most_rows for name in plan.tables]
    if room is None or None in promised:
        return
    rows = sum(each for each in promised if each is not None)
    needed = COPIES * rows * sum(each.width * each.growth for each in plan.held)
    if needed > room:
        raise QueryError(
            f"with most_rows= of its tables this question could take {_size(needed)}, and the "
            f"engine has {_size(room)} in memory and on disk: group by numbers or declared keys, "
            "join fewer rows, or give the engine more room"
        )


def _size(bytes_: int) -> str:
    return f"{bytes_ / 1e9:,.1f} GB"
