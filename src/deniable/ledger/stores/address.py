"""The address of a Postgres database that is written to, read before anything is connected.

What a password has in it may make the rest of it a host or a database, which messages name and
which is remembered as the place of a ledger. Such an address is refused, and not quoted.
"""

from __future__ import annotations

import re

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

_DRIVER = "postgresql+psycopg"
_DRIVERS = {"postgres", "postgresql", _DRIVER}


class AddressError(ValueError):
    """An address that is not read; what it says is ours, and quotes nothing of it."""


def read_address(text: str) -> sa.URL:
    """A URL of SQLite, or of Postgres with the driver that we use."""
    try:
        url = sa.make_url(text)
    except (SQLAlchemyError, ValueError):  # which quote parts of it
        url = None
    if url is None:
        raise AddressError("is no URL that can be read")
    if url.drivername in _DRIVERS:
        return _postgres(url.set(drivername=_DRIVER))
    if url.drivername not in {"sqlite", "sqlite+pysqlite"}:
        raise AddressError("must be of SQLite or Postgres: sqlite:///path or postgresql://...")
    if url.query or url.host or url.username or url.password or url.port:
        raise AddressError("must be a plain file in SQLite: sqlite:///path, without options")
    return url


def _postgres(url: sa.URL) -> sa.URL:
    hosts = [url.host or "", *(text for name in ("host", "hostaddr") for text in _said(url, name))]
    databases = [url.database or "", *_said(url, "dbname")]
    if any("@" in host for host in hosts) or any(re.search("[@/]", name) for name in databases):
        raise AddressError(
            "cannot be read as postgresql://user:password@host:port/database; in a password, "
            "write @ as %40, / as %2F, : as %3A, % as %25 and a space as %20"
        )
    return url


def _said(url: sa.URL, name: str) -> tuple[str, ...]:
    """What the options of an address say under a name."""
    said = url.query.get(name, ())
    return (said,) if isinstance(said, str) else tuple(said)
