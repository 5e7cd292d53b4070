"""Tables of other roles in Postgres: nothing of theirs runs with the rights of who asks."""

import threading
import time

import psycopg
import pytest

import deniable as dp
from deniable.engines.base import Step
from deniable.engines.postgres import Postgres

DECLARED = {"unit": "u", "population": "p", "max_rows": 1, "bounds": {"x": (0, 10)}}
QUESTION = "SELECT COUNT(*) AS n FROM t JOIN w ON t.k = w.k WHERE w.d <> 'z'"
SET_UP = """
    CREATE SCHEMA priv AUTHORIZATION asker;
    CREATE TABLE priv.t (u TEXT, x FLOAT8, k TEXT);
    INSERT INTO priv.t SELECT 'p' || i, 1.5, 'a' FROM generate_series(1, 100) i;
    ALTER TABLE priv.t OWNER TO asker;
    GRANT USAGE ON SCHEMA priv TO evil;
    CREATE SCHEMA lists AUTHORIZATION evil;
    CREATE SCHEMA safe;
    GRANT USAGE ON SCHEMA safe TO asker"""
EVIL = """
    GRANT USAGE ON SCHEMA lists TO PUBLIC;
    CREATE SEQUENCE lists.runs; GRANT ALL ON lists.runs TO PUBLIC;
    CREATE FUNCTION lists.g(i INT) RETURNS TEXT IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
        IF current_user <> 'evil' THEN PERFORM nextval('lists.runs'); END IF;
        RETURN ''; END $$;
    CREATE FUNCTION lists.less(a TEXT, b TEXT) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
        BEGIN PERFORM lists.g(1); RETURN a < b; END $$;
    CREATE OPERATOR lists.<< (LEFTARG = text, RIGHTARG = text, FUNCTION = lists.less);
    CREATE OPERATOR lists.>> (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.text_gt);
    CREATE DOMAIN lists.word AS TEXT CHECK (lists.g(1) = '');
    CREATE TABLE lists.w (k TEXT, d TEXT); INSERT INTO lists.w VALUES ('a', 'b');
    GRANT SELECT ON lists.w TO PUBLIC"""
HUNG = {
    "index": "CREATE INDEX ON lists.w ((k || lists.g(1)))",
    "partial index": "CREATE INDEX ON lists.w (k) WHERE d <> lists.g(1) OR k = 'a'",
    "index by operator": "CREATE INDEX ON lists.w ((k OPERATOR(lists.<<) d))",
    "index by constants": "CREATE INDEX ON lists.w ((k || ('a' OPERATOR(lists.<<) 'b')::TEXT))",
    "index by domain": "CREATE INDEX ON lists.w ((k || 'a'::lists.word))",
    "statistics": "CREATE STATISTICS lists.s ON (k || lists.g(1)), (d || lists.g(2)) FROM lists.w",
    "check": "ALTER TABLE lists.w ADD CHECK (k <> lists.g(1))",
    "check of a child": "CREATE TABLE lists.kid (CHECK (k <> lists.g(1))) INHERITS (lists.w)",
    "index of a child": """CREATE TABLE lists.kid () INHERITS (lists.w);
        CREATE INDEX ON lists.kid ((k || lists.g(1)))""",
    "partition key": """DROP TABLE lists.w;
        CREATE TABLE lists.w (k TEXT, d TEXT) PARTITION BY LIST ((k || lists.g(1)));
        CREATE TABLE lists.w1 PARTITION OF lists.w DEFAULT;
        GRANT SELECT ON lists.w TO PUBLIC""",
    "statistics of a part": """DROP TABLE lists.w;
        CREATE TABLE lists.w (k TEXT, d TEXT) PARTITION BY LIST (k);
        CREATE TABLE lists.w1 PARTITION OF lists.w DEFAULT;
        CREATE STATISTICS lists.s ON (k || lists.g(1)), (d || lists.g(2)) FROM lists.w1;
        GRANT SELECT ON lists.w TO PUBLIC""",
}


class Roles:
    """A role that asks, one that is hostile, and an administrator."""

    def __init__(self, server):
        self._url = server.url
        self.admin, self.evil = self.connect("deniable"), None
        self.admin.execute("CREATE ROLE asker LOGIN; CREATE ROLE evil LOGIN")
        self.admin.execute(SET_UP)
        self.evil = self.connect("evil")
        self.evil.execute(EVIL)

    def url(self, role):
        return self._url.replace("deniable@", f"{role}@")

    def connect(self, role):
        return psycopg.connect(self.url(role), autocommit=True)

    def runs(self):
        """Whether something of theirs has run as another role."""
        return self.admin.execute("SELECT is_called FROM lists.runs").fetchone()[0]

    def waits(self):
        """Return once somebody waits for a lock."""
        for _ in range(600):
            if self.admin.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall():
                return
            time.sleep(0.05)
        raise AssertionError

    def session(self, role="asker", public="lists.w", trusted=()):
        base = dp.postgres(self.url(role), trusted=trusted)
        tables = {
            "t": dp.PrivateTable(base.table("priv.t"), **DECLARED),
            "w": dp.PublicTable(base.table(public)),
        }
        return dp.Session(tables, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger())

    def close(self):
        self.evil.close()
        self.admin.execute("DROP SCHEMA IF EXISTS priv, lists, safe, other CASCADE")
        self.admin.execute("DROP OWNED BY evil, asker; DROP ROLE evil; DROP ROLE asker")
        self.admin.close()


@pytest.fixture
def roles(server):
    made = Roles(server)
    yield made
    made.close()


def counted(session, question=QUESTION):
    return round(session.sql(question, epsilon=1e6)["n"][0])


@pytest.mark.parametrize("hung", HUNG)
def test_functions_that_hang_on_a_table_are_not_run(roles, hung):
    """Whoever owns the table: who asks has the right to lock it, and is an administrator."""
    roles.evil.execute(HUNG[hung])
    roles.evil.execute("ANALYZE lists.w; GRANT ALL ON lists.w TO PUBLIC")
    for role in ("asker", "deniable"):
        with pytest.raises(dp.ParameterError, match=r"functions of another role.*Drop that"):
            roles.session(role)
    roles.admin.execute("ALTER TABLE lists.w OWNER TO asker")
    with pytest.raises(dp.ParameterError, match="functions of another role"):
        roles.session()
    assert not roles.runs()


@pytest.mark.parametrize("hung", HUNG)
def test_nor_if_they_are_hung_there_after_the_session_opened(roles, hung):
    roles.evil.execute("GRANT ALL ON lists.w TO PUBLIC")
    with roles.session() as session:
        assert counted(session) == 100
        roles.evil.execute(HUNG[hung])
        roles.evil.execute("ANALYZE lists.w; GRANT ALL ON lists.w TO PUBLIC")
        with pytest.raises(dp.ReleaseFailedError):
            counted(session, QUESTION + " AND t.x > 0")
    assert not roles.runs()


OWN = {
    "index": "CREATE INDEX ON {0}.w (lower(k)) WHERE d IN ('b', 'c')",
    "enumeration": """CREATE TYPE {0}.mood AS ENUM ('sad', 'glad');
        ALTER TABLE {0}.w ADD m {0}.mood;
        CREATE INDEX ON {0}.w (k) WHERE m IN ('sad', 'glad') OR m = 'sad'""",
    "words": "CREATE INDEX ON {0}.w USING gin (to_tsvector('english', d))",
    "statistics": "CREATE STATISTICS {0}.s ON (k || 'a'), lower(d) FROM {0}.w",
    "check": "ALTER TABLE {0}.w ADD CHECK (length(k) < 99), ADD n SERIAL, ADD PRIMARY KEY (n)",
    "default": "ALTER TABLE {0}.w ALTER d SET DEFAULT lists.g(1)",
    "own function": """CREATE FUNCTION {0}.f(TEXT) RETURNS TEXT IMMUTABLE LANGUAGE sql
        AS $$ SELECT lower($1) $$; CREATE INDEX ON {0}.w ({0}.f(k))""",
    "partitions": """DROP TABLE {0}.w; CREATE TABLE {0}.w (k TEXT, d TEXT)
        PARTITION BY LIST (lower(k)); CREATE TABLE {0}.w1 PARTITION OF {0}.w DEFAULT;
        INSERT INTO {0}.w VALUES ('a', 'b')""",
}


@pytest.mark.parametrize("own", OWN)
def test_the_servers_functions_and_those_of_administrators_may_stay(roles, own):
    roles.admin.execute(
        "CREATE TABLE safe.w (k TEXT, d TEXT); INSERT INTO safe.w VALUES ('a', 'b')"
    )
    roles.admin.execute(OWN[own].format("safe"))
    roles.admin.execute("GRANT SELECT ON safe.w TO asker")
    with roles.session(public="safe.w") as session:
        assert counted(session) == 100
    assert not roles.runs()


def test_a_role_that_is_trusted_may_own_tables_and_what_hangs_on_them(roles):
    """A role that may only SELECT, as most do; the name of a role is nothing but a name."""
    for others in (["asker"], ["e'vil"], ["nobody'] AS text[])) OR true --"], []):
        with pytest.raises(dp.ParameterError, match=r"belongs to another role.*trusted=\["):
            roles.session(trusted=others)
    with roles.session(trusted=["evil"]) as session:
        assert counted(session) == 100
    roles.evil.execute(OWN["own function"].format("lists"))
    with pytest.raises(dp.ParameterError, match="functions of another role"):
        roles.session()
    with roles.session(trusted=["evil"]) as session:
        assert counted(session) == 100
    with pytest.raises(dp.errors.ParameterTypeError, match="trusted"):
        roles.session(trusted="evil")


def test_a_table_of_another_role_is_read_only_while_it_is_held_still(roles):
    with pytest.raises(dp.ParameterError, match=r"belongs to another role.*ALTER TABLE"):
        roles.session()
    roles.evil.execute("GRANT UPDATE ON lists.w TO asker")
    with roles.session() as session:
        assert counted(session) == 100
        engine = session.parts.engine
        roles.evil.execute("SET lock_timeout = '200ms'")
        with engine.snapshot() as taken:
            for hung in ("index", "statistics", "check", "check of a child"):
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    roles.evil.execute(HUNG[hung])
            with pytest.raises(psycopg.errors.LockNotAvailable):
                roles.evil.execute("CREATE INDEX CONCURRENTLY ON lists.w ((k || lists.g(1)))")
            taken.run(Step("SELECT COUNT(*) AS n FROM w", "SELECT k FROM w"))
        roles.evil.execute("REVOKE UPDATE ON lists.w FROM asker")
        with pytest.raises(dp.ReleaseFailedError):
            counted(session, QUESTION + " AND t.x > 0")
    assert not roles.runs()


@pytest.mark.parametrize("who", ["asker", "deniable"])
def test_a_table_that_becomes_a_view_while_a_lock_is_awaited_is_not_read(roles, who):
    """The private table's lock is had first, and with it no snapshot."""
    roles.evil.execute("GRANT ALL ON lists.w TO PUBLIC")
    with roles.session(who) as session, psycopg.connect(roles.url("evil")) as other:
        assert counted(session) == 100
        other.execute("TRUNCATE lists.w")
        other.execute(
            'CREATE RULE "_RETURN" AS ON SELECT TO lists.w DO INSTEAD '
            "SELECT 'a' || lists.g(1) AS k, 'b'::TEXT AS d"
        )
        found = []

        def ask():
            try:
                found.append(counted(session, QUESTION + " AND t.x > 0"))
            except dp.ReleaseFailedError as error:
                found.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        roles.waits()
        other.commit()
        asking.join(30)
    assert [type(each) for each in found] == [dp.ReleaseFailedError]
    assert not roles.runs()


@pytest.mark.parametrize("when", ["before the look", "after the look"])
def test_a_schema_that_gets_another_name_puts_no_other_table_there(roles, when):
    """Schemas are renamed without a lock on their tables."""
    roles.evil.execute("GRANT ALL ON lists.w TO PUBLIC")
    with roles.session() as session:
        assert counted(session) == 100
        engine = session.parts.engine
        roles.admin.execute("GRANT CREATE ON DATABASE postgres TO evil")

        def swap():
            roles.evil.execute(
                "ALTER SCHEMA lists RENAME TO other; CREATE SCHEMA lists; "
                "GRANT USAGE ON SCHEMA lists TO PUBLIC; "
                "CREATE VIEW lists.w AS SELECT 'a' || other.g(1) AS k, 'b'::TEXT AS d; "
                "GRANT ALL ON lists.w TO PUBLIC; CREATE SEQUENCE lists.runs"
            )

        def read():
            with engine.snapshot() as taken:
                if when == "after the look":
                    swap()
                taken.run(Step("SELECT COUNT(*) AS n FROM w WHERE k = 'a'", "SELECT k FROM w"))

        try:
            if when == "before the look":
                swap()
            with pytest.raises(dp.EngineError, match="no longer what it was"):
                read()
        finally:
            roles.admin.execute("REVOKE CREATE ON DATABASE postgres FROM evil")
    assert not roles.runs()
    assert not roles.admin.execute("SELECT is_called FROM other.runs").fetchone()[0]


PARTED = {
    "partitions": """CREATE TABLE priv.p (u TEXT, x FLOAT8, d INT) PARTITION BY LIST (d);
        CREATE TABLE priv.p1 PARTITION OF priv.p FOR VALUES IN (1)""",
    "children": """CREATE TABLE priv.p (u TEXT, x FLOAT8, d INT);
        CREATE TABLE priv.p1 () INHERITS (priv.p)""",
    "one table": """CREATE TABLE priv.p (u TEXT, x FLOAT8, d INT);
        CREATE VIEW priv.p1 AS SELECT * FROM priv.p""",
    "parts of parts": """CREATE TABLE priv.p (u TEXT, x FLOAT8, d INT) PARTITION BY LIST (d);
        CREATE TABLE priv.m PARTITION OF priv.p FOR VALUES IN (1, 2) PARTITION BY LIST (d);
        CREATE TABLE priv.p1 PARTITION OF priv.m FOR VALUES IN (1)""",
}
JOINED = {
    "partitions": "ALTER TABLE priv.p ATTACH PARTITION priv.p2 FOR VALUES IN (2)",
    "children": "ALTER TABLE priv.p2 INHERIT priv.p",
    "one table": "ALTER TABLE priv.p2 INHERIT priv.p",
    "parts of parts": "ALTER TABLE priv.m ATTACH PARTITION priv.p2 FOR VALUES IN (2)",
}
FIRST = Step("SELECT COUNT(*) AS n FROM t", "SELECT COUNT(*) AS n FROM t")
SECOND = Step("SELECT COUNT(*) AS n, COUNT(x) AS k FROM t", "SELECT COUNT(*) AS n FROM t")


@pytest.mark.parametrize("made_before", [True, False])
@pytest.mark.parametrize("kind", PARTED)
def test_a_part_that_is_added_between_statements_fails_the_question(roles, kind, made_before):
    """Its rows would be in the second statement and not in the first, snapshot or not."""
    more = """CREATE TABLE priv.p2 (u TEXT, x FLOAT8, d INT);
        INSERT INTO priv.p2 SELECT 'q' || i, 1, 2 FROM generate_series(1, 900) i"""
    roles.admin.execute(PARTED[kind])
    roles.admin.execute("INSERT INTO priv.p1 SELECT 'p' || i, 1, 1 FROM generate_series(1, 100) i")
    if made_before:
        roles.admin.execute(more)
    base = dp.postgres(roles.url("deniable"))
    engine = Postgres(base)
    try:
        engine.add("t", base.table("priv.p"), None, "u")
        with engine.snapshot([FIRST, SECOND]) as taken:
            assert taken.run(FIRST) == [(100,)]
            assert taken.run(SECOND) == [(100, 100)]
        with engine.snapshot([FIRST, SECOND]) as taken:
            assert taken.run(FIRST) == [(100,)]
            roles.admin.execute("SET lock_timeout = '3s'")
            roles.admin.execute(JOINED[kind] if made_before else f"{more}; {JOINED[kind]}")
            with pytest.raises(dp.EngineError, match="no longer what it was"):
                taken.run(SECOND)
        with engine.snapshot([FIRST]) as taken:  # the next question has it
            assert taken.run(FIRST) == [(1000,)]
    finally:
        engine.close()


def test_an_index_that_is_made_meanwhile_is_no_part(roles):
    roles.admin.execute(PARTED["partitions"])
    roles.admin.execute("INSERT INTO priv.p1 SELECT 'p' || i, 1, 1 FROM generate_series(1, 100) i")
    base = dp.postgres(roles.url("deniable"))
    engine = Postgres(base)
    try:
        engine.add("t", base.table("priv.p"), None, "u")
        with engine.snapshot([FIRST, SECOND]) as taken:
            assert taken.run(FIRST) == [(100,)]
            roles.admin.execute("CREATE INDEX ON priv.p (d)")
            assert taken.run(SECOND) == [(100, 100)]
    finally:
        engine.close()


def test_parts_of_another_role_are_held_still_with_the_whole(roles):
    roles.evil.execute(
        "DROP TABLE lists.w; CREATE TABLE lists.w (k TEXT, d TEXT) PARTITION BY LIST (k); "
        "CREATE TABLE lists.w1 PARTITION OF lists.w DEFAULT; "
        "INSERT INTO lists.w VALUES ('a', 'b'); GRANT SELECT, UPDATE ON lists.w TO asker"
    )
    with roles.session() as session:
        assert counted(session) == 100
        roles.evil.execute("SET lock_timeout = '200ms'")
        with (
            session.parts.engine.snapshot(),
            pytest.raises(psycopg.errors.LockNotAvailable),
        ):
            roles.evil.execute("CREATE INDEX ON lists.w1 ((k || lists.g(1)))")


def test_a_part_that_a_function_hangs_on_is_not_read(roles):
    roles.admin.execute(PARTED["partitions"])
    roles.admin.execute("GRANT USAGE ON SCHEMA lists TO deniable")
    base = dp.postgres(roles.url("deniable"))
    engine = Postgres(base)
    try:
        engine.add("t", base.table("priv.p"), None, "u")
        roles.admin.execute("CREATE INDEX ON priv.p1 ((u || lists.g(1)))")
        roles.admin.execute("ALTER SEQUENCE lists.runs RESTART")
        with pytest.raises(dp.EngineError, match="no longer what it was"):
            engine.snapshot([FIRST]).__enter__()
    finally:
        engine.close()
    assert not roles.runs()


RENAMES = {
    "swapped": """ALTER TYPE {0}.mood RENAME VALUE 'sad' TO 'x';
        ALTER TYPE {0}.mood RENAME VALUE 'glad' TO 'sad';
        ALTER TYPE {0}.mood RENAME VALUE 'x' TO 'glad'""",
    "one renamed": "ALTER TYPE {0}.mood RENAME VALUE 'glad' TO 'happy'",
    "one added before": "ALTER TYPE {0}.mood ADD VALUE 'none' BEFORE 'sad'",
}
GLAD = "SELECT COUNT(*) AS n FROM t WHERE m = 'glad'"


def with_mood(roles, schema, owner):
    """Ninety people of a hundred are sad, by an enumeration of a role."""
    roles.admin.execute(
        f"GRANT USAGE ON SCHEMA {schema} TO PUBLIC; "
        f"CREATE TYPE {schema}.mood AS ENUM ('sad', 'glad'); "
        f"ALTER TYPE {schema}.mood OWNER TO {owner}; ALTER TABLE priv.t ADD m {schema}.mood; "
        f"UPDATE priv.t SET m = CASE WHEN substr(u, 2)::INT <= 90 THEN 'sad' ELSE 'glad' END"
        f"::{schema}.mood"
    )


def mood(roles, trusted=()):
    base = dp.postgres(roles.url("asker"), trusted=trusted)
    table = dp.PrivateTable(base.table("priv.t"), **DECLARED)
    return dp.Session({"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger())


def test_enumerations_of_other_roles_are_left_out(roles):
    """Labels are no part of a snapshot: who owns the type could rename them between statements."""
    with_mood(roles, "lists", "evil")
    for others in ((), ("asker",), ("e'vil",)):
        with mood(roles, others) as session:
            with pytest.raises(dp.QueryError, match="m"):
                counted(session, GLAD)
            assert counted(session, "SELECT COUNT(*) AS n FROM t") == 100
    with mood(roles, ["evil"]) as session:
        assert counted(session, GLAD) == 10
        roles.admin.execute("ALTER TYPE lists.mood OWNER TO asker")
        assert counted(session, GLAD + " AND x > 0") == 10


@pytest.mark.parametrize("rename", RENAMES)
@pytest.mark.parametrize(("schema", "owner"), [("priv", "asker"), ("safe", "deniable")])
def test_labels_are_part_of_what_a_table_is(roles, schema, owner, rename):
    with_mood(roles, schema, owner)
    with mood(roles) as session:
        assert counted(session, GLAD) == 10
        roles.admin.execute(RENAMES[rename].format(schema))
        with pytest.raises(dp.ReleaseFailedError):
            counted(session, GLAD + " AND x > 0")


def test_an_enumeration_that_goes_to_another_role_is_no_longer_read(roles):
    with_mood(roles, "priv", "asker")
    with mood(roles) as session:
        assert counted(session, GLAD) == 10
        roles.admin.execute("ALTER TYPE priv.mood OWNER TO evil")
        with pytest.raises(dp.ReleaseFailedError):
            counted(session, GLAD + " AND x > 0")
