"""Files, servers and keys: what is missing, broken, moved or shared."""

import sqlite3
import subprocess
import sys
import traceback

import pytest
import sqlalchemy as sa

import deniable as dp
from clinic import CLINIC, reserve
from deniable.ledger.filters import Budget
from deniable.ledger.key import load_key
from deniable.ledger.ledger import Ledger
from deniable.ledger.verify import verify
from deniable.service.store import SurveyStore


class TestFiles:
    def test_a_ledger_survives_its_process(self, tmp_path):
        file = tmp_path / "ledger.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            head = ledger.answer(reserve(ledger, CLINIC), 7).head
        with Ledger(file, create=False) as again:
            assert again.populations() == [CLINIC]
            assert verify(again, CLINIC, head=head).reservations == 1
            assert again.balance(CLINIC).remaining["epsilon"] == dp.PureDP(0.9).epsilon

    def test_missing_folders_and_files(self, tmp_path):
        with pytest.raises(dp.LedgerError, match="no folder"):
            Ledger(tmp_path / "missing" / "ledger.db")
        with pytest.raises(dp.LedgerError, match="no ledger"):
            Ledger(tmp_path / "ledger.db", create=False)
        with pytest.raises(dp.LedgerError, match="SQLite or Postgres"):
            Ledger("mysql://localhost/x")

    def test_files_that_are_no_ledger(self, tmp_path):
        file = tmp_path / "ledger.db"
        file.write_text("these are no pages of a database" * 100)
        with pytest.raises(dp.LedgerError, match=r"ledger\.db"):
            Ledger(file)

    def test_truncated_files(self, tmp_path):
        file = tmp_path / "ledger.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            for _ in range(9):
                ledger.answer(reserve(ledger, CLINIC), "x" * 2000)
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(dp.LedgerError):
            verify(Ledger(file), CLINIC)

    def test_a_second_name_of_a_file_is_refused(self, tmp_path):
        """SQLite keeps what a crash leaves half done beside one name, and undoes it there alone."""
        file, other = tmp_path / "ledger.db", tmp_path / "other.db"
        ledger = Ledger(file)
        ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
        other.hardlink_to(file)
        for place in (file, other):
            with pytest.raises(dp.LedgerError, match="second name"):
                Ledger(place)
        with pytest.raises(dp.LedgerError, match=r"second name.*nothing was released"):
            reserve(ledger, CLINIC)
        other.unlink()
        reserve(ledger, CLINIC)

    def test_a_file_that_is_put_away_as_an_entry_is_written_releases_nothing(
        self, tmp_path, request
    ):
        file = tmp_path / "ledger.db"
        ledger = Ledger(file, key=bytes(32))
        ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
        older = file.read_bytes()

        @sa.event.listens_for(sa.Engine, "commit")
        def put_away(_):
            file.unlink()
            file.write_bytes(older)

        request.addfinalizer(lambda: sa.event.remove(sa.Engine, "commit", put_away))
        with pytest.raises(dp.LedgerError, match="removed or replaced; nothing was released"):
            dp.Gate(ledger, CLINIC, "ana").open(dp.losses.PureLoss(bound=1), purpose="x")

    def test_a_newer_schema_is_refused(self, tmp_path):
        file = tmp_path / "ledger.db"
        Ledger(file).close()
        with sqlite3.connect(file) as raw:
            raw.execute("INSERT INTO deniable_schema VALUES (99)")
        raw.close()
        with pytest.raises(dp.LedgerError, match="newer version"):
            Ledger(file)

    def test_rows_cannot_be_changed_or_removed(self, tmp_path):
        file = tmp_path / "ledger.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
        raw = sqlite3.connect(file)
        for statement in ("UPDATE deniable_entries SET mac = 'x'", "DELETE FROM deniable_entries"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                raw.execute(statement)
        raw.close()

    def test_a_full_disk_releases_nothing(self, tmp_path):
        file = tmp_path / "ledger.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            pages = sqlite3.connect(file).execute("PRAGMA page_count").fetchone()[0]
            with ledger.store._own.connect() as connection:  # the pool has one connection
                connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
            reservation = reserve(ledger, CLINIC)
            with pytest.raises(dp.LedgerError, match="full"):
                ledger.answer(reservation, "x" * 400_000)
        with Ledger(file) as again:
            verify(again, CLINIC)


class TestKeys:
    def test_a_key_file_is_made_for_its_owner_only(self, tmp_path, monkeypatch):
        monkeypatch.delenv("DENIABLE_LEDGER_KEY")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        key = load_key()
        file = tmp_path / "deniable" / "ledger.key"
        assert file.stat().st_mode & 0o777 == 0o600
        assert load_key() == key
        assert len(key) == 32
        file.chmod(0o644)
        with pytest.raises(dp.LedgerError, match="chmod 600"):
            load_key()

    @pytest.mark.parametrize("bad", ["", "abc", "g" * 64])
    def test_bad_keys(self, bad, monkeypatch):
        monkeypatch.setenv("DENIABLE_LEDGER_KEY", bad)
        with pytest.raises(dp.LedgerError, match="64 hexadecimal"):
            Ledger()
        with pytest.raises(dp.LedgerError, match="16 bytes"):
            Ledger(key=b"short")


@pytest.mark.parametrize(
    "where",
    [
        *("", ":memory:", "sqlite://", "sqlite:///", "postgresql+foo://x/y", "mysql://x/y"),
        *("sqlite://u@h/l.db", "sqlite:///l.db?mode=ro"),
    ],
)
def test_places_that_keep_nothing_are_refused(where):
    with pytest.raises(dp.LedgerError):
        Ledger(where)


def test_odd_file_names_are_file_names(tmp_path):
    with Ledger(tmp_path / "a?b#c.db") as ledger:
        ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
    assert (tmp_path / "a?b#c.db").stat().st_mode & 0o777 == 0o600
    with Ledger(f"sqlite:///{tmp_path}/plain.db") as ledger:
        ledger.open("others", Budget(dp.PureDP(1)), who="owner")
    assert (tmp_path / "plain.db").exists()


@pytest.mark.parametrize("open_at", [Ledger, SurveyStore], ids=["ledger", "survey store"])
@pytest.mark.parametrize(
    "where",
    [
        "postgresql://someone:s3cret@127.0.0.1:1/x?password=s3cret2",
        *("postgresql://u:a@s3cret@127.0.0.1:1/x", "postgres://u:a@s3cret@s3cret@127.0.0.1:1/x"),
        *("postgresql://u@/x?host=a@s3cret", "postgresql://u@127.0.0.1:1/x?dbname=s3cret@h/x"),
        *("postgresql://u:s3cret@127.0.0.1:bad/x", "postgresql://u:s3cret@[::1/x"),
        *("postgresql://u:s3cret@127.0.0.1:99999/x", "postgres://u:s3cret@127.0.0.1:1/x?no=one"),
        *("mysql://u:s3cret@h/d", "sqlite://u:s3cret@h/d", "postgresql+no://u:s3cret@h/d"),
    ],
)
def test_passwords_are_not_printed(open_at, where):
    with pytest.raises(dp.DeniableError) as caught:
        open_at(where)
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    frames = [frame.locals for frame in told.stack if "/deniable/" in frame.filename]
    assert "s3cret" not in str(caught.value) + repr(frames)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_postgres_stays_in_its_schema(postgres):
    import psycopg

    name = f"{CLINIC}/schema"
    with Ledger(postgres.url) as ledger:
        ledger.open(name, Budget(dp.PureDP(1)), who="owner")
        with psycopg.connect(postgres.url, autocommit=True) as raw:
            raw.execute("CREATE SCHEMA IF NOT EXISTS deniable")  # the user's name comes first
            with pytest.raises(psycopg.Error, match="append-only"):
                raw.execute("TRUNCATE public.deniable_entries")
        with Ledger(postgres.url) as again:
            assert name in again.populations()
        reserve(ledger, name)
        with psycopg.connect(postgres.url, autocommit=True) as raw:
            raw.execute("DROP SCHEMA deniable")


def test_keys_are_made_whole_by_many_processes(tmp_path, monkeypatch):
    monkeypatch.delenv("DENIABLE_LEDGER_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    script = "from deniable.ledger.key import load_key; print(load_key().hex())"
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert len({process.communicate(timeout=60)[0] for process in processes}) == 1


@pytest.mark.parametrize(
    "where",
    [
        "sqlite:///file:x?mode=memory&cache=shared&uri=true",
        "sqlite:///x.db?timeout=abc",
        "file:y.db",
        "sqlite+foo:///x.db",
        "a\0b.db",
        "x" * 5000,
    ],
)
def test_options_and_odd_names_are_refused(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dp.LedgerError):
        Ledger(where)
    assert not list(tmp_path.iterdir())


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Ledger("ledger.db") as ledger:
        ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
        monkeypatch.chdir("/")
        reserve(ledger, CLINIC)
        assert ledger.balance(CLINIC).releases == 1


def test_who_may_only_read_can_verify(postgres):
    import psycopg

    name = f"{CLINIC}/reader"
    with Ledger(postgres.url) as ledger:
        ledger.open(name, Budget(dp.PureDP(1)), who="owner")
        with psycopg.connect(postgres.url, autocommit=True) as raw:
            raw.execute("CREATE ROLE reader LOGIN")
            raw.execute("GRANT SELECT ON deniable_entries, deniable_schema TO reader")
        url = postgres.url.replace("deniable@", "reader@")
        with Ledger(url, create=False) as reader:
            assert verify(reader, name).entries == 1
            with pytest.raises(dp.LedgerError, match="only read"):
                reserve(reader, name)
        with psycopg.connect(postgres.url, autocommit=True) as raw:
            raw.execute("DROP OWNED BY reader")
            raw.execute("DROP ROLE reader")
