"""`deniable query`: a private answer to one SELECT, with its error and its price."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deniable.answer import Answer
from deniable.cli.failures import told, warned
from deniable.cli.metadata import read_metadata
from deniable.cli.question import (
    AsJson,
    Epsilon,
    Errors,
    File,
    Keys,
    MaxGroups,
    MaxRows,
    NewKeys,
    Rho,
    Sql,
    WithProfile,
    read_errors,
    read_text,
    read_wanted_keys,
)
from deniable.errors import MissingExtraError, ParameterError
from deniable.ledger.reservation import Balance
from deniable.privacy.price import Price
from deniable.session import Session

_SIGNS = {"epsilon": "ε", "rho": "ρ", "delta": "δ", "mu_squared": "μ²"}


@told("query")
def query(  # noqa: PLR0917
    file: File,
    sql: Sql,
    epsilon: Epsilon = None,
    rho: Rho = None,
    error: Errors = None,
    keys: Keys = None,
    max_rows: MaxRows = None,
    max_groups: MaxGroups = None,
    new_keys: NewKeys = False,
    profile: WithProfile = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with 95 % intervals.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the answer here (.svg or .png).")
    ] = None,
    who: Annotated[str, typer.Option(help="Who asks; it is recorded.")] = "analyst",
) -> None:
    """Answer a SELECT privately and charge its price. The same question again is free.

    Example: deniable query visits.toml --epsilon 0.5 "SELECT AVG(cost) FROM visits"
    """
    if as_json and as_csv:
        raise ParameterError("json", True, "choose --json or --csv")
    if plot is not None:
        check_picture(plot)
    metadata = read_metadata(file)
    text, errors = read_text(sql), read_errors(error)
    wanted = read_wanted_keys(keys, metadata, new=new_keys)
    with metadata.session(who=who) as session:
        with warned("query"), waiting("asking"):
            answer = session.sql(
                text,
                epsilon=epsilon,
                rho=rho,
                error=errors,
                keys=wanted,
                max_rows=max_rows,
                max_groups=max_groups,
                profile=profile,
            )
        _print(answer, session, as_json=as_json, as_csv=as_csv)
    if plot is not None:
        typer.echo(f"picture: {answer.plot(plot)}", err=as_json or as_csv)


def check_picture(path: Path) -> None:
    """Refuse, before anything is spent, a picture that could not be drawn afterwards."""
    if path.suffix.lower() not in {".svg", ".png"}:
        raise ParameterError("picture", str(path), "must end in .svg or .png")
    check_file("picture", path)
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("pictures", "plot")


def check_file(name: str, path: Path) -> None:
    """Refuse, before any work, a file that could not be written afterwards."""
    if path.is_dir():
        raise ParameterError(name, str(path), "is a folder; name a file")
    if not path.absolute().parent.is_dir():
        raise ParameterError(name, str(path), "there is no such folder")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise ParameterError(name, str(path), "may not be written; name another file")


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner on stderr, for people only; what it says can be changed."""
    console = Console(stderr=True, markup=False)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(what) as status:
        yield status.update


def plain_console() -> Console:
    """A console that takes brackets and colons in names for what they are."""
    return Console(markup=False, emoji=False, highlight=False)


def _print(answer: Answer, session: Session, *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        left = {
            people: {name: float(value) for name, value in balance.remaining.items()}
            for people, balance in session.remaining.items()
        }
        shown = json.loads(answer.to_json()) | {"left": left}
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    if as_csv:
        typer.echo(answer.to_csv(), nl=False)
    else:
        plain_console().print(answer)
    for name, each in session.remaining.items():
        free = "given before, free; " if answer.repeated else ""
        typer.echo(f"{name}: {free}{left_line(each, answer.cost)}", err=as_csv)


def left_line(balance: Balance, cost: Price) -> str:
    """What is left of a budget, and how often it buys what was just bought."""
    left = ", ".join(
        f"{_SIGNS[name]} {float(value):.4g}" for name, value in balance.remaining.items()
    )
    more = balance.more(cost)
    return f"{left} left: {more:,} more question{'' if more == 1 else 's'} at this price"
