"""Tables of Postgres: nothing that others put into the database has a say in a question."""

import psycopg
import pytest

import deniable as dp
from deniable.engines.postgres_sql import PARTS
from deniable.query.read.build import Spend
from postgres import Postgres

DECLARED = {"unit": "u", "population": "p", "max_rows": 1, "bounds": {"x": (0, 10)}}


@pytest.fixture
def raw(server):
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS pinned CASCADE; CREATE SCHEMA pinned")
        connection.execute(
            "CREATE TABLE pinned.base (u TEXT, x DOUBLE PRECISION, s TEXT); "
            "INSERT INTO pinned.base SELECT 'p' || i, 1.5, '1' FROM generate_series(1, 100) i; "
            "INSERT INTO pinned.base VALUES ('alice', 1.5, 'none')"
        )
        yield connection


def opened(server, name, **declared):
    table = dp.PrivateTable(dp.postgres(server.url).table(name), **{**DECLARED, **declared})
    return dp.Session({"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger())


def counted(session, condition="x > 0"):
    answer = session.sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=1e6)
    return round(answer["n"][0])


VIEWS = [
    "VIEW {} AS SELECT * FROM pinned.base WHERE u <> 'alice'",
    "VIEW {} AS SELECT u, CAST(s AS INT) AS x FROM pinned.base",
    "VIEW {} AS SELECT u, random() AS x FROM pinned.base",
    "VIEW {} AS SELECT u, max(x) OVER () AS x FROM pinned.base",
    "MATERIALIZED VIEW {} AS SELECT u, x FROM pinned.base",
]


@pytest.mark.parametrize("made", VIEWS)
def test_views_are_refused(server, raw, made):
    raw.execute("CREATE " + made.format("pinned.seen"))
    with pytest.raises(dp.ParameterError, match="row_by_row=True"):
        opened(server, "pinned.seen")


def test_foreign_tables_are_refused_also_as_parts_of_others(server, raw):
    raw.execute("CREATE EXTENSION IF NOT EXISTS file_fdw")
    raw.execute("DROP SERVER IF EXISTS files CASCADE")
    raw.execute("CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
    options = "SERVER files OPTIONS (filename '/dev/null', format 'csv')"
    raw.execute(f"CREATE FOREIGN TABLE pinned.far (u TEXT, x FLOAT8) {options}")
    raw.execute("CREATE TABLE pinned.parts (u TEXT, x FLOAT8) PARTITION BY LIST (u)")
    raw.execute("CREATE TABLE pinned.near PARTITION OF pinned.parts FOR VALUES IN ('a')")
    with opened(server, "pinned.parts") as session:
        assert counted(session) == 0
    raw.execute(
        f"CREATE FOREIGN TABLE pinned.other PARTITION OF pinned.parts FOR VALUES IN ('b') {options}"
    )
    for name in ("far", "parts"):
        with pytest.raises(dp.ParameterError, match="foreign"):
            opened(server, f"pinned.{name}")


def test_a_view_that_is_made_row_by_row_is_computed_before_the_question(server, raw):
    raw.execute("CREATE " + VIEWS[0].format("pinned.seen"))
    with opened(server, "pinned.seen", row_by_row=True) as session:
        assert counted(session) == 100
        assert counted(session, "s = 'none'") == 0
        told = str(session.explain("SELECT COUNT(*) AS n FROM t WHERE x > 1", epsilon=1))
        assert "MATERIALIZED" in told
        assert "CREATE TEMP TABLE" not in told


def test_conditions_of_a_question_come_after_those_of_a_view(server, raw):
    """Else who is not in the view would fail the question, or show."""
    raw.execute(
        "CREATE VIEW pinned.seen AS SELECT u, CAST(s AS INT) AS i, x FROM pinned.base "
        "WHERE u <> 'alice'"
    )
    with opened(server, "pinned.seen", row_by_row=True) as session:
        for condition in ("i > 0", "x > 0 AND i + 1 = 2", "10 / i > 1"):
            assert counted(session, condition) == 100


@pytest.mark.parametrize("how", ["view", "view of a view", "foreign", "parts"])
def test_what_reads_foreign_tables_is_refused_though_it_be_row_by_row(server, raw, how):
    """No transaction holds a file still."""
    raw.execute("CREATE EXTENSION IF NOT EXISTS file_fdw")
    raw.execute("DROP SERVER IF EXISTS files CASCADE")
    raw.execute("CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
    options = "SERVER files OPTIONS (filename '/dev/null', format 'csv')"
    raw.execute(f"CREATE FOREIGN TABLE pinned.far (u TEXT, x FLOAT8) {options}")
    raw.execute("CREATE VIEW pinned.inner AS SELECT u, x FROM pinned.far")
    raw.execute("CREATE TABLE pinned.parts (u TEXT, x FLOAT8) PARTITION BY LIST (u)")
    raw.execute(f"CREATE FOREIGN TABLE pinned.b PARTITION OF pinned.parts DEFAULT {options}")
    raw.execute("CREATE VIEW pinned.outer AS SELECT * FROM pinned.inner WHERE x > 0")
    raw.execute("CREATE MATERIALIZED VIEW pinned.copy AS SELECT * FROM pinned.outer")
    name = {"view": "inner", "view of a view": "outer", "foreign": "far", "parts": "parts"}[how]
    with pytest.raises(dp.ParameterError, match="holds still"):
        opened(server, f"pinned.{name}", row_by_row=True)
    with opened(server, "pinned.copy", row_by_row=True) as session:
        assert counted(session) == 0


def test_a_view_that_comes_to_read_a_foreign_table_fails_the_question(server, raw):
    raw.execute("CREATE " + VIEWS[0].format("pinned.seen"))
    with opened(server, "pinned.seen", row_by_row=True) as session:
        assert counted(session) == 100
        raw.execute("CREATE EXTENSION IF NOT EXISTS file_fdw")
        raw.execute("DROP SERVER IF EXISTS files CASCADE")
        raw.execute("CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
        raw.execute(
            "CREATE FOREIGN TABLE pinned.far (u TEXT, x FLOAT8, s TEXT) "
            "SERVER files OPTIONS (filename '/dev/null', format 'csv')"
        )
        raw.execute("CREATE OR REPLACE VIEW pinned.seen AS SELECT u, x, s FROM pinned.far")
        with pytest.raises(dp.ReleaseFailedError):
            counted(session, "x > 1")


@pytest.fixture(scope="module")
def watching():
    """A server that keeps statistics of all statements, those inside of others too."""
    server = Postgres()
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
        server.stop()
        server.start()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER DATABASE postgres SET pg_stat_statements.track = 'all'")
        yield server
    finally:
        server.remove()


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_statistics_of_statements_count_no_rows_of_a_view(watching, kind):
    """Any role may read them."""
    told = []
    with psycopg.connect(watching.url, autocommit=True) as raw:
        raw.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        for sick in (37, 38, 500):
            raw.execute("DROP TABLE IF EXISTS base CASCADE")
            raw.execute(
                "CREATE TABLE base AS SELECT 'p' || i AS u, CAST(1.5 AS FLOAT8) AS x, "
                f"i <= {sick} AS sick FROM generate_series(1, 1000) i"
            )
            raw.execute(f"CREATE {kind} ill AS SELECT u, x FROM base WHERE sick")
            with opened(watching, "ill", row_by_row=True, max_rows=None) as session:
                raw.execute("SELECT pg_stat_statements_reset()")
                found = session.sql("SELECT SUM(x) AS n, COUNT(*) AS m FROM t", epsilon=1e6)
                assert round(found["m"][0]) == sick
            told.append(
                raw.execute(
                    "SELECT sum(rows), sum(calls), max(rows / calls) FROM pg_stat_statements "
                    "WHERE query NOT LIKE '%pg_stat_statements%'"
                ).fetchone()
            )
    assert told[0] == told[1] == told[2]
    assert told[0][1] > 5


def test_tables_with_policies_are_refused(server, raw):
    raw.execute("DROP ROLE IF EXISTS watched")
    raw.execute("CREATE ROLE watched LOGIN")
    raw.execute("GRANT USAGE ON SCHEMA pinned TO watched")
    raw.execute("GRANT SELECT ON pinned.base TO watched")
    raw.execute("ALTER TABLE pinned.base ENABLE ROW LEVEL SECURITY")
    raw.execute("CREATE POLICY few ON pinned.base USING (CAST(s AS INT) > 0)")
    url = server.url.replace("deniable@", "watched@")
    table = dp.PrivateTable(dp.postgres(url).table("pinned.base"), **DECLARED)
    with pytest.raises(dp.ParameterError, match="policies"):
        dp.Session({"t": table}, budget=dp.ApproxDP(1, 1e-6), ledger=dp.Ledger())
    with opened(server, "pinned.base") as session:  # the owner of the table sees all rows
        assert counted(session) == 101
    raw.execute("DROP OWNED BY watched")
    raw.execute("DROP ROLE watched")


HOSTILE = """
    CREATE FUNCTION public.spy(a {0}, b {1}) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'read %', a; END $$;
    CREATE OPERATOR public.{2} (LEFTARG = {0}, RIGHTARG = {1}, FUNCTION = public.spy)
"""


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        ("double precision", "double precision", ">"),
        ("text", "text", "="),
        ("text", "text", "~~"),
        ("smallint", "integer", ">"),
        ("oid", "oid", "="),
        ("bigint", "bigint", ">"),
    ],
)
def test_operators_and_functions_of_others_are_not_called(server, raw, left, right, sign):
    """By a role that may create in a schema of the path, which comes before the catalogue's."""
    raw.execute("DROP FUNCTION IF EXISTS public.spy CASCADE")
    raw.execute(HOSTILE.format(left, right, sign))
    raw.execute(
        "CREATE OR REPLACE FUNCTION public.octet_length(text) RETURNS integer LANGUAGE sql "
        "AS 'SELECT 1 / 0'"
    )
    raw.execute("ALTER ROLE deniable SET search_path = public, pg_catalog, pinned")
    try:
        with opened(server, "base") as session:
            assert counted(session) == 101
            assert counted(session, "s = 'none' AND x BETWEEN 1 AND 2") == 1
            assert counted(session, "s LIKE 'n%'") == 1
    finally:
        raw.execute("ALTER ROLE deniable RESET search_path")
        raw.execute("DROP FUNCTION public.spy CASCADE")
        raw.execute("DROP FUNCTION public.octet_length")


def test_what_the_server_tells_others_does_not_follow_the_answer(server, raw):
    """Rows that indexes gave, and rows that statements gave."""
    raw.execute("CREATE INDEX ON pinned.base (s); CREATE INDEX ON pinned.base (u, x)")
    many = "SELECT 'q' || i, 1.5, 'k' || i FROM generate_series(1, 9999) i"
    raw.execute(f"INSERT INTO pinned.base {many}")
    raw.execute("ANALYZE pinned.base")
    with opened(server, "pinned.base", max_groups=1) as session:
        counted(session, "s = 'none'")
        grouped = "SELECT s, COUNT(*) AS n FROM t GROUP BY s"
        session.sql(grouped, epsilon=1)
        engine, plans, made = session.parts.engine, [], set()
        planner = session._answering.planner
        asked = planner.asked(dp.session.parse(grouped), dp.session.Options(), Spend(1))
        with engine.snapshot():
            for step in asked.steps:
                *first, text = engine.write(step)
                for statement in first:
                    if statement not in made:  # steps share tables
                        engine.connection.execute(statement)
                    made.add(statement)
                assert len(engine.connection.execute(text).fetchall()) == PARTS
                plans += engine.connection.execute("EXPLAIN " + text).fetchall()
        assert not any("Index" in line or "Bitmap" in line for (line,) in plans)
    raw.execute("SELECT pg_stat_force_next_flush()")
    ((indexed,),) = raw.execute(
        "SELECT COALESCE(SUM(idx_tup_read + idx_tup_fetch), 0) FROM pg_stat_user_indexes "
        "WHERE schemaname = 'pinned'"
    ).fetchall()
    assert indexed == 0


def test_a_cast_of_the_owner_of_a_type_is_not_called(server, raw):
    raw.execute(
        "DROP TYPE IF EXISTS pinned.mood CASCADE; CREATE TYPE pinned.mood AS ENUM ('glad', 'sad'); "
        "CREATE TABLE pinned.moods (u TEXT, x FLOAT8, m pinned.mood); "
        "INSERT INTO pinned.moods SELECT 'p' || i, 1, 'sad' FROM generate_series(1, 50) i; "
        "INSERT INTO pinned.moods VALUES ('q', 1, NULL); "
        "CREATE FUNCTION pinned.spy(pinned.mood) RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'called'; END $$; "
        "CREATE CAST (pinned.mood AS text) WITH FUNCTION pinned.spy(pinned.mood) AS IMPLICIT"
    )
    with opened(server, "pinned.moods") as session:
        assert counted(session, "m = 'sad'") == 50
        assert counted(session, "m IS NULL") == 1


def test_a_table_that_becomes_a_view_or_gets_foreign_parts_is_not_read(server, raw):
    raw.execute("CREATE TABLE pinned.parts (u TEXT, x FLOAT8) PARTITION BY LIST (u)")
    with opened(server, "pinned.base") as session, opened(server, "pinned.parts") as parted:
        assert counted(session) == 101
        assert counted(parted) == 0
        raw.execute("ALTER TABLE pinned.base RENAME TO other")
        raw.execute("CREATE VIEW pinned.base AS SELECT u, max(x) OVER () AS x, s FROM pinned.other")
        with pytest.raises(dp.ReleaseFailedError):
            counted(session, "x > 1")
        raw.execute("CREATE EXTENSION IF NOT EXISTS file_fdw")
        raw.execute("DROP SERVER IF EXISTS files CASCADE")
        raw.execute("CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
        raw.execute(
            "CREATE FOREIGN TABLE pinned.far PARTITION OF pinned.parts FOR VALUES IN ('b') "
            "SERVER files OPTIONS (filename '/dev/null', format 'csv')"
        )
        with pytest.raises(dp.ReleaseFailedError):
            counted(parted, "x > 1")


def test_public_views_are_refused_too(server, raw):
    raw.execute("CREATE VIEW pinned.seen AS SELECT x FROM pinned.base")
    base = dp.postgres(server.url)
    tables = {"t": dp.PrivateTable(base.table("pinned.base"), **DECLARED)}
    tables["w"] = dp.PublicTable(base.table("pinned.seen"))
    with pytest.raises(dp.ParameterError, match="row_by_row=True"):
        dp.Session(tables, budget=dp.ApproxDP(9, 1e-6), ledger=dp.Ledger())
    tables["w"] = dp.PublicTable(base.table("pinned.seen"), row_by_row=True)
    with dp.Session(tables, budget=dp.ApproxDP(9, 1e-6), ledger=dp.Ledger()) as session:
        told = session.explain("SELECT COUNT(*) AS n FROM t CROSS JOIN w", epsilon=1)
        assert "101" in told.contributions
