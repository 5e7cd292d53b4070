"""Files: one path, or a pattern of paths, as DuckDB is to read them.

What a pattern finds may be one person's file. So nothing follows from the first file, from how many
there are, or from their folders: names and types are declared, each file is read by the names of
its own columns, each cell through the leaf of its declared type. A column that a file does not have
is NULL; a file that cannot be read has no rows.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from urllib.parse import unquote

import duckdb as driver

from deniable.engines.base import quoted
from deniable.engines.csv_format import PLAIN, CSVFiles, CSVFormat
from deniable.engines.found import found
from deniable.engines.leaves import Reader, projection, why_left_out
from deniable.engines.linked import Linked, linked, recoded
from deniable.engines.sources import csv_options, string_literal, unreadable
from deniable.errors import ParameterError
from deniable.tables import ColumnType, Schema

_PARTITION = re.compile(r"([^=*?\[\]]+)=(.+)")
_ESCAPED = re.compile(r"\[([*?\[])\]")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Stored:
    """A relation of the engine, what reads it, and the native types of its columns."""

    relation: str
    reader: Reader
    found: Mapping[str, str]
    hidden: Mapping[str, str] = field(default_factory=dict)
    """Columns that are not read whatever is declared, and why."""

    def left_out(self, columns: Mapping[str, ColumnType] | None) -> dict[str, str]:
        """The stored columns that are not read, and why."""
        found = dict(self.hidden)
        for name, native in self.found.items():
            if columns is not None and name not in columns:
                found[name] = why_left_out(native) or "it is not declared"
            elif columns is None and (why := why_left_out(native)):
                found[name] = why
        return found


@dataclass(frozen=True)
class Files:
    """A path, or a pattern, whose folders may name columns: "visits/day=*/*.parquet"."""

    place: str

    @staticmethod
    def of(source: str | CSVFiles) -> Files:
        """Of a path; signs of patterns that stand for themselves, as in [*], are letters."""
        place, form = source, PLAIN
        if isinstance(source, CSVFiles):
            place, form = source.place, source.form
        assert isinstance(place, str)
        if glob.has_magic(_ESCAPED.sub("", place)):
            return Files(place, form=form)
        return Files(_ESCAPED.sub(r"\1", place), is_pattern=False, form=form)

    is_pattern: bool = True
    """Whether it may find any number of files."""
    form: CSVFormat = PLAIN
    """How CSV files are written."""

    @property
    def is_kept_open(self) -> bool:
        """Whether it is one file that is quicker to read twice than to copy."""
        return not self.is_pattern and self.place.lower().endswith(".parquet")

    @property
    def partitions(self) -> tuple[str, ...]:
        """The columns that the pattern itself names, and whose values stand in the paths."""
        parts = PurePath(self.place).parts[:-1]
        return tuple(found[1] for part in parts if (found := _PARTITION.fullmatch(part)))

    def check(self) -> None:
        """Refuse what cannot be a place of files; whether a pattern finds any is not looked at."""
        if "://" in self.place:
            raise ParameterError("source", self.place, "must be a path on this machine")
        if not self.is_pattern:
            if not Path(self.place).is_file():
                raise ParameterError("source", self.place, "no such file")
            return
        fixed = Path(self.place)
        while glob.has_magic(str(fixed)):
            fixed = fixed.parent
        if not fixed.is_dir():
            raise ParameterError("source", self.place, f"no such folder: {fixed}")

    def paths(self) -> Iterator[str]:
        """The files that are there now, by name from the root; no link, pipe or device."""
        if not self.is_pattern:
            yield str(Path(self.place).absolute())
            return
        yield from found(self.place)

    def link(self, path: str, folder: Path) -> Linked | None:
        """One of the files, kept open under a name in a folder; in UTF-8, if it is text."""
        if self.form.encoding == "utf-8" or path.lower().endswith(".parquet"):
            return linked(path, folder)
        return recoded(path, folder, self.form.encoding)

    def stored(
        self,
        connection: driver.DuckDBPyConnection,
        path: str,
        unit: str | None = None,
        link: str | None = None,
    ) -> Stored:
        """How one of the files is read, through a link to it or not; no row is."""
        # From the root: DuckDB takes ~ for a home folder, and what stands before : for a protocol.
        place = string_literal(str(Path(link or path).absolute()).translate(_LITERAL))
        if path.lower().endswith(".parquet"):
            # The default raises for one text that is not UTF-8.
            relation = (
                f"read_parquet({place}, utf8_validation = 'replace', hive_partitioning = false)"
            )
            reader = Reader.PARQUET
        else:
            options = csv_options(path, link, self.form)
            relation = f"read_csv({place}, hive_partitioning = false, {options})"
            reader = Reader.CSV
        described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        hidden = unreadable(connection, place) if reader == Reader.PARQUET else {}
        found = {str(row[0]): str(row[1]) for row in described if str(row[0]) not in hidden}
        values = self._values(path, unit)
        if values:
            kept = ", ".join(quoted(name) for name in found if name not in values)
            made = ", ".join(
                f"{'NULL' if value is None else string_literal(value)}::VARCHAR AS {quoted(name)}"
                for name, value in values.items()
            )
            listed = f"{kept}, {made}" if kept else made
            relation = f"(SELECT {listed} FROM {relation})"
            found |= dict.fromkeys(values, "VARCHAR")
        return Stored(relation, reader, found, hidden)

    def _values(self, path: str, unit: str | None) -> dict[str, str | None]:
        """The values of the partitions, as a path says them: text, until a leaf reads them.

        A unit stands as it is written: two ways to write a name may be two people.
        """
        values: dict[str, str | None] = {}
        named = self.partitions
        for part in PurePath(path).parts[:-1]:
            found = _PARTITION.fullmatch(part)
            if found and found[1] in named:
                values[found[1]] = _text(found[2], as_written=found[1].lower() == unit)
        return values

    def exact(self, columns: Mapping[str, ColumnType]) -> frozenset[str]:
        """Declared columns whose different values stay different, or are NULL."""
        if self.place.lower().endswith(".parquet"):
            return frozenset(
                name
                for name, kind in columns.items()
                if name not in self.partitions or kind == ColumnType.TEXT
            )
        return frozenset(name for name, kind in columns.items() if kind == ColumnType.TEXT)

    def leaves(
        self,
        connection: driver.DuckDBPyConnection,
        path: str,
        schema: Schema,
        unit: str | None,
        link: str | None = None,
    ) -> str:
        """SELECT the canonical columns of one of the files."""
        stored = self.stored(connection, path, unit, link)
        return projection(schema, stored.found, stored.relation, stored.reader, unit)


def _text(written: str, *, as_written: bool) -> str | None:
    """What the name of a folder says; nothing, where that is no text."""
    try:
        text = written if as_written else unquote(written, errors="strict")
        text.encode()
    except UnicodeError:
        return None
    return None if text == _NO_VALUE or "\0" in text else text


# A path is a pattern to DuckDB: what would be a sign in it stands for itself.
_LITERAL = str.maketrans({char: f"[{char}]" for char in "*?["})
