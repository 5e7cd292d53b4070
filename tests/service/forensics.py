"""What somebody sees who takes a survey's store away: files, places in them, system columns."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from itertools import product
from pathlib import Path

import psycopg

from deniable.service.submission import written
from service.surveys import SCALE, survey

ROOT = Path(__file__).parents[2]
PEOPLE = 20
BY_LUCK = 14  # a random matching has so many right once in 14! = 9e10 times
DOCUMENT = survey(
    [{**SCALE, "id": f"q{i}", "text": {"en": f"{i}?"}, "low": 10, "high": 19} for i in range(3)]
)
TABLES = ("survey_spent", "survey_spent_fresh", "survey_answers", "survey_answers_fresh")


def reports_of(number):
    """Reports that no two people share."""
    return number // 100, number // 10 % 10, number % 10


def said(numbers):
    """Reports as they lie in the store."""
    return [written(reports_of(number)) for number in numbers]


def order_of(marks, raw):
    """Ways to put these marks in order by where they lie in these bytes; none if one is missing."""
    for find in (raw.find, raw.rfind):
        places = [find(mark.encode()) for mark in marks]
        if -1 not in places:
            order = sorted(range(len(marks)), key=places.__getitem__)
            yield order
            yield order[::-1]


def most_right(token_orders, report_orders):
    """How many are paired rightly by the best of all pairs of orders."""
    return max(
        (
            sum(a == b for a, b in zip(tokens, reports, strict=True))
            for tokens, reports in product(token_orders, report_orders)
        ),
        default=0,
    )


def paired_by_place(blobs, tokens, reports):
    """Of people in the order of these lists, how many the places in some bytes pair."""
    return most_right(
        [order for raw in blobs for order in order_of(tokens, raw)],
        [order for raw in blobs for order in order_of(reports, raw)],
    )


def rows_of(url):
    """All rows with who wrote them, by table, in one look."""
    parts = " UNION ALL ".join(
        f"SELECT '{name}', xmin::text::bigint, ctid::text, "
        f"{'token' if 'spent' in name else 'reports'} FROM {name}"
        for name in TABLES
    )
    with psycopg.connect(url) as connection:
        found = connection.execute(parts).fetchall()
    return {name: [row[1:] for row in found if row[0] == name] for name in TABLES}


def paired_by_writer(url, tokens, reports):
    """How many the numbers of transactions, and places under one number, pair."""
    rows = rows_of(url)
    orders = []
    for kind, marks in (("spent", tokens), ("answers", reports)):
        seen = [row for name in TABLES if kind in name for row in rows[name] if row[2] in marks]
        by_writer = sorted(seen, key=lambda row: (row[0], _place(row[1])))
        orders.append([marks.index(mark) for _, _, mark in by_writer])
    return most_right([orders[0]], [orders[1]])


def _place(ctid):
    return tuple(map(int, ctid.strip("()").split(",")))


def files_of(url, folder):
    """The files of the tables and their indexes, as they lie on disk now."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        paths = connection.execute(
            "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relname LIKE 'survey%'"
        ).fetchall()
    return [(folder / "data" / path).read_bytes() for (path,) in paths if path]


class Hurried:
    """A process that stores submissions one after the other, which can be stopped at any moment."""

    def __init__(self, where, codes):
        script = (
            "import sys, json; from service.forensics import store_all; "
            "store_all(sys.argv[1], json.load(sys.stdin))"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, str(where)],
            stdin=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
        )
        with self.process.stdin as told:
            told.write(json.dumps(codes).encode())

    def hold(self):
        """Stop it where it is; False where it has ended."""
        os.kill(self.process.pid, signal.SIGSTOP)
        stopped = os.WIFSTOPPED(os.waitpid(self.process.pid, os.WUNTRACED)[1])
        if not stopped:
            self.process.returncode = 0
        return stopped

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=60)


def store_all(where, codes):
    """What the process does."""
    from deniable.service.store import SurveyStore
    from deniable.service.submission import Submission

    store = SurveyStore(where)
    for number, code in enumerate(codes):
        nonce = os.urandom(16)
        store.accept(DOCUMENT, Submission(code.encode(), b"", nonce, reports_of(number)))


def taken_away(folder, copies):
    """Copy an SQLite store as it lies there; False where nothing is being written."""
    shutil.rmtree(copies, ignore_errors=True)
    if not (folder / "survey.db-journal").exists():
        return False
    shutil.copytree(folder, copies)
    return True


def being_written(copies):
    """Which kinds of rows a journal would change back."""
    after = (copies / "survey.db").read_bytes()
    with sqlite3.connect(copies / "survey.db") as plain:
        plain.execute("SELECT count(*) FROM sqlite_master").fetchone()
    plain.close()
    before = (copies / "survey.db").read_bytes()
    kinds = {
        "tokens": re.compile(DOCUMENT.id.encode() + rb"([0-9a-f]{64})"),
        "reports": re.compile(rb"\[\d,\d,\d\]"),
    }
    return {
        kind for kind, row in kinds.items() if set(row.findall(before)) != set(row.findall(after))
    }
