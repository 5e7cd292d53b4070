"""What the key's folder remembers of every population: where its ledger was, and how far it was.

A ledger that was moved away, or put back from an older copy, would be a fresh budget for the same
people. So the last entry that spent something is kept beside the key, once it is in the ledger: a
crash in between forgets that one entry at most, and never locks anybody out. It is written down as
a draft before that: what could not be remembered, in a folder that is full or not to be written, is
not spent. A ledger that no longer holds what is remembered is refused. Who appends takes a turn,
from looking at what is remembered until the new entry is: of copies that are open at once, one goes
on.

The folder is that of the key's file, also where the key comes from the environment. Each machine
remembers for itself; what one has not seen, it cannot miss.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from deniable.errors import LedgerError, LedgerTamperedError
from deniable.ledger.key import VARIABLE, default_path
from deniable.randomness.fork import unforked


@dataclass(frozen=True)
class Remembered:
    """The last entry that was seen of a population, and where."""

    population: str
    place: str
    number: int
    mac: str


def memory_of(key: bytes) -> Memory | None:
    """The memory of a key; None, with a warning, where a key of the environment has no folder."""
    try:
        return Memory(key)
    except LedgerError as error:
        if VARIABLE not in os.environ:
            raise
        warnings.warn(f"{error}. A ledger that is set back is not noticed", stacklevel=4)
        return None


class Memory:
    """One small file for each population, under one key."""

    def __init__(self, key: bytes) -> None:
        self._key = hmac.new(key, b"what is remembered of ledgers", hashlib.sha256).digest()
        self._folder = default_path().parent / "ledgers" / self._key.hex()[:16]
        with self._told():
            default_path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.turn(""):
            pass

    def recall(self, population: str) -> Remembered | None:
        file = self._file(population)
        with self._told():
            try:
                text = file.read_bytes()
            except FileNotFoundError:
                return None
        try:
            data = json.loads(text)
            seal = data.pop("seal")
            found = Remembered(**data)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self._spoilt(file) from None
        if found.population != population or not hmac.compare_digest(self._seal(found), str(seal)):
            raise self._spoilt(file)
        return found

    def remember(self, seen: Remembered) -> None:
        """Keep an entry, unless a later one of the population is known; in a turn."""
        known = self.recall(seen.population)
        if known is None or known.number < seen.number:
            self._write(seen)
        elif known.place != seen.place:
            self._write(replace(known, place=seen.place))

    def draft(self, seen: Remembered) -> None:
        """Write down, whole and synced, what `keep` will make the memory; both in one turn."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with self._told():
            handle = os.open(self._draft(seen.population), flags, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump({**asdict(seen), "seal": self._seal(seen)}, out)
                out.flush()
                os.fsync(out.fileno())

    def keep(self, population: str) -> None:
        """Remember what was drafted in this turn."""
        with self._told():
            self._draft(population).rename(self._file(population))

    def exchange(
        self, population: str, seen: Remembered | None, told: Mapping[str, object]
    ) -> None:
        """Remember something else from now on, as the owner says; what was known is kept aside."""
        with self.turn(population):
            file = self._file(population)
            try:
                before = asdict(found) if (found := self.recall(population)) else None
            except LedgerTamperedError:
                before = {"unreadable": file.name}
            line = json.dumps({**told, "population": population, "was": before}, sort_keys=True)
            with self._told():
                with (self._folder / "accepted.jsonl").open("a", encoding="utf-8") as out:
                    out.write(line + "\n")
                    out.flush()
                    os.fsync(out.fileno())
                if seen is None:
                    file.unlink(missing_ok=True)
            if seen is not None:
                self._write(seen)

    def _write(self, seen: Remembered) -> None:
        self.draft(seen)
        self.keep(seen.population)

    @contextmanager
    def turn(self, population: str) -> Iterator[None]:
        """One at a time for a population, over all threads and processes; not one in another."""
        lock = self._file(population).with_suffix(".lock")
        with unforked():  # a child would hold the lock as long as it lives
            with self._told():
                handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                with self._told():
                    fcntl.flock(handle, fcntl.LOCK_EX)
                yield
            finally:
                fcntl.flock(handle, fcntl.LOCK_UN)  # for whoever has inherited it as well
                os.close(handle)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in our own words what the system reports."""
        try:
            yield
        except OSError as cause:
            raise LedgerError(
                f"{self._folder}, where it is remembered how far a ledger was, cannot be read or "
                f"written ({cause.strerror}); nothing was released. Mend that, or name another "
                "folder in XDG_CONFIG_HOME before a ledger is first used"
            ) from None

    def _draft(self, population: str) -> Path:
        return self._file(population).with_suffix(".draft")

    def _file(self, population: str) -> Path:
        return self._folder / f"{hashlib.sha256(population.encode()).hexdigest()[:32]}.json"

    def _seal(self, seen: Remembered) -> str:
        text = json.dumps(asdict(seen), sort_keys=True)
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    def _spoilt(self, file: Path) -> LedgerTamperedError:
        return LedgerTamperedError(
            f"{file}, where it is remembered how far a ledger was, was changed or is damaged; if "
            "the ledger is the right one, say so: deniable ledger accept"
        )
