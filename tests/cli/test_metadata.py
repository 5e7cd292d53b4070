import datetime

import pytest

import deniable as dp
from clinic import METADATA
from deniable.cli.metadata import read_metadata

COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_everything_is_read(file):
    found = read_metadata(file)
    visits = found.tables["visits"]
    assert (visits.unit, visits.population) == ("patient_id", "clinic/patient")
    assert (visits.max_rows, visits.max_groups) == (5, 3)
    assert visits.keys == {"ward": ("A", "B", "C")}
    assert visits.bounds == {"cost": (0, 100)}
    assert found.budget == dp.Budget(dp.ApproxDP(3, 1e-6))


def test_public_tables_rows_and_dates(file, data):
    (data.parent / "wards.csv").write_text("ward,beds\nA,3\n")
    file.write_text(
        METADATA
        + """
        [tables.rows]
        source = "visits.parquet"
        row = true
        population = "rows"
        keys = { visited = [2025-01-01, 2025-01-02] }
        [tables.wards]
        source = "wards.csv"
        public = true
        columns = { ward = "text", beds = "integer" }
        """
    )
    found = read_metadata(file)
    assert isinstance(found.tables["wards"], dp.PublicTable)
    assert found.tables["rows"].unit is dp.ROW
    assert found.tables["rows"].keys["visited"][0] == datetime.date(2025, 1, 1)
    with found.session() as session:
        assert set(session.remaining) == {"clinic/patient", "rows"}


def test_paths_are_relative_to_the_file(file, folder, monkeypatch, run):
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    run("query", file, COUNT, "--epsilon", "0.1")
    assert (folder / "ledger.db").exists()
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("source", ["visits.parquet", "vis*.parquet"])
def test_folders_may_have_stars_in_their_names(data, folder, run, source):
    odd = folder / "a[1]*b"
    odd.mkdir()
    data.rename(odd / data.name)
    kinds = '\n[tables.visits.columns]\npatient_id = "integer"\nward = "text"\ncost = "number"\n'
    (odd / "visits.toml").write_text(METADATA.replace("visits.parquet", source) + kinds)
    run("query", odd / "visits.toml", COUNT, "--epsilon", "0.1")


@pytest.mark.parametrize(
    "guarantee",
    [
        ("epsilon = 3", dp.PureDP(3)),
        ("rho = 0.5", dp.ZCDP(0.5)),
        ("mu = 1", dp.GDP(1)),
        ("epsilon = 0.1\ndelta = 1e-9", dp.ApproxDP(0.1, 1e-9)),
    ],
    ids=str,
)
def test_every_kind_of_budget(file, guarantee):
    text, wanted = guarantee
    file.write_text(METADATA.replace("epsilon = 3\ndelta = 1e-6", text))
    assert read_metadata(file).budget.guarantee == wanted


BAD = {
    "unknown at the top": ("ledger =", "ledgr =", "ledgr='ledger.db'", "did you mean ledger?"),
    "unknown in the budget": ("delta", "dleta", "[budget]: dleta", "did you mean delta"),
    "unknown in a table": ("max_rows", "maxrows", "[tables.visits]: maxrows", "max_rows"),
    "a section that is not known": ("[budget]", "[bugdet]", "bugdet", "did you mean budget?"),
    "no ledger": ('ledger = "ledger.db"', "", "ledger=None", "name the file that keeps"),
    "no budget": ("[budget]\nepsilon = 3\ndelta = 1e-6", "", "budget=None", "must be a section"),
    "no population": ('population = "clinic/patient"', "", "population=None", "name it"),
    "no source": ('source = "visits.parquet"', "", "[tables.visits]: source=None", "name a CSV"),
    "a source that is missing": ("visits.parquet", "gone.parquet", "gone.parquet", "no such file"),
    "another kind of source": ("visits.parquet", "visits.toml", "source", "must end in .parquet"),
    "no unit": ('unit = "patient_id"', "", "unit=None", "say whose rows these are"),
    "unit and row": ("max_rows", "row = true\nmax_rows", "unit=", "say whose rows these are"),
    "an unknown unit": ("patient_id", "patient", "patient", "did you mean patient_id?"),
    "max_rows as text": ("max_rows = 5", 'max_rows = "5"', "max_rows='5'", "whole number"),
    "bounds of no column": ("cost =", "costs =", "bounds='costs'", "did you mean cost?"),
    "bounds of text": ("cost =", "ward =", "bounds='ward'", "holds text, not numbers"),
    "bounds that fall": ("[0, 100]", "[100, 0]", "bounds", "must rise from low to high"),
    "bounds that are one number": ("[0, 100]", "100", "bounds=100", "pair (low, high)"),
    "keys of no column": ("ward =", "wards =", "keys='wards'", "did you mean ward?"),
    "keys that repeat": ('"A", "B"', '"A", "A"', "keys", "different values"),
    "keys that are text": ('["A", "B", "C"]', '"ABC"', "keys", "list of values"),
    "a wrong type": ("max_rows", 'columns = { cost = "float" }\nmax_rows', "'float'", "types are"),
    "epsilon as text": ("epsilon = 3", 'epsilon = "3"', "[budget]: epsilon='3'", "number"),
    "no epsilon": ("epsilon = 3", "", "[budget]: epsilon=None", "give epsilon"),
    "a negative epsilon": ("epsilon = 3", "epsilon = -3", "epsilon=-3", "greater than 0"),
    "a budget for other neighbours": ("[budget]", '[budget]\nrelation = "x"', "'x'", "add_remove"),
    "public that is no truth value": ("max_rows", "public = 1\nmax_rows", "public=1", "true or"),
    "public with a unit": ("max_rows", "public = true\nmax_rows", "unit=", "is not known here"),
    "a name that is no word": ("[tables.visits]", '[tables."a; b"]', "'a; b'", "are words"),
    "a table that is a number": ("[tables.visits]", "[tables]\nv = 1\n[tables.visits]", "v=1", ""),
    "broken TOML": ("ledger =", "ledger", "is not TOML", "line 3"),
    "the same key twice": ("max_rows = 5", "max_rows = 5\nmax_rows = 6", "is not TOML", "line"),
}


@pytest.mark.parametrize("name", BAD)
def test_faults_are_told_with_their_place(file, run, name):
    old, new, where, what = BAD[name]
    assert old in METADATA
    file.write_text(METADATA.replace(old, new))
    told = run("query", file, COUNT, "--epsilon", "0.1", code=2)
    assert where in told
    assert what in told
    assert str(file) in told


def test_files_that_cannot_be_read(folder, run):
    assert "`deniable init` drafts one" in run("query", "gone.toml", COUNT, code=2)
    assert "no such file" in run("query", folder, COUNT, code=2)
    (folder / "packed.toml").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in run("query", "packed.toml", COUNT, code=2)


def test_another_budget_for_the_same_people_is_refused(file, run):
    run("query", file, COUNT, "--epsilon", "0.1")
    file.write_text(METADATA.replace("epsilon = 3", "epsilon = 30"))
    assert "has another budget already" in run("query", file, COUNT, "--epsilon", "0.1", code=2)


def test_formats_of_csv_files_private_and_public(folder, run):
    (folder / "v.csv").write_bytes("José;A\nZoë;B\n".encode("latin-1"))
    (folder / "w.csv").write_bytes("ward|größe\nA|3\n".encode("windows-1252"))
    (folder / "v.toml").write_text(
        'population = "p"\nledger = "l.db"\n[budget]\nepsilon = 1\n'
        '[tables.v]\nsource = "v.csv"\nunit = "name"\nmax_rows = 1\nencoding = "latin-1"\n'
        'delimiter = ";"\nnames = ["name", "ward"]\n'
        'columns = { name = "text", ward = "text" }\n'
        '[tables.w]\nsource = "w.csv"\npublic = true\ndelimiter = "|"\nencoding = "windows-1252"\n'
        'columns = { ward = "text", "größe" = "integer" }\n'
    )
    run(
        *("query", "v.toml", "--epsilon", "1"),
        'SELECT COUNT(*) AS n FROM v JOIN w ON v.ward = w.ward WHERE w."größe" > 1',
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('delimiter = ";;"', "[tables.visits]: delimiter"),
        ('encoding = "utf-7"', "[tables.visits]: encoding"),
        ('names = ["a", "A"]', "[tables.visits]: names"),
        ('delimiter = ";"', "must end in .csv"),
        ("looked = 1", "[tables.visits]: looked"),
    ],
)
def test_formats_that_are_not_understood(file, run, line, message):
    file.write_text(METADATA.replace("max_rows = 5", f"max_rows = 5\n{line}"))
    assert message in run("query", file, COUNT, "--epsilon", "0.1", code=2)


UNREADABLE = {
    "a number of 5,000 digits": "epsilon = " + "9" * 5_000,
    "a fraction of 5,000 digits and no end": "epsilon = 0." + "9" * 5_000 + "x",
    "a number of 5,000 digits in base 16": "epsilon = 0x" + "f" * 5_000,
    "3,000 brackets": "epsilon = " + "[" * 3_000 + "]" * 3_000,
    "3,000 braces": "epsilon = " + "{a = " * 3_000 + "1" + "}" * 3_000,
    "100 brackets": "epsilon = " + "[" * 100 + "]" * 100,
    "3,000 names": ".".join(["a"] * 3_000) + " = 1",
    "3,000 sections": "[" + ".".join(["a"] * 3_000) + "]",
    "an open bracket": "epsilon = [",
    "a day that is none": "epsilon = 2024-02-31",
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_no_reader_of_toml_can_read_or_show_is_one_line(case, file, run):
    file.write_text(UNREADABLE[case] + "\n" + METADATA)
    with pytest.raises(dp.ParameterError, match="is not TOML") as told:
        read_metadata(file)
    assert len(str(told.value)) < 500
    assert "is not TOML" in run("query", file, COUNT, "--epsilon", "1", code=2)


@pytest.mark.parametrize(
    "value", ["9" * 5_000, "0x" + "f" * 5_000, "[" * 3_000 + "]" * 3_000, "{a = " * 3_000], ids=len
)
def test_lists_of_keys_that_cannot_be_read_are_one_line(value, file, run):
    told = run("query", file, COUNT, "--epsilon", "1", "--keys", f"ward=[{value}]", code=2)
    assert "a list is" in told
