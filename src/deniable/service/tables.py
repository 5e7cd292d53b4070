"""The tables of a survey store. None has a column for a time or an address."""

from __future__ import annotations

import sqlalchemy as sa

METADATA = sa.MetaData()


def _keyed(name: str, key: str, content: str) -> sa.Table:
    return sa.Table(
        name,
        METADATA,
        sa.Column("survey", sa.Text, primary_key=True),
        sa.Column(key, sa.Text, primary_key=True),
        sa.Column(content, sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )


# SQLite: without row numbers, rows lie in the order of their random keys, not of their arrival.
SURVEYS = sa.Table(
    "survey_documents",
    METADATA,
    sa.Column("survey", sa.Text, primary_key=True),
    sa.Column("document", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)
INVITATIONS = sa.Table(
    "survey_invitations",
    METADATA,
    sa.Column("code", sa.Text, primary_key=True),
    sa.Column("survey", sa.Text, nullable=False, index=True),
    sa.Column("person", sa.Text),
    sa.UniqueConstraint("survey", "person"),
    sqlite_with_rowid=False,
)
SPENT = _keyed("survey_spent", "token", "fingerprint")
ANSWERS = _keyed("survey_answers", "key", "reports")
# Invitations that bought a token: by the hash of a code, one of what was signed for it.
MARKS = _keyed("survey_marks", "code", "blinded")
# What came last, among others (see `pool.py`).
SPENT_FRESH = _keyed("survey_spent_fresh", "token", "fingerprint")
ANSWERS_FRESH = _keyed("survey_answers_fresh", "key", "reports")
MARKS_FRESH = _keyed("survey_marks_fresh", "code", "blinded")
# Surveys that take no more answers.
CLOSED = sa.Table(
    "survey_closed",
    METADATA,
    sa.Column("survey", sa.Text, primary_key=True),
    sqlite_with_rowid=False,
)
