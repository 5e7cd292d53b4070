"""A ledger in Postgres beside other roles: their tables neither get its entries nor lock it out."""

import psycopg
import pytest

import deniable as dp
from clinic import CLINIC, reserve
from deniable.ledger.ledger import Ledger
from deniable.ledger.verify import verify

KEY = bytes(range(32))  # its heads are the caller's: nothing is remembered between tests
BUDGET = dp.Budget(dp.PureDP(1))
TABLES = """
    CREATE TABLE {0}.deniable_entries (population TEXT NOT NULL, number BIGINT NOT NULL,
        kind TEXT NOT NULL, who TEXT NOT NULL, question TEXT, refers BIGINT, body TEXT NOT NULL,
        mac TEXT NOT NULL, PRIMARY KEY (population, number));
    CREATE TABLE {0}.deniable_schema (version INTEGER PRIMARY KEY);
    INSERT INTO {0}.deniable_schema VALUES (1);
    GRANT USAGE ON SCHEMA {0} TO PUBLIC;
    GRANT ALL ON {0}.deniable_entries, {0}.deniable_schema TO PUBLIC"""
GRAB = """
    CREATE FUNCTION {0}.grab() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO h.loot VALUES (current_user); RETURN NEW; END $$;
    CREATE FUNCTION {0}.look() RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO h.loot VALUES (current_user); RETURN TRUE; END $$;
    CREATE TRIGGER grab BEFORE INSERT ON {0}.deniable_entries
        FOR EACH ROW EXECUTE FUNCTION {0}.grab();
    CREATE TRIGGER grab BEFORE INSERT ON {0}.deniable_schema
        FOR EACH ROW EXECUTE FUNCTION {0}.grab()"""


class Roles:
    """A database with an administrator, a keeper of a ledger, a reader, and a hostile role."""

    def __init__(self, postgres):
        self._base = postgres.url.rsplit("/", 1)[0]
        with psycopg.connect(postgres.url, autocommit=True) as raw:
            raw.execute("CREATE DATABASE roles")
            for name in ("keeper", "second", "reader", "hostile"):
                raw.execute(f"CREATE ROLE {name} LOGIN")
        self.run(
            "deniable",
            """GRANT CREATE ON DATABASE roles TO hostile; GRANT ALL ON SCHEMA public TO PUBLIC;
            CREATE SCHEMA h AUTHORIZATION hostile; GRANT USAGE ON SCHEMA h TO PUBLIC""",
        )
        self.run("hostile", "CREATE TABLE h.loot (what TEXT); GRANT ALL ON h.loot TO PUBLIC")

    def url(self, role, options=""):
        return f"{self._base}/roles{options}".replace("deniable@", f"{role}@")

    def run(self, role, statements):
        with psycopg.connect(self.url(role), autocommit=True) as raw:
            raw.execute(statements)

    def rows(self, query):
        with psycopg.connect(self.url("deniable")) as raw:
            return raw.execute(query).fetchall()

    def held(self):
        """The schemas with entries, and who was robbed."""
        where = "SELECT schemaname FROM pg_tables WHERE tablename = 'deniable_entries'"
        schemas = [row[0] for row in self.rows(where)]
        full = {s for s in schemas if self.rows(f'SELECT 1 FROM "{s}".deniable_entries LIMIT 1')}
        return full, self.rows("SELECT what FROM h.loot")


@pytest.fixture
def roles(postgres):
    made = Roles(postgres)
    yield made
    with psycopg.connect(postgres.url, autocommit=True) as raw:
        raw.execute("DROP DATABASE roles WITH (FORCE)")
        for name in ("keeper", "second", "reader", "hostile"):
            raw.execute(f"DROP ROLE {name}")


def use(url):
    with Ledger(url, key=KEY) as ledger:
        ledger.open(CLINIC, BUDGET, who="owner")
        reserve(ledger, CLINIC)
        return ledger.balance(CLINIC).releases


@pytest.mark.parametrize("role", ["keeper", "deniable"])
@pytest.mark.parametrize("schema", ["h", "{role}"])
def test_a_planted_ledger_gets_no_entries(roles, role, schema):
    """In a schema somewhere, and in one of the role's own name, which comes first on the path."""
    name = schema.format(role=role)
    roles.run(
        "hostile", f"CREATE SCHEMA IF NOT EXISTS {name}; GRANT ALL ON SCHEMA {name} TO PUBLIC"
    )
    roles.run("hostile", TABLES.format(name) + ";" + GRAB.format(name))
    assert use(roles.url(role)) == 1
    assert use(roles.url(role)) == 2
    assert roles.held() == ({"public"}, [])


@pytest.mark.parametrize("planted", ["(x INT)", "AS SELECT * FROM public.deniable_entries"])
@pytest.mark.parametrize("schema", ["h", "keeper"])
def test_tables_of_others_lock_nobody_out(roles, planted, schema):
    assert use(roles.url("keeper")) == 1
    roles.run("keeper", "GRANT SELECT ON deniable_entries TO PUBLIC")
    roles.run("hostile", f"CREATE SCHEMA IF NOT EXISTS {schema}")
    roles.run("hostile", f"CREATE TABLE {schema}.deniable_entries {planted}")
    roles.run("hostile", f"GRANT ALL ON SCHEMA {schema} TO PUBLIC")
    assert use(roles.url("keeper")) == 2


@pytest.mark.parametrize("table", ["deniable_entries", "deniable_schema"])
def test_a_name_that_is_taken_is_refused_until_there_is_a_schema_of_ones_own(roles, table):
    """Where anybody may create in public, as before Postgres 15."""
    roles.run("hostile", TABLES.format("public") + ";" + GRAB.format("public"))
    others = {"deniable_entries", "deniable_schema"} - {table}
    roles.run("hostile", f"DROP TABLE public.{others.pop()}")
    with pytest.raises(dp.LedgerError, match=r"only read|another role:"):
        use(roles.url("keeper"))
    roles.run("deniable", "CREATE SCHEMA keeper AUTHORIZATION keeper")
    assert use(roles.url("keeper")) == 1
    full, loot = roles.held()
    assert full == {"keeper"}
    assert loot == []


def test_operators_of_others_do_not_run(roles):
    """One for text and varchar would fit a parameter better than the catalogue's own."""
    for left, right in (("text", "varchar"), ("name", "varchar"), ("text", "text")):
        roles.run(
            "hostile",
            f"""CREATE FUNCTION public.same({left}, {right}) RETURNS boolean LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO h.loot VALUES (current_user); RETURN TRUE; END $$;
            CREATE OPERATOR public.= (FUNCTION = public.same, LEFTARG = {left}, RIGHTARG = {right})
            """,
        )
    assert use(roles.url("keeper")) == 1
    assert use(roles.url("keeper")) == 2
    assert roles.held() == ({"public"}, [])


FAULTS = {
    "trigger": (
        "GRANT TRIGGER ON deniable_entries TO hostile",
        "CREATE TRIGGER grab BEFORE INSERT ON deniable_entries FOR EACH ROW EXECUTE FUNCTION "
        "h.grab()",
        "trigger of another role",
    ),
    "trigger of versions": (
        "GRANT ALL ON deniable_schema TO hostile",
        "CREATE TRIGGER grab BEFORE INSERT ON deniable_schema FOR EACH ROW EXECUTE FUNCTION "
        "h.grab()",
        "deniable_schema .* trigger of another role",
    ),
    "right to make one": ("GRANT TRIGGER ON deniable_entries TO PUBLIC", "SELECT", "REVOKE"),
    "rule": (
        "CREATE RULE also AS ON INSERT TO deniable_entries DO ALSO SELECT 1",
        "SELECT",
        "has rules",
    ),
    "policy": ("ALTER TABLE deniable_entries ENABLE ROW LEVEL SECURITY", "SELECT", "row security"),
    "child": ("CREATE TABLE child () INHERITS (deniable_entries)", "SELECT", "inherited"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_others_could_run_is_refused(roles, fault):
    by_keeper, by_hostile, match = FAULTS[fault]
    assert use(roles.url("keeper")) == 1
    roles.run("hostile", TABLES.format("h") + ";" + GRAB.format("h"))
    roles.run("keeper", by_keeper)
    roles.run("hostile", by_hostile)
    with pytest.raises(dp.LedgerError, match=match):
        use(roles.url("keeper"))
    assert roles.held() == ({"public"}, [])


def test_a_schema_of_another_role_is_no_home(roles):
    """Its owner may drop the tables in it, and put others in their place."""
    assert use(roles.url("keeper")) == 1
    roles.run("hostile", "CREATE SCHEMA theirs; GRANT ALL ON SCHEMA theirs TO keeper")
    roles.run(
        "keeper",
        "ALTER TABLE deniable_entries SET SCHEMA theirs; ALTER TABLE deniable_schema SET SCHEMA "
        "theirs",
    )
    with pytest.raises(dp.LedgerError, match="'theirs' of another role"):
        use(roles.url("keeper"))
    with pytest.raises(dp.LedgerError, match="CREATE SCHEMA"):
        use(roles.url("second", "?options=-csearch_path%3Dtheirs"))


def test_each_role_has_its_own_and_members_share_one(roles):
    assert use(roles.url("keeper")) == 1
    with pytest.raises(dp.LedgerError, match="permission denied"):
        use(roles.url("second"))
    roles.run("keeper", "GRANT ALL ON deniable_entries, deniable_schema TO second")
    with pytest.raises(dp.LedgerError, match="only read"):
        use(roles.url("second"))
    roles.run("deniable", "GRANT keeper TO second")
    roles.run("keeper", "REVOKE TRIGGER ON deniable_entries, deniable_schema FROM second")
    assert use(roles.url("second", "?options=-crole%3Dkeeper")) == 2
    roles.run("deniable", "CREATE SCHEMA second AUTHORIZATION second")
    assert use(roles.url("second")) == 1
    assert use(roles.url("keeper")) == 3


READ = {
    "policy": """ALTER TABLE {0}.deniable_entries ENABLE ROW LEVEL SECURITY;
        CREATE POLICY p ON {0}.deniable_entries USING ({0}.look())""",
    "cast": """CREATE DOMAIN {0}.word AS TEXT;
        ALTER TABLE {0}.deniable_entries ALTER population TYPE {0}.word""",
    "index": """CREATE INDEX ON {0}.deniable_entries (kind) WHERE length(kind) > 2""",
    "check": """ALTER TABLE {0}.deniable_entries ADD CHECK (length(kind) > 2)""",
    "statistics": """CREATE STATISTICS {0}.s ON (kind || {0}.mark(1)), (who || {0}.mark(2))
        FROM {0}.deniable_entries; ANALYZE {0}.deniable_entries""",
    "view": """ALTER TABLE {0}.deniable_entries RENAME TO other;
        CREATE VIEW {0}.deniable_entries AS SELECT * FROM {0}.other WHERE {0}.look();
        GRANT SELECT ON {0}.deniable_entries TO PUBLIC""",
}


@pytest.mark.parametrize("fault", READ)
def test_who_reads_a_ledger_of_others_runs_nothing_of_theirs(roles, fault):
    roles.run("hostile", TABLES.format("public") + ";" + GRAB.format("public"))
    with Ledger(roles.url("reader"), key=KEY, create=False) as reader:
        assert reader.populations() == []  # plain tables may be read
    roles.run("hostile", MARK.format("public"))
    roles.run("hostile", READ[fault].format("public"))
    with pytest.raises(dp.LedgerError, match="deniable_entries in the schema 'public'"):
        Ledger(roles.url("reader"), key=KEY, create=False)
    assert roles.rows("SELECT what FROM h.loot") == []


LATER = {
    **READ,
    "index": "CREATE INDEX ON {0}.deniable_entries ((kind || {0}.mark(1)))",
    "index of versions": "CREATE INDEX ON {0}.deniable_schema ((version || {0}.mark(1)))",
    "partial index": """CREATE INDEX ON {0}.deniable_entries (kind)
        WHERE who <> {0}.mark(1) OR kind = 'open'""",
    "check": "ALTER TABLE {0}.deniable_entries ADD CHECK (kind <> {0}.mark(1))",
    "child": """CREATE TABLE {0}.kid (CHECK (kind <> {0}.mark(1)))
        INHERITS ({0}.deniable_entries)""",
}
MARK = """
    CREATE SEQUENCE {0}.runs; GRANT ALL ON {0}.runs TO PUBLIC;
    CREATE FUNCTION {0}.mark(i INT) RETURNS TEXT IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
        IF current_user <> 'hostile' THEN PERFORM nextval('{0}.runs'); END IF;
        RETURN ''; END $$"""


@pytest.mark.parametrize("fault", LATER)
def test_nor_what_they_hang_there_later(roles, fault):
    """A copy is asked, and a table is copied without a plan."""
    roles.run("hostile", TABLES.format("public") + ";" + GRAB.format("public"))
    row = "'open', 'o', NULL, NULL, '{}', 'm'"
    roles.run("hostile", f"INSERT INTO deniable_entries VALUES ('p', 1, {row}), ('q', 1, {row})")
    roles.run("hostile", "DELETE FROM h.loot; GRANT USAGE ON SCHEMA public TO PUBLIC")
    roles.run("hostile", MARK.format("public"))
    with Ledger(roles.url("reader"), key=KEY, create=False) as reader:
        assert reader.populations() == ["p", "q"]
        roles.run("hostile", LATER[fault].format("public"))
        try:
            found = reader.populations()
        except dp.LedgerError as refused:
            found = refused  # of a view or of policies nothing is copied
        assert (found == ["p", "q"]) == (fault not in {"policy", "view"})
    assert roles.rows("SELECT what FROM h.loot") == []
    assert roles.rows("SELECT is_called FROM public.runs") == [(False,)]


def test_a_ledger_of_ones_own_with_functions_of_others_is_refused(roles):
    assert use(roles.url("keeper")) == 1
    roles.run("hostile", MARK.format("h"))
    roles.run("keeper", "CREATE INDEX ON deniable_entries ((kind || h.mark(1)))")
    (ran,) = roles.rows("SELECT last_value FROM h.runs")
    with pytest.raises(dp.LedgerError, match="functions of another role"):
        use(roles.url("keeper"))
    assert roles.rows("SELECT last_value FROM h.runs") == [ran]


def test_nothing_of_others_runs_when_a_connection_is_made(roles):
    """Libraries ask about types as they connect."""
    roles.run("hostile", MARK.format("h"))
    roles.run("hostile", "GRANT USAGE ON SCHEMA h TO PUBLIC")
    for left, right in (("oid", "regtype"), ("oid", "oid"), ("name", "name"), ("text", "text")):
        roles.run(
            "hostile",
            f"""CREATE FUNCTION public.same({left}, {right}) RETURNS boolean LANGUAGE plpgsql AS
            $$ BEGIN PERFORM h.mark(1); RETURN FALSE; END $$;
            CREATE OPERATOR public.= (FUNCTION = public.same, LEFTARG = {left}, RIGHTARG = {right})
            """,
        )
    for name in ("version()", "current_schema()", "to_regtype(varchar)", "to_regtype(text)"):
        roles.run(
            "hostile",
            f"""CREATE FUNCTION public.{name} RETURNS TEXT LANGUAGE sql AS
            $$ SELECT h.mark(1) $$""",
        )
    for path in ("", "?options=-csearch_path%3Dpublic,pg_catalog"):
        use(roles.url("keeper", path))
    assert roles.rows("SELECT is_called FROM h.runs") == [(False,)]


def test_a_reader_names_the_schema(roles):
    roles.run("deniable", "CREATE SCHEMA kept AUTHORIZATION keeper")
    assert use(roles.url("keeper", "?options=-csearch_path%3Dkept")) == 1
    assert use(roles.url("keeper")) == 2  # one's own is found wherever it is
    roles.run("keeper", "GRANT USAGE ON SCHEMA kept TO reader")
    roles.run("keeper", "GRANT SELECT ON kept.deniable_entries, kept.deniable_schema TO reader")
    with pytest.raises(dp.LedgerError, match="no ledger"):
        Ledger(roles.url("reader"), key=KEY, create=False)
    named = roles.url("reader", "?options=-csearch_path%3Dkept")
    with Ledger(named, key=KEY, create=False) as reader:
        assert verify(reader, CLINIC).reservations == 2
        with pytest.raises(dp.LedgerError, match="only read"):
            reserve(reader, CLINIC)
