"""A token is spent once: by processes that race, through kills, and in the file that was opened."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import deniable as dp
from deniable.randomness.fork import fork
from deniable.service.tokens import SpentFile

SRC = Path(dp.__file__).parents[1]

# All start on a token at the same moment, when the test says which; each says whether it won.
RACER = """
import sys
import deniable as dp
from deniable.service.tokens import SpentFile
spent = SpentFile(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    try:
        spent.spend(bytes.fromhex(line))
        print("won", flush=True)
    except dp.errors.TokenSpentError:
        print("lost", flush=True)
"""

# Says what it has spent; is killed in the middle.
SPENDER = """
import sys
from deniable.service.tokens import SpentFile
spent = SpentFile(sys.argv[1])
for number in range(int(sys.argv[2]), 10**9):
    spent.spend(number.to_bytes(32, "big"))
    print(number, flush=True)
"""


def start(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip


def test_many_processes_race_for_each_token(tmp_path):
    where, rounds = tmp_path / "spent.db", 30
    racers = [start(RACER, where) for _ in range(5)]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 5
    for number in range(rounds):
        for racer in racers:
            racer.stdin.write(f"{number:064x}\n")
            racer.stdin.flush()
        said = sorted(racer.stdout.readline() for racer in racers)
        assert said == ["lost\n"] * 4 + ["won\n"]
    for racer in racers:
        racer.communicate(timeout=60)
    assert [racer.returncode for racer in racers] == [0] * 5
    assert SpentFile(where).count() == rounds


def test_what_was_spent_before_a_kill_stays_spent(tmp_path):
    where, begin = tmp_path / "spent.db", 0
    for lines in (1, 2, 5, 17, 30):
        spender = start(SPENDER, where, begin)
        printed = [int(spender.stdout.readline()) for _ in range(lines)]
        spender.send_signal(signal.SIGKILL)
        printed += [int(line) for line in spender.communicate(timeout=60)[0].split("\n")[:-1]]
        assert spender.returncode == -signal.SIGKILL
        spent = SpentFile(where)
        for number in printed:
            with pytest.raises(dp.errors.TokenSpentError):
                spent.spend(number.to_bytes(32, "big"))
        # At most the one under way is spent without having been said.
        assert begin + len(printed) <= spent.count() <= begin + len(printed) + 1
        begin = spent.count()
        spent.close()


def test_a_child_of_a_fork_sees_what_its_parent_spent(tmp_path):
    spent = SpentFile(tmp_path / "spent.db")
    spent.spend(bytes(32))
    if (child := fork()) == 0:
        try:
            spent.spend(b"\1" * 32)
            spent.spend(bytes(32))
        except dp.errors.TokenSpentError:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with pytest.raises(dp.errors.TokenSpentError, match="spent before"):
        spent.spend(b"\1" * 32)


def test_rows_are_neither_changed_nor_removed_nor_numbered(tmp_path):
    where = tmp_path / "spent.db"
    spent = SpentFile(where)
    for first in (9, 3, 7):
        spent.spend(bytes([first]) * 32)
    assert where.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(where) as database:
        rows = database.execute("SELECT * FROM deniable_spent").fetchall()
        assert [row[0][0] for row in rows] == [3, 7, 9]  # not in the order they came
        for statement in (
            "DELETE FROM deniable_spent",
            "UPDATE deniable_spent SET digest = zeroblob(32)",
            "INSERT INTO deniable_spent VALUES ('text')",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                database.execute(statement)
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            database.execute("SELECT rowid FROM deniable_spent")
    database.close()
    assert spent.count() == 3


@pytest.mark.parametrize("digest", [b"", bytes(31), bytes(33)])
def test_digests_have_one_length(tmp_path, digest):
    with pytest.raises(dp.ParameterError, match="32 bytes"):
        SpentFile(tmp_path / "spent.db").spend(digest)


@pytest.mark.parametrize("digest", ["0" * 32, 5, None, bytearray(32)], ids=repr)
def test_digests_are_bytes(tmp_path, digest):
    with pytest.raises(dp.errors.ParameterTypeError, match="must be bytes"):
        SpentFile(tmp_path / "spent.db").spend(digest)


def test_a_file_that_was_removed_or_replaced_takes_no_token(tmp_path):
    where = tmp_path / "spent.db"
    spent = SpentFile(where)
    spent.spend(bytes(32))
    where.rename(tmp_path / "moved.db")
    with pytest.raises(
        dp.errors.TokenStoreError, match="removed or replaced; nothing was accepted"
    ):
        spent.spend(b"\1" * 32)
    SpentFile(where)
    with pytest.raises(dp.errors.TokenStoreError, match="removed or replaced"):
        spent.spend(bytes(32))
    assert SpentFile(tmp_path / "moved.db").count() == 1


def test_a_second_name_of_a_file_takes_no_token(tmp_path):
    spent = SpentFile(tmp_path / "spent.db")
    (tmp_path / "other.db").hardlink_to(tmp_path / "spent.db")
    with pytest.raises(dp.errors.TokenStoreError, match=r"second name.*nothing was accepted"):
        spent.spend(bytes(32))
    with pytest.raises(dp.errors.TokenStoreError, match="second name"):
        SpentFile(tmp_path / "other.db")


def test_places_that_cannot_hold_it_are_refused(tmp_path):
    (tmp_path / "text").write_text("no database at all " * 100)
    with pytest.raises(dp.errors.TokenStoreError, match="not a database; nothing was accepted"):
        SpentFile(tmp_path / "text")
    for place in (tmp_path, tmp_path / "no folder" / "spent.db", "a\0b"):
        with pytest.raises(dp.errors.TokenStoreError, match="cannot be kept"):
            SpentFile(place)
    with sqlite3.connect(tmp_path / "newer.db") as database:
        database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(dp.errors.TokenStoreError, match="newer version"):
        SpentFile(tmp_path / "newer.db")
