"""Questions that a new user would ask of each of three public tables, nothing declared.

The path is theirs: `deniable init` drafts the metadata file of a CSV, with the unit alone, and the
questions go through the session that `deniable query` opens. Some name the keys of their groups, as
`--keys` does, and some join a small public table. Beside each number stands what plain DuckDB says
of the same rows. A question may be refused, or not be answered: then by a sentence.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from typer.testing import CliRunner

import deniable as dp
from deniable.cli.app import app
from deniable.cli.metadata import read_metadata


@dataclass(frozen=True)
class Asked:
    """A question, and the keys that are named with it.

    `plain` is what DuckDB is asked beside it, where that is not the same.
    """

    sql: str
    plain: str = ""
    keys: dict[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Newcomer:
    """A table, whose its rows are, and what is asked of it."""

    name: str
    unit: str
    questions: tuple[Asked, ...]
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    public: str = ""
    """The lines of a small public table, called `names`."""


def _asked(*texts: str | Asked) -> tuple[Asked, ...]:
    return tuple(Asked(each) if isinstance(each, str) else each for each in texts)


_PER_PATIENT = "SELECT patient_nbr, COUNT(*) AS visits FROM t GROUP BY patient_nbr"
_PER_CUSTOMER = "SELECT customer_id, COUNT(*) AS orders FROM t GROUP BY customer_id"
_PER_PLANE = "SELECT tailnum, COUNT(*) AS flights FROM t GROUP BY tailnum"

NEWCOMERS = (
    Newcomer(
        "diabetes130_encounters",
        "patient_nbr",
        _asked(
            "SELECT COUNT(*) AS n FROM t",
            "SELECT race, COUNT(*) AS n FROM t GROUP BY race",
            "SELECT COUNT(DISTINCT patient_nbr) AS n FROM t",
            "SELECT COUNT(*) AS n FROM t WHERE age = '[70-80)' AND insulin <> 'No'",
            "SELECT readmitted, COUNT(*) AS n, COUNT(DISTINCT patient_nbr) AS p "
            "FROM t GROUP BY readmitted",
            "SELECT gender, AVG(time_in_hospital) AS stay FROM t GROUP BY gender",
            "SELECT SUM(num_procedures) AS s, VARIANCE(num_medications) AS v FROM t",
            "SELECT MEDIAN(num_medications) AS m FROM t",
            f"SELECT AVG(LEAST(visits, 40)) AS mean FROM ({_PER_PATIENT}) AS each",  # noqa: S608  (our own words)
            f"SELECT visits, COUNT(*) AS n FROM ({_PER_PATIENT}) AS each GROUP BY visits",  # noqa: S608  (our own words)
            "SELECT MIN(num_medications) AS lo, MAX(num_medications) AS hi FROM t",
            "SELECT COUNT(DISTINCT medical_specialty) AS n FROM t",
            Asked(
                "SELECT admitted, COUNT(*) AS n, AVG(num_lab_procedures) AS labs "
                "FROM t JOIN names USING (admission_type_id) GROUP BY admitted",
                keys={"admitted": ("Emergency", "Urgent", "Elective")},
            ),
            Asked(
                "SELECT gender, readmitted, COUNT(*) AS n FROM t "
                "WHERE gender <> 'Unknown/Invalid' GROUP BY ROLLUP (gender, readmitted)",
                keys={"gender": ("Female", "Male"), "readmitted": ("NO", "<30", ">30")},
            ),
            Asked(
                "SELECT race, SUM(number_inpatient) AS s, STDDEV(time_in_hospital) AS d "
                "FROM t GROUP BY race",
                keys={"race": ("Caucasian", "AfricanAmerican", "Hispanic", "Asian", "Other")},
            ),
        ),
        {
            "time_in_hospital": (1, 14),
            "num_procedures": (0, 6),
            "num_medications": (0, 81),
            "num_lab_procedures": (0, 140),
            "number_inpatient": (0, 25),
        },
        "admission_type_id,admitted\n1,Emergency\n2,Urgent\n3,Elective\n4,Newborn\n",
    ),
    Newcomer(
        "cdnow_transactions",
        "customer_id",
        _asked(
            "SELECT COUNT(*) AS n FROM t",
            "SELECT COUNT(DISTINCT customer_id) AS n FROM t WHERE date >= 19980101",
            "SELECT date // 100 AS month, COUNT(*) AS n FROM t GROUP BY date // 100",
            "SELECT SUM(quantity) AS s FROM t",
            "SELECT SUM(amount) AS s, AVG(amount) AS m FROM t",
            "SELECT VARIANCE(quantity) AS v, STDDEV(amount) AS d FROM t",
            "SELECT MEDIAN(amount) AS m, QUANTILE_CONT(amount, 0.9) AS q FROM t",
            Asked(
                "SELECT quantity, COUNT(*) AS n FROM t GROUP BY quantity ORDER BY n DESC LIMIT 5",
                "SELECT quantity, COUNT(*) AS n FROM t GROUP BY quantity",
            ),
            f"SELECT COUNT(*) AS n FROM ({_PER_CUSTOMER}) AS each WHERE orders >= 10",  # noqa: S608  (our own words)
            f"SELECT SUM(LEAST(orders, 20)) AS s FROM ({_PER_CUSTOMER}) AS each",  # noqa: S608  (our own words)
            "SELECT MIN(amount) AS lo, MAX(amount) AS hi FROM t WHERE date < 19970401",
            "SELECT COUNT(DISTINCT date) AS days FROM t",
            Asked(
                "SELECT packed, COUNT(*) AS n, AVG(amount) AS m FROM t JOIN names USING (quantity) "
                "GROUP BY packed",
                keys={"packed": ("letter", "parcel")},
            ),
            Asked(
                "SELECT date // 10000 AS year, COUNT(*) AS n, SUM(amount) AS s "
                "FROM t GROUP BY ROLLUP (date // 10000)",
                keys={"year": (1997, 1998)},
            ),
            Asked(
                "SELECT date // 100 AS month, SUM(amount) AS s, MEDIAN(amount) AS m "
                "FROM t WHERE date < 19970401 GROUP BY date // 100",
                keys={"month": (199701, 199702, 199703)},
            ),
        ),
        {"quantity": (1, 99), "amount": (0, 1300)},
        "quantity,packed\n1,letter\n2,letter\n3,parcel\n4,parcel\n5,parcel\n",
    ),
    Newcomer(
        "nycflights13_flights",
        "tailnum",
        _asked(
            "SELECT COUNT(*) AS n FROM t",
            "SELECT carrier, COUNT(*) AS n FROM t GROUP BY carrier",
            "SELECT origin, COUNT(*) AS n, COUNT(DISTINCT tailnum) AS planes "
            "FROM t GROUP BY origin",
            "SELECT COUNT(*) AS n FROM t WHERE dep_delay > 60",
            "SELECT origin, AVG(dep_delay) AS late FROM t GROUP BY origin",
            "SELECT SUM(distance) AS s FROM t WHERE month = 7",
            "SELECT VARIANCE(arr_delay) AS v FROM t",
            "SELECT MEDIAN(air_time) AS m FROM t",
            "SELECT month, COUNT(*) AS n, SUM(CASE WHEN dep_delay > 15 THEN 1 ELSE 0 END) AS late "
            "FROM t GROUP BY month",
            f"SELECT AVG(LEAST(flights, 600)) AS mean FROM ({_PER_PLANE}) AS each",  # noqa: S608  (our own words)
            "SELECT MIN(distance) AS lo, MAX(distance) AS hi FROM t",
            "SELECT COUNT(DISTINCT dest) AS n FROM t",
            Asked(
                "SELECT place, COUNT(*) AS n, AVG(air_time) AS m FROM t JOIN names USING (origin) "
                "GROUP BY place",
                keys={"place": ("New Jersey", "New York")},
            ),
            Asked(
                "SELECT origin, COUNT(*) AS n, SUM(distance) AS s FROM t GROUP BY ROLLUP (origin)",
                keys={"origin": ("EWR", "JFK", "LGA")},
            ),
            Asked(
                "SELECT origin, MEDIAN(dep_delay) AS m, STDDEV(air_time) AS d "
                "FROM t WHERE carrier = 'UA' GROUP BY origin",
                keys={"origin": ("EWR", "JFK", "LGA")},
            ),
        ),
        {
            "dep_delay": (-60, 1440),
            "arr_delay": (-120, 1440),
            "distance": (0, 5000),
            "air_time": (0, 720),
        },
        "origin,place\nEWR,New Jersey\nJFK,New York\nLGA,New York\n",
    ),
)


@dataclass(frozen=True)
class Told:
    """One number with its interval, beside the plain one; or a sentence in place of numbers."""

    table: str
    question: str
    epsilon: float
    column: str = ""
    key: tuple[Any, ...] = ()
    value: float = 0.0
    low: float = 0.0
    high: float = 0.0
    truth: float = 0.0
    sentence: str = ""


def asked(folder: Path, work: Path, epsilons: Sequence[float], *, bounded: bool) -> Iterator[Told]:
    """All questions at these prices, with columns' bounds declared or not; each in a new ledger."""
    for each in NEWCOMERS:
        packed = folder / f"{each.name}.csv.gz"
        if packed.exists():
            file = _drafted(each, packed, work, bounded=bounded)
            plain = _Plain(each, work / f"{each.name}.csv", bounded=bounded)
            for question in each.questions:
                for epsilon in epsilons:
                    yield from _told(each, question, epsilon, file, plain)


def _drafted(each: Newcomer, packed: Path, work: Path, *, bounded: bool) -> Path:
    """The metadata file, as the command drafts it; with `bounded`, with bounds of columns."""
    source = work / f"{each.name}.csv"
    if not source.exists():
        with gzip.open(packed) as read, source.open("wb") as write:
            shutil.copyfileobj(read, write)
    file = work / f"{each.name}.toml"
    command = ["init", str(source), "--unit", each.unit, "--budget", "100000", "--delta", "1e-6"]
    made = CliRunner().invoke(app, [*command, "--output", str(file), "--force"])
    if made.exit_code:
        raise RuntimeError(made.output)
    text = file.read_text().replace(f"[tables.{each.name}", "[tables.t")
    for column, (low, high) in each.bounds.items() if bounded else ():
        text = text.replace(f"# {column} = [low, high]", f"{column} = [{low}, {high}]")
    names = work / f"{each.name}_names.csv"
    names.write_text(each.public)
    text += f'\n[tables.names]\nsource = "{names.name}"\npublic = true\n'
    joined = each.public.split(",", 1)[0]
    kind = "text" if joined == "origin" else "integer"
    other = each.public.split("\n", 1)[0].split(",")[1]
    text += f'columns = {{ {joined} = "{kind}", {other} = "text" }}\n'
    file.write_text(text)
    return file


class _Plain:
    """Plain SQL on the rows that have a unit, values clamped where bounds are declared."""

    def __init__(self, each: Newcomer, source: Path, *, bounded: bool) -> None:
        clamped = "".join(
            f", CASE WHEN {name} IS NULL THEN NULL ELSE LEAST(GREATEST({name}, {low}), {high}) END "
            f"AS {name}"
            for name, (low, high) in (each.bounds.items() if bounded else ())
        )
        without = f" EXCLUDE ({', '.join(each.bounds)})" if clamped else ""
        self._connection = duckdb.connect()
        self._connection.execute(
            f"CREATE TABLE t AS SELECT *{without}{clamped} FROM read_csv('{source}', "  # noqa: S608
            f"sample_size=-1, types={{'{each.unit}': 'VARCHAR'}}) WHERE {each.unit} IS NOT NULL"
        )
        names = source.with_name(f"{each.name}_names.csv")
        self._connection.execute(f"CREATE TABLE names AS SELECT * FROM read_csv('{names}')")  # noqa: S608

    def rows(self, sql: str, keys: Sequence[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The answer, by its groups."""
        found = self._connection.execute(sql)
        names = [str(column[0]) for column in found.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        return {tuple(str(row[key]) for key in keys): row for row in rows}


def _told(
    each: Newcomer, question: Asked, epsilon: float, file: Path, plain: _Plain
) -> Iterator[Told]:
    start = (each.name, question.sql, epsilon)
    with dp.Ledger() as ledger, read_metadata(file).session(ledger=ledger) as session:
        try:
            answer = session.sql(question.sql, epsilon=epsilon, keys=question.keys or None)
        except (dp.QueryError, dp.NotAnsweredError, dp.ParameterError) as refused:
            yield Told(*start, sentence=str(refused))
            return
    numbers = [name for name in answer.columns if answer.interval_of(name) is not None]
    keys = [name for name in answer.columns if name not in numbers]
    truth = plain.rows(question.plain or question.sql, keys)
    if not len(answer):
        yield Told(*start, sentence="; ".join(answer.labels))
    for row in answer.intervals().to_pylist():
        key = tuple(str(row[name]) for name in keys)
        for name in numbers:
            exact = truth[key][name] if key in truth else 0
            if exact is not None:
                ends = row[f"{name}_low"], row[f"{name}_high"]
                yield Told(*start, name, key, row[name], *ends, float(exact))
