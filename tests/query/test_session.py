"""Sessions: where tables come from, what is charged, what is refused, what a crash leaves."""

import datetime
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.ledger.verify import verify
from deniable.privacy.wire import loss_from_json

KEY = bytes(32)
ROWS = {
    "who": [i % 200 for i in range(2000)],
    "ward": ["ABC"[i % 3] for i in range(2000)],
    "cost": [float(i % 100) for i in range(2000)],
    "day": [datetime.date(2024, 1 + i % 12, 1) for i in range(2000)],
}
TYPES = {"who": "integer", "ward": "text", "cost": "number", "day": "date"}
COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
EXACT = {"A": 667, "B": 667, "C": 666}


def private(source, **changed):
    given = {
        "unit": "who",
        "population": "clinic",
        "bounds": {"cost": (0, 100)},
        "keys": {"ward": ["A", "B", "C"]},
        "max_rows": 10,
        "cap_rows": 10,
        "max_groups": 3,
    }
    return dp.PrivateTable(source, **{**given, **changed})


def opened(table=None, budget=None, ledger=None, **tables):
    table = private(pa.table(ROWS)) if table is None else table
    budget = dp.ApproxDP(10**6, 1e-6) if budget is None else budget
    ledger = dp.Ledger(key=KEY) if ledger is None else ledger
    return dp.Session({"visits": table, **tables}, budget=budget, ledger=ledger)


def counts(session, **spend):
    answer = session.sql(COUNT, **(spend or {"rho": 10**5}))
    return dict(zip(answer["ward"], map(round, answer["n"]), strict=True))


def sources(folder: Path):
    table = pa.table(ROWS)
    pq.write_table(table, folder / "one.parquet")
    (folder / "parts").mkdir()
    pq.write_table(table.slice(0, 900), folder / "parts" / "a.parquet")
    pq.write_table(table.slice(900), folder / "parts" / "b.parquet")
    lines = ["who,ward,cost,day"] + [
        ",".join(map(str, row)) for row in zip(*ROWS.values(), strict=True)
    ]
    (folder / "one.csv").write_text("\ufeff" + "\n".join(lines))
    (folder / "one.tsv").write_text("\n".join(lines).replace(",", "\t"))
    with duckdb.connect(folder / "clinic.db") as database:
        database.register("given", table)
        database.execute("CREATE TABLE visits AS FROM given")
    kept = duckdb.connect()
    kept.register("given", table)
    kept.execute("CREATE TABLE kept AS FROM given")
    return {
        "parquet": (folder / "one.parquet", None),
        "glob": (str(folder / "parts" / "*.parquet"), {**TYPES}),
        "csv": (folder / "one.csv", {**TYPES, "who": "text"}),
        "tsv": (folder / "one.tsv", {**TYPES, "who": "text"}),
        "arrow": (table, None),
        "pandas": (table.to_pandas(), {**TYPES}),
        "polars": (polars.from_arrow(table), None),
        "duckdb file": (dp.duckdb(folder / "clinic.db").table("visits"), None),
        "duckdb connection": (dp.duckdb(kept).table("kept"), None),
    }


def test_every_source_gives_the_same_answer(tmp_path):
    for name, (source, columns) in sources(tmp_path).items():
        with opened(private(source, columns=columns)) as session:
            assert counts(session) == EXACT, name


def test_a_repeated_question_is_free_also_later_and_elsewhere(tmp_path):
    place = tmp_path / "ledger.db"
    with dp.Ledger(place, key=KEY) as ledger, opened(ledger=ledger) as session:
        first = session.sql(COUNT, epsilon=1)
        again = session.sql("select WARD, count(*) as N from VISITS group by ward", epsilon=1)
        assert again.repeated
        assert again["n"] == first["n"]
        assert session.remaining["clinic"].releases == 1
    with dp.Ledger(place, key=KEY) as ledger, opened(ledger=ledger) as session:
        later = session.sql(COUNT, epsilon=1)
        assert (later.repeated, later["n"]) == (True, first["n"])
        assert not session.sql(COUNT, epsilon=2).repeated


def test_other_metadata_make_another_question():
    ledger = dp.Ledger(key=KEY)
    with opened(ledger=ledger) as session:
        session.sql(COUNT, epsilon=1)
    for changed in ({"max_rows": 11}, {"version": "2025"}, {"keys": {"ward": ["A", "B"]}}):
        with opened(private(pa.table(ROWS), **changed), ledger=ledger) as session:
            assert not session.sql(COUNT, epsilon=1).repeated


@pytest.mark.parametrize(
    ("budget", "spend", "spent"),
    [
        (dp.PureDP(1), {"epsilon": 0.25}, {"epsilon": Fraction(3, 4)}),
        (dp.ZCDP(1), {"rho": 0.25}, {"rho": Fraction(3, 4)}),
    ],
)
def test_prices_are_what_was_asked(budget, spend, spent):
    with opened(budget=budget) as session:
        session.sql(COUNT, **spend)
        left = session.remaining["clinic"].remaining
        for name, amount in spent.items():
            assert float(left[name]) == pytest.approx(float(amount), rel=1e-9)
            assert left[name] >= amount


def test_under_an_approximate_budget_epsilon_is_that_of_the_answer_alone():
    with opened(budget=dp.ApproxDP(3, 1e-6)) as session:
        answer = session.sql(COUNT, epsilon=1)
        assert answer.cost.epsilon is None
        assert 0.02 < answer.cost.rho < 0.024
        told = session.explain(COUNT, epsilon=1)
        assert told.guarantee.startswith("alone it is (")
        largest = session.remaining["clinic"].largest_epsilon
        assert not session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=largest * 0.999).repeated
        with pytest.raises(dp.BudgetError):
            session.sql("SELECT SUM(cost) AS s FROM visits", epsilon=0.5)


def test_an_error_can_be_bought():
    with opened(budget=dp.ZCDP(10**4)) as session:
        answer = session.sql("SELECT COUNT(*) AS n FROM visits", error={"n": 30})
        low, high = answer.interval_of("n", 0.95)
        assert 29 < (high - low)[0] / 2 <= 30
        with pytest.raises(dp.ParameterError, match="known beforehand"):
            session.sql("SELECT AVG(cost) AS a FROM visits", error={"a": 3})
        with pytest.raises(dp.ParameterError, match="the question has n"):
            session.sql("SELECT COUNT(*) AS n FROM visits", error={"m": 3})


def test_explain_reads_nothing_and_spends_nothing(monkeypatch):
    with opened() as session:

        def touched(*_):
            raise AssertionError("the engine was asked")

        monkeypatch.setattr(DuckDB, "snapshot", touched)
        told = session.explain(
            "SELECT ward, COUNT(*) AS n, AVG(cost) AS a, COUNT(DISTINCT day) AS d FROM visits "
            "WHERE cost > 1 GROUP BY ward HAVING COUNT(*) > 3 ORDER BY n",
            epsilon=1,
        )
        assert session.remaining["clinic"].releases == 0
    assert [column.name for column in told.columns] == ["n", "a", "d"]
    assert "discrete Gaussian" in told.columns[0].noise
    made = [line.split()[5] for line in told.statements[:-2]]
    assert made == ["deniable_counts", "deniable_heavy", "deniable_pairs"]
    assert len(told.statements) == 5
    assert "n" in told.to_json()
    assert "cost" in str(told)


def test_a_declared_size_lets_explain_foresee_means():
    with opened(private(pa.table(ROWS), size=2_000_000)) as session:
        told = session.explain("SELECT ward, AVG(cost) AS a FROM visits GROUP BY ward", epsilon=1)
        assert 0 < told.columns[0].half_width < 1
        assert "666,667 rows" in str(told.columns[0])


def test_the_builder_asks_what_sql_asks():
    with opened() as session:
        built = (
            session.table("visits")
            .where("cost >= 10")
            .group_by("ward")
            .agg(n=dp.count(), s=dp.total("cost"), m=dp.mean("cost"), v=dp.variance("cost"))
            .having("COUNT(*) > 5")
            .order_by("n DESC")
            .limit(2)
        )
        text = (
            "SELECT ward, COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS m, VAR_SAMP(cost) AS v "
            "FROM visits WHERE cost >= 10 GROUP BY ward HAVING COUNT(*) > 5 ORDER BY n DESC LIMIT 2"
        )
        first = session.sql(text, epsilon=100)
        again = built.release(epsilon=100)
        assert again.repeated
        assert again.data == first.data
        assert len(again) == 2
        for wrong in (
            lambda: session.table("visits").release(epsilon=1),
            lambda: session.table("visits").agg(n="COUNT(*)"),
            lambda: session.table("visits").where("cost > ; DROP TABLE visits"),
            lambda: session.table("nothing"),
            lambda: (
                session.table("visits").agg(n=dp.total("cost) FROM visits --")).release(epsilon=1)
            ),
        ):
            with pytest.raises(dp.DeniableError):
                wrong()


def test_the_builder_has_the_quantiles_of_sql():
    with opened() as session:
        built = session.table("visits").agg(
            m=dp.median("cost"),
            q=dp.quantile("cost", 0.25),
            p=dp.quantile("cost + 1", Fraction(999, 1000)),
            low=dp.minimum("cost"),
            high=dp.maximum("cost").where("ward = 'A'"),
        )
        text = (
            "SELECT MEDIAN(cost) AS m, QUANTILE_CONT(cost, 0.25) AS q, "
            "QUANTILE_CONT(cost + 1, 0.999) AS p, MIN(cost) AS low, "
            "MAX(cost) FILTER (WHERE ward = 'A') AS high FROM visits"
        )
        first = session.sql(text, epsilon=100)
        again = built.release(epsilon=100)
        assert again.repeated
        assert again.data == first.data
        ((low, q, m, high),) = zip(
            *(again[name] for name in ("low", "q", "m", "high")), strict=True
        )
        assert 0 <= low < q < m < high <= 100


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0"), (1, "1"), (1.0, "1"), (0.5, "0.5"), (1e-6, "0.000001"), (Decimal("0.10"), "0.1")],
    ids=str,
)
def test_shares_are_written_as_they_are(share, text):
    assert dp.quantile("cost", share).sql == f"QUANTILE_CONT(cost, {text})"


@pytest.mark.parametrize(
    "share", [-0.1, 1.1, 1e-7, Fraction(1, 3), math.nan, "0.5", True, None], ids=str
)
def test_other_shares_are_refused(share):
    with pytest.raises((dp.ParameterError, dp.errors.ParameterTypeError), match="share"):
        dp.quantile("cost", share)


@pytest.mark.parametrize("make", [dp.median, dp.minimum, dp.maximum, lambda x: dp.quantile(x, 0.5)])
@pytest.mark.parametrize("wrong", ["", "cost) FROM visits --", None, 5], ids=str)
def test_quantiles_take_one_expression(make, wrong):
    with pytest.raises((dp.QueryError, dp.errors.ParameterTypeError)):
        make(wrong)


def test_builders_join_count_distinct_and_filter():
    wards = dp.PublicTable(pa.table({"ward": ["A", "B", "C"], "city": ["X", "X", "Y"]}))
    with opened(wards=wards) as session:
        answer = (
            session.table("visits")
            .join("wards", "visits.ward = wards.ward")
            .group_by("city")
            .agg(
                people=dp.count_distinct("who"),
                dear=dp.count().where("cost > 50"),
                sd=dp.stddev("cost"),
            )
            .keys(city=["X", "Y"])
            .bounds(cost=(0, 100))
            .release(rho=10**5)
        )
        assert [round(n) for n in answer["people"]] == [200, 200]
        assert sum(map(round, answer["dear"])) == 980


def test_a_unit_replaced_costs_twice_the_noise():
    table = private(pa.table(ROWS), relation="replace")
    budget = dp.Budget(dp.ZCDP(10), relation="replace")
    with opened(table, budget) as session, opened(budget=dp.ZCDP(10)) as other:
        twice = session.explain("SELECT COUNT(*) AS n FROM visits", rho=1).columns[0].half_width
        once = other.explain("SELECT COUNT(*) AS n FROM visits", rho=1).columns[0].half_width
    assert twice == pytest.approx(2 * once, rel=1e-3)
    with pytest.raises(dp.ParameterError, match="relation"):
        opened(table, dp.ZCDP(1))


def test_rows_as_units_need_no_bound():
    table = dp.PrivateTable(
        pa.table(ROWS),
        unit=dp.ROW,
        population="rows",
        bounds={"cost": (0, 100)},
        keys={"ward": list("ABC")},
    )
    with opened(table) as session:
        assert counts(session) == EXACT
        told = session.explain("SELECT COUNT(*) AS n FROM visits", rho=0.5)
        assert told.contributions == "is one row"
        assert told.columns[0].half_width == pytest.approx(1.96, abs=0.01)


def test_groups_nobody_declared_are_chosen_and_single_units_hidden():
    rows = {"who": [*range(1000), 5000], "town": ["big"] * 1000 + ["tiny"]}
    table = dp.PrivateTable(pa.table(rows), unit="who", population="p", max_rows=1, max_groups=1)
    with opened(table, dp.ApproxDP(3, 1e-6)) as session:
        question = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
        assert session.explain(question, epsilon=1).threshold > 10
        answer = session.sql(question, epsilon=1)
        assert answer["town"] == ["big"]
        assert answer.cost.delta > 0
        again = session.sql(question, epsilon=1)
        assert again.repeated
        assert again["n"] == answer["n"]
    for budget in (dp.PureDP(3), dp.ZCDP(3)):
        with opened(table, budget) as session, pytest.raises(dp.QueryError, match="declare keys"):
            session.sql(
                question, **({"epsilon": 1} if isinstance(budget, dp.PureDP) else {"rho": 1})
            )


def test_where_nobody_is_enough_the_answer_is_empty():
    rows = {"who": list(range(20)), "town": [f"t{i}" for i in range(20)]}
    table = dp.PrivateTable(pa.table(rows), unit="who", population="p", max_rows=1, max_groups=1)
    with opened(table, dp.ApproxDP(3, 1e-6)) as session:
        answer = session.sql("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", epsilon=0.5)
        assert len(answer) == 0
        assert answer.columns == ("town", "n")
        assert str(answer)


def test_tables_of_one_population_share_its_budget_and_other_totals_are_refused():
    ledger = dp.Ledger(key=KEY)
    with opened(budget=dp.PureDP(1), ledger=ledger) as session:
        session.sql(COUNT, epsilon=0.75)
    smaller = private(pa.table(ROWS), max_rows=3)
    with opened(smaller, dp.PureDP(1), ledger) as session, pytest.raises(dp.BudgetError):
        session.sql(COUNT, epsilon=0.75)
    with pytest.raises(dp.BudgetError):
        opened(budget=dp.PureDP(2), ledger=ledger)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: private("nothing.parquet") and opened(private("nothing.parquet")), "no such file"),
        (lambda: private("visits.xlsx"), "must end in"),
        (lambda: private([1, 2]), "must be a path"),
        (lambda: opened(private(pa.table(ROWS), unit="whom")), "did you mean who"),
        (lambda: opened(private(pa.table(ROWS), bounds={"costs": (0, 1)})), "did you mean cost"),
        (lambda: opened(private(pa.table(ROWS), bounds={"ward": (0, 1)})), "not numbers"),
        (lambda: private(pa.table(ROWS), bounds={"cost": (5, 1)}), "must rise"),
        (lambda: private(pa.table(ROWS), max_rows=0), "max_rows"),
        (lambda: opened(private(pa.table(ROWS), keys={"ward": [1, 2]})), "holds text"),
        (lambda: private(pa.table(ROWS), keys={"ward": "ABC"}), "must be a list"),
        (lambda: private(pa.table(ROWS), keys={"ward": [["A"]]}), "are whole numbers"),
        (lambda: private(pa.table(ROWS), unit=None), "must name the column"),
        (lambda: private(pa.table(ROWS), columns={"who": "int"}), "types are"),
        (lambda: dp.Session({}, budget=dp.PureDP(1), ledger=dp.Ledger(key=KEY)), "must map"),
        (lambda: opened(budget=1.0), "must be a guarantee"),
        (
            lambda: dp.Session({"v": private(pa.table(ROWS))}, budget=dp.PureDP(1), ledger=None),
            "path",
        ),
        (lambda: opened(**{"bad name": private(pa.table(ROWS))}), "are words"),
        (lambda: dp.duckdb("nothing.db"), "no such file"),
    ],
)
def test_bad_tables_and_sessions_are_refused(make, says):
    with pytest.raises(dp.DeniableError, match=says):
        make()


def test_files_that_are_no_tables_are_refused_without_quoting_them(tmp_path):
    (tmp_path / "bad.parquet").write_text("secret words")
    with pytest.raises(dp.EngineError) as caught:
        opened(private(tmp_path / "bad.parquet"))
    assert "secret" not in str(caught.value)
    (tmp_path / "bad.csv").write_text("who,ward\n1,A\n")
    with pytest.raises(dp.ParameterError, match="declare names and types"):
        opened(private(tmp_path / "bad.csv"))


def test_an_engine_that_fails_is_charged_and_says_nothing(monkeypatch):
    with opened(budget=dp.PureDP(1)) as session:

        def fails(*_):
            raise RuntimeError("row 17 of Mrs Smith")

        with monkeypatch.context() as patched:
            patched.setattr(DuckDB, "snapshot", fails)
            with pytest.raises(dp.ReleaseFailedError) as caught:
                session.sql(COUNT, epsilon=0.5)
        assert "Smith" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert session.remaining["clinic"].remaining["epsilon"] == Fraction(1, 2)


SLOW = """
    import sys, pyarrow as pa, deniable as dp
    n = 3_000_000
    table = pa.table({"who": pa.array(range(n)), "x": pa.array(range(n))})
    private = dp.PrivateTable(
        table, unit="who", population="p", bounds={"x": (0, 10)}, max_rows=1, cap_rows=1
    )
    ledger = dp.Ledger(sys.argv[1], key=bytes(32))
    session = dp.Session({"t": private}, budget=dp.PureDP(10), ledger=ledger)
    print("ready", flush=True)
    join = "FROM t AS a JOIN t AS b ON a.who = b.who"
    session.sql(f"SELECT COUNT(*) AS n, SUM(a.x * 2) AS s {join}", epsilon=1)
    print("done", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_dies_in_a_question_leaves_the_ledger_right(tmp_path, how):
    place = tmp_path / "ledger.db"
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW), str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout.readline() == b"ready\n"
    deadline = time.monotonic() + 30
    with dp.Ledger(place, key=KEY) as ledger:
        while ledger.balance("p").releases == 0 and time.monotonic() < deadline:
            time.sleep(0.005)
    os.kill(child.pid, how)
    child.stdout.read()
    child.stdout.close()
    child.wait()
    with dp.Ledger(place, key=KEY) as ledger:
        assert ledger.balance("p").remaining["epsilon"] == 9
        assert verify(ledger, "p").reservations == 1


def test_answers_go_anywhere(tmp_path):
    with opened() as session:
        answer = session.sql(COUNT, rho=100)
        total = session.sql("SELECT COUNT(*) AS n FROM visits", rho=100)
        dates = session.sql(
            "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits "
            "GROUP BY month ORDER BY 1",
            epsilon=50,
        )
    assert answer.to_pandas()["ward"].tolist() == ["A", "B", "C"]
    assert answer.to_polars().columns == ["ward", "n"]
    assert answer.to_arrow().num_rows == 3
    assert '"n_low"' in answer.to_json()
    assert answer.to_csv().splitlines()[0] == "ward,n,n_low,n_high"
    assert "<table>" in answer._repr_html_()
    assert "±" in str(answer)
    for made in (answer, total, dates):
        assert made.plot(tmp_path / "a.png").stat().st_size > 1000
    with pytest.raises(dp.ParameterError, match="choose one of n"):
        answer.plot(tmp_path / "a.png", column="ward")
    with pytest.raises(dp.ParameterError, match="the answer has"):
        answer["nothing"]
    parts, whole = answer.summing_to(total)
    assert sum(parts["n"]) == pytest.approx(whole["n"][0])
    narrow, wide = (each.interval_of("n", 0.95, "noise") for each in (parts, answer))
    assert (narrow[1] - narrow[0] < wide[1] - wide[0]).all()
    mended = answer.consistent(non_negative=True, integer=True)
    assert all(n == int(n) >= 0 for n in mended["n"])
    assert mended.labels == ("non-negative", "integer")


def test_hostile_names_and_values_do_no_harm(tmp_path):
    rows = {
        "who": list(range(300)) * 2,
        "ward": ["[/red]$\\x$\x1b[31m"] * 300 + ["'; DROP TABLE x; --"] * 300,
    }
    table = dp.PrivateTable(
        pa.table(rows),
        unit="who",
        population="p",
        max_rows=2,
        keys={"ward": list(set(rows["ward"]))},
    )
    with opened(table) as session:
        answer = session.sql(
            'SELECT ward AS "a""b[/red]", COUNT(*) AS n FROM visits GROUP BY ward', rho=9999
        )
    assert [round(n) for n in answer["n"]] == [300, 300]
    assert "\x1b" not in str(answer)
    assert answer.plot(tmp_path / "a.png").exists()


def test_noise_differs_and_is_exact_integers_in_steps():
    with opened() as session:
        drawn = {
            session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE cost > {-i}", rho=0.001)["n"][0]
            for i in range(1, 6)
        }
    assert len(drawn) == 5
    assert all((n * 65536) == int(n * 65536) for n in drawn)
    assert np.std(list(drawn)) > 1


def test_a_guarantee_is_what_the_answer_has_by_itself():
    rows = pa.table({"u": list(range(400)), "g": ["a", "b"] * 200})
    table = dp.PrivateTable(rows, unit="u", population="p", max_rows=1, max_groups=1)
    budget = dp.ApproxDP(20, 1e-6)
    with dp.Session({"t": table}, budget=budget, ledger=dp.Ledger()) as session:
        for guarantee in (dp.ZCDP(0.01), dp.ApproxDP(0.5, 1e-9), dp.PureDP(0.5)):
            given = {"guarantee": guarantee}
            answer = session.sql("SELECT COUNT(*) AS n FROM t", **given)
            entry = [row for row in session.history["p"] if row.number == answer.number]
            assert loss_from_json(entry[0].data["loss"]).satisfies(guarantee)
            with pytest.raises(dp.QueryError, match="keys="):  # a δ that it does not have
                session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", **given)
            with pytest.raises(dp.ParameterError, match="guarantee"):
                dp.synthesize(session, "t", discover=["g"], method="independent", **given)


@pytest.mark.parametrize(
    ("budget", "price"),
    [
        (dp.ZCDP(0.001), {"rho": 0.001}),
        (dp.ZCDP(1e-7), {"rho": 1e-7}),
        (dp.PureDP(0.1), {"epsilon": 0.1}),
    ],
)
def test_all_that_is_left_can_be_spent_though_bounds_are_estimated(budget, price):
    units = 400_000 if price.get("rho", 1) < 1e-6 else 4_000  # enough to be seen at this price
    rows = pa.table({"u": np.arange(2 * units) // 2, "g": np.array(["a", "b"] * units)})
    table = dp.PrivateTable(rows, unit="u", population="p")
    question = "SELECT COUNT(*) AS n, COUNT(DISTINCT g) AS m FROM t"
    with dp.Session({"t": table}, budget=budget, ledger=dp.Ledger()) as session:
        session.explain(question, **price)
        assert len(session.sql(question, **price)) == 1
