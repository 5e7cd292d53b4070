"""CSV files that are written otherwise: what is declared is read, and no row makes it fail."""

import gzip
import shutil

import pytest

import deniable as dp
from deniable.engines import linked
from deniable.engines.files import Files
from deniable.engines.stored_cells import opened_file

KINDS = {"id": "text", "x": "integer"}


def opened(source, **more):
    table = dp.PrivateTable(
        source, unit="id", population="p", columns=KINDS, max_rows=1, bounds={"x": (0, 9)}, **more
    )
    return dp.Session({"t": table}, budget=dp.PureDP(1e7), ledger=dp.Ledger(key=bytes(32)))


def asked(source, sql="SELECT COUNT(*) AS n, SUM(x) AS s FROM t"):
    with opened(source) as session:
        return [round(float(value)) for value in next(iter(session.sql(sql, epsilon=1e6))).values()]


@pytest.mark.parametrize("delimiter", [";", "|", "\t", " ", ":", "'"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz"])
def test_delimiters(tmp_path, delimiter, ending):
    text = f'id{delimiter}x\n"a{delimiter}"{delimiter}1\nb{delimiter}2\n'.encode()
    place = tmp_path / f"t.{ending}"
    place.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    for source in (place, tmp_path / f"*.{ending}"):
        assert asked(dp.csv(source, delimiter=delimiter)) == [2, 3]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("pattern", [False, True])
@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252"])
def test_every_byte_is_a_letter_and_no_two_are_one(tmp_path, encoding, pattern, packed):
    """Each id is one byte: were two read as one, fewer people would be counted."""
    odd = [byte for byte in range(1, 256) if byte not in b'\n\r",']
    text = b"id,x\n" + b"".join(b"a" + bytes([byte]) + b"z,1\n" for byte in odd)
    place = tmp_path / ("t.csv.gz" if packed else "t.csv")
    place.write_bytes(gzip.compress(text) if packed else text)
    source = tmp_path / f"*{''.join(place.suffixes)}" if pattern else place
    count = "SELECT COUNT(DISTINCT id) AS n FROM t"
    assert asked(dp.csv(source, encoding=encoding), count) == [len(odd)]


def test_letters_are_those_of_the_encoding(tmp_path):
    text = {"id": "text", "x": "text"}
    (tmp_path / "u.csv").write_bytes("id,x\n1,€é\n".encode("cp1252"))
    for encoding, letters in (("windows-1252", "€é"), ("latin-1", "\x80é")):
        table = dp.PrivateTable(
            dp.csv(tmp_path / "u.csv", encoding=encoding),
            unit="id",
            population="p",
            columns=text,
            max_rows=1,
            keys={"x": ["€é", "\x80é"]},
        )
        ledger = dp.Ledger(key=bytes(32))
        with dp.Session({"t": table}, budget=dp.PureDP(1e7), ledger=ledger) as session:
            answer = session.sql("SELECT x, COUNT(*) AS n FROM t GROUP BY x", epsilon=1e6)
            assert {row["x"] for row in answer if row["n"] > 0.5} == {letters}


def test_names_stand_for_a_first_line(tmp_path):
    (tmp_path / "t.csv").write_text("a,1\nb,2\nc\n")
    assert asked(dp.csv(tmp_path / "t.csv", names=["id", "x"])) == [3, 3]
    with pytest.raises(dp.ParameterError, match="does not name it"):
        opened(tmp_path / "t.csv")


def test_a_row_less_changes_no_schema(tmp_path):
    """With declared names nothing follows from the first line, which is a person's."""
    for text in ("a,1,7,8\nb,2\n", "b,2\n", ""):
        (tmp_path / "t.csv").write_text(text)
        opened(dp.csv(tmp_path / "t.csv", names=["id", "x"])).close()


def test_a_damaged_file_of_a_pattern_has_no_rows(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id,x\na,1\n"))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"id,x\nb,1\n" * 1000)[:-20])
    (tmp_path / "c.csv.gz").write_bytes(b"no gzip at all")
    assert asked(dp.csv(tmp_path / "*.csv.gz", encoding="latin-1")) == [1, 1]


def test_another_format_is_another_question(tmp_path):
    (tmp_path / "t.csv").write_text("id,x\na,1\n")
    ledger = dp.Ledger(key=bytes(32))
    for source, repeated in (
        (tmp_path / "t.csv", False),
        (dp.csv(tmp_path / "t.csv", encoding="latin-1"), False),
        (dp.csv(tmp_path / "t.csv", encoding="latin-1"), True),
    ):
        table = dp.PrivateTable(source, unit="id", population="p", columns=KINDS, max_rows=1)
        with dp.Session({"t": table}, budget=dp.PureDP(10), ledger=ledger) as session:
            assert session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).repeated is repeated


@pytest.mark.parametrize(
    "wrong",
    [
        {"delimiter": ""},
        {"delimiter": ",,"},
        {"delimiter": '"'},
        {"delimiter": "0"},
        {"delimiter": "\n"},
        {"delimiter": 5},
        {"encoding": "utf-16"},
        {"encoding": "idna"},
        {"names": []},
        {"names": ["a", "A"]},
        {"names": [""]},
        {"names": ["a\0"]},
        {"names": "ab"},
        {"names": [1]},
    ],
    ids=str,
)
def test_what_could_be_understood_in_two_ways_is_refused(tmp_path, wrong):
    with pytest.raises(dp.ParameterError):
        dp.csv(tmp_path / "t.csv", **wrong)


@pytest.mark.parametrize("place", ["t.parquet", "t.txt", 5, None])
def test_only_csv_files(place):
    with pytest.raises(dp.ParameterError):
        dp.csv(place)


def test_no_bar_of_the_engine_stands_among_what_is_printed(tmp_path):
    """It would come after two seconds, and on the standard output."""
    (tmp_path / "t.csv").write_text("id,x\na,1\n")
    with opened_file(Files.of(str(tmp_path / "t.csv")), str(tmp_path / "t.csv")) as (connection, _):
        ((shown,),) = connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()
    assert not shown


def test_where_the_reader_takes_the_next_part_of_a_file_changes_no_unit(tmp_path):
    """An empty line after CR LF there had the next line begin with LF: a person became two."""
    part, ids = 32_000_000, []
    for shift in (0, 1):  # by the length of somebody else's line
        long = b"b," + b"7" * 1_999_990 + b"\r\n"
        text = b"id,x\r\n" + b"a" * (1 + shift) + b",1\r\n" + long * 15
        text += b"b," + b"7" * (part - 1 - len(text) - 2 + shift) + b"\r\n"
        assert text[part - 1 + shift : part + 1 + shift] == b"\r\n"
        (tmp_path / "t.csv").write_bytes(text + b"\r\nc,1\r\nc,2\r\n\r\n,3\r\n")
        ids.append(asked(tmp_path / "t.csv", "SELECT COUNT(DISTINCT id) AS n FROM t"))
    assert ids == [[3]] * 2


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_file_that_bursts_has_no_rows_and_leaves_room_for_others(tmp_path, monkeypatch, encoding):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id,x\na,1\n"))
    bursts = b"id,x\nb," + b"7" * (1 << 22) + b"\n"
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(bursts))
    free = shutil.disk_usage(tmp_path)._replace(free=1 << 24)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    written = []
    recode = linked.recode
    monkeypatch.setattr(linked, "recode", lambda *given: written.append(given[3]) or recode(*given))
    assert asked(dp.csv(tmp_path / "*.csv.gz", encoding=encoding)) == [1, 1]
    assert len(written) == (0 if encoding == "utf-8" else 2)
    assert not any(place.exists() for place in written)
