"""Constants reach SQL by the functions of `engines/literals.py` alone."""

import ast
import math
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import deniable
from deniable.engines.literals import double_literal, literal, whole_literal
from deniable.errors import QueryError
from deniable.tables import ColumnType
from engines.fstrings import Known, in_tree, put_into_sql

SOURCE = Path(deniable.__file__).parent
FOLDERS = ("synthesis", "learning", "query", "engines")

_PLACE = "the number of a class, code or centre: a place in a list"
_COUNT = "a whole number of the plan, which bounds rows and sums; beside sums of 127 bits"
_OURS = "a constant of the library"
_WORDS = "words for people, no SQL"
LEAVES = {
    (f"engines/{file}.py", name): _OURS
    for file in ("leaves", "postgres_leaves", "spark_leaves")
    for name in (
        "end",
        "FIRST_DAY",
        "LAST_DAY",
        "FIRST_TIME",
        "LAST_TIME",
        "MOST_BYTES",
        "_LARGEST",
    )
}
ALLOWED = {
    ("engines/rounding.py", "_most(places)"): _OURS,
    ("engines/rounding.py", "value"): _OURS,
    ("engines/spark_functions.py", "-end"): _OURS,
    ("engines/spark_functions.py", "end"): _OURS,
    ("engines/spark_functions.py", "bits"): _OURS,
    ("engines/spark_functions.py", "1 << 64"): _OURS,
    ("engines/spark_functions.py", "1 << 64 - bits"): _OURS,
    ("engines/spark_functions.py", "1 << bits"): _OURS,
    ("engines/spark_functions.py", "1 << 63"): _OURS,
    ("engines/spark_functions.py", "1 << 44"): _OURS,
    ("engines/spark_functions.py", "1 << 22"): _OURS,
    ("engines/spark_functions.py", "unit"): "microseconds of a part of a date, from a list of ours",
    **LEAVES,
    ("engines/leaves.py", "longest"): _OURS,
    ("engines/postgres_sql.py", "PARTS"): _OURS,
    ("engines/scratch.py", "UNSHARED"): "names of optimizers, from a list of ours",
    ("query/run/emit.py", "_limit(plan, l2=l2)"): _COUNT,
    ("query/run/emit.py", "limit"): _COUNT,
    ("query/run/emit.py", "cap"): _COUNT,
    ("query/run/emit_profile.py", "cells"): _COUNT,
    ("query/run/emit_profile.py", "high - low + 1"): _COUNT,
    ("query/run/emit_profile.py", "size_of(plan, stats, 'HUGEINT', l2=l2)"): _COUNT,
    ("query/run/emit.py", "max_groups"): _COUNT,
    ("query/run/emit.py", "most"): _COUNT,
    ("query/run/emit.py", "plan.contribution.rows"): _COUNT,
    ("query/run/emit.py", "rows * SCALE ** 2"): _COUNT,
    ("query/run/emit.py", "int(_HALF)"): _OURS,
    ("query/run/emit.py", "SCALE"): _OURS,
    ("query/run/emit.py", "1 << plan.bits"): _OURS,
    ("query/run/emit.py", "1 << plan.coarse"): _COUNT,
    ("query/run/emit.py", "plan.coarse"): _COUNT,
    ("query/run/emit.py", "FACTOR_BITS - plan.bits"): _OURS,
    ("query/run/emit.py", "secret"): "a key of hexadecimal digits that the library draws",
    ("query/show/explain.py", "deviation"): _WORDS,
    ("query/show/explain.py", "float(loss.price.epsilon or 0)"): _WORDS,
    ("query/show/explain.py", "float(loss.price.rho)"): _WORDS,
    ("synthesis/ranges.py", "_MOST"): _OURS,
    ("synthesis/ranges.py", "_FAR"): _OURS,
    ("synthesis/ranges.py", "_STEPS / math.log(2)"): _OURS,
    ("synthesis/ranges.py", "1 - _STEPS * _OCTAVES[0]"): _OURS,
    ("query/show/shape.py", "plan.shown.limit"): _WORDS,
    ("synthesis/columns.py", "code"): _PLACE,
    ("synthesis/columns.py", "self._known if self.missing else 'NULL'"): _PLACE,
    ("synthesis/columns.py", "self._known - 1"): _PLACE,
    ("synthesis/history.py", "queries"): _WORDS,
    ("synthesis/history.py", "universe"): _WORDS,
    ("synthesis/history.py", "float(epsilon)"): _WORDS,
}


def test_no_f_string_puts_a_number_or_a_text_into_sql():
    found = put_into_sql([SOURCE / folder for folder in FOLDERS], SOURCE)
    assert len(found) > 20  # the package was read
    new = [each for each in found if (each.file, each.text) not in ALLOWED]
    assert not ALLOWED.keys() - {(each.file, each.text) for each in found} - LEAVES.keys()
    assert not new, "write them by literal, whole_literal or double_literal, or say why not"


@pytest.mark.parametrize(
    "planted",
    [
        'def f(low: float) -> str:\n    return f"CASE WHEN x < {low} THEN 0 END"',
        'def f(low: object) -> str:\n    return f"x < {low!r} AND y"',
        "def f(name: str) -> str:\n    return f\"SELECT a FROM t WHERE s = '{name}'\"",
        'def f(low: float) -> str:\n    return f"x * {2 * low}"',
        'def f(edges):\n    return f"SUM({float(edges[0])})"',
        'def f(edges):\n    return f"CAST({len(edges)} AS BIGINT)"',
        'def f(x):\n    return [f"x < {i}" + " AND " for i in range(3)]',
        'def f(x):\n    return [f"WHEN {i} THEN" for i, _ in enumerate(x)]',
        'def f(x: object) -> str:\n    return f"x < {x:.3f} AND y"',
        'def f(x: Fraction | None) -> str:\n    return f"x < {-x}"',
    ],
)
def test_planted_ones_are_found(planted):
    assert len(in_tree(ast.parse(planted), "planted.py", Known())) == 1


def test_names_and_errors_are_no_constants():
    sound = (
        "def f(place: int, name: str) -> str:\n"
        '    if not name:\n        raise QueryError(f"a < {place} FROM")\n'
        '    return f"SELECT {name} AS c{place} FROM t"'
    )
    assert not in_tree(ast.parse(sound), "sound.py", Known())


W, F, T = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.TEXT
B, D, S = ColumnType.BOOLEAN, ColumnType.DATE, ColumnType.TIMESTAMP


@pytest.mark.parametrize(
    ("kind", "value", "type_"),
    [
        (W, 0, "BIGINT"), (W, 2**63 - 1, "BIGINT"), (W, 1 - 2**63, "BIGINT"),
        (F, 0.1, "DOUBLE"), (F, -1e300, "DOUBLE"), (F, 1e-290, "DOUBLE"), (F, 5, "DOUBLE"),
        (T, "it's", "VARCHAR"), (T, "x" * 1000, "VARCHAR"), (B, True, "BOOLEAN"),
        (D, date(1, 1, 1), "DATE"), (D, date(9999, 12, 31), "DATE"),
        (S, datetime(9999, 12, 31, 23, 59, 59, 999999), "TIMESTAMP"),
        (S, datetime(1, 1, 1), "TIMESTAMP"),
    ],
    ids=str,
)  # fmt: skip
def test_a_literal_is_the_value_in_the_type_of_the_column(kind, value, type_):
    text = literal(kind, value).sql("duckdb")
    found = duckdb.sql(f"SELECT {text}, typeof({text})").fetchall()
    assert found == [(value, type_)]


def test_there_is_one_zero():
    assert literal(F, -0.0).sql("duckdb") == literal(F, 0).sql("duckdb")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (W, 2**63), (W, -(2**63)), (W, 0.0), (W, True), (W, "1"), (W, None),
        (F, math.nan), (F, math.inf), (F, 1e301), (F, 9e-291), (F, 5e-324), (F, 10**400),
        (F, Fraction(1, 10**300)), (F, True), (F, "1"),
        (T, "\0"), (T, "x" * 1001), (T, "\ud800"), (T, 1), (T, b"a"), (B, 1), (B, "true"),
        (D, "2020-01-01"), (D, datetime(2020, 1, 1)), (S, date(2020, 1, 1)),
        (S, datetime(2020, 1, 1, tzinfo=UTC)), (S, "now"),
    ],
    ids=lambda each: repr(each)[:20],
)  # fmt: skip
def test_what_is_not_canonical_is_refused(kind, value):
    with pytest.raises(QueryError):
        literal(kind, value)
    if kind == F and isinstance(value, Fraction):
        with pytest.raises(QueryError):
            double_literal(value)
    if kind == W and type(value) is int:
        with pytest.raises(QueryError):
            whole_literal(value)
