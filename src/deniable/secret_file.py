"""Files of secrets: whole or not at all, for their owner alone, and never replaced."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_secret(file: Path, content: bytes) -> None:
    """Write it whole under another name first; FileExistsError where another one is there."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.link(draft, file)
    finally:
        draft.unlink()
