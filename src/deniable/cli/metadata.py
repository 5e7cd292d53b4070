"""The metadata file: tables, budget and ledger in TOML, read into a session.

    population = "clinic/patient"
    ledger = "ledger.db"

    [budget]
    epsilon = 3
    delta = 1e-6

    [tables.visits]
    source = "visits.parquet"
    unit = "patient_id"
    max_rows = 20
    bounds = { cost = [0, 5000] }

    [tables.wards]
    source = "wards.csv"
    public = true
    columns = { ward = "text", beds = "integer" }
    delimiter = ";"
    encoding = "latin-1"

Paths are relative to the file. Of a CSV file `names` lists the columns where its first line is a
row already.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.cli.guarantee import AMOUNTS, read_guarantee
from deniable.cli.toml import read_toml
from deniable.engines.csv_format import CSVFiles, csv
from deniable.engines.files import Files
from deniable.errors import ParameterError, ParameterTypeError
from deniable.ledger.filters import Budget
from deniable.ledger.ledger import Ledger
from deniable.privacy.units import ROW, Relation
from deniable.session import Session, Table
from deniable.tables import ColumnType, PrivateTable, PublicTable, nearest

_TOP = ("population", "ledger", "budget", "tables", "untested_engine", "allow_real_arithmetic")
_BUDGET = (*AMOUNTS, "keys_delta", "relation")
_FORMAT = ("delimiter", "encoding", "names")
_PUBLIC = ("source", "public", "columns", *_FORMAT)
_DECLARED = (  # as arguments of `PrivateTable`
    *("columns", "bounds", "keys", "grid"),
    *("max_rows", "max_groups", "cap_rows", "most_rows", "size", "version"),
)
_PRIVATE = ("source", "unit", "row", "public", "population", "looked", *_DECLARED, *_FORMAT)


@dataclass(frozen=True)
class Metadata:
    """What a metadata file declares."""

    file: Path
    tables: Mapping[str, Table]
    budget: Budget
    ledger: str
    untested_engine: bool = False
    allow_real_arithmetic: bool = False

    def session(self, *, who: str = "analyst", ledger: Ledger | None = None) -> Session:
        """A session on these tables; on another ledger where one is given."""
        with _placed(str(self.file)):
            return Session(
                self.tables,
                budget=self.budget,
                ledger=self.ledger if ledger is None else ledger,
                who=who,
                untested_engine=self.untested_engine,
                allow_real_arithmetic=self.allow_real_arithmetic,
            )

    def type_of(self, column: str) -> ColumnType | None:
        """The type that the file declares for a column of this name, in whichever table."""
        for table in self.tables.values():
            for name, kind in (table.columns or {}).items():
                if name.lower() == column.lower():
                    return kind
        return None


def read_metadata(file: Path) -> Metadata:
    """Read a metadata file; whatever is not understood is refused."""
    top = _Section(str(file), _parsed(file))
    top.allow(_TOP)
    budget = _budget(top.section("budget", "what all questions together may cost: epsilon = 3"))
    tables = top.section("tables", "one section for each: [tables.visits]")
    found = {
        name: _table(tables.section(name, ""), top.text("population"), file, budget.relation)
        for name in tables.values
    }
    ledger = top.text("ledger")
    if ledger is None:
        raise top.error("ledger", 'name the file that keeps the budget: ledger = "ledger.db"')
    place = ledger if "://" in ledger else str(file.parent / ledger)
    says = [top.truth(name) for name in ("untested_engine", "allow_real_arithmetic")]
    return Metadata(file, found, budget, place, *says)


def _parsed(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise ParameterError("file", file.name, f"no such file: {file}; `deniable init` drafts one")
    try:
        return read_toml(file.read_text(encoding="utf-8"))
    except ValueError as error:
        told = "it is not UTF-8" if isinstance(error, UnicodeError) else str(error)
        raise ParameterError(
            "file", file.name, f"{file} is not TOML: {told}; `deniable init` drafts one that is"
        ) from None


@dataclass(frozen=True)
class _Section:
    """Keys and values, and where they stand."""

    place: str
    values: Mapping[str, Any]

    def allow(self, known: tuple[str, ...]) -> None:
        for name, value in self.values.items():
            if name not in known:
                shown = "a section" if isinstance(value, dict) else value
                raise ParameterError(
                    f"{self.place}: {name}", shown, f"is not known here; {nearest(name, known)}"
                )

    def error(self, name: str, allowed: str) -> ParameterError:
        return ParameterError(f"{self.place}: {name}", self.values.get(name), allowed)

    def section(self, name: str, hint: str) -> _Section:
        value = self.values.get(name)
        if not (isinstance(value, dict) and value):
            raise self.error(name, f"must be a section{hint and ': ' + hint}")
        inner = f"[tables.{name}]" if self.place.endswith("[tables]") else f"[{name}]"
        place = self.place.removesuffix("[tables]").removesuffix(": ")
        return _Section(f"{place}: {inner}", value)

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        if value is not None and not (isinstance(value, str) and value):
            raise self.error(name, 'must be text in quotes: "..."')
        return value

    def truth(self, name: str) -> bool:
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            raise self.error(name, "must be true or false")
        return value


def _budget(section: _Section) -> Budget:
    section.allow(_BUDGET)
    values = section.values
    with _placed(section.place):
        return Budget(
            read_guarantee(values, f"{section.place}: epsilon"),
            relation=values.get("relation", Relation.ADD_REMOVE),
            keys_delta=values.get("keys_delta"),
        )


def _table(section: _Section, population: str | None, file: Path, relation: Relation) -> Table:
    if section.truth("public"):
        section.allow(_PUBLIC)
    else:
        section.allow(_PRIVATE)
    source = section.text("source")
    if source is None:
        raise section.error("source", 'name a CSV or Parquet file: source = "visits.parquet"')
    # Stars in the name of a source are meant; those in the name of its folder are not.
    place = str(Path(glob.escape(str(file.parent))) / source)
    files = Files.of(place)
    if not files.is_pattern and not Path(files.place).is_file():
        raise section.error("source", f"no such file: {files.place}")
    with _placed(section.place):
        read = _formatted(section, place)
        if section.truth("public"):
            return PublicTable(read, columns=section.values.get("columns"))
        return _private(section, read, population, relation)


def _formatted(section: _Section, place: str) -> str | CSVFiles:
    """The source, with how it is written where that is said."""
    said = [section.values.get(name) for name in _FORMAT]
    if all(each is None for each in said):
        return place
    delimiter, encoding, names = said
    return csv(place, delimiter=delimiter, encoding=encoding or "utf-8", names=names)


def _private(
    section: _Section, source: str | CSVFiles, population: str | None, relation: Relation
) -> PrivateTable:
    values, unit, row = section.values, section.text("unit"), section.truth("row")
    if (unit is None) != row:
        raise ParameterError(
            "unit", unit, 'say whose rows these are: unit = "patient_id", row = true or public'
        )
    people = section.text("population") or population
    if people is None:
        raise ParameterError("population", None, 'name it: population = "clinic/patient"')
    return PrivateTable(
        source,
        unit=ROW if unit is None else unit,
        population=people,
        relation=relation,
        looked=section.truth("looked"),
        **{name: values[name] for name in _DECLARED if name in values},
    )


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Say where in the file a fault is."""
    try:
        yield
    except ParameterError as error:
        if error.argument.startswith(place):
            raise
        kind = ParameterTypeError if isinstance(error, ParameterTypeError) else ParameterError
        raise kind(f"{place}: {error.argument}", error.value, error.allowed) from None
