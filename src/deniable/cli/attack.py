"""`deniable attack`: the gallery of attacks, on naive releases and on the same through Deniable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

import deniable as dp
from deniable.cli.failures import told
from deniable.cli.query import check_picture, plain_console, waiting
from deniable.errors import ParameterError

if TYPE_CHECKING:
    from deniable.auditing.attacks.story import Attack, AttackFinding


@told("attack")
def attack(
    name: Annotated[
        str | None, typer.Argument(help="The attack; without it, all are listed.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw what was found here (.svg or .png).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Attack made-up people: a naive release, and the same release through Deniable.

    Example: deniable attack reconstruction --picture reconstruction.png
    """
    if name is None:
        if picture is not None:
            raise ParameterError("picture", str(picture), "name the attack to be drawn")
        _list(as_json=as_json)
        return
    chosen = dp.auditing.attacks.attack(name)  # loaded here: other commands need not wait for it
    if picture is not None:
        check_picture(picture)
    with waiting(f"{name}: making people up, and attacking them"):
        found = chosen.run()
    if picture is not None:
        found.plot(picture)
    if as_json:
        _print_json(chosen, found)
        return
    _print(chosen, found)
    if picture is not None:
        typer.echo(f"picture: {picture}")


def _list(*, as_json: bool) -> None:
    if as_json:
        listed = [
            {"name": name, "title": each.title}
            for name, each in dp.auditing.attacks.gallery().items()
        ]
        typer.echo(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    table = Table(title="Attacks", title_justify="left")
    table.add_column("name", no_wrap=True)
    table.add_column("what it does")
    for name, each in dp.auditing.attacks.gallery().items():
        table.add_row(name, each.title)
    console = plain_console()
    console.print(table)
    console.print("Run one: deniable attack difference")


def _print_json(chosen: Attack, found: AttackFinding) -> None:
    shown = {
        "attack": chosen.name,
        "title": chosen.title,
        "parameters": dp.auditing.attacks.numbers(chosen),
        "sentence": found.sentence,
        "columns": found.columns,
        "rows": found.rows,
        "numbers": dp.auditing.attacks.numbers(found),
    }
    typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))


def _print(chosen: Attack, found: AttackFinding) -> None:
    first, *others = found.columns
    table = Table(title=chosen.title, title_justify="left")
    table.add_column(first)
    for column in others:
        table.add_column(column, justify="right")
    for row in found.rows:
        table.add_row(*row)
    console = plain_console()
    console.print(table)
    console.print(found.sentence)
