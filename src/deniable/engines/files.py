"""Files: one path, or a pattern of paths, as DuckDB is to read them.

What a pattern finds may be one person's file. So nothing follows from the first file, from how many
there are, or from their folders: names and types are declared, each file is read by the names of
its own columns, each cell through the leaf of its declared type. A column that a file does not have
is NULL; a file that cannot be read has no rows.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from urllib.parse import unquote

import duckdb as driver

from deniable.engines.base import quoted
from deniable.engines.csv_format import PLAIN, CSVFiles, CSVFormat
from deniable.engines.found import ANY_DEPTH, Found, found
from deniable.engines.leaves import CellReader, projection, why_left_out
from deniable.engines.linked import Linked, linked
from deniable.engines.sources import csv_header, csv_options, string_literal, unreadable
from deniable.errors import ParameterError
from deniable.tables import ColumnType, Schema

_PARTITION = re.compile(r"([^=*?\[\]]+)=.+", re.DOTALL)
_ESCAPED = re.compile(r"\[([*?\[])\]")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Stored:
    """A relation of the engine, what reads it, and the native types of its columns."""

    relation: str
    reader: CellReader
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
        return tuple(name for name, _ in self._named)

    @property
    def _named(self) -> list[tuple[str, int]]:
        """These columns, and which part of a path from the root is of the folder that names each.

        No other folder counts: those below one person's folder are hers to name.
        """
        parts = PurePath(self.place).parts
        before = len(Path(self.place).absolute().parts) - len(parts)
        named = ((place, _PARTITION.fullmatch(part)) for place, part in enumerate(parts[:-1]))
        return [(found[1], before + place) for place, found in named if found]

    def check(self) -> None:
        """Refuse what cannot be a place of files; whether a pattern finds any is not looked at."""
        if "://" in self.place:
            raise ParameterError("source", self.place, "must be a path on this machine")
        self._check_folders()
        if not self.is_pattern:
            if not Path(self.place).is_file():
                raise ParameterError("source", self.place, "no such file")
            return
        fixed = Path(self.place)
        while glob.has_magic(str(fixed)):
            fixed = fixed.parent
        if not fixed.is_dir():
            raise ParameterError("source", self.place, f"no such folder: {fixed}")

    def _check_folders(self) -> None:
        """Refuse folders of which nobody can tell which one names a column."""
        names = [name.lower() for name in self.partitions]
        for name in names:
            if names.count(name) > 1:
                raise ParameterError(
                    "source", self.place, f"two folders name the column {name}; one has to"
                )
        parts = PurePath(self.place).parts
        places = [place for place, part in enumerate(parts[:-1]) if _PARTITION.fullmatch(part)]
        if ANY_DEPTH in parts[: max(places, default=0)]:
            raise ParameterError(
                "source",
                self.place,
                f"after {ANY_DEPTH} it cannot be told which folder names a column; write * for "
                "each folder before it",
            )

    def paths(self) -> Iterator[str]:
        """The files that are there now, by name from the root; no link, pipe or device."""
        if not self.is_pattern:
            yield str(Path(self.place).absolute())
            return
        for each in self.found():
            yield each.path

    def found(self) -> Generator[Found]:
        """What a pattern finds now, to be read through the folders in which it was found."""
        yield from found(self.place)

    def link(self, path: str, folder: Path) -> Linked | None:
        """One of the files, kept open under a name in a folder; in UTF-8, if it is text."""
        return linked(path, folder, self.encoding_of(path))

    def encoding_of(self, path: str) -> str:
        """How a file is written; what is no text needs no copy."""
        return "utf-8" if path.lower().endswith(".parquet") else self.form.encoding

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
            reader = CellReader.PARQUET
        else:
            names = csv_header(path, link, self.form)
            options = csv_options(names, path, self.form)
            relation = f"read_csv({place}, hive_partitioning = false, {options})"
            relation = f"(SELECT * REPLACE ({_first(names[0])}) FROM {relation})"
            reader = CellReader.CSV
        described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        hidden = unreadable(connection, place) if reader == CellReader.PARQUET else {}
        values = self.values(path, unit)
        # The engine takes names for one that differ by their case alone, and the first of them.
        kept_out = {name.lower() for name in (*hidden, *values)}
        found = {str(r[0]): str(r[1]) for r in described if str(r[0]).lower() not in kept_out}
        if values:
            kept = ", ".join(map(quoted, found))
            made = ", ".join(
                f"{'NULL' if value is None else string_literal(value)}::VARCHAR AS {quoted(name)}"
                for name, value in values.items()
            )
            listed = f"{kept}, {made}" if kept else made
            relation = f"(SELECT {listed} FROM {relation})"
            found |= dict.fromkeys(values, "VARCHAR")
        return Stored(relation, reader, found, hidden)

    def values(self, path: str, unit: str | None) -> dict[str, str | None]:
        """What the folders of a path say of the columns that the pattern names.

        Text, until a leaf reads it. A unit stands as it is written: two ways to write a name may be
        two people.
        """
        parts = Path(path).absolute().parts
        return {
            name: _text(parts[place][len(name) + 1 :], as_written=name.lower() == unit)
            for name, place in self._named
        }

    def whose(self, path: str, unit: str | None) -> str | None:
        """The unit to which a folder of a path gives its files, if one does."""
        values = self.values(path, unit).items()
        return next((value for name, value in values if name.lower() == unit), None)

    def exact(self, columns: Mapping[str, ColumnType]) -> frozenset[str]:
        """Declared columns whose different values stay different, or are NULL."""
        if self.place.lower().endswith(".parquet"):
            folders = {name.lower() for name in self.partitions}
            return frozenset(
                name
                for name, kind in columns.items()
                if name.lower() not in folders or kind == ColumnType.TEXT
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


def _first(name: str) -> str:
    """The first cell of a line, as it stands.

    After an empty line that ends in CR LF, and lies where DuckDB reads the next 32 MB of a file, it
    begins the cell with LF: where that is follows from the lengths of all lines before.
    """
    return f"NULLIF(ltrim({quoted(name)}, chr(10)), '') AS {quoted(name)}"


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
