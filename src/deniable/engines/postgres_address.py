"""Where a Postgres database is, as the driver reads its address: no password, no user."""

from __future__ import annotations

import re

from deniable.errors import MissingExtraError, ParameterError
from deniable.held import frameless

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    raise MissingExtraError("tables in Postgres", "postgres") from None


@frameless
def place_of(url: str) -> tuple[str, str, str]:
    """Hosts, ports and database; an address is refused in which a password may pass for them."""
    try:
        found = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.Error:  # which quotes parts of it
        found = {"port": "none"}
    host = found.get("host") or found.get("hostaddr") or ""
    port, database = found.get("port") or "5432", found.get("dbname") or ""
    # An @ or / of a password that stands as it is makes the rest of it a host or a database.
    if "@" in host or re.search("[@/]", database) or not re.fullmatch(r"[\d,]*", port):
        raise ParameterError(
            "url",
            "an address",
            "cannot be read as postgresql://user:password@host:port/database; in a password, write "
            "@ as %40, / as %2F, : as %3A, % as %25 and a space as %20",
        )
    return host.lower(), port, database
