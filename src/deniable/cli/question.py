"""A question as it stands on the command line: its text, its price, and what it declares."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli.metadata import Metadata
from deniable.cli.toml import read_toml
from deniable.errors import ParameterError
from deniable.session import NEW
from deniable.tables import ColumnType

File = Annotated[Path, typer.Argument(help="The metadata file; `deniable init` drafts one.")]
Sql = Annotated[str, typer.Argument(help="One SELECT; - reads it from the standard input.")]
Epsilon = Annotated[float | None, typer.Option(help="What the question may cost, as ε.")]
Rho = Annotated[float | None, typer.Option(help="What the question may cost, as ρ.")]
Errors = Annotated[
    list[str] | None,
    typer.Option("--error", help="Pay what this 95 % half-width costs: n=50. May be repeated."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--keys", help="Public values to group by: ward=A,B,C. May be repeated."),
]
MaxRows = Annotated[int | None, typer.Option(help="How many rows of one unit count in full.")]
MaxGroups = Annotated[
    int | None, typer.Option(help="In how many groups one unit counts while they are chosen.")
]
NewKeys = Annotated[
    bool, typer.Option("--new-keys", help="Select groups again, whatever was selected before.")
]
WithProfile = Annotated[
    bool,
    typer.Option("--profile", help="Estimate what one unit adds, whatever max_rows says."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def read_text(sql: str) -> str:
    """The text itself, or what stands on the standard input."""
    return sys.stdin.read() if sql == "-" else sql


def read_wanted_keys(
    given: Sequence[str] | None, metadata: Metadata, *, new: bool
) -> Mapping[str, list[Any]] | str:
    """Declared keys, or the wish for new ones."""
    keys = read_keys(given, metadata)
    if new and keys:
        raise ParameterError("keys", "given", "what is declared is not selected: no --new-keys")
    return NEW if new else keys


def read_errors(given: Sequence[str] | None) -> dict[str, float] | None:
    """Half-widths by column: `n=50`."""
    found = {}
    for text in given or ():
        name, _, width = text.rpartition("=")
        try:
            found[name.strip()] = float(width)
        except ValueError:
            name = ""
        if not name.strip():
            raise ParameterError("error", text, "write column=half-width: --error n=50")
    return found or None


def read_keys(given: Sequence[str] | None, metadata: Metadata) -> dict[str, list[Any]]:
    """Public values by column: `ward=A,B,C`, or a TOML list: `ward=["1", "2"]`."""
    found: dict[str, list[Any]] = {}
    for text in given or ():
        name, _, values = text.partition("=")
        if not (name.strip() and values.strip()):
            raise ParameterError("keys", text, "write column=value,value: --keys ward=A,B,C")
        found[name.strip()] = _values(values.strip(), metadata.type_of(name.strip()), text)
    return found


def _values(text: str, kind: ColumnType | None, whole: str) -> list[Any]:
    if text.startswith("["):
        try:
            read = read_toml(f"values = {text}")
            if len(read) > 1:
                raise ValueError
            return list(read["values"])
        except ValueError:
            raise ParameterError("keys", whole, 'a list is ["A", "B"] or [1, 2]') from None
    if text.startswith("{"):
        raise ParameterError("keys", whole, 'a list is ["A", "B"] or [1, 2]')
    words = [word.strip() for word in text.split(",")]
    if kind is not None:
        return _all(words, kind, whole)
    for each in (ColumnType.INTEGER, ColumnType.BOOLEAN, ColumnType.DATE):
        try:
            return _all(words, each, whole)
        except ParameterError:
            continue
    return list(words)


def _all(words: Sequence[str], kind: ColumnType, whole: str) -> list[Any]:
    """Every word as a value of this type."""
    read: Callable[[str], Any] = _READERS.get(kind, str)
    try:
        return [read(word) for word in words]
    except (ValueError, KeyError):
        raise ParameterError("keys", whole, f"the column holds values of type {kind}") from None


def _integer(word: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", word):  # int() would take 1_000 as well
        raise ValueError
    return int(word)


_READERS: Mapping[ColumnType, Callable[[str], Any]] = {
    ColumnType.INTEGER: _integer,
    ColumnType.BOOLEAN: lambda word: {"true": True, "false": False}[word.lower()],
    ColumnType.DATE: date.fromisoformat,
    ColumnType.TIMESTAMP: datetime.fromisoformat,
}
