"""`deniable check`: what a metadata file makes of the data, for the owner's eyes only."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deniable.cli.census import HIGH, LOW, Census, ColumnCensus, census
from deniable.cli.failures import told
from deniable.cli.init import toml_key
from deniable.cli.metadata import Metadata, read_metadata
from deniable.cli.query import plain_console, waiting
from deniable.cli.question import AsJson, File
from deniable.errors import ParameterError
from deniable.ledger.ledger import Ledger
from deniable.tables import PrivateTable

NOTICE = "For the owner's eyes only: exact numbers about people, which no ε covers."
_STEPS = (1, 2, 5)


@told("check")
def check(
    file: File,
    suggest: Annotated[
        bool,
        typer.Option(
            "--suggest",
            help="Also suggest bounds and max_rows from the data; marks the tables as looked at.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the owner, exactly, what the declared values do to the data. Nothing is charged.

    Keep what it shows to yourself. It ends with 1 where cap_rows or most_rows is not kept.

    Example: deniable check visits.toml
    """
    metadata = read_metadata(file)
    private = {n: t for n, t in metadata.tables.items() if isinstance(t, PrivateTable)}
    if suggest:  # before anything is shown: what was seen cannot be unseen
        for name, table in private.items():
            if not table.looked:
                _mark(file, name)
    found = _counted(metadata, private, look=suggest)
    if as_json:
        shown = [_described(each, private[each.table], suggest=suggest) for each in found]
        typer.echo(json.dumps({"notice": NOTICE, "tables": shown}, indent=2, ensure_ascii=False))
    else:
        console = plain_console()
        console.print(NOTICE, style="bold")
        for each in found:
            _print(console, each, private[each.table])
            if suggest:
                _print_suggestions(console, each)
    if any(list(each.broken(private[each.table])) for each in found):
        raise typer.Exit(1)


def _counted(
    metadata: Metadata, private: Mapping[str, PrivateTable], *, look: bool
) -> list[Census]:
    # A ledger of its own: looking binds no population to a budget, and charges nothing.
    with (
        Ledger(key=secrets.token_bytes(32)) as ledger,
        metadata.session(ledger=ledger) as session,
        waiting("opening") as tell,
    ):
        fitted = session.parts.catalogue.private
        return [
            census(session, name, fitted[name.lower()], look=look, tell=tell) for name in private
        ]


def _mark(file: Path, name: str) -> None:
    """Write `looked = true` into the section of a table, or refuse to look."""
    text = file.read_text(encoding="utf-8")
    header = re.compile(rf"^[ \t]*\[[ \t]*tables[ \t]*\.[ \t]*{re.escape(toml_key(name))}[ \t]*\]")
    lines = text.splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if header.match(line)]
    made = "".join(lines)
    if len(places) == 1:
        place = places[0]
        line = lines[place] if lines[place].endswith("\n") else f"{lines[place]}\n"
        mark = "looked = true  # values were chosen by looking at the data; answers say so\n"
        made = "".join([*lines[:place], line, mark, *lines[place + 1 :]])
        file.write_text(made, encoding="utf-8")
        marked = read_metadata(file).tables[name]
        if isinstance(marked, PrivateTable) and marked.looked:
            return
        file.write_text(text, encoding="utf-8")
    raise ParameterError(
        "suggest",
        name,
        f"suggestions need the line `looked = true` in [tables.{toml_key(name)}] of {file}: add it",
    )


def _print(console: Console, found: Census, table: PrivateTable) -> None:
    console.print()
    console.print(f"{found.table}: {found.rows:,} rows", style="bold")
    for line in _lines(found, table):
        console.print(f"  {line}")
    shown = Table("column", "type", "read", "declared values")
    for column in found.columns:
        read = _part(column.read, column.cells) if column.cells else "no cells"
        shown.add_row(Text(column.name), column.kind, read, Text(_declared(column)))
    console.print(shown)
    for name, why in found.left_out.items():
        console.print(f"  left out: {name}: {why}")


def _lines(found: Census, table: PrivateTable) -> Iterator[str]:
    if found.unread:
        yield f"files that cannot be read, and have no rows: {found.unread:,}"
    if found.dropped:
        yield f"lines that are no text, and are no rows: {found.dropped:,}"
    if isinstance(table.unit, str):
        yield f"without a unit, and in no answer: {_part(found.without_unit, found.rows)}"
    yield f"equal to another row in all columns: {_part(found.repeated, found.rows)}"
    if found.people is not None:
        people = found.people
        listed = ", ".join(f"{share}: {rows:,}" for share, rows in people.quantiles.items())
        yield f"{people.units:,} people; rows of one: {listed}, most: {people.most:,}"
        if table.max_rows is None:
            yield "max_rows is not declared: it is estimated privately"
        else:
            named = found.rows - found.without_unit
            yield (
                f"max_rows = {table.max_rows:,} cuts off {_part(people.cut, named)} of rows, of "
                f"{people.heavy:,} people"
            )
    for broken in found.broken(table):
        yield f"PROMISE NOT KEPT: {broken}"


def _declared(column: ColumnCensus) -> str:
    parts = []
    if column.bounds is not None:
        clipped = column.bounds
        parts.append(
            f"bounds {clipped.low:g} to {clipped.high:g} clip "
            f"{_part(clipped.below, clipped.values)} below, "
            f"{_part(clipped.above, clipped.values)} above"
        )
    if column.keys is not None:
        kept = column.keys
        absent = f"; no row has {', '.join(kept.absent)}" if kept.absent else ""
        parts.append(f"{kept.declared:,} keys leave out {_part(kept.other, kept.rows)}{absent}")
    return "; ".join(parts)


def _part(count: int, whole: int) -> str:
    """A number and its share, which is not rounded to all or nothing."""
    if not whole:
        return f"{count:,}"
    share = f"{count / whole:.1%}"
    if share == "100.0%" and count < whole:
        share = "> 99.9%"
    if share == "0.0%" and count:
        share = "< 0.1%"
    return f"{count:,} ({share})"


def _print_suggestions(console: Console, found: Census) -> None:
    console.print()
    console.print(
        f"Suggested from the data, rounded outward; bounds hold {HIGH - LOW:.1%} of the values, "
        "max_rows 99% of the people. They tell of the data, which no ε covers: `looked = true` "
        "stands in the file, and answers say so."
    )
    rows, bounds = suggested(found)
    section = f"tables.{toml_key(found.table)}"
    if rows is not None:
        console.print(f"  [{section}]\n  max_rows = {rows}")
    if bounds:
        console.print(f"  [{section}.bounds]")
    for name, (low, high) in bounds.items():
        console.print(f"  {toml_key(name)} = [{low}, {high}]")


def suggested(found: Census) -> tuple[str | None, dict[str, tuple[str, str]]]:
    """`max_rows`, and bounds by column, in steps of 1, 2 and 5; keys are never listed."""
    rows = None
    if found.people is not None and found.people.units:
        rows = step_beyond(found.people.quantiles["99%"])
    bounds = {}
    for column in found.columns:
        if column.ends is not None:
            low, high = column.ends
            ends = (
                f"-{step_beyond(-low)}" if low < 0 else step_within(low),
                (step_beyond(high) if high > 0 else f"-{step_within(-high)}" if high else "0"),
            )
            if float(ends[0]) < float(ends[1]):
                bounds[column.name] = ends
    return rows, bounds


def step_beyond(value: float) -> str:
    """The least of ..., 1, 2, 5, 10, ... that is no smaller than a number above 0."""
    return _plain(min(each for each in _around(value) if each >= Decimal(value)))


def step_within(value: float) -> str:
    """The largest of them that is no larger; 0 for 0."""
    if value == 0:
        return "0"
    return _plain(max(each for each in _around(value) if each <= Decimal(value)))


def _around(value: float) -> list[Decimal]:
    power = Decimal(value).adjusted()
    return [Decimal(step).scaleb(power + more) for more in (0, 1) for step in _STEPS]


def _plain(value: Decimal) -> str:
    """As TOML writes a number."""
    exponent = value.adjusted()
    return f"{value:f}" if -7 < exponent < 16 else f"{value:e}".lower().replace("e+", "e")


def _described(found: Census, table: PrivateTable, *, suggest: bool) -> dict[str, object]:
    rows, bounds = suggested(found) if suggest else (None, {})
    told_apart = {**asdict(found), "broken_promises": list(found.broken(table))}
    for column in told_apart["columns"]:
        column["share_read"] = column["read"] / column["cells"] if column["cells"] else None
        del column["ends"]
    if suggest:
        told_apart["suggested"] = {
            "max_rows": None if rows is None else int(float(rows)),
            "bounds": {name: [float(low), float(high)] for name, (low, high) in bounds.items()},
        }
    return told_apart
