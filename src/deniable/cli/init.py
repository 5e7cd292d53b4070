"""`deniable init`: a metadata file drafted from a schema.

A Parquet file tells its types, and no row of it is read. A CSV file has none: they are read from
its rows, as the owner's own act, and are the owner's to confirm. Nothing else is taken from rows.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from sqlglot import exp

from deniable.cli.failures import told
from deniable.cli.guarantee import read_guarantee
from deniable.cli.header import check_header
from deniable.cli.query import waiting
from deniable.engines.csv_format import PLAIN, CSVFormat, csv_format
from deniable.engines.duckdb import DuckDB
from deniable.engines.files import Files
from deniable.engines.sources import csv_header, first_line
from deniable.engines.stored_cells import csv_types, left_out
from deniable.errors import ParameterError, QueryError
from deniable.ledger.filters import Budget
from deniable.privacy.exact import exact, show
from deniable.query.read.resolve import parse
from deniable.tables import ColumnType, nearest, read_source

_NUMBERS = {ColumnType.INTEGER, ColumnType.NUMBER}
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class FileColumns:
    """What a file tells of its columns."""

    columns: Mapping[str, ColumnType]
    left_out: Mapping[str, str]
    typed: bool
    """Whether the file tells its types; else they were read from its rows."""
    form: CSVFormat


@dataclass(frozen=True)
class Draft:
    """What is known before the owner has filled in the rest."""

    table: str
    source: str
    unit: str | None
    population: str
    ledger: str
    epsilon: str
    delta: str | None
    file: FileColumns


@told("init")
def init(  # noqa: PLR0917
    source: Annotated[str, typer.Argument(help="A CSV or Parquet file, or a pattern of such.")],
    budget: Annotated[float, typer.Option(help="ε that all questions together may cost.")],
    unit: Annotated[
        str | None, typer.Option(help="The column that says whose row it is: patient_id.")
    ] = None,
    row: Annotated[bool, typer.Option("--row", help="Every row is a person of its own.")] = False,
    delta: Annotated[
        float | None, typer.Option(help="δ of the budget; without it: pure ε.")
    ] = None,
    population: Annotated[
        str | None, typer.Option(help="Whose budget it is; 'visits/patient_id' unless given.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Where the budget is kept; ledger.db unless given.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="The file to write; visits.toml unless given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    delimiter: Annotated[
        str | None, typer.Option(help="Between the cells of a CSV file; a comma unless given.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Of a CSV file: utf-8 unless given, latin-1, windows-1252.")
    ] = None,
    header: Annotated[
        bool, typer.Option(help="Whether the first line of a CSV file names its columns.")
    ] = True,
) -> None:
    """Draft the metadata file of a table from its schema; bounds and keys are left to you.

    A CSV file has no types: running this command on one reads them from its rows, for you to
    confirm. No row of a Parquet file is read.

    Example: deniable init visits.parquet --unit patient_id --budget 3 --delta 1e-6
    """
    if (unit is None) != row:
        raise ParameterError("unit", unit, "say whose rows these are: --unit COLUMN, or --row")
    if Path(source).is_file():
        source = glob.escape(source)  # signs in its name are letters
    found = _schema(str(read_source(source)), delimiter, encoding, header=header)
    columns = dict(found.columns)
    if unit is not None and unit not in columns:
        near = found.typed or not header
        hint = nearest(unit, columns) if near else "the first line of the file does not name it"
        raise ParameterError("unit", unit, f"no such column; {hint}")
    if unit is not None and not found.typed:
        columns[unit] = ColumnType.TEXT  # as it stands: two ways to write a number are two people
    table = _identifier(source)
    target = Path(f"{table}.toml") if output is None else output
    Budget(read_guarantee({"epsilon": budget, "delta": delta}))
    draft = Draft(
        table=table,
        source=_seen_from(target, source),
        unit=unit,
        population=population or f"{table}/{unit or 'row'}",
        ledger="ledger.db" if ledger is None else _seen_from(target, ledger),
        epsilon=show(exact(budget, "budget")),
        delta=None if delta is None else show(exact(delta, "delta")),
        file=replace(found, columns=columns),
    )
    _write(target, "\n".join(_lines(draft)) + "\n", force=force)
    _tell(target, draft)


def _schema(
    source: str, delimiter: str | None, encoding: str | None, *, header: bool
) -> FileColumns:
    """Names and types, of a CSV file from its rows, and the columns that are left out.

    Of a pattern they are those of the first file that it finds, and of the folders that it names.
    """
    files = Files.of(source)
    files.check()
    path = next(files.paths(), None)
    if path is None:
        raise ParameterError("source", source, "finds no file from which to draft")
    folders = dict.fromkeys(files.partitions, ColumnType.TEXT)
    if not path.lower().endswith(".parquet"):
        form = csv_format(delimiter, encoding, None)
        if header:
            check_header(path, csv_header(path, form=form))
        else:
            form = replace(form, names=_numbered(path, form))
        with waiting("reading types from the rows"):
            types = csv_types(replace(files, form=form), path)
        return FileColumns(types | folders, {}, False, form)
    if delimiter is not None or encoding is not None or not header:
        raise ParameterError("source", source, "delimiter, encoding and header are of CSV files")
    engine = DuckDB()
    try:
        columns = dict(engine.schema_in("draft", files, path).columns)
    finally:
        engine.close()
    return FileColumns(columns, left_out(files, path, columns), True, PLAIN)


def _numbered(path: str, form: CSVFormat) -> tuple[str, ...]:
    """Names for columns that have none: as many as the first line has cells."""
    cells, ended = first_line(path, None, form)
    if not cells or not ended:
        raise ParameterError("source", path, "the first line of the file cannot be read as a row")
    return tuple(f"column{number}" for number in range(1, len(cells) + 1))


def _identifier(source: str) -> str:
    """A name for the table that SQL takes without quotes."""
    stem = Path(source).name.split(".")[0]
    name = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")
    if not name or name[0].isdigit():
        name = f"data_{name}".strip("_")
    return name if _is_plain(name) else f"{name}_table"


def _is_plain(name: str) -> bool:
    """Whether SQL takes the name for a table's, not for a word of its own."""
    try:
        table = parse(_count(name)).find(exp.Table)
    except QueryError:
        return False
    return table is not None and table.name == name


def _count(table: str) -> str:
    return f"SELECT COUNT(*) AS n FROM {table}"  # noqa: S608  (letters, digits and _ only)


def _seen_from(target: Path, path: str) -> str:
    """A path as the metadata file must say it."""
    if "://" in path or Path(path).is_absolute():
        return path
    return Path(os.path.relpath(path, target.absolute().parent)).as_posix()


def _write(target: Path, text: str, *, force: bool) -> None:
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ParameterError(
            "output", str(target), "is there already; give --output, or --force to overwrite it"
        ) from None


def quoted(text: str) -> str:
    """Text as TOML writes it, on one line, whatever is in it."""
    return '"' + "".join(_character(char) for char in text) + '"'


def _character(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def toml_key(name: str) -> str:
    """A name as TOML takes it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def _lines(draft: Draft) -> Iterator[str]:
    if draft.file.typed:
        yield "# Drafted by `deniable init` from the schema alone. Fill in the blanks from what you"
    else:
        yield "# Drafted by `deniable init`. Whoever ran it had the types of the columns read from"
        yield "# the rows of the file: confirm them, for they become public. Nothing else was taken"
        yield "# from the rows, and no ε covers what was. Fill in the blanks from what you"
    yield "# know, never from the data. Paths are relative to this file."
    yield f"population = {quoted(draft.population)}  # all tables about the same people name it"
    yield f"ledger = {quoted(draft.ledger)}"
    yield ""
    yield "[budget]  # for all questions together; the ledger refuses another one later"
    yield f"epsilon = {draft.epsilon}"
    if draft.delta is not None:
        yield f"delta = {draft.delta}"
    yield ""
    yield f"[tables.{toml_key(draft.table)}]"
    yield f"source = {quoted(draft.source)}"
    yield from _format(draft.file.form)
    yield "row = true" if draft.unit is None else f"unit = {quoted(draft.unit)}"
    yield 'version = "1"  # change it whenever the data change: old answers are not repeated then'
    if draft.unit is not None:
        yield "# max_rows =    how many rows of one unit count in full; else it is estimated"
    yield "# max_groups =  in how many groups one unit counts, where groups are no declared keys"
    yield "# size =        the number of rows, if that is public; it helps to foresee errors"
    yield ""
    yield from _columns(draft)


def _format(form: CSVFormat) -> Iterator[str]:
    if form.delimiter is not None:
        yield f"delimiter = {quoted(form.delimiter)}"
    if form.encoding != PLAIN.encoding:
        yield f"encoding = {quoted(form.encoding)}"
    if form.names is not None:
        yield f"names = [{', '.join(map(quoted, form.names))}]  # in the order of the cells"


def _columns(draft: Draft) -> Iterator[str]:
    others = {name: kind for name, kind in draft.file.columns.items() if name != draft.unit}
    table = toml_key(draft.table)
    yield f"[tables.{table}.columns]  # {', '.join(ColumnType)}"
    if not draft.file.typed:
        yield "# Read from the rows: confirm or edit them. Cells of no such type count as missing."
    if Files.of(draft.source).is_pattern:
        yield "# As in the first file; each file is read by these names, and as these types."
    yield from (f"{toml_key(name)} = {quoted(kind)}" for name, kind in draft.file.columns.items())
    yield from (f"# left out: {quoted(name)}: {why}" for name, why in draft.file.left_out.items())
    yield ""
    yield f"[tables.{table}.bounds]  # of numbers that are summed; values beyond are clamped"
    numbers = [name for name, kind in others.items() if kind in _NUMBERS]
    yield from (f"# {toml_key(name)} = [low, high]" for name in numbers)
    yield ""
    yield f"[tables.{table}.keys]  # values that may show as groups whether they occur or not"
    groups = [name for name, kind in others.items() if kind != ColumnType.NUMBER]
    yield from (f"# {toml_key(name)} = [first, second, ...]" for name in groups)


def _tell(target: Path, draft: Draft) -> None:
    blanks = "bounds and keys" if draft.unit is None else "max_rows, bounds and keys"
    if not draft.file.typed and draft.file.form.names is None:
        typer.echo("The columns are named as the first line of the file: see that it is no row.")
    ask = f'{_quoted(target)} --epsilon 0.1 "{_count(draft.table)}"'
    read = "no row was read" if draft.file.typed else "types were read from the rows of the file"
    types = "" if draft.file.typed else "confirm the types of the columns, "
    typer.echo(f"{target} is drafted; {read}. Next:")
    for name, why in draft.file.left_out.items():
        typer.echo(f"  left out: {quoted(name)}: {why}")
    typer.echo(f"  1. {types}fill in {blanks}, from what you know and never from the data")
    typer.echo(f"  2. see, for your eyes only, what they do:  deniable check {_quoted(target)}")
    typer.echo(f"  3. see a price:  deniable explain {ask}")
    typer.echo(f"  4. ask:          deniable query {ask}")


def _quoted(target: Path) -> str:
    return shlex.quote(str(target))
