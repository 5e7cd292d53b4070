"""Folders that name columns: the pattern's own folders do, and nothing in or below them."""

import csv
import os

import pyarrow as pa
import pytest
from pyarrow import parquet

import deniable as dp
from deniable.engines.files import Files

OTHERS = 20


def write(place, columns):
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.suffix == ".parquet":
        parquet.write_table(pa.table(columns), place)
        return
    with place.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(columns)
        lines.writerows(zip(*columns.values(), strict=True))


def asked(pattern, question="SELECT COUNT(*) AS n, SUM(x) AS s FROM t", **declared):
    given = {
        **{"unit": "person", "columns": {"x": "number", "person": "text"}, "max_rows": 1},
        **declared,
    }
    table = dp.PrivateTable(pattern, population="p", bounds={"x": (0, 10)}, **given)
    tables = {"t": table}
    with dp.Session(tables, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger()) as session:
        answer = session.sql(question, epsilon=1e6)
        return tuple(round(answer[name][0]) for name in answer.columns)


def people(folder, ending="parquet", inner=""):
    for number in range(OTHERS):
        write(folder / f"person=p{number}" / inner / f"x.{ending}", {"x": [8.0]})


# Names of columns


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("name", ["person", "Person", "PERSON", "pErSoN"])
@pytest.mark.parametrize("pattern", ["person", "Person"])
def test_a_column_of_a_file_does_not_take_the_place_of_the_folders(tmp_path, ending, name, pattern):
    for number in range(OTHERS):
        write(tmp_path / f"{pattern}=p{number}" / f"x.{ending}", {"x": [8.0]})
    place = f"{tmp_path}/{pattern}=*/*.{ending}"
    assert asked(place) == (20, 160)
    many = [f"m{number}" for number in range(500)] + [f"p{number % 20}" for number in range(500)]
    write(tmp_path / f"{pattern}=evil" / f"x.{ending}", {name: many, "x": [0.0] * 1_000})
    assert asked(place) == (21, 160)


@pytest.mark.parametrize("value", ["", "a\nb", "\udcff", "=", "x=y", "__HIVE_DEFAULT_PARTITION__"])
def test_whatever_a_folder_is_called_it_is_the_folders_column(tmp_path, value):
    people(tmp_path)
    place = os.fsdecode(os.fsencode(f"{tmp_path}/person={value}"))
    os.mkdir(place)  # noqa: PTH102
    columns = {"person": [f"m{number}" for number in range(1_000)], "x": [0.0] * 1_000}
    parquet.write_table(pa.table(columns), tmp_path / "made.parquet")
    os.rename(tmp_path / "made.parquet", f"{place}/x.parquet")  # noqa: PTH104
    count, total = asked(f"{tmp_path}/person=*/*.parquet")
    assert count in {20, 21}
    assert total == 160


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_columns_are_found_whatever_their_case(tmp_path, ending):
    write(tmp_path / f"a.{ending}", {"Person": ["a", "b"], "X": [1.0, 2.0]})
    write(tmp_path / f"b.{ending}", {"PERSON": ["c"], "x": [4.0]})
    write(tmp_path / f"c.{ending}", {"\u212a": ["d"], "person": ["d"], "x": [1.0]})
    assert asked(f"{tmp_path}/*.{ending}") == (4, 8)
    declared = {"columns": {"PERSON": "text", "x": "number"}}
    assert asked(f"{tmp_path}/a.{ending}", **declared) == (2, 3)
    # A sign of Unicode whose lower case is that of k is another letter to the engine.
    declared = {"columns": {"k": "text", "person": "text", "x": "number"}}
    question = "SELECT COUNT(k) AS n FROM t"
    assert asked(f"{tmp_path}/c.{ending}", question, **declared) == (1,)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("names", [("x", "X"), ("person", "Person"), ("X_1", "x_1")])
def test_a_file_with_two_columns_of_one_name_has_no_rows(tmp_path, ending, names):
    write(tmp_path / f"b.{ending}", {"person": ["b"], "x": [2.0]})
    odd = {"person": ["a"], "x": [9.0]} | {name: ["5"] for name in names}
    odd["inner"] = [[1]] if ending == "parquet" else ["1"]
    write(tmp_path / f"a.{ending}", odd)
    assert asked(f"{tmp_path}/*.{ending}") == (1, 2)


def test_a_column_that_a_list_has_inside_is_none_of_the_file(tmp_path):
    inner = pa.array([[{"x": 1, "X": 2}], []])
    write(tmp_path / "a.parquet", {"person": ["a", "b"], "x": [1.0, 2.0], "both": inner})
    assert asked(f"{tmp_path}/*.parquet") == (2, 3)


@pytest.mark.parametrize("name", ["day", "Day"])
def test_a_unit_of_a_folder_is_exact_as_text_only_whatever_its_case(tmp_path, name):
    declared = {"unit": name, "columns": {name: "date", "x": "number"}}
    with pytest.raises(dp.ParameterError, match="declare it as text"):
        asked(f"{tmp_path}/day=*/*.parquet", **declared)


# Places of folders


@pytest.mark.parametrize("pattern", ["person=*/*/*.parquet", "person=*/**/*.parquet"])
@pytest.mark.parametrize("name", ["person", "Person"])
def test_a_folder_below_a_persons_folder_names_nobody(tmp_path, pattern, name):
    people(tmp_path, inner="2020")
    assert asked(f"{tmp_path}/{pattern}") == (20, 160)
    for number in range(50):
        write(tmp_path / "person=evil" / f"{name}=m{number}" / "x.parquet", {"x": [0.0] * 9})
        write(tmp_path / "person=evil" / f"{name}=p{number}" / "x.parquet", {"x": [0.0] * 9})
    assert asked(f"{tmp_path}/{pattern}") == (21, 160)


def test_a_folder_above_the_pattern_names_nobody(tmp_path, monkeypatch):
    """Of a relative pattern: where the process stands is no part of it."""
    home = tmp_path / "person=owner"
    people(home)
    monkeypatch.chdir(home)
    assert asked("person=*/*.parquet") == (20, 160)
    assert asked("./person=*/*.parquet") == (20, 160)


@pytest.mark.parametrize(
    "pattern",
    [
        *("person=*/person=*/*.parquet", "person=*/Person=*/*.parquet"),
        *("**/person=*/*.parquet", "person=*/**/day=*/*.parquet", "**/person=a/*.parquet"),
    ],
)
def test_folders_of_which_nobody_can_tell_are_refused(tmp_path, pattern):
    told = []
    for _ in range(2):
        with pytest.raises(dp.ParameterError, match=r"two folders name|cannot be told") as refusal:
            asked(f"{tmp_path}/{pattern}")
        told.append(str(refusal.value))
        people(tmp_path)
    assert told[0] == told[1]


def test_columns_of_folders_are_at_the_pattern_s_own_places(tmp_path):
    place = tmp_path / "k=0" / "a" / "person=b" / "day=2024-01-01" / "person=c" / "x.parquet"
    files = Files.of(f"{tmp_path}/k=0/*/person=*/day=*/**/*.parquet")
    assert files.values(str(place), None) == {"k": "0", "person": "b", "day": "2024-01-01"}
    assert files.whose(str(place), "person") == "b"
    assert files.whose(str(place), "u") is None
