"""Versions of DuckDB on which no row can raise or change another: `make engines` tries them.

In another version a function may have learned to fail, or to look at the statistics of a column,
which are other people's rows. So a session on one is refused, unless the owner takes that on.
"""

from __future__ import annotations

import duckdb

from deniable.errors import ParameterError

TESTED = ("2.0.0",)


def check_version() -> None:
    """Refuse a DuckDB whose operators were not tried."""
    if duckdb.__version__ not in TESTED:
        raise ParameterError(
            "untested_engine",
            "False",
            f"DuckDB {duckdb.__version__} was not tried on hostile rows, {', '.join(TESTED)} was; "
            "install that, or say untested_engine=True",
        )
