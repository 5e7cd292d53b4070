"""CSV files that are written otherwise: another delimiter or encoding, or no line of names.

Nothing of it is guessed. What a file looks like is declared, for it must not follow from a row.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from deniable.closed import read_text
from deniable.errors import ParameterError, ParameterTypeError
from deniable.tables import LONGEST_TEXT, read_source

ENCODINGS = ("utf-8", "latin-1", "windows-1252")
"""In the last two each byte is a letter: no row can fail to be one, and no two become one."""

_CHUNK = 1 << 20
_DELIMITER = re.compile(r"[\t !#-/:-@\[-`{-~]")
# Bytes that are none in windows-1252 are the control signs that they are in latin-1.
_WINDOWS = {
    byte: bytes([byte]).decode("cp1252")
    for byte in range(0x80, 0xA0)
    if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}


@dataclass(frozen=True)
class CSVFormat:
    """How a CSV file is written."""

    delimiter: str | None = None
    """What stands between two cells; None: a tab in .tsv files, else a comma."""
    encoding: str = "utf-8"
    """One of `ENCODINGS`."""
    names: tuple[str, ...] | None = None
    """The names of its columns, in order, where the first line is a row; None: that names them."""

    def separator(self, path: str) -> str:
        if self.delimiter is not None:
            return self.delimiter
        return "\t" if re.search(r"\.tsv$", path.lower()) else ","


PLAIN = CSVFormat()
"""Commas or tabs, UTF-8, and names in the first line."""


@dataclass(frozen=True)
class CSVFiles:
    """A CSV file, or a pattern of such, and how they are written. Made by `csv`."""

    place: str
    form: CSVFormat

    @property
    def label(self) -> str:
        return f"{Path(self.place).absolute()}: {self.form}"


def csv(
    source: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    names: Sequence[str] | None = None,
) -> CSVFiles:
    """CSV files that are no plain ones: `dp.csv("visits.csv", delimiter=";", encoding="latin-1")`.

    Without `names` the first line names the columns; with them it is a row like the others.
    """
    given: object = source
    if not isinstance(given, str | Path):
        raise ParameterTypeError("source", type(given).__name__, "must be a path")
    form, path = csv_format(delimiter, encoding, names), str(read_source(given))
    if path.lower().endswith(".parquet"):
        raise ParameterError("source", path, "must end in .csv, .csv.gz or .tsv")
    return CSVFiles(path, form)


def csv_format(
    delimiter: str | None, encoding: str | None, names: Sequence[str] | None
) -> CSVFormat:
    """Read how a file is written; refuse what could be understood in two ways."""
    if delimiter is not None and not _DELIMITER.fullmatch(read_text(delimiter, "delimiter")):
        raise ParameterError("delimiter", delimiter, 'must be one sign, as ";" or "\\t"')
    if encoding is not None and encoding not in ENCODINGS:
        raise ParameterError("encoding", encoding, f"must be {', '.join(ENCODINGS)}; convert it")
    return CSVFormat(delimiter, encoding or "utf-8", None if names is None else _names(names))


def _names(names: Sequence[str]) -> tuple[str, ...]:
    given: object = names
    if not isinstance(given, list | tuple):
        raise ParameterTypeError("names", type(names).__name__, "must list names of columns")
    read = tuple(read_text(name, "names") for name in names)
    if not read or len({name.lower() for name in read}) != len(read):
        raise ParameterError("names", len(read), "must be one or more different names")
    for name in read:
        if not name or "\0" in name or len(name.encode()) > LONGEST_TEXT:
            raise ParameterError("names", "a name", f"has 1 to {LONGEST_TEXT:,} bytes, and no NUL")
    return read


def recode(descriptor: int, packed: bool, encoding: str, target: Path, most: int | None) -> None:
    """Write what an open file holds in UTF-8; each byte is a letter, so that nothing can fail.

    Of more than `most` bytes nothing is read: a packed file of a few may fill any disk.
    """
    with (
        os.fdopen(os.dup(descriptor), "rb") as stored,
        gzip.open(stored) if packed else nullcontext(stored) as plain,
        target.open("w", encoding="utf-8", newline="") as written,
    ):
        stored.seek(0)
        while chunk := plain.read(_CHUNK):
            if most is not None and written.tell() > most:
                raise OSError(errno.EFBIG, "a file is too large")
            written.write(decoded(chunk, encoding))


def decoded(stored: bytes, encoding: str) -> str:
    """The text of the beginning of a file."""
    if encoding == "utf-8":
        return stored.decode("utf-8-sig", errors="replace")
    text = stored.decode("latin-1")
    return text.translate(_WINDOWS) if encoding == "windows-1252" else text
