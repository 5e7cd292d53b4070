"""What the key's folder remembers of every population: where its ledger was, and how far it was.

A ledger that was moved away, or put back from an older copy, would be a fresh budget for the same
people. So the last entry that spent something is kept beside the key, once it is in the ledger: a
crash in between forgets that one entry at most, and never locks anybody out. A ledger that no
longer holds what is remembered is refused. Who appends takes a turn, from looking at what is
remembered until the new entry is: of copies that are open at once, one goes on.

The folder is that of the key's file, also where the key comes from the environment. Each machine
remembers for itself; what one has not seen, it cannot miss.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from deniable.errors import LedgerError, LedgerTamperedError
from deniable.ledger.key import VARIABLE, default_path


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
        try:
            default_path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self.turn(""):
                pass
        except OSError as cause:
            raise LedgerError(
                f"{self._folder} cannot be written ({cause.strerror}), where it is remembered how "
                "far a ledger was; name another folder in XDG_CONFIG_HOME"
            ) from None

    def recall(self, population: str) -> Remembered | None:
        """What is remembered."""
        file = self._file(population)
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            seal = data.pop("seal")
            found = Remembered(**data)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
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
            with (self._folder / "accepted.jsonl").open("a", encoding="utf-8") as out:
                out.write(line + "\n")
                out.flush()
                os.fsync(out.fileno())
            if seen is None:
                file.unlink(missing_ok=True)
            else:
                self._write(seen)

    def _write(self, seen: Remembered) -> None:
        """Whole, under another name first: nobody ever reads half of it."""
        file = self._file(seen.population)
        draft = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump({**asdict(seen), "seal": self._seal(seen)}, out)
                out.flush()
                os.fsync(out.fileno())
            draft.rename(file)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    @contextmanager
    def turn(self, population: str) -> Iterator[None]:
        """One at a time for a population, over all threads and processes; not one in another."""
        lock = self._file(population).with_suffix(".lock")
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

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
