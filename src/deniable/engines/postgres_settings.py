"""Settings of a question on Postgres.

What a question means must not follow those of the server or of the role, nor what others put in a
path of schemas.
"""

from __future__ import annotations

_BEGIN = "; ".join(
    (
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "SET LOCAL search_path = pg_catalog, pg_temp",
        "SET LOCAL TimeZone = 'UTC'",
        "SET LOCAL DateStyle = 'ISO, YMD'",
        "SET LOCAL standard_conforming_strings = on",
        "SET LOCAL extra_float_digits = 1",
        "SET LOCAL transform_null_equals = off",
        "SET LOCAL array_nulls = on",
        "SET LOCAL jit = off",
        # Policies that choose rows are as views are: statements fail where there is one.
        "SET LOCAL row_security = off",
        # Checks of others are not looked at when a question is planned.
        "SET LOCAL constraint_exclusion = off",
        # The server counts the rows that indexes gave, for others to read; a scan gives all.
        "SET LOCAL enable_indexscan = off",
        "SET LOCAL enable_indexonlyscan = off",
        "SET LOCAL enable_bitmapscan = off",
        # Else a function computes its constants in some calls and not in others, and what it gives
        # hangs on how often it was called.
        "SET LOCAL plan_cache_mode = force_generic_plan",
        # One person's rows may take long; they must not decide whether a question fails. Nor may an
        # error that is caught end the connection.
        "SET LOCAL statement_timeout = 0",
        # A lock of another session says nothing of rows, and is not waited for without end.
        "SET LOCAL lock_timeout = '60s'",
        "SET LOCAL idle_in_transaction_session_timeout = 0",
        "SET LOCAL exit_on_error = off",
    )
)
_WHOLE_TIME = "SET LOCAL transaction_timeout = 0"
_KNOWS_WHOLE_TIME = 170_000


def beginning(version: int) -> str:
    """The statements that open the transaction of a question, on a server of this version.

    None of them is a SELECT, which would take the snapshot before tables are locked.
    """
    return f"{_BEGIN}; {_WHOLE_TIME}" if version >= _KNOWS_WHOLE_TIME else _BEGIN
