"""Patterns find plain files; links, depth and what cannot be looked at change nothing."""

import glob
import os
import random
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import deniable as dp
from deniable.engines import linked
from deniable.engines.found import Folders, Found, found

DEPTH = 1200  # beyond what a function may call itself
COLUMNS = {"u": "integer", "x": "number"}


def people(first, many):
    return pa.table({"u": list(range(first, first + many)), "x": [1.0] * many})


def opened(source, **declared):
    table = dp.PrivateTable(source, unit="u", population="p", max_rows=10, **declared)
    return dp.Session({"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger())


def counted(source, **declared):
    with opened(source, **declared) as session:
        return round(session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1e6)["n"][0])


@pytest.mark.parametrize("seed", range(20))
def test_what_is_found_is_what_glob_finds_where_there_are_no_links(tmp_path, seed):
    rng = random.Random(seed)
    folders = [tmp_path]
    for _ in range(rng.randrange(12)):
        folders.append(rng.choice(folders) / rng.choice(["a", "day=1", "day=2", ".h", "b c", "[x"]))
        folders[-1].mkdir(exist_ok=True)
    for _ in range(30):
        name = rng.choice(["v.parquet", "w.parquet", ".x.parquet", "v.csv", "é.parquet", "a*b.csv"])
        (rng.choice(folders) / name).touch()
    for pattern in (
        *("*.parquet", "**/*.parquet", "day=*/*.parquet", "*/a/*.parquet", "**/a/**/*.csv", "**"),
        *("[a-c]/*", "**/.*", "?/*.c[!x]v", ".h/*", "a[*]b.csv", "**/[[]x/*.parquet"),
    ):
        wanted = glob.glob(str(tmp_path / pattern), recursive=True)  # noqa: PTH207
        plain = {path for path in wanted if Path(path).is_file()}
        listed = [each.path for each in found(str(tmp_path / pattern))]
        assert listed == sorted(plain), pattern


def with_links(folder):
    """Links to others' files, to nothing, to themselves, and to folders above."""
    mine = folder / "me"
    mine.mkdir()
    for number in range(5):
        (mine / f"copy{number}.parquet").symlink_to(folder / "others.parquet")
    (mine / "long.parquet").symlink_to("x" * 300)
    (mine / "self.parquet").symlink_to(mine / "self.parquet")
    (mine / "nothing.parquet").symlink_to("nowhere")
    (mine / "up").symlink_to("..")
    (mine / "again").symlink_to("..")


def with_a_pipe(folder):
    (folder / "me").mkdir()
    os.mkfifo(folder / "me" / "pipe.parquet")


def with_depth(folder):
    here = folder
    for _ in range(DEPTH):
        here /= "d"
        here.mkdir()


def without_depth(folder):
    """Deepest first: what clears up behind tests goes down by calling itself."""
    for depth in range(DEPTH, 0, -1):
        deep = folder.joinpath(*["d"] * depth)
        if deep.exists():
            deep.rmdir()


@pytest.mark.parametrize("hostile", [with_links, with_a_pipe, with_depth])
@pytest.mark.parametrize("pattern", ["**/*.parquet", "*.parquet", "*/*.parquet"])
def test_one_persons_folder_moves_nobody_else(tmp_path, hostile, pattern):
    parquet.write_table(people(0, 100), tmp_path / "others.parquet")
    before = counted(str(tmp_path / pattern), columns=COLUMNS)
    hostile(tmp_path)
    try:
        assert counted(str(tmp_path / pattern), columns=COLUMNS) == before
    finally:
        without_depth(tmp_path)
    assert before == (0 if pattern.startswith("*/") else 100)


def test_the_fixed_part_of_a_pattern_is_the_owners(tmp_path):
    (tmp_path / "real").mkdir()
    parquet.write_table(people(0, 100), tmp_path / "real" / "v.parquet")
    (tmp_path / "link").symlink_to("real")
    assert counted(str(tmp_path / "link" / "*.parquet"), columns=COLUMNS) == 100


def made(path, first):
    with duckdb.connect(str(path)) as connection:
        rows = people(first, 200_000)
        rows = rows.append_column("y", rows["u"])
        connection.execute("CREATE TABLE t AS FROM rows")


def test_a_database_that_is_written_over_fails_the_question(tmp_path):
    made(tmp_path / "a.db", 0)
    made(tmp_path / "b.db", 1)
    with opened(dp.duckdb(tmp_path / "a.db").table("t")) as session:
        session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        with (tmp_path / "a.db").open("r+b") as file:  # as cp does
            file.write((tmp_path / "b.db").read_bytes())
        with pytest.raises(dp.ReleaseFailedError):
            session.sql("SELECT COUNT(*) AS n FROM t WHERE x > 0", epsilon=1)


def test_a_database_that_another_takes_the_place_of_goes_on(tmp_path):
    made(tmp_path / "a.db", 0)
    made(tmp_path / "b.db", 1)
    with opened(dp.duckdb(tmp_path / "a.db").table("t")) as session:
        shutil.move(tmp_path / "b.db", tmp_path / "a.db")
        found_now = session.sql("SELECT COUNT(*) AS n FROM t WHERE y < 1", epsilon=1e6)["n"][0]
        assert round(found_now) == 1


def test_what_a_table_in_memory_was_made_of_may_change(tmp_path):
    ids, ones = np.arange(1000), np.ones(1000)
    table = pa.table({"u": pa.array(ids), "x": pa.array(ones)})
    feather.write_feather(people(0, 1000), tmp_path / "t.feather", compression="uncompressed")
    mapped = feather.read_table(tmp_path / "t.feather", memory_map=True)
    for source, change in (
        (table, lambda: ids.__setitem__(slice(None), 7)),
        (mapped, lambda: overwritten(tmp_path / "t.feather")),
    ):
        with opened(source) as session:
            change()
            question = "SELECT COUNT(DISTINCT u) AS n FROM t"
            assert round(session.sql(question, epsilon=1e6)["n"][0]) == 1000


def overwritten(path):
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))


@pytest.mark.parametrize("form", ["category", "object", "float64"])
def test_ids_that_pandas_has_rounded_are_refused_however_they_are_held(form):
    ids = [(1 << 53) + number for number in range(100)]
    frame = pd.DataFrame({"u": pd.Series([*map(float, ids), None]).astype(form)})
    with pytest.raises(dp.ParameterError, match="rounds beyond"):
        opened(frame, columns={"u": "integer"})
    plain = pd.DataFrame({"u": pd.Series(ids).astype("category" if form == "category" else object)})
    assert counted(plain, columns={"u": "integer"}) == 100


# What takes the place of a file between the look and the reading


def swapped_for_a_link(folder):
    (folder / "me" / "v.parquet").unlink()
    (folder / "me" / "v.parquet").symlink_to("../others/v.parquet")


def swapped_folder(folder):
    (folder / "me").rename(folder / "away")
    (folder / "me").symlink_to("others")


def swapped_for_a_pipe(folder):
    (folder / "me" / "v.parquet").unlink()
    os.mkfifo(folder / "me" / "v.parquet")


def swapped_for_a_folder(folder):
    (folder / "me" / "v.parquet").unlink()
    (folder / "me" / "v.parquet").mkdir()


SWAPS = [swapped_for_a_link, swapped_folder, swapped_for_a_pipe, swapped_for_a_folder]


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("pattern", ["*/*.parquet", "**/*.parquet"])
@pytest.mark.parametrize("named", [True, False])
def test_what_becomes_a_link_after_the_look_is_not_read(
    tmp_path, monkeypatch, swap, pattern, named
):
    """The files of others would count again, under another name or in another folder."""
    for name, first in (("me", 0), ("others", 1)):
        (tmp_path / name).mkdir()
        rows = pa.table({"u": [first], "x": [float(first)]})
        parquet.write_table(rows, tmp_path / name / "v.parquet")
    opened_file = Found.open

    def after(self):
        if (tmp_path / "me").is_dir() and not (tmp_path / "away").exists():
            swap(tmp_path)
            monkeypatch.setattr(Found, "open", opened_file)
        return opened_file(self)

    monkeypatch.setattr(Found, "open", after)
    if not named:
        monkeypatch.setattr(linked, "_OPEN", tmp_path / "no such names")
    with opened(str(tmp_path / pattern), columns=COLUMNS) as session:
        question = "SELECT COUNT(*) AS n FROM t WHERE x = 1"
        assert round(session.sql(question, epsilon=1e6)["n"][0]) == 1
    held = [each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert not any(str(tmp_path) in str(each) for each in held)


def test_a_look_through_a_folder_that_became_a_link_finds_nothing(tmp_path):
    (tmp_path / "me" / "in").mkdir(parents=True)
    (tmp_path / "others" / "in").mkdir(parents=True)
    (tmp_path / "others" / "in" / "v.parquet").touch()
    folders = Folders(tmp_path)
    assert folders.names(("me",), os.DirEntry.is_dir) == ["in"]
    swapped_folder(tmp_path)
    assert folders.names(("me", "in"), os.DirEntry.is_file) == []
    assert folders.names(("others", "in"), os.DirEntry.is_file) == ["v.parquet"]
    with pytest.raises(OSError, match="me"):
        folders.file(("me", "in", "v.parquet"))
    os.close(folders.file(("others", "in", "v.parquet")))
    folders.close()


def test_a_file_of_several_names_counts_once(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    parquet.write_table(people(0, 100), tmp_path / "a" / "v.parquet")
    for place in ("a/w.parquet", "b/v.parquet", "b/w.parquet"):
        (tmp_path / place).hardlink_to(tmp_path / "a" / "v.parquet")
    assert counted(str(tmp_path / "*" / "*.parquet"), columns=COLUMNS) == 100
    question = "SELECT COUNT(*) AS n FROM t"
    with opened(str(tmp_path / "**" / "*.parquet"), columns=COLUMNS) as session:
        assert round(session.sql(question, epsilon=1e6)["n"][0]) == 100


def test_a_file_in_the_folders_of_two_people_counts_for_both(tmp_path):
    """Else a link would take the rows of its owner away."""
    for number in range(20):
        (tmp_path / f"u={number}").mkdir()
        place = tmp_path / f"u={number}" / "v.parquet"
        parquet.write_table(pa.table({"x": [1.0]}), place)
    (tmp_path / "u=-").mkdir()
    for number in range(20):
        other = tmp_path / f"u={number}" / "v.parquet"
        (tmp_path / "u=-" / f"{number}.parquet").hardlink_to(other)
        (tmp_path / "u=-" / f"{number}-again.parquet").hardlink_to(other)
    declared = {"columns": {"u": "text", "x": "number"}}
    table = dp.PrivateTable(
        f"{tmp_path}/u=*/*.parquet", unit="u", population="p", max_rows=60, cap_rows=60, **declared
    )
    tables = {"t": table}
    with dp.Session(tables, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger()) as session:
        asked = "SELECT COUNT(*) AS n, COUNT(DISTINCT u) AS people FROM t"
        answer = session.sql(asked, epsilon=1e6)
        assert (round(answer["n"][0]), round(answer["people"][0])) == (40, 21)
