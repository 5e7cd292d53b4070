"""What a statement hands out on Postgres: lists of values, in as many rows whatever there is.

The server tells others how many rows a statement gave. And one row that it hands out has a gigabyte
at most: with all groups in one, their number would decide whether a question fails, at a number
that who asks can choose, by how long the keys are. So rows are dealt to a fixed number of parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from deniable.engines.base import Rows

PARTS = 256
"""Together more than a machine holds in memory."""


def in_parts(select: str, columns: int) -> str:
    """The statement that hands out the rows of a SELECT of so many columns."""
    names = [f"c{place}" for place in range(columns)]
    listed, empty = ", ".join(names), ", ".join(["NULL"] * columns)
    lists = ", ".join(f"ARRAY_AGG({name}) FILTER (WHERE NOT n IS NULL)" for name in ["n", *names])
    return (
        f"SELECT {lists} FROM (SELECT n, {listed}, 1 + n % {PARTS} AS part "
        f"FROM (SELECT ROW_NUMBER() OVER () AS n, {listed} FROM ({select}) AS given ({listed})) "
        "AS numbered UNION ALL "
        f"SELECT NULL, {empty}, part FROM generate_series(1, {PARTS}) AS every (part)) AS dealt "
        "GROUP BY part"
    )


def rows_of(parts: Iterable[Sequence[Any]]) -> Rows:
    """The rows that are in the lists of all parts, in their order; some parts have no lists."""
    numbered = [row for lists in parts if lists[0] is not None for row in zip(*lists, strict=True)]
    numbered.sort(key=itemgetter(0))
    return [row[1:] for row in numbered]
