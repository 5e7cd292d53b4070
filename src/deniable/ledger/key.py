"""The key of the chain. It lives outside the database, so that who can edit rows cannot forge them.

`DENIABLE_LEDGER_KEY` (64 hexadecimal digits), or else a file that only its owner may read, made
when it is first needed.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from deniable.errors import LedgerError
from deniable.secret_file import write_secret

VARIABLE = "DENIABLE_LEDGER_KEY"
_FORM = re.compile(r"[0-9a-fA-F]{64}")


def load_key(path: str | Path | None = None, *, create: bool = True) -> bytes:
    """The key from the environment, or from a file, which is made if it is missing."""
    if path is None and (given := os.environ.get(VARIABLE)) is not None:
        return _read(given, f"the environment variable {VARIABLE}")
    file = Path(path) if path is not None else default_path()
    try:
        if not file.exists():
            if not create:
                raise LedgerError(
                    f"this ledger has a key, which is neither in {VARIABLE} nor in {file}"
                )
            _create(file)
        if file.stat().st_mode & 0o077:
            raise LedgerError(f"{file} may be read by others; run: chmod 600 {file}")
        return _read(file.read_text(encoding="ascii", errors="replace"), str(file))
    except OSError as cause:
        raise LedgerError(f"the ledger's key cannot be read: {cause.strerror}: {file}") from cause


def read_key(key: bytes) -> bytes:
    """A key that a program hands in."""
    given: object = key
    if not isinstance(given, bytes) or len(given) < 16:
        raise LedgerError("the key of a ledger must be 16 bytes or more")
    return key


def default_path() -> Path:
    """A file in the user's configuration folder."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "deniable" / "ledger.key"


def _create(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):  # another process was faster
        write_secret(file, f"{secrets.token_hex(32)}\n".encode())


def _read(text: str, where: str) -> bytes:
    if not _FORM.fullmatch(text.strip()):
        raise LedgerError(f"{where} must hold 64 hexadecimal digits")
    return bytes.fromhex(text.strip())
