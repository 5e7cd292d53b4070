import decimal
import gzip
import json
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.cli.init import quoted
from deniable.cli.metadata import read_metadata

BUDGET = ("--budget", "3", "--delta", "1e-6")


def drafted(folder, name="visits.toml"):
    return tomllib.loads((folder / name).read_text())


def test_the_schema_is_drafted_and_nothing_else(data, folder, run):
    told = run("init", data.name, "--unit", "patient_id", *BUDGET)
    assert "fill in max_rows, bounds and keys" in told
    assert "deniable explain visits.toml" in told
    found = drafted(folder)
    assert found["population"] == "visits/patient_id"
    assert found["budget"] == {"epsilon": 3, "delta": 1e-6}
    table = found["tables"]["visits"]
    assert table["columns"] == {
        "patient_id": "integer",
        "ward": "text",
        "floor": "integer",
        "cost": "number",
        "visited": "date",
    }
    assert table["bounds"] == table["keys"] == {}
    assert "max_rows" not in table
    assert not (folder / "ledger.db").exists()


def test_a_draft_does_not_depend_on_the_rows(data, folder, run):
    run("init", data.name, "--unit", "patient_id", *BUDGET, "--output", "one.toml")
    pq.write_table(pq.read_table(data).slice(0, 1), data)
    run("init", data.name, "--unit", "patient_id", *BUDGET, "--output", "two.toml")
    assert (folder / "one.toml").read_text() == (folder / "two.toml").read_text()


def test_the_types_of_a_csv_file_are_read_and_the_owner_confirms_them(folder, run):
    (folder / "visits.csv").write_text("patient_id,age\n1,30\n")
    told = run("init", "visits.csv", "--unit", "patient_id", *BUDGET)
    assert "types were read from the rows" in told
    assert "confirm the types of the columns" in told
    # A unit stands as it is written.
    assert drafted(folder)["tables"]["visits"]["columns"] == {
        "patient_id": "text",
        "age": "integer",
    }
    text = (folder / "visits.toml").read_text()
    assert "confirm them, for they become public" in text
    assert "no ε covers" in text
    asked = "SELECT COUNT(age) AS n FROM visits"
    run("query", "visits.toml", "--epsilon", "1", "--max-rows", "2", asked)


TYPES = {
    "whole": (["1", "-20", "", "0", " 7 ", "9223372036854775807"], "integer"),
    "huge": (["1", "9223372036854775808"], "number"),
    "number": (["1", "2.5", "1e3", "-.5"], "number"),
    "code": (["007", "12", "13"], "text"),
    "decimal code": (["00.5", "1.5"], "text"),
    "hexadecimal": (["0x1F", "3"], "text"),
    "grouped": (["1_000", "3"], "text"),
    "comma": (['"1,5"'], "text"),
    "truth": (["true", "FALSE", "True"], "boolean"),
    "letters": (["t", "f"], "text"),
    "day": (["2024-01-31", "1999-12-01"], "date"),
    "no day": (["2024-13-45", "1999-12-01"], "text"),
    "German day": (["31.01.2024", "01.02.2024"], "text"),
    "time": (["2024-01-31 12:30", "2024-01-31T12:30:00.25", "2024-01-31"], "timestamp"),
    "missing": (["1", "NA", "?", "n/a", "NULL", "-"], "integer"),
    "nothing": (["", "", "NA"], "text"),
    "empty": ([], "text"),
    "words": (["1", "one"], "text"),
    "infinite": (["1.5", "inf"], "text"),
    "not a number": (["1.5", "NaN"], "number"),
}


@pytest.mark.parametrize("name", TYPES)
def test_a_column_has_the_narrowest_type_that_all_its_cells_have(folder, run, name):
    cells, kind = TYPES[name]
    (folder / "v.csv").write_text("a,b\n" + "".join(f"{cell},x\n" for cell in cells))
    run("init", "v.csv", "--row", *BUDGET)
    assert drafted(folder, "v.toml")["tables"]["v"]["columns"] == {
        "a": kind,
        "b": "text",
    }


def test_the_drafted_types_are_what_questions_read(folder, run):
    """Every cell that made a column what it is, is a value to questions."""
    for name, (cells, kind) in TYPES.items():
        if kind == "text":
            continue
        (folder / "v.csv").write_text("a,b\n" + "".join(f"{cell},x\n" for cell in cells))
        run("init", "v.csv", "--row", *BUDGET, "--force")
        (table,) = json.loads(run("check", "v.toml", "--json"))["tables"]
        missing = {"", "NA", "?", "n/a", "NULL", "-", "NaN"}
        assert table["columns"][0]["read"] == sum(c not in missing for c in cells), name


def test_a_draft_has_a_version(data, folder, run):
    run("init", data.name, "--unit", "patient_id", *BUDGET)
    assert drafted(folder)["tables"]["visits"]["version"] == "1"
    assert "whenever the data change" in (folder / "visits.toml").read_text()


def test_columns_that_are_left_out_are_listed_with_reasons(folder, run):
    made = {
        "p": [1],
        "tags": [[1, 2]],
        "at": pa.array([0], pa.timestamp("ms")),
        "pair": [{"a": 1}],
        "raw\nname": pa.array([b"x"], pa.binary()),
        "clock": pa.array([0], pa.time64("us")),
        "wide": pa.array([decimal.Decimal(1)], pa.decimal256(60, 2)),
    }
    pq.write_table(pa.table(made), folder / "v.parquet")
    told = run("init", "v.parquet", "--unit", "p", *BUDGET)
    text = (folder / "v.toml").read_text()
    assert list(drafted(folder, "v.toml")["tables"]["v"]["columns"]) == ["p"]
    for name, why in {
        "tags": "nested",
        "at": "milliseconds",
        "pair": "nested",
        "raw\\nname": "bytes",
        "clock": "TIME",
        "wide": "decimals",
    }.items():
        for shown in (told, text):
            assert any(f'left out: "{name}"' in line and why in line for line in shown.split("\n"))
    asked = "SELECT COUNT(*) AS n FROM v"
    run("query", "v.toml", "--epsilon", "1", "--max-rows", "2", asked)


ODD = "name;größe\nJosé;1\nZoë;2\n"


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "utf-8"])
def test_delimiter_and_encoding_are_taken_and_passed_on(folder, run, encoding):
    (folder / "v.csv").write_bytes(ODD.encode(encoding))
    run("init", "v.csv", "--row", *BUDGET, "--delimiter", ";", "--encoding", encoding)
    table = drafted(folder, "v.toml")["tables"]["v"]
    assert table["columns"] == {"name": "text", "größe": "integer"}
    assert table["delimiter"] == ";"
    assert table.get("encoding", "utf-8") == encoding
    found = json.loads(run("check", "v.toml", "--json"))["tables"][0]
    assert [each["read"] for each in found["columns"]] == [2, 2]
    told = run(
        *("query", "v.toml", "--epsilon", "3", "--keys", "name=José,Zoë", "--json"),
        *("--max-rows", "1"),
        "SELECT name, COUNT(*) AS n FROM v GROUP BY name",
    )
    assert "Jos" in told


def test_a_file_without_a_line_of_names(folder, run):
    (folder / "v.csv").write_text("Ana Secret,54,HIV\nBob Secret,33,\n")
    told = run("init", "v.csv", "--unit", "column1", *BUDGET, "--no-header")
    table = drafted(folder, "v.toml")["tables"]["v"]
    assert table["names"] == ["column1", "column2", "column3"]
    assert table["columns"] == {"column1": "text", "column2": "integer", "column3": "text"}
    assert "Secret" not in told + (folder / "v.toml").read_text()
    assert json.loads(run("check", "v.toml", "--json"))["tables"][0]["rows"] == 2
    assert "there are column1" in run(
        "init", "v.csv", "--unit", "id", *BUDGET, "--no-header", "--force", code=2
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--delimiter", ""), "must be one sign"),
        (("--delimiter", ";;"), "must be one sign"),
        (("--delimiter", '"'), "must be one sign"),
        (("--delimiter", "x"), "must be one sign"),
        (("--delimiter", "\n"), "must be one sign"),
        (("--encoding", "utf-16"), "must be utf-8, latin-1, windows-1252"),
    ],
)
def test_formats_that_are_not_read_are_refused(folder, run, options, message):
    (folder / "v.csv").write_text("a,b\n1,2\n")
    assert message in run("init", "v.csv", "--row", *BUDGET, *options, code=2)
    assert not list(folder.glob("*.toml"))


@pytest.mark.parametrize(
    "option", [("--delimiter", ";"), ("--encoding", "utf-8"), ("--no-header",)]
)
def test_formats_are_of_csv_files(data, run, option):
    told = run("init", data.name, "--unit", "patient_id", *BUDGET, *option, code=2)
    assert "of CSV files" in told


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_folders_that_a_pattern_names_are_drafted_and_no_others(folder, run, ending):
    """Whatever one person's file and folders are called."""
    place = folder / "data" / "person=a" / "Person=b"
    place.mkdir(parents=True)
    table = pa.table({"PERSON": ["x"], "age": ["1"]})
    if ending == "csv":
        (place / "v.csv").write_text("PERSON,age\nx,1\n")
    else:
        pq.write_table(table, place / "v.parquet")
    pattern = f"data/person=*/*/*.{ending}"
    run("init", pattern, "--unit", "person", *BUDGET, "--output", "draft.toml", "--force")
    (found,) = drafted(folder, "draft.toml")["tables"].values()
    kind = {"csv": "integer", "parquet": "text"}[ending]
    assert found["columns"] == {"age": kind, "person": "text"}


def test_packed_and_tabbed_headers(folder, run):
    with gzip.open(folder / "a.csv.gz", "wt") as file:
        file.write("x,y\n1,2\n")
    (folder / "b.tsv").write_text("x\ty\n1\t2\n")
    for name in ("a.csv.gz", "b.tsv"):
        run("init", name, "--row", "--budget", 1, "--output", "draft.toml", "--force")
        table = drafted(folder, "draft.toml")["tables"][name[0]]
        assert list(table["columns"]) == ["x", "y"]
        assert table["row"] is True
    assert "delta" not in drafted(folder, "draft.toml")["budget"]


def test_a_file_is_not_overwritten_without_force(data, folder, run):
    (folder / "visits.toml").write_text("mine")
    arguments = ("init", data.name, "--unit", "patient_id", *BUDGET)
    assert "is there already" in run(*arguments, code=2)
    assert (folder / "visits.toml").read_text() == "mine"
    run(*arguments, "--force")
    assert drafted(folder)["tables"]


def test_paths_are_written_as_seen_from_the_file(data, folder, run):
    (folder / "meta").mkdir()
    run(
        *("init", data.name, "--row", *BUDGET, "--output", "meta/v.toml"),
        *("--ledger", "kept.db", "--population", "people"),
    )
    found = drafted(folder / "meta", "v.toml")
    assert found["tables"]["visits"]["source"] == "../visits.parquet"
    assert found["ledger"] == "../kept.db"
    assert found["population"] == "people"
    read = read_metadata(folder / "meta" / "v.toml")
    assert (folder / read.ledger).resolve() == (folder / "kept.db").resolve()
    read.session().close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.parquet", "--row", *BUDGET), "no such file"),
        (("missing.csv", "--row", *BUDGET), "no such file"),
        (("visits.xlsx", "--row", *BUDGET), "must end in .parquet"),
        (("visits.parquet", *BUDGET), "say whose rows these are"),
        (("visits.parquet", "--row", "--unit", "ward", *BUDGET), "say whose rows these are"),
        (("visits.parquet", "--unit", "patient", *BUDGET), "did you mean patient_id?"),
        (("visits.parquet", "--row", "--budget", "0"), "must be greater than 0"),
        (("visits.parquet", "--row", "--budget", "nan"), "finite"),
        (("visits.parquet", "--row", "--budget", "1", "--delta", "2"), "delta"),
    ],
)
def test_bad_arguments_draft_nothing(data, folder, run, arguments, message):
    assert message in run("init", *arguments, code=2)
    assert not list(folder.glob("*.toml"))


def test_a_file_that_is_not_parquet_is_not_quoted(folder, run):
    (folder / "v.parquet").write_text("Ana Secret, HIV")
    assert "Secret" not in run("init", "v.parquet", "--row", *BUDGET, code=2)


EVIL = [
    'x" = 1\n[budget]\nepsilon = 1000\n#',
    "a\nb",
    "# comment",
    "'; DROP TABLE visits; --",
    'back\\slash "quote"',
    "\x1b[31mred\x00\x7f\u2028",
    "[tables.visits]",
    "[/red]:smile:",
    "𝔘nicode",
]


@pytest.mark.parametrize("text", [*EVIL, "".join(map(chr, range(0x300)))])
def test_quoted_text_is_read_back(text):
    assert tomllib.loads(f"x = {quoted(text)}\n{quoted(text)} = 1") == {"x": text, text: 1}
    assert "\n" not in quoted(text)


def test_names_of_columns_inject_nothing(folder, run):
    names = [name for name in EVIL if "\x00" not in name]
    pq.write_table(pa.table({"p": [1], **{name: ["v"] for name in names}}), folder / "v.parquet")
    told = run("init", "v.parquet", "--unit", "p", *BUDGET, "--population", EVIL[0])
    assert "\x1b" not in told
    found = drafted(folder, "v.toml")
    assert found["budget"] == {"epsilon": 3, "delta": 1e-6}
    assert found["population"] == EVIL[0]
    assert set(found["tables"]) == {"v"}
    assert set(found["tables"]["v"]["columns"]) == {"p", *names}


@pytest.mark.parametrize(
    ("source", "table"),
    [
        ("a b;c.parquet", "a_b_c"),
        ("2024 visits.parquet", "data_2024_visits"),
        ("select.parquet", "select_table"),
        ("visits-[x]'.parquet", "visits_x"),
        ("./---.parquet", "data"),
        ("table.parquet", "table"),
    ],
)
def test_a_table_gets_a_name_that_can_be_asked_for(folder, run, source, table):
    pq.write_table(pa.table({"p": [1]}), folder / source)
    run("init", source, "--row", *BUDGET, "--output", "t.toml")
    assert set(drafted(folder, "t.toml")["tables"]) == {table}
    run("explain", "t.toml", "--epsilon", "1", f"SELECT COUNT(*) AS n FROM {table}")


NO_HEADERS = [
    "Ana Secret,54,HIV",
    "Ana Secret,,HIV",
    "Ana Secret,1971-03-05,HIV",
    "Ana Secret,05.03.1971,HIV",
    "Ana Secret,5 Mar 1971,HIV",
    "Ana Secret,1e3,HIV",
    "Ana Secret,-0.5,HIV",
    "Ana Secret,NaN,HIV",
    "Ana Secret,true,HIV",
    "Ana Secret,HIV,HIV",
    "Ana Secret,HIV,hiv ",
    "Ana Secret,ana@example.org",
    "Ana Secret,P0012345",
    "Ana Secret,+49 30 1234",
    "Ana Secret,1b4e28ba-2fa1-11d2-883f-0016d3cca427",
    f"Ana Secret,{'very ' * 13}ill",
    '"Ana Secret\n12 Main Street",HIV',
]


@pytest.mark.parametrize("line", NO_HEADERS)
@pytest.mark.parametrize("unit", [("--row",), ("--unit", "patient_id"), ("--unit", "HIV")])
def test_a_first_line_that_is_a_row_is_refused_and_not_quoted(folder, run, line, unit):
    (folder / "v.csv").write_text(f"{line}\nBob,3,4\n")
    told = run("init", "v.csv", *unit, *BUDGET, code=2)
    assert "does not look like names" in told or "names its columns" in told
    assert "Secret" not in told
    assert not list(folder.glob("*.toml"))


@pytest.mark.parametrize(
    "line",
    ["id,Date of birth,income_2020", "No.,q1,x10,größe", "Ana Secret,ward", "a.b,c-d,1st_visit"],
)
def test_names_of_columns_are_not_quoted_either(folder, run, line):
    """Words may be names, or a row of words: only the owner's own file tells them."""
    (folder / "v.csv").write_text(f"{line}\n1,2,3\n")
    told = run("init", "v.csv", "--unit", "Ana", *BUDGET, code=2)
    assert "the first line of the file does not name it" in told
    shown = run("init", "v.csv", "--row", *BUDGET)
    assert "see that it is no row" in shown
    assert not any(word in told + shown for word in ("Secret", "Date", "q1", "a.b"))


def test_a_pattern_is_drafted_from_its_first_file_and_its_folders(folder, run):
    for day in ("2024-01-01", "2024-01-02"):
        (folder / f"parts/day={day}").mkdir(parents=True)
        table = pa.table({"who": ["a", "b"], "cost": [1.5, 2.5]})
        pq.write_table(table, folder / f"parts/day={day}/a.parquet")
    run("init", "parts/day=*/*.parquet", "--unit", "who", *BUDGET, "--output", "p.toml")
    table = drafted(folder, "p.toml")["tables"]["data"]
    assert table["columns"] == {"who": "text", "cost": "number", "day": "text"}
    asked = "SELECT COUNT(*) AS n FROM data"
    told = run("query", "p.toml", "--epsilon", "1", "--max-rows", "2", asked)
    assert "n" in told
    told = run("init", "parts/none*.parquet", "--unit", "who", *BUDGET, code=2)
    assert "finds no file" in told


def test_a_byte_that_is_no_text_is_not_quoted(folder, run):
    (folder / "v.toml").write_bytes(b'population = "\xff\xfe Secret"')
    told = run("query", "v.toml", "--epsilon", "1", "SELECT 1", code=2)
    assert "Secret" not in told
    assert "0xff" not in told


def test_a_first_line_is_not_quoted_by_questions(folder, run):
    (folder / "v.csv").write_text("Ana Secret,HIV\nBob,well\n")
    (folder / "v.toml").write_text(
        'population = "p"\nledger = "l.db"\n[budget]\nepsilon = 1\n[tables.v]\nsource = "v.csv"\n'
        'row = true\n[tables.v.columns]\nname = "text"\n'
    )
    for command in ("query", "explain"):
        told = run(command, "v.toml", "--epsilon", "1", "SELECT COUNT(*) AS n FROM v", code=2)
        assert "no such column" in told
        assert "Secret" not in told
        assert "HIV" not in told
