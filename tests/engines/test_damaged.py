"""A file that one person may have written: damaged, exchanged or oddly named, it moves no other."""

import contextlib
import errno
import gzip
import io
import os
import random
import resource
import signal
import threading
import time

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dp
from deniable.engines import apart, faults, files, found, linked, sources
from deniable.engines.base import Step
from deniable.engines.duckdb import DuckDB
from deniable.engines.files import Files
from engines.test_recovery import FRAME, KILLS

KINDS = {"u": "text", "x": "number", "i": "integer"}
ALL = "SELECT COUNT(*) AS n FROM t WHERE x >= 0 AND i >= 0"


def rows(who, many=1000):
    return pa.table({"u": [who] * many, "x": [1.0] * many, "i": list(range(many))})


def packed(table, **how):
    made = io.BytesIO()
    pq.write_table(table, made, **how)
    return bytearray(made.getvalue())


def folder(place, people=5):
    for each in range(people):
        pq.write_table(rows(f"p{each}"), place / f"p{each}.parquet")
    return f"{place}/*.parquet"


def private(source, **declared):
    given = {"unit": "u", "population": "p", "max_rows": 1000, "bounds": {"x": (0, 10)}}
    return dp.PrivateTable(source, **{**given, "columns": KINDS, **declared})


def opened(tables):
    return dp.Session(tables, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger())


def counted(session, question=ALL):
    return session.sql(question, epsilon=1e7)["n"][0]


def asked(source, question=ALL, **declared):
    with opened({"t": private(source, **declared)}) as session:
        return counted(session, question)


# Damage


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize(
    "how",
    [
        {"compression": "none"},
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "gzip", "data_page_version": "2.0", "data_page_size": 500},
        {"use_dictionary": False, "column_encoding": {"i": "DELTA_BINARY_PACKED"}},
    ],
)
def test_a_damaged_page_takes_the_rows_of_its_file_alone(tmp_path, column, how):
    """Numbers of rows and extremes stand apart from the pages: a count need not decode any."""
    source = folder(tmp_path)
    data = packed(rows("eve"), **how)
    (tmp_path / "eve.parquet").write_bytes(data)
    assert asked(source) == pytest.approx(6000, abs=100)
    found = pq.ParquetFile(io.BytesIO(bytes(data))).metadata.row_group(0).column(column)
    start = found.dictionary_page_offset or found.data_page_offset
    end = start + found.total_compressed_size
    data[start : min(end, start + 200)] = b"\xff" * (min(end, start + 200) - start)
    (tmp_path / "eve.parquet").write_bytes(data)
    assert asked(source) == pytest.approx(5000, abs=100)


def test_rows_before_the_damage_do_not_count_either(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "_ROWS", 2048)
    monkeypatch.setattr(apart, "_BYTES", 1)
    source = folder(tmp_path, 1)
    how = {"row_group_size": 10_000, "compression": "none", "use_dictionary": False}
    data = packed(rows("eve", 100_000), **how)
    (tmp_path / "eve.parquet").write_bytes(data)
    assert asked(source, max_rows=10**5) == pytest.approx(101_000, abs=900)
    last = pq.ParquetFile(io.BytesIO(bytes(data))).metadata.row_group(9).column(2)
    data[last.data_page_offset : last.data_page_offset + 30] = b"\xff" * 30
    (tmp_path / "eve.parquet").write_bytes(data)
    assert asked(source, max_rows=10**5) == pytest.approx(1000, abs=900)


def hostile_files(count, seed):
    rnd = random.Random(seed)
    bases = [
        packed(rows("eve"), compression=how, **more)
        for how in ("none", "snappy", "zstd", "gzip")
        for more in ({}, {"use_dictionary": False}, {"data_page_version": "2.0"})
    ]
    for _ in range(count):
        data = bytearray(rnd.choice(bases))
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        low, high = (4, footer) if rnd.random() < 0.5 else (footer, len(data) - 8)
        for _ in range(rnd.choice((1, 1, 2, 5, 100))):
            data[rnd.randrange(low, high)] = rnd.randrange(256)
        yield data


def test_hostile_files_never_change_the_outcome(tmp_path):
    _hostile(tmp_path, 150)


@pytest.mark.soak
def test_thousands_of_hostile_files_never_change_the_outcome(tmp_path):
    _hostile(tmp_path, 10_000)


def _hostile(tmp_path, count):
    """Beside an owner's connection, which must outlive them all."""
    owner = duckdb.connect()
    owner.execute("CREATE TABLE v AS SELECT 7 AS u")
    step = Step("SELECT COUNT(*) FILTER (u <> 'eve'), COUNT(*) FROM t WHERE x + i >= 0", "")
    kinds = {name: dp.tables.ColumnType(kind) for name, kind in KINDS.items()}
    found = set()
    with contextlib.closing(DuckDB()) as engine:
        engine.add("v", dp.duckdb(owner).table("v"), None, "u")
        engine.add("t", folder(tmp_path, 1), kinds, "u")
        for data in hostile_files(count, seed=7):
            (tmp_path / "eve.parquet").write_bytes(data)
            with engine.snapshot([step]) as snapshot:
                ((others, every),) = snapshot.run(step)
            # Cells whose bytes were changed may be other values, and those of others' stay.
            assert others >= 1000
            found.add(min(every, 2000))
        with engine.snapshot() as snapshot:
            assert snapshot.run(Step("SELECT u FROM v", "")) == [(7,)]
    assert {1000, 2000} <= found


# Files that end the engine


@pytest.fixture(scope="module")
def deadly(tmp_path_factory):
    """A file that ends the DuckDB that reads it: a size below zero."""
    place = tmp_path_factory.mktemp("deadly") / "eve.parquet"
    data = packed(rows("eve", 50), use_dictionary=False, compression="none", store_schema=False)
    for at in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data) - 8):
        place.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with duckdb.connect() as connection:
            try:
                connection.execute("SELECT u, x, i FROM read_parquet(?)", [str(place)]).fetchall()
            except duckdb.InternalException:
                with pytest.raises(duckdb.Error):
                    connection.execute("SELECT 1").fetchall()
                return place.read_bytes()
            except duckdb.Error:
                continue
    raise AssertionError("no file ends this version")


def test_an_owners_connection_outlives_the_file(tmp_path, deadly):
    source = folder(tmp_path)
    (tmp_path / "eve.parquet").write_bytes(deadly)
    owner = duckdb.connect()
    owner.execute("CREATE TABLE v AS SELECT 'a' || i AS u, 1.0::DOUBLE AS x FROM range(50) r(i)")
    kept = dp.PrivateTable(
        dp.duckdb(owner).table("v"), unit="u", population="q", max_rows=1, bounds={"x": (0, 10)}
    )
    with opened({"v": kept, "t": private(source)}) as session:
        for more in ("", " AND x < 9"):
            assert counted(session, ALL + more) == pytest.approx(5000, abs=100)
            told = "SELECT COUNT(*) AS n FROM v WHERE x < 9" + more
            assert counted(session, told) == pytest.approx(50, abs=1)
    assert owner.execute("SELECT COUNT(*) FROM v").fetchall() == [(50,)]


def database(place, made):
    place.unlink(missing_ok=True)
    with duckdb.connect(str(place)) as connection:
        connection.execute(made)


TABLE = "CREATE TABLE v AS SELECT range AS u, 1.0::DOUBLE AS x FROM range(%d)"
VIEW = f"{TABLE.replace(' v ', ' b ') % 50}; CREATE VIEW v AS SELECT u, max(x) OVER () AS x FROM b"


def test_a_file_that_ends_an_engine_moves_no_attached_database(tmp_path, deadly):
    (tmp_path / "files").mkdir()
    source = folder(tmp_path / "files")
    (tmp_path / "files" / "eve.parquet").write_bytes(deadly)
    database(tmp_path / "v.db", TABLE % 50)
    database(tmp_path / "new.db", TABLE % 9000)
    kept = dp.PrivateTable(
        dp.duckdb(tmp_path / "v.db").table("v"),
        unit="u",
        population="q",
        max_rows=1,
        bounds={"x": (0, 10)},
    )
    with opened({"v": kept, "t": private(source)}) as session:
        (tmp_path / "new.db").rename(tmp_path / "v.db")
        assert counted(session) == pytest.approx(5000, abs=100)
        assert counted(session, "SELECT COUNT(*) AS n FROM v") == pytest.approx(50, abs=1)


@pytest.mark.parametrize("change", ["table", "view", "gone", "moved and back", "log", "none"])
def test_a_database_is_opened_anew_only_where_it_is_the_same(tmp_path, change):
    """After a failure that ends the connection, whatever was its reason."""
    place, other = tmp_path / "v.db", tmp_path / "new.db"
    database(place, TABLE % 50)
    database(other, VIEW if change == "view" else TABLE % 9000)
    with contextlib.closing(DuckDB()) as engine:
        engine.add("v", dp.duckdb(place).table("v"), None, "u")
        engine.add("t", FRAME, None, "u")
        if change in ("table", "view"):
            other.rename(place)
        elif change == "gone":
            place.unlink()
        elif change == "moved and back":
            place.rename(tmp_path / "away")
            time.sleep(0.02)
            (tmp_path / "away").rename(place)
        elif change == "log":
            (tmp_path / "v.db.wal").write_bytes(b"")
        with pytest.raises(dp.EngineError), engine.snapshot() as snapshot:
            snapshot.run(KILLS)
        for _ in range(2):
            if change == "none":
                with engine.snapshot() as snapshot:
                    assert snapshot.run(Step("SELECT COUNT(*) FROM v", "")) == [(50,)]
                continue
            with pytest.raises(dp.EngineError) as told, engine.snapshot():
                pass
            assert str(told.value) == faults.REPLACED


def test_a_path_of_a_database_is_no_home_folder(tmp_path, monkeypatch):
    home, here = tmp_path / "home", tmp_path / "here"
    (here / "~").mkdir(parents=True)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    database(home / "v.db", TABLE % 9000)
    database(here / "~" / "v.db", TABLE % 50)
    with contextlib.closing(DuckDB()) as engine:
        engine.add("v", dp.duckdb("~/v.db").table("v"), None, "u")
        with engine.snapshot() as snapshot:
            assert snapshot.run(Step("SELECT COUNT(*) FROM v", "")) == [(50,)]


# Names that mean something to DuckDB


@pytest.mark.parametrize("name", ["~", "file:", "s3:", "http:", "[ab]", "*", "?", "a{b,c}"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_names_of_folders_are_names(tmp_path, monkeypatch, name, kind):
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    def write(place, people):
        place.mkdir(parents=True, exist_ok=True)
        table = pa.table({"u": people, "x": [1.0] * len(people), "i": [1] * len(people)})
        if kind == "parquet":
            pq.write_table(table, place / "v.parquet")
        else:
            table.to_pandas().to_csv(place / "v.csv", index=False)

    write(home, [f"h{each}" for each in range(500)])
    write(tmp_path, [f"h{each}" for each in range(500)])
    for each in "abc":
        write(here / each, [each])
    monkeypatch.chdir(here)
    assert asked(f"*/v.{kind}", max_rows=1) == pytest.approx(3, abs=0.5)
    write(here / name, ["eve"])
    assert asked(f"*/v.{kind}", max_rows=1) == pytest.approx(4, abs=0.5)
    one = "".join(f"[{char}]" if char in "*?[" else char for char in name)
    assert asked(f"{one}/v.{kind}", max_rows=1) == pytest.approx(1, abs=0.5)
    assert all(os.path.isabs(each) for each in Files(f"*/v.{kind}").paths())  # noqa: PTH117


def test_a_path_is_from_the_root_where_files_cannot_be_linked(tmp_path, monkeypatch):
    """As on systems without /proc."""
    monkeypatch.setattr(linked, "_OPEN", tmp_path / "no such names")
    test_names_of_folders_are_names(tmp_path, monkeypatch, "~", "parquet")


# One state of a file


A = "u,x,i\n" + "".join(f"{each + 1000},1,1\n" for each in range(300))
B = "x,u,i\n" + "".join(f"1,{each + 1000},1\n" for each in range(300))


@pytest.mark.parametrize("source", ["v.csv", "*.csv", "v.csv.gz", "*.csv.gz"])
@pytest.mark.parametrize("change", ["renamed", "written into"])
def test_the_first_line_and_the_rows_are_of_one_file(tmp_path, monkeypatch, source, change):
    """Between the two another file takes its place, whose columns lie the other way round."""
    packs = source.endswith(".gz")
    place = tmp_path / ("v.csv.gz" if packs else "v.csv")

    def pack(text):
        return gzip.compress(text.encode()) if packs else text.encode()

    place.write_bytes(pack(A))
    header, done = sources.csv_header, []

    def then(*given):
        found = header(*given)
        if not done and armed:
            done.append(1)
            time.sleep(0.02)
            if change == "renamed":
                (tmp_path / "new").write_bytes(pack(B))
                (tmp_path / "new").rename(place)
            else:
                with place.open("r+b") as file:
                    file.write(pack(B))
        return found

    armed = []
    monkeypatch.setattr(files, "csv_header", then)
    question = "SELECT COUNT(*) AS n FROM t WHERE x > 0 AND x < 5"
    with opened({"t": private(f"{tmp_path}/{source}", max_rows=1)}) as session:
        armed.append(1)
        if change == "renamed":
            assert counted(session, question) == pytest.approx(300, abs=0.5)
        elif source.startswith("*"):
            assert counted(session, question) == pytest.approx(0, abs=0.5)
        else:
            with pytest.raises(dp.ReleaseFailedError):
                counted(session, question)
        assert done
        assert counted(session, question + " AND i > 0") == pytest.approx(300, abs=0.5)


def test_a_csv_file_that_was_copied_may_be_written_into(tmp_path):
    place = tmp_path / "v.csv"
    place.write_text(A)
    steps = [Step("SELECT COUNT(*) FROM t", ""), Step("SELECT COUNT(*), COUNT(u) FROM t", "")]
    kinds = {name: dp.tables.ColumnType(kind) for name, kind in KINDS.items()}
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", str(place), kinds, "u")
        with engine.snapshot(steps) as snapshot:
            assert snapshot.run(steps[0]) == [(300,)]
            with place.open("a") as file:
                file.write("new,1,1\n")
            assert snapshot.run(steps[1]) == [(300, 300)]
        assert sorted(each.name for each in engine._spill.folder.iterdir()) == ["in-use"]


@pytest.mark.parametrize("recent", [False, True])
def test_a_time_that_is_put_back_hides_nothing(tmp_path, monkeypatch, recent):
    monkeypatch.setattr(linked, "_RECENT", 600.0 if recent else 0.05)
    place = tmp_path / "v.parquet"
    how = {"use_dictionary": False, "compression": "none"}
    new = packed(pa.table({"u": ["p"] * 100, "x": [2.0] * 100}), **how)
    place.write_bytes(packed(pa.table({"u": ["p"] * 100, "x": [1.0] * 100}), **how))
    os.utime(place, (1e9, 1e9))
    time.sleep(0.1)
    steps = [Step("SELECT SUM(x) FROM t", ""), Step("SELECT SUM(x), COUNT(*) FROM t", "")]
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", str(place), None, "u")
        with engine.snapshot(steps) as snapshot:
            assert snapshot.run(steps[0]) == [(100.0,)]
            with place.open("r+b") as file:
                file.write(new)
            os.utime(place, (1e9, 1e9))
            if recent:  # by the time of its change: it was copied
                assert snapshot.run(steps[1]) == [(100.0, 100)]
            else:
                with pytest.raises(dp.EngineError, match="written into"):
                    snapshot.run(steps[1])


# First lines


def test_a_first_line_that_is_too_long_is_damage(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(A)
    limit = sources._LONGEST_HEADER
    texts = {
        "long": b"u,x,i," + b"a" * (limit - 7) + b"\nb,1,1\n",
        "quoted": b'u,x,"' + b"a\n" * limit + b'"\nb,1,1\n',
        "many": b"u,x,i," + b",".join(b"c%d" % each for each in range(limit)) + b"\nb,1,1\n",
        "endless": b"a" * 3 * limit,
        "cut": b"u,x,i" + b" " * limit,
    }
    for text in texts.values():
        with gzip.open(tmp_path / "eve.csv.gz", "wb") as file:
            file.write(text)
        assert asked(f"{tmp_path}/*.csv.gz", max_rows=1) == pytest.approx(300, abs=0.5)
        with pytest.raises(dp.ParameterError, match="in fewer than 262,144 characters"):
            asked(f"{tmp_path}/eve.csv.gz")
    with gzip.open(tmp_path / "eve.csv.gz", "wb") as file:
        file.write(b"u,x,i," + b"a" * 100_000 + b"\nb,1,1\n")
    assert asked(f"{tmp_path}/*.csv.gz", max_rows=1) == pytest.approx(301, abs=0.5)


def test_a_first_line_takes_no_more_memory_than_its_limit(tmp_path):
    place = tmp_path / "eve.csv.gz"
    with gzip.open(place, "wb", compresslevel=1) as file:
        for _ in range(300):
            file.write(b"a" * 1_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(dp.ParameterError):
        sources.csv_header(str(place))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


# What is not the file's fault


def test_a_lack_of_room_is_not_taken_for_damage(tmp_path):
    """Whether other people's rows fit must not decide whether somebody's count."""
    source = folder(tmp_path, 1)
    pq.write_table(rows("eve", 300_000), tmp_path / "eve.parquet")
    step = Step("SELECT COUNT(*) FROM t WHERE x + i >= 0 AND u <> ''", "")
    kinds = {name: dp.tables.ColumnType(kind) for name, kind in KINDS.items()}
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", source, kinds, "u")
        engine._connection.execute("SET memory_limit = '3MB'")
        engine._connection.execute("SET max_temp_directory_size = '0KB'")
        with pytest.raises(dp.EngineError), engine.snapshot([step]) as snapshot:
            snapshot.run(step)


@pytest.mark.parametrize("when", ["looked for", "looked at", "opened"])
def test_a_lack_of_descriptors_is_not_taken_for_damage(tmp_path, monkeypatch, when):
    def none_left(*_, **__):
        raise OSError(errno.EMFILE, "too many")

    source = folder(tmp_path, 1)
    assert asked(source) == pytest.approx(1000, abs=100)
    if when == "looked for":
        monkeypatch.setattr(found.Folders, "__init__", none_left)
    elif when == "looked at":
        monkeypatch.setattr(found.Folders, "folder", none_left)
    else:
        monkeypatch.setattr(apart, "taken", none_left)
    with pytest.raises(dp.ReleaseFailedError):
        asked(source)


def test_a_pipe_that_takes_a_files_place_is_not_waited_for(tmp_path, monkeypatch):
    source = folder(tmp_path, 2)
    os.mkfifo(tmp_path / "eve.parquet")
    monkeypatch.setattr(files.Path, "is_file", lambda self: True)
    assert asked(source) == pytest.approx(2000, abs=100)


def test_who_interrupts_loses_no_file(tmp_path):
    """A question that was stopped fails; it does not go on without the file it was reading."""
    source = folder(tmp_path, 1)
    for each in range(4):
        pq.write_table(rows(f"m{each}", 300_000), tmp_path / f"m{each}.parquet")
    for delay in (0.02, 0.1, 0.3):
        with opened({"t": private(source, max_rows=10**6)}) as session:
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
            timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
            try:
                timer.start()
                assert counted(session) == pytest.approx(1_201_000, abs=9000)
                timer.join()
                time.sleep(0.05)
            except (KeyboardInterrupt, dp.DeniableError):
                pass
            finally:
                timer.cancel()
                signal.signal(signal.SIGINT, before)
