"""Questions that once told one person's presence or value, each with others of its kind.

With alice and without her a question ends in one way, through `sql` and through `explain`, on any
source: the same columns at the same price, or the same sentence. Where it is answered, her rows
move the exact numbers by what is charged, and nobody else's. Afterwards the session still answers.
"""

import contextlib
from datetime import date, datetime

import duckdb
import psycopg
import pyarrow as pa
import pytest
from pyarrow import parquet

import deniable as dp
from fuzz.hostile import array
from values import oracle

SOURCES = ("arrow", "parquet", "duckdb", "postgres")
TYPES = {
    "u": pa.string(),
    "s": pa.string(),
    "x": pa.float64(),
    "i": pa.int64(),
    "pay": pa.int64(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "ts": pa.timestamp("us"),
}
NATIVE = ("TEXT", "TEXT", "FLOAT8", "INT8", "INT8", "BOOLEAN", "DATE", "TIMESTAMP")
HUGE = "2" + "0" * 38
LONG = "1" + "0" * 320
FAR = "CAST('5877642-06-25 (BC)' AS DATE)"

_SEEN = ("pay > 90", "s = 'alice'", "b", "x IS NULL", "i * 2 > 190", "d > DATE '2024-06-01'")
PLANNED = [
    f"SELECT COUNT(*) AS n FROM (SELECT u, {function} AS w FROM (SELECT u, pay, d FROM t "
    f"WHERE {seen}) AS a) AS b WHERE w IS NULL"
    for seen in _SEEN
    for function in (
        f"DATE_TRUNC('week', CASE WHEN pay > 0 THEN {FAR} ELSE {FAR} END)",
        f"EXTRACT(isoyear FROM CASE WHEN pay > 0 THEN {FAR} ELSE {FAR} END)",
    )
] + [
    f"SELECT COUNT(*) AS n FROM (SELECT u, EXTRACT(week FROM {FAR}) AS w FROM t "
    "WHERE pay > 90) AS b WHERE w IS NULL",
    "SELECT COUNT(*) AS n FROM (SELECT u, DATE_TRUNC('week', d - INTERVAL 5879000 YEAR) AS w "
    "FROM t WHERE pay > 90) AS b WHERE w IS NULL",
    "SELECT COUNT(*) AS n FROM (SELECT u, DATE_TRUNC('week', DATE '0001-01-01' - INTERVAL 9000 "
    "YEAR) AS w FROM t WHERE pay > 90) AS b WHERE w IS NULL",
    "SELECT COUNT(*) AS n FROM t WHERE pay > 90 AND DATE_TRUNC('week', "
    "CAST('-infinity' AS TIMESTAMP)) IS NULL",
]

_HER = "CASE WHEN s = 'alice' THEN {} ELSE {} END"
MIXED = [
    f"SELECT COUNT(*) AS n FROM t WHERE CAST(0 AS DECIMAL(38, 37)) < {_HER.format(10, 1)}",
    f"SELECT COUNT(*) AS n FROM t WHERE CAST(0 AS DECIMAL(38, 0)) < {_HER.format('x', '1e300')}",
    f"SELECT COUNT(*) AS n FROM t WHERE {_HER.format(2, 1)} IN (1, {HUGE})",
    f"SELECT COUNT(*) AS n FROM t WHERE {_HER.format('i', '1')} < {2**127}",
    f"SELECT COUNT(*) AS n FROM t WHERE {_HER.format('i', '1')} BETWEEN 0 AND {2**128}",
    f"SELECT COUNT(*) AS n FROM t WHERE x < {_HER.format(LONG, 1)}",
    f"SELECT COUNT(*) AS n FROM t WHERE x = {LONG}.5 AND s = 'alice'",
    f"SELECT COUNT(*) AS n FROM t WHERE {_HER.format('x', '1.5')} > 0.5 * {LONG}",
    f"SELECT SUM({_HER.format('1e300 * 1e300', '1')}) AS n FROM t",
    f"SELECT MEDIAN({_HER.format(LONG, '1')}) AS n FROM t",
    f"SELECT COUNT(*) AS n FROM t WHERE COALESCE({_HER.format('NULL', 'x')}, {LONG}) > 1",
    f"SELECT COUNT(*) AS n FROM t WHERE GREATEST(x, {_HER.format(HUGE, 0)}) > 1",
    f"SELECT COUNT(*) AS n FROM t WHERE CAST({_HER.format(HUGE, 0)} AS DOUBLE) > 1",
    f"SELECT COUNT(*) AS n FROM t WHERE {_HER.format(repr('x'), repr('7'))} > 5",
    f"SELECT COUNT(*) AS n FROM t WHERE {_HER.format(repr('x'), repr('2024-01-01'))} = d",
    f"SELECT COUNT(*) AS n FROM t WHERE s LIKE {_HER.format(repr('a!'), repr('a'))} ESCAPE '!'",
    "SELECT COUNT(*) AS n FROM t WHERE s LIKE 'alice\\'",
    f"SELECT COUNT(*) AS n FROM t WHERE REGEXP_MATCHES('a', {_HER.format(repr('['), repr('a'))})",
    f"SELECT COUNT(*) AS n FROM t WHERE LEFT(s, {_HER.format(2**63 - 1, 1)}) = 'a'",
    f"SELECT COUNT(*) AS n FROM t WHERE SUBSTRING(s, {_HER.format(2**63 - 1, 1)}, 3) = 'a'",
    "SELECT COUNT(*) AS n FROM (SELECT u, x * x AS a FROM t WHERE s = 'alice') AS p "
    "WHERE a * a * a * a * a < 7",
]

_TINY = "1e-200 * 1e-200"
UNDERFLOWN = [
    f"SELECT {aggregate} AS n FROM t WHERE s = 'alice'"
    for aggregate in (
        f"SUM(x * {_TINY})",
        f"AVG(x * {_TINY})",
        f"VARIANCE(x * {_TINY})",
        f"STDDEV_POP(x * {_TINY})",
        f"CORR(x * {_TINY}, x)",
        f"MEDIAN(x * {_TINY})",
        f"QUANTILE_CONT(x * {_TINY}, 0.9)",
        "SUM(x / 1e300 / 1e300)",
        "SUM(x * 5e-324)",
        "SUM(x * 1e-320)",
        f"SUM(CASE WHEN x > 0 THEN x * {_TINY} ELSE 0 END)",
    )
] + [
    f"SELECT SUM(y) AS n FROM (SELECT u, x * {_TINY} AS y FROM t WHERE s = 'alice') AS q",
    f"SELECT WIDTH_BUCKET(x, 0, {_TINY}, 5) AS k, COUNT(*) AS n FROM t WHERE s = 'alice' "
    "GROUP BY k",
    "SELECT WIDTH_BUCKET(x, 0, 1e-310, 5) AS k, COUNT(*) AS n FROM t WHERE s = 'alice' GROUP BY k",
]

KILLING = [
    f"SELECT COUNT(*) AS n FROM t WHERE {condition}"
    for condition in (
        "CAST(ts AS VARCHAR) = 'x'",
        "ts || '' = 'x'",
        "CONCAT(ts, s) = 'x'",
        "STRFTIME(ts, '%Y') = '2024'",
        "CAST(d AS VARCHAR) LIKE '2%'",
        "CAST(ts AS DATE) = d",
        "CAST(d AS TIMESTAMP) = ts",
        "DATE_DIFF('day', d, ts) > 4",
        "DATE_DIFF('microsecond', ts, TIMESTAMP '2024-01-01') > 4",
        "EXTRACT(week FROM d) = 3",
        "EXTRACT(epoch FROM ts) > 3",
        "DATE_TRUNC('week', ts) = ts",
        "ts + INTERVAL 300 YEAR > ts",
        "d - INTERVAL 4000 YEAR < d",
        "LOWER(s) = 'a'",
        "UPPER(s) = 'A'",
        "TRIM(s) = 'a'",
        "LENGTH(s) = 3",
        "s ILIKE '%a%'",
        "s LIKE '_a'",
        "REPLACE(s, 'a', 'b') = 'b'",
        "REVERSE(s) = 'a'",
        "STRPOS(s, 'a') = 1",
        "LEFT(s, 1) = 'a'",
        "s || s = 'aa'",
        "CAST(s AS DOUBLE) > 1",
        "CAST(s AS DATE) = d",
        "CAST(s AS TIMESTAMP) < ts",
        "CAST(x AS BIGINT) > 1",
        "i + i > 1",
        "-i > 1",
        "ABS(i) > 1",
        "i // -1 > 1",
        "i * i > 1",
        "x * x > 1",
        "EXP(x) > 1",
        "POW(x, x) > 1",
        "SQRT(x) > 1",
        "LN(x) > 1",
        "ROUND(x, 3) > 1",
    )
] + [
    "SELECT s, COUNT(*) AS n FROM t GROUP BY s",
    "SELECT LOWER(s) AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT DATE_TRUNC('month', d) AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT COUNT(DISTINCT s) AS n, COUNT(DISTINCT ts) AS m FROM t",
    "SELECT COUNT(*) AS n FROM (SELECT u, MAX(s) AS m, MIN(ts) AS f FROM t GROUP BY u) AS q "
    "WHERE m > 'a'",
    "SELECT AVG(k) AS n FROM (SELECT u, SUM(i) AS k FROM t GROUP BY u) AS q",
    "SELECT AVG(k) AS n FROM (SELECT u, SUM(x) + AVG(x) AS k FROM t GROUP BY u) AS q",
    "SELECT COUNT(*) AS n FROM (SELECT u, LAG(s) OVER (PARTITION BY u ORDER BY ts) AS f FROM t) "
    "AS q WHERE LOWER(f) = 'a'",
]
OPTIONS = {"bounds": {"k": (0, 100)}, "keys": {}}

ZERO = "CASE WHEN s = 'a' THEN 0.0 ELSE -0.0 END"
EQUAL = [
    f"SELECT COUNT(*) AS n FROM (SELECT u, {window} AS f FROM (SELECT u, {zero} AS z FROM t) AS p) "
    f"AS q WHERE {told}"
    for zero in (ZERO, "x", "-x", "x * 0.0", "ROUND(x)", "COALESCE(x, -0.0)")
    for window in (
        "FIRST_VALUE(z) OVER (PARTITION BY u ORDER BY z)",
        "LAG(z) OVER (PARTITION BY u ORDER BY z DESC)",
    )
    for told in ("POW(f, -1) > 0",)
] + [
    "SELECT COUNT(*) AS n FROM (SELECT u, MIN(x) AS m FROM t GROUP BY u) AS q WHERE 1 / m > 0",
    "SELECT COUNT(*) AS n FROM (SELECT u, MAX(-x) AS m FROM t GROUP BY u) AS q "
    "WHERE POW(m, -1) > 0",
    f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT u, {ZERO} AS z FROM t) AS q WHERE POW(z, -1) > 0",
    "SELECT COUNT(*) AS n FROM (SELECT u, x, COUNT(*) AS c FROM t GROUP BY u, x) AS q "
    "WHERE POW(x, -1) > 0",
    "SELECT COUNT(*) AS n FROM (SELECT u, s, ROW_NUMBER() OVER (PARTITION BY u ORDER BY x) AS r "
    "FROM t) AS q WHERE r = 1 AND s = 'a'",
    "SELECT COUNT(*) AS n FROM (SELECT u, x, ROW_NUMBER() OVER (PARTITION BY u ORDER BY s) AS r "
    "FROM t) AS q WHERE r = 1 AND POW(x, -1) > 0",
]
_WORDS = ("İ", "i", "ß", "\u212a", "_")
CHOSEN = [
    f"SELECT COUNT(*) AS n FROM t WHERE {condition}"
    for word in _WORDS
    for condition in (
        f"s ILIKE '%{word}%'",
        f"s NOT ILIKE '{word}%'",
        f"LOWER(s) LIKE '%{word}%'",
        f"REPLACE(UPPER(s), '{word}', 'x') = 'x'",
        f"STRPOS(s, '{word}') > 0",
    )
] + [
    f"SELECT COUNT(*) AS n FROM t WHERE {condition}"
    for condition in (
        "LENGTH(s) = 2",
        "LEFT(s, 1) = 'i'",
        "SUBSTRING(s, 2, 1) = 'i'",
        "s SIMILAR TO '.i'",
        "s BETWEEN 'a' AND 'z'",
        "REGEXP_MATCHES(s, '(?i)İ')",
        "TRIM(s) = 'hi'",
    )
]
GIVEN = {"bounds": {"x": (-10, 10), "i": (0, 100)}, "keys": {"s": ["a", "b"]}}


def people(count, **more):
    """Ordinary people, with a row each."""
    made = {
        "u": [f"p{n}" for n in range(count)],
        "s": [("a", "b")[n % 2] for n in range(count)],
        "x": [(n % 7) / 2 for n in range(count)],
        "i": [n % 5 for n in range(count)],
        "pay": [n % 80 for n in range(count)],
        "b": [False] * count,
        "d": [date(2024, 1, 1 + n % 28) for n in range(count)],
        "ts": [datetime(2024, 1, 1 + n % 28, 3) for n in range(count)],
    }
    return made | more


def joined(crowd, *rows):
    """The same with rows of one more person."""
    return {
        name: [*column, *(dict(zip(TYPES, row, strict=True))[name] for row in rows)]
        for name, column in crowd.items()
    }


NEW = ("new", "alice", 1.5, 99, 95, True, date(2024, 7, 1), datetime(2024, 7, 1))
MISSING = ("new", "alice", None, 99, 95, True, date(2024, 7, 1), datetime(2024, 7, 1))
EXTREME = [
    ("new", "\u00e9" * 40_000, 1.7976931348623157e308, 2**63 - 1, 95, True, date.max, datetime.max),
    ("new", "Zo\u00eb", -1.7976931348623157e308, -(2**63), 95, True, date.min, datetime.min),
    ("new", "5", float("nan"), 0, 95, True, None, None),
    ("new", "alice", float("inf"), 0, 95, True, None, None),
    ("new", "now", -0.0, 0, 95, True, None, None),
    ("new", "1e400", 5e-324, 0, 95, True, None, None),
]
BEYOND = [  # days and microseconds, for what is not stored by Postgres
    ("new", "alice", 1e300, 1, 95, True, 2**31 - 2, 2 - 2**63),
    ("new", "5", 1e-300, 1, 95, True, 2 - 2**31, 2**63 - 2),
]
UNCHECKED = [
    ("new", b"\xff\xfe", 1.0, 1, 95, True, None, None),
    ("new", b"a\xc3", 1.0, 1, 95, True, None, None),
    ("new", b"\xed\xa0\x80", 1.0, 1, 95, True, None, None),
]


def hostile(source):
    rows = EXTREME + (BEYOND if source != "postgres" else [])
    return rows + (UNCHECKED if source in {"arrow", "parquet"} else [])


class Home:
    """Where tables are kept for a test."""

    def __init__(self, source, folder, url=""):
        self.source, self.folder, self.url, self.made = source, folder, url, 0

    def session(self, cells, **declared):
        given = {"unit": "u", "population": "p", "max_rows": 4, "max_groups": 1, **declared}
        private = dp.PrivateTable(self._stored(cells), **given)
        return dp.Session({"t": private}, budget=dp.ApproxDP(1e6, 1e-6), ledger=dp.Ledger())

    def _stored(self, cells):
        self.made += 1
        if self.source == "postgres":
            return self._in_postgres(cells, f"{self.folder.name}_{self.made}")
        table = pa.table({name: array(cells[name], kind) for name, kind in TYPES.items()})
        file = self.folder / f"{self.made}.{self.source}"
        if self.source == "arrow":
            return table
        if self.source == "parquet":
            parquet.write_table(table, file)
            return str(file)
        with duckdb.connect(str(file)) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE t AS SELECT * FROM given")
        return dp.duckdb(file).table("t")

    def _in_postgres(self, cells, name):
        columns = ", ".join(map(" ".join, zip(TYPES, NATIVE, strict=True)))
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE TABLE "{name}" ({columns})')
            with connection.cursor().copy(f'COPY "{name}" FROM STDIN') as copy:
                for row in zip(*(cells[name] for name in TYPES), strict=True):
                    copy.write_row(row)
            connection.execute(f'ANALYZE "{name}"')
        return dp.postgres(self.url).table(name)


@pytest.fixture(params=SOURCES)
def home(request, tmp_path):
    url = request.getfixturevalue("postgres") if request.param == "postgres" else ""
    return Home(request.param, tmp_path, url)


def ended(session, verb, sql, options):
    """All that an analyst sees of a question but what noise decides: numbers, or that it is not
    enough to tell them by."""
    try:
        found = getattr(session, verb)(sql, rho=1e-6, **options)
    except dp.NotAnsweredError:
        return ("not answered",)
    except dp.DeniableError as error:
        return type(error).__name__, str(error)
    except Exception as error:
        return "no error of ours", type(error).__name__
    if verb == "explain":
        return "explained", str(found.cost), len(found.statements)
    return "answered", found.columns, str(found.cost)


def tells(home, tables, questions, options=None, **declared):
    """The questions that tell one table from the other, or that end a session."""
    options, found, left = options or {}, {}, list(questions)
    while left:
        with contextlib.ExitStack() as stack:  # anew after what may have ended them
            sessions = [stack.enter_context(home.session(each, **declared)) for each in tables]
            while left and not (told := _told(sessions, left[0], options)):
                left.pop(0)
            if left:
                found[left.pop(0)] = told
    return "\n".join(f"{sql}\n  {why}" for sql, why in found.items())


def _told(sessions, sql, options):
    for verb in ("explain", "sql"):
        one, two = (ended(session, verb, sql, options) for session in sessions)
        by_noise = {one[0], two[0]} == {"answered", "not answered"}
        if one != two and not by_noise:
            return f"{verb}: {one[:2]} | {two[:2]}"
        if one[0] in {"no error of ours", "ReleaseFailedError", "EngineError"}:
            return f"{verb}: {one}"
    for session in sessions:
        after = ended(session, "sql", "SELECT COUNT(*) AS n FROM t", {})
        if after[0] != "answered":
            return f"afterwards: {after}"
    return ""


def moves(home, tables, questions):
    """The questions whose exact numbers one more person moves by more than her own rows."""
    found, left = {}, list(questions)
    while left:
        with contextlib.ExitStack() as stack:
            sessions = [stack.enter_context(home.session(each)) for each in tables]
            while left and not (why := _moved(sessions, left[0])):
                left.pop(0)
            if left:
                found[left.pop(0)] = why
    return "\n".join(f"{sql}\n  {why}" for sql, why in found.items())


def _moved(sessions, sql):
    try:
        question = oracle.ask(sessions[0], sql, {}, {"rho": 1})
    except dp.DeniableError as refusal:
        again = oracle.outcome(lambda: oracle.ask(sessions[1], sql, {}, {"rho": 1}))
        return "" if again == (type(refusal).__name__, str(refusal)) else f"{refusal} | {again}"
    try:
        before, after, alone = map(question.exact, sessions)
        oracle.moved(before, after, 1)
        oracle.added_up(before, [after], alone)
    except oracle.Breach as breach:
        return str(breach)
    return ""


def test_planning_sees_nobody(home):
    """1: what is refused, and with which words, does not follow stored extremes."""
    crowd = people(50)
    found = tells(home, (crowd, joined(crowd, MISSING)), PLANNED)
    assert not found, found


def test_equal_values_are_not_told_apart(home):
    """2: whatever comes first among equals, others do not decide it."""
    size = 2_000
    crowd = people(4 * size)
    crowd["u"] = [f"person number {n * 7_919 % size}" for n in range(4 * size)]
    crowd["x"] = [(0.0, -0.0)[n * 31 % 64 // 32] for n in range(4 * size)]
    crowd["s"] = [("a", "b")[n * 31 % 64 // 32] for n in range(4 * size)]
    for name in ("i", "pay", "d", "ts"):
        crowd[name] = [crowd[name][0]] * (4 * size)
    rows = [
        ("new", s, x, 0, 0, False, None, None) for s, x in zip("aba", (0.0, -0.0, 0.0), strict=True)
    ]
    nobody = {name: [] for name in TYPES}
    found = moves(home, (crowd, joined(crowd, *rows), joined(nobody, *rows)), EQUAL)
    assert not found, found


def test_no_mixture_of_types_fails_for_one_person(home):
    """3: numbers of other types, huge literals, patterns and places."""
    crowd = people(50)
    found = tells(home, (crowd, joined(crowd, NEW)), MIXED, {"bounds": GIVEN["bounds"]})
    assert not found, found


def test_no_step_becomes_nothing_for_one_person(home):
    """4: products of bounds and constants that underflow."""
    crowd = people(50)
    tables = (crowd, joined(crowd, NEW))
    found = tells(home, tables, UNDERFLOWN, {"bounds": GIVEN["bounds"]})
    assert not found, found


def test_no_cell_ends_a_session(home):
    """5: extremes of every type, and texts that nobody has checked."""
    crowd = people(50)
    tables = (crowd, joined(crowd, *hostile(home.source)))
    found = tells(home, tables, KILLING, {"bounds": GIVEN["bounds"]}, keys=GIVEN["keys"])
    assert not found, found


def test_other_rows_choose_no_function(home):
    """8: one more name with an accent leaves all others' texts as they are."""
    crowd = people(2_000)
    crowd["s"] = [("hi", "I am", "iss", "kiss", "s", "k")[n % 6] for n in range(2_000)]
    zoe = ("new", "Zo\u00eb", 1.0, 1, 1, False, None, None)
    nobody = {name: [] for name in TYPES}
    found = moves(home, (crowd, joined(crowd, zoe), joined(nobody, zoe)), CHOSEN)
    assert not found, found
