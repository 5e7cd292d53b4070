"""A survey store in Postgres beside other roles: their tables do not get its rows."""

import psycopg
import pytest

import deniable as dp
from deniable.service.store import SurveyStore
from postgres import Postgres
from service.surveys import survey

DOCUMENT = survey()
GRAB = """
    CREATE TABLE {0}.survey_documents (survey TEXT PRIMARY KEY, document TEXT NOT NULL);
    CREATE FUNCTION {0}.grab() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO public.loot VALUES (current_user); RETURN NEW; END $$;
    CREATE TRIGGER grab BEFORE INSERT ON {0}.survey_documents
        FOR EACH ROW EXECUTE FUNCTION {0}.grab();
    GRANT ALL ON {0}.survey_documents TO PUBLIC"""


@pytest.fixture
def server():
    made = Postgres()
    with psycopg.connect(made.url, autocommit=True) as raw:
        raw.execute("CREATE ROLE keeper LOGIN; CREATE ROLE hostile LOGIN")
        raw.execute("GRANT CREATE ON DATABASE postgres TO hostile")
        raw.execute("GRANT ALL ON SCHEMA public TO PUBLIC")
        raw.execute("CREATE TABLE loot (what TEXT); GRANT ALL ON loot TO PUBLIC")
    yield made
    made.remove()


def hostile(server, statements):
    with psycopg.connect(server.url.replace("deniable@", "hostile@"), autocommit=True) as raw:
        raw.execute(statements)


def use(server):
    store = SurveyStore(server.url.replace("deniable@", "keeper@"))
    try:
        store.add(DOCUMENT)
        store.invite(DOCUMENT, [None])
        store.settle()
        return store.status(DOCUMENT).invited
    finally:
        store.close()


def robbed(server):
    with psycopg.connect(server.url) as raw:
        return raw.execute("SELECT what FROM loot").fetchall()


def test_planted_tables_get_no_rows_and_lock_nobody_out(server):
    """Also in a schema of the role's own name, which comes first on its path."""
    hostile(server, "CREATE SCHEMA keeper; GRANT ALL ON SCHEMA keeper TO PUBLIC")
    hostile(server, GRAB.format("keeper"))
    assert use(server) == 1
    assert use(server) == 2
    assert robbed(server) == []


def test_names_that_are_taken_are_refused(server):
    hostile(server, GRAB.format("public"))
    with pytest.raises(dp.errors.SurveyStoreError, match="another role"):
        use(server)
    with psycopg.connect(server.url, autocommit=True) as raw:
        raw.execute("CREATE SCHEMA keeper AUTHORIZATION keeper")
    assert use(server) == 1
    assert robbed(server) == []


def test_triggers_of_others_are_refused(server):
    assert use(server) == 1
    with psycopg.connect(server.url, autocommit=True) as raw:
        raw.execute("GRANT TRIGGER ON survey_answers_fresh TO hostile")
    hostile(server, "CREATE SCHEMA h;" + GRAB.format("h"))
    hostile(
        server,
        "CREATE TRIGGER grab BEFORE INSERT ON public.survey_answers_fresh "
        "FOR EACH ROW EXECUTE FUNCTION h.grab()",
    )
    with pytest.raises(dp.errors.SurveyStoreError, match=r"survey_answers_fresh .* another role"):
        use(server)


def test_operators_of_others_do_not_run(server):
    for left in ("text", "name"):
        hostile(
            server,
            f"""CREATE FUNCTION same({left}, varchar) RETURNS boolean LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO public.loot VALUES (current_user); RETURN TRUE; END $$;
            CREATE OPERATOR public.= (FUNCTION = same, LEFTARG = {left}, RIGHTARG = varchar)""",
        )
    assert use(server) == 1
    assert robbed(server) == []


def test_nothing_of_others_runs_when_a_connection_is_made(server):
    """Libraries ask about types as they connect."""
    hostile(server, "CREATE SEQUENCE runs; GRANT ALL ON runs TO PUBLIC")
    for left, right in (("oid", "regtype"), ("oid", "oid"), ("name", "name")):
        hostile(
            server,
            f"""CREATE FUNCTION same({left}, {right}) RETURNS boolean LANGUAGE plpgsql AS
            $$ BEGIN PERFORM nextval('public.runs'); RETURN FALSE; END $$;
            CREATE OPERATOR public.= (FUNCTION = same, LEFTARG = {left}, RIGHTARG = {right})""",
        )
    assert use(server) == 1
    with psycopg.connect(server.url) as raw:
        assert raw.execute("SELECT is_called FROM runs").fetchall() == [(False,)]


def test_tables_with_functions_of_others_are_refused(server):
    assert use(server) == 1
    hostile(
        server,
        """CREATE FUNCTION mark() RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT '' $$""",
    )
    with psycopg.connect(server.url, autocommit=True) as raw:
        raw.execute("CREATE INDEX ON survey_documents ((document || mark()))")
    with pytest.raises(dp.errors.SurveyStoreError, match="functions of another role"):
        use(server)
