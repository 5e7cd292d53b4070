"""A pattern of files: one person's file decides about that person's rows and nothing else."""

import random
import shutil
from datetime import date
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.parquet
import pytest

import deniable as dp
from deniable.engines.pinned import Pinned
from values.folders import COLUMNS, Folder
from values.oracle import Breach, ask, moved, outcome

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM t",
    "SELECT COUNT(*) AS n, SUM(x) AS x FROM t WHERE x > 0",
    "SELECT s, COUNT(*) AS n, SUM(i) AS i FROM t GROUP BY s",
    "SELECT day, COUNT(DISTINCT u) AS n FROM t GROUP BY day",
    "SELECT AVG(x) AS x FROM t WHERE b AND d > DATE '2000-01-01'",
    "SELECT COUNT(*) AS n FROM (SELECT u, MIN(s) AS s FROM t GROUP BY u) AS a WHERE s IS NULL",
    "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.u = b.u WHERE a.i < b.i",
    "SELECT MEDIAN(x) AS m FROM t",
]
DAYS = [date(2024, 1, 1), date(2024, 1, 2), date(2020, 1, 1)]
FOLDERS, SOAKED = 25, 1_000


def session_of(pattern: str) -> dp.Session:
    table = dp.PrivateTable(
        pattern,
        unit="u",
        population="p",
        columns=COLUMNS,
        bounds={"x": (-10, 10), "i": (0, 50)},
        keys={"s": ["a", "b", "1"], "day": DAYS},
        max_rows=3,
        max_groups=2,
    )
    return dp.Session({"t": table}, budget=dp.ApproxDP(100, 1e-6), ledger=dp.Ledger())


def hostile(luck: random.Random, place: Path) -> Folder:
    folder = Folder(place, luck.choice(("parquet", "csv")), luck.random() < 0.3)
    folder.place.mkdir()
    for number in range(luck.randrange(1, 7)):
        units = [str(10 * number + each) for each in range(5)]
        folder.write(luck, f"m{number}", units, rows=luck.randrange(12))
    return folder


def check_folder(luck: random.Random, place: Path) -> float:
    """One folder, with and without one more person, whose files come first, last or between."""
    folder = hostile(luck, place)
    name = luck.choice(("a", "m3x", "z"))
    others = set(place.rglob("*"))
    with session_of(folder.pattern) as session:
        sql = luck.choice(QUESTIONS)
        refusal = outcome(lambda: ask(session, sql, {}, {"epsilon": 1}))
        question = None if refusal[0] != "answered" else ask(session, sql, {}, {"epsilon": 1})
        before = None if question is None else question.exact(session)
        for number in range(luck.randrange(1, 3)):
            folder.write(luck, f"{name}{number}", ["999"], rows=luck.randrange(1, 6))
        assert refusal == outcome(lambda: ask(session, sql, {}, {"epsilon": 1}))
        with session_of(folder.pattern) as other:
            assert refusal == outcome(lambda: ask(other, sql, {}, {"epsilon": 1}))
            worst = 0.0 if question is None else moved(before, question.exact(other), 1)
    assert set(place.rglob("*")) >= others
    shutil.rmtree(place)
    return worst


def run(folders: int, seed: str, place: Path) -> float:
    luck, worst = random.Random(seed), 0.0
    for number in range(folders):
        worst = max(worst, check_folder(luck, place / str(number)))
    print(f"{folders} folders, worst movement {worst:.3f} of what is charged")
    return worst


def test_one_persons_file_moves_no_more_than_is_charged(tmp_path):
    assert 0.5 < run(FOLDERS, "folders", tmp_path) <= 1


@pytest.mark.soak
def test_one_persons_file_moves_no_more_than_is_charged_in_many_folders(tmp_path):
    assert 0.5 < run(SOAKED, "many folders", tmp_path) <= 1


def test_reading_all_files_at_once_is_caught(tmp_path, monkeypatch):
    """As it was: the engine makes one table of what the pattern finds."""

    def at_once(self, connection, _texts, _link=None, _damaged=frozenset()):
        kinds = {"text": "VARCHAR", "number": "DOUBLE", "integer": "BIGINT"}
        columns = ", ".join(
            f'TRY_CAST("{name}" AS {kinds.get(kind, kind.upper())}) AS "{name}"'
            for name, kind in COLUMNS.items()
            if name != "day"
        )
        read = f"SELECT {columns}, NULL::DATE AS day FROM read_parquet('{self.source.place}')"
        connection.execute(f'CREATE TEMP TABLE "{self.name}" AS {read}')

    monkeypatch.setattr(Pinned, "pin", at_once)
    place = tmp_path / "w"
    place.mkdir()
    for number in range(20):
        table = pyarrow.table({"u": [str(number)] * 3, "x": [0.4, 0.5, 0.6], "i": [1, 2, 3],
                               "s": ["a"] * 3, "d": pyarrow.array([None] * 3, pyarrow.date32()),
                               "b": [True] * 3})  # fmt: skip
        pyarrow.parquet.write_table(table, place / f"m{number}.parquet")
    with session_of(f"{place}/*.parquet") as session:
        question = ask(session, QUESTIONS[1], {}, {"epsilon": 1})
        before = question.exact(session)
        whole = table.set_column(1, "x", pyarrow.array([4, 5, 6]))
        pyarrow.parquet.write_table(whole.set_column(0, "u", [["999"] * 3]), place / "a.parquet")
        with pytest.raises((Breach, duckdb.Error)):
            moved(before, question.exact(session), 1)
