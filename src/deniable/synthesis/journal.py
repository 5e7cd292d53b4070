"""What was drawn so far, kept in a file, so that an interrupted run can go on from there."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from deniable.errors import ParameterError

Entry = dict[str, Any]
_SEAL, _START = "seal", '{"draw": '


class Journal:
    """Released values, in the order of their release; with a path, each is on disk at once.

    A journal holds only what was released: it is as public as the answer. With a `key` every line
    is sealed with all lines before it, and lines that were changed, moved or come from another door
    are refused: what the ledger records as an answer was drawn.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        key: bytes | None = None,
        entries: Sequence[Entry] = (),
    ) -> None:
        self._path = None if path is None else Path(path)
        self._key, self._last = key, ""
        self._entries: list[Entry] = list(entries)
        if self._path is not None and self._path.exists():
            self._entries = [self._opened(entry) for entry in _read(self._path)]

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    def append(self, entry: Entry) -> None:
        """Keep one more, durably."""
        self._entries.append(entry)
        if self._path is None:
            return
        sealed = entry if self._key is None else {**entry, _SEAL: self._seal(entry)}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(sealed) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _opened(self, stored: Entry) -> Entry:
        entry = {name: value for name, value in stored.items() if name != _SEAL}
        if self._key is not None:
            seal = str(stored.get(_SEAL, ""))
            if not hmac.compare_digest(self._seal(entry).encode(), seal.encode()):
                assert self._path is not None
                raise ParameterError(
                    "resume", self._path.name, "was changed, or belongs to another ledger"
                )
        return entry

    def _seal(self, entry: Entry) -> str:
        """Of this line and all before it; the next one is sealed with it."""
        assert self._key is not None
        text = json.dumps([self._last, entry], sort_keys=True)
        self._last = hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()
        return self._last


@contextmanager
def alone(path: str | Path | None) -> Iterator[None]:
    """The file of a journal, made if it is missing, for one run at a time.

    Two that write into it would leave lines that no seal covers. One that cannot be written, or
    that another run holds, is refused before anything is charged.
    """
    if path is None:
        yield
        return
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        raise ParameterError("journal", str(path), f"cannot be written: {error.strerror}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fsync(handle)
        except OSError:
            raise ParameterError(
                "journal", str(path), "is in use by another run; let that end, or name another file"
            ) from None
        yield
    finally:
        with suppress(OSError):  # for a forked child as well, which may live on
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def begun(path: str | Path) -> list[Any] | None:
    """What the first line of a journal says that was opened, if there is one."""
    file = Path(path)
    entries = _read(file) if file.is_file() else []
    if not entries:
        return None
    first = entries[0]["draw"]
    if not isinstance(first, list) or len(first) != 3 or type(first[1]) is not int:
        raise ParameterError("resume", file.name, "is no journal of a synthesis")
    return list(first)


def _read(path: Path) -> list[Entry]:
    """All whole lines; a last one that was cut off was never used."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        found = [json.loads(line) for line in lines[:-1]]
    except (ValueError, RecursionError):
        raise ParameterError("resume", path.name, "is no journal of a synthesis") from None
    size = min(len(lines[-1]), len(_START))
    whole = all(isinstance(entry, dict) and {"draw", "price"} <= set(entry) for entry in found)
    if not whole or lines[-1][:size] != _START[:size]:
        raise ParameterError("resume", path.name, "is no journal of a synthesis")
    if lines[-1]:  # cut off: what follows must begin on a line of its own
        path.write_text("".join(f"{line}\n" for line in lines[:-1]), encoding="utf-8")
    return found
