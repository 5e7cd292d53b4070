"""No private cell shows: not in objects, errors, logs, files or pictures."""

import contextlib
import logging
import tempfile
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import canaries
import deniable as dp
from canaries import COLUMNS, DECLARED, failing, in_files, silent, walk
from engines.loading import to_postgres

RIDGE = dp.learning.Ridge(guarantee=dp.ZCDP(0.1), bounds=None, y_bounds=None)
SOURCES = ["arrow", "pandas", "polars", "csv", "parquet", "duckdb", "connection"]
ANSWERED = [
    "SELECT ward, COUNT(*) AS n, SUM(pay) AS s, AVG(size) AS m FROM t GROUP BY ward",
    "SELECT name, COUNT(*) AS n FROM t GROUP BY name",
    "SELECT COUNT(*) AS n FROM t WHERE name LIKE 'x%' AND born > DATE '2000-01-01'",
    "SELECT MEDIAN(size) AS m FROM t",
    "SELECT COUNT(DISTINCT name) AS n FROM t",
]
REFUSED = [
    "SELECT",
    "SELECT * FROM t",
    "SELECT name FROM t",
    "SELECT COUNT(*) AS n FROM nowhere",
    "SELECT SUM(nam) AS s FROM t",
    "SELECT SUM(name) AS s FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE CAST(name AS INTEGER) > 0",
    "SELECT COUNT(*) AS n FROM t WHERE name + 1 > 0",
    "SELECT COUNT(*) AS n FROM t WHERE CAST(name AS DATE) > DATE '2000-01-01'",
    "SELECT COUNT(*) AS n FROM t WHERE pay * pay * pay > 0",
    "SELECT COUNT(*) AS n FROM t WHERE DATE_TRUNC('week', born) > DATE '2000-01-01'",
    "SELECT SUM(1 / (pay - pay)) AS s FROM t",
    "SELECT MAX(pay) AS m FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE pay IN (SELECT pay FROM t LIMIT 1)",
]


@pytest.fixture
def place(tmp_path, monkeypatch, request):
    """A folder whose files are searched; those of the source are kept elsewhere."""
    if "postgres" in request.node.nodeid:
        request.getfixturevalue("server")  # its folder is not among those that are searched
    for name in ("searched", "searched/temporary", "searched/here", "kept"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "searched/temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path / "searched/here")
    return tmp_path


@pytest.fixture
def heard(caplog, capfd, place):
    """Everything that was logged, warned of and printed, and files that were left: searched."""
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield
    silent(caplog.text + repr([vars(record) for record in caplog.records]), "a log")
    silent(repr([str(each.message) for each in warned]), "a warning")
    printed = capfd.readouterr()
    silent(printed.out + printed.err, "what was printed")
    in_files(place / "searched")


def source_of(kind, folder, request):
    """The canaries as a source, in something that does not show them in a frame; and a spoiler."""
    made, path = canaries.table(), folder / f"t.{kind}"
    if kind == "arrow":
        return lambda: made
    if kind == "pandas":
        frame = made.to_pandas()
        return lambda: frame
    if kind == "polars":
        rows = pl.from_arrow(made)
        return lambda: rows
    if kind == "csv":
        pa.csv.write_csv(made, path)
    elif kind == "parquet":
        pq.write_table(made, path)
    elif kind == "duckdb":
        with duckdb.connect(path) as file:
            file.execute("CREATE TABLE made_t AS SELECT * FROM made")
        return lambda: dp.duckdb(path).table("made_t")
    elif kind == "connection":
        opened = duckdb.connect()
        opened.execute("CREATE TABLE made_t AS SELECT * FROM made")
        return lambda: dp.duckdb(opened).table("made_t")
    elif kind == "postgres":
        url = request.getfixturevalue("server").url
        to_postgres(url, "canaries", made)
        return lambda: dp.postgres(url).table("canaries")
    return lambda: path


@pytest.mark.parametrize("kind", [*SOURCES, "postgres"])
def test_no_cell_shows(kind, place, heard, request):
    given = source_of(kind, place / "kept", request)
    columns = {"columns": COLUMNS} if kind in {"csv", "pandas"} else {}
    private = dp.PrivateTable(given(), **DECLARED, **columns)
    public = dp.PublicTable(given(), **columns)
    walk(private, public, private.describe())

    budget, ledger = dp.ApproxDP(100, 1e-5), place / "searched/ledger.db"
    with dp.Session({"t": private, "u": public}, budget=budget, ledger=ledger) as session:
        met = walk(session, session.parts, session.table("t"), *vars(dp).values())
        assert {"PrivateTable", "PublicTable", "Session", "Catalogue", "Question"} <= met.keys()
        for text in (*REFUSED, *ANSWERED):
            walk(failing(lambda: session.explain(text, epsilon=1), f"explain {text}"))  # noqa: B023
            walk(failing(lambda: session.sql(text, epsilon=1), text))  # noqa: B023
        shown = session.sql(ANSWERED[0], epsilon=1)
        for form in (shown.to_json(), shown.to_csv(), str(shown.to_arrow()), repr(shown.data)):
            silent(form, "an answer")
        for name in ("answer.svg", "answer.png"):
            shown.plot(place / "searched" / name)
        built = session.table("t").group_by("ward").agg(n=dp.count(), s=dp.total("pay"))
        walk(built, built.explain(epsilon=1), built.release(epsilon=1))
        for call in (
            lambda: session.sql(ANSWERED[0], epsilon=10**6),
            lambda: session.sql(ANSWERED[0], epsilon=-1),
            lambda: session.sql(ANSWERED[0], keys={"name": [object()]}),
            lambda: session.sql(ANSWERED[0], epsilon=1, bounds={"pay": ("a", "b")}),
            lambda: session.sql(5, epsilon=1),
            lambda: session.table("v"),
            lambda: built.where("nam = 1").release(epsilon=1),
        ):
            assert failing(call, "a wrong call") is None
        walk(session.history, session.remaining, session)
        assert in_files(place / "searched") >= 3  # the ledger and pictures; journals, if any
        walk(*learned(session), session)
    failing(lambda: session.sql(ANSWERED[0], epsilon=2), "a closed session")
    walk(session)
    session.close()  # twice is as good as once


def learned(session):
    """What synthesis and learning give, and what they keep while they run."""
    made = dp.synthesize(
        session, "t", epsilon=1, method="independent", columns=["ward", "size"], bins={"size": 2}
    )
    yield made
    yield dp.synthesize(
        *(session, "t"), epsilon=1, method="aim", columns=["ward", "size"], bins={"size": 2}
    )
    yield dp.synthesis.evaluate(session, "t", made, epsilon=1)
    assert (
        failing(
            lambda: dp.synthesize(session, "t", epsilon=0.01, columns=["name"], discover=["name"]),
            "values that are not found",
        )
        is None
    )
    for call in (
        lambda: dp.synthesize(session, "t", epsilon=1, columns=["name"]),
        lambda: dp.synthesize(session, "t", epsilon=1, bins={"born": ["x"]}),
        lambda: dp.fit(session, RIDGE, "t", x=["name"], y="size"),
        lambda: dp.fit(session, RIDGE, "t", x=["pay"], y=None),
    ):
        assert failing(call, "a wrong call") is None
    desk = dp.synthesis.answer_online(
        session, "t", queries=5, epsilon=1, columns=["ward", "size"], bins={"size": 2}
    )
    desk.answer({"ward": "A"})
    assert failing(lambda: desk.answer({"name": "x"}), "a wrong condition") is None
    yield desk
    walk(desk)
    desk.close()
    assert failing(lambda: desk.answer({"ward": "B"}), "a closed desk") is None
    yield dp.fit(session, RIDGE, "t", x=["pay"], y="size")


WRONG = {
    "unit": {"unit": "nobody"},
    "no unit": {"unit": 5},
    "bounds": {"bounds": {"payy": (0, 1)}},
    "text": {"bounds": {"name": (0, 1)}},
    "keys": {"keys": {"pay": ["A"]}},
    "population": {"population": ""},
    "columns": {"columns": {"nobody": "text"}},
    "types": {"columns": {"pay": "money"}},
    "rows": {"max_rows": "many"},
    "source": {"size": object()},
}


@pytest.mark.parametrize("kind", SOURCES)
def test_no_cell_shows_where_a_table_or_a_session_is_refused(kind, place, heard, request):
    given = source_of(kind, place / "kept", request)

    def opened(declared):
        declared = ({"columns": COLUMNS} if kind in {"csv", "pandas"} else {}) | DECLARED | declared
        table = dp.PrivateTable(given(), **declared)
        ledger = place / "searched/ledger.db"
        dp.Session({"t": table}, budget=dp.PureDP(1), ledger=ledger).close()
        return table

    assert opened({}) is not None
    for name, declared in WRONG.items():
        assert failing(lambda: opened(declared), name) is None, name  # noqa: B023
    headless = place / "kept/headless.csv"
    headless.write_text("\n".join((place / "kept/t.csv").read_text().splitlines()[1:])
                        if kind == "csv" else f"{canaries.TEXT},{canaries.NUMBER}\n")  # fmt: skip
    wrong = (
        lambda: dp.PrivateTable(headless, **DECLARED, columns=COLUMNS),
        lambda: [canaries.table().to_pylist()],
        lambda: {"t": given()},
    )
    for make in wrong:

        def session():
            made = make()  # noqa: B023
            tables = {"t": made if isinstance(made, dp.PrivateTable)
                      else dp.PrivateTable(made, **DECLARED)}  # fmt: skip
            dp.Session(tables, budget=dp.PureDP(1), ledger=dp.Ledger())

        with pytest.raises(dp.DeniableError) as refused:
            session()
        error = refused.value
        silent(str(error) + repr(error) + repr(vars(error)), "a refusal")


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_no_cell_shows_where_a_source_breaks_under_a_session(kind, place, heard, request):
    """And it is charged, and says so."""
    given = source_of(kind, place / "kept", request)
    columns = {"columns": COLUMNS} if kind in {"csv", "pandas"} else {}
    ledger = place / "searched/ledger.db"
    with dp.Session(
        {"t": dp.PrivateTable(given(), **DECLARED, **columns)}, budget=dp.PureDP(9), ledger=ledger
    ) as session:
        path = place / f"kept/t.{kind}"
        path.write_bytes(path.read_bytes()[:200][::-1])
        for text in ANSWERED[:3]:
            failing(lambda: session.sql(text, epsilon=1), text)  # noqa: B023
        walk(session)


def test_rows_in_memory_are_named_by_their_kind_and_columns():
    made = canaries.table()
    for source, shown in (
        (made, "Arrow table, 6 columns"),
        (made.to_batches()[0], "Arrow table, 6 columns"),
        (made.to_pandas(), "pandas table, 6 columns"),
        (pl.from_arrow(made), "polars table, 6 columns"),
        (pd.DataFrame({"label": [1], "engine": [2]}), "pandas table, 2 columns"),
    ):
        table = dp.PrivateTable(source, **DECLARED)
        assert shown in repr(table)
        assert shown in repr(vars(table))
        assert repr(table) == repr(dp.PrivateTable(source[:1], **DECLARED))
        assert table.describe()["source"] == ""


def test_columns_called_like_parts_of_engines_are_columns():
    frame = pd.DataFrame({"label": ["a", "b"], "engine": ["x", "y"]})
    kinds = {"label": "text", "engine": "text"}
    table = dp.PrivateTable(frame, unit="label", population="p", max_rows=1, columns=kinds)
    with dp.Session({"t": table}, budget=dp.PureDP(9), ledger=dp.Ledger()) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).columns == ("n",)


def test_arrays_and_draws_show_nothing(place, heard):
    """Arrays in a caller's hands: coded rows, open draws, estimators."""
    numbers = canaries.table().select(["size", "pay"]).to_pandas().to_numpy()
    rows = dp.synthesis.CodedRows(np.array([[1, 0]] * 713), {"a": 2, "b": 2})
    ledger = dp.Ledger()
    ledger.open("p", dp.Budget(dp.PureDP(1)), who="ana")
    draws = dp.synthesis.open_draws(dp.Gate(ledger, "p", "ana"), rows, purpose="test", epsilon=1)
    draws.measure(("a",), draws.whole / 2)
    released = draws.measurements.pop()
    assert released.values.size == 2
    for subject in (rows, draws):
        assert "713" not in repr(vars(subject))
        assert "[1, 1" not in repr(vars(subject))
    hidden = (lambda: numbers,)

    def fit(budget, bounds):
        model = dp.learning.Ridge(guarantee=budget, bounds=bounds, y_bounds=(0, 1))
        with contextlib.suppress(TypeError):
            return model.fit(hidden[0](), hidden[0]())

    for arguments in ((5, (0, 1)), (dp.ZCDP(1), (1, 0)), (dp.ZCDP(1), (0, 1))):
        failing(lambda: fit(*arguments), "a fit")  # noqa: B023


def test_the_search_finds_what_shows():
    """The test's own power: rows in an object, in a chained error and in a frame are found."""
    bare = canaries.table()
    with pytest.raises(AssertionError, match="shows"):
        silent(repr(bare), "a table")
    for fails in (_chained, _framed):
        with pytest.raises(AssertionError, match="shows"):
            failing(fails, "a planted error")


def _chained():
    try:
        raise ValueError(canaries.TEXT)
    except ValueError:
        raise dp.EngineError("nothing is quoted") from None


def _framed():
    row = canaries.table().to_pylist()[0]
    raise dp.EngineError(f"nothing is quoted of {len(row)} cells")
