"""`deniable ledger`: look at budgets, check the chain, export it, add to a budget."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from deniable.cli.failures import told
from deniable.cli.guarantee import read_guarantee
from deniable.errors import ParameterError
from deniable.ledger.entries import EntryKind, Row, day_of, state_of
from deniable.ledger.filters import Budget
from deniable.ledger.ledger import Ledger
from deniable.ledger.reservation import Balance
from deniable.ledger.verify import verify as verify_chain
from deniable.privacy.wire import loss_from_json

app = typer.Typer(help="Budgets of populations, and what was spent.", no_args_is_help=True)

Where = Annotated[str, typer.Argument(help="Path of an SQLite file, or a Postgres URL.")]
Population = Annotated[str | None, typer.Option(help="Only this one.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_told = told("ledger", code=1)


@app.command()
@_told
def show(where: Where, population: Population = None, as_json: AsJson = False) -> None:
    """List the entries: who asked for what, and what it cost."""
    with Ledger(where, create=False) as ledger:
        rows = [_line(row) for name in _names(ledger, population) for row in ledger.history(name)]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table("population", "entry", "day", "what", "who", "purpose or reason", "price")
    for row in rows:
        table.add_row(*(escape(str(row[name] or "")) for name in _COLUMNS))
    Console().print(table)


_COLUMNS = ("population", "number", "day", "kind", "who", "why", "price")


def _line(row: Row) -> dict[str, object]:
    data = row.data
    return {
        "population": row.population,
        "number": row.number,
        "day": day_of(state_of(row).time) if row.refers is None else None,
        "kind": str(row.kind) if row.refers is None else f"{row.kind} to {row.refers}",
        "who": row.who,
        "why": data.get("purpose") or data.get("reason"),
        "price": _price(row),
    }


def _price(row: Row) -> str | None:
    data = row.data
    price = str(loss_from_json(data["loss"]).price) if "loss" in data else None
    if "hold" in data:
        return f"{price}; holds {loss_from_json(data['hold']).price}"
    if row.kind == EntryKind.SETTLE:
        return "lets go of what was held" if price is None else f"{price} of what was held"
    return price


@app.command()
@_told
def balance(where: Where, population: Population = None, as_json: AsJson = False) -> None:
    """Show what was spent and what is left."""
    with Ledger(where, create=False) as ledger:
        found = [ledger.balance(name) for name in _names(ledger, population)]
    if as_json:
        typer.echo(json.dumps([_plain(each) for each in found]))
        return
    table = Table("population", "budget", "releases", "spent: ε at most", "left", "largest ε left")
    for each in found:
        left = ", ".join(f"{name} {float(value):.6g}" for name, value in each.remaining.items())
        budgets = " + ".join(str(budget) for budget in each.budgets)
        spent, largest = f"{each.spent:.6g}", f"{each.largest_epsilon:.6g}"
        table.add_row(escape(each.population), budgets, str(each.releases), spent, left, largest)
    Console().print(table)


def _plain(found: Balance) -> dict[str, object]:
    return {
        "population": found.population,
        "budgets": [str(budget) for budget in found.budgets],
        "remaining": {name: str(value) for name, value in found.remaining.items()},
        "largest_epsilon": found.largest_epsilon,
        "spent": found.spent if math.isfinite(found.spent) else None,
        "releases": found.releases,
        "holds": found.holds,
        "head": found.head,
    }


@app.command()
@_told
def verify(
    where: Where,
    population: Population = None,
    head: Annotated[
        str | None, typer.Option(help="The head an answer carried; needs --population.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute every entry again, under the key. Exit 1 if anything was changed."""
    if head is not None and population is None:
        raise ParameterError("population", population, "name the population of the head")
    with Ledger(where, create=False) as ledger:
        names = _names(ledger, population)
        bar = track(names, description="verifying", disable=as_json or not sys.stderr.isatty())
        found = [verify_chain(ledger, name, head=head) for name in bar]
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in found]))
        return
    for each in found:
        typer.echo(
            f"{each.population}: {each.entries} entries, {each.reservations} reservations, "
            f"{each.answers} ended; the chain holds. head {each.head}"
        )


@app.command()
@_told
def export(
    where: Where,
    to: Annotated[Path, typer.Argument(help="A file to write, one JSON entry per line.")],
    population: Population = None,
) -> None:
    """Write all entries with their MACs to a file."""
    count = 0
    with Ledger(where, create=False) as ledger:
        names = _names(ledger, population)
        try:
            out = to.open("x", encoding="utf-8")
        except FileExistsError:
            raise ParameterError("to", str(to), "is there already; name another file") from None
        for name in names:
            for row in ledger.history(name):
                out.write(json.dumps({"body": row.data, "mac": row.mac}, sort_keys=True) + "\n")
                count += 1
        out.close()
    typer.echo(f"{count} entries in {to}")


@app.command("top-up")
@_told
def top_up(  # noqa: PLR0917
    where: Where,
    population: Annotated[str, typer.Option(help="Whose budget grows.")],
    who: Annotated[str, typer.Option(help="Who decides this.")],
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")],
    epsilon: Annotated[float | None, typer.Option(help="ε to add.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ to add, with ε.")] = None,
    rho: Annotated[float | None, typer.Option(help="ρ to add.")] = None,
    mu: Annotated[float | None, typer.Option(help="μ to add.")] = None,
) -> None:
    """Add to a budget. The promises add up."""
    given = {"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu}
    guarantee = read_guarantee(given)
    with Ledger(where, create=False) as ledger:
        relation = ledger.balance(population).budgets[0].relation
        ledger.top_up(population, Budget(guarantee, relation=relation), who=who, reason=reason)
        typer.echo(f"{population}: {guarantee} was added")


@app.command()
@_told
def accept(
    where: Where,
    population: Annotated[str, typer.Option(help="Whose ledger it is.")],
    who: Annotated[str, typer.Option(help="Who decides this.")],
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")],
) -> None:
    """Say that a missing or older ledger is meant. What its lost entries spent is forgotten."""
    with Ledger(where) as ledger:
        head = ledger.accept(population, who=who, reason=reason)
    told = "it starts anew" if head is None else f"it goes on from head {head}"
    typer.echo(f"{population}: the ledger at {where} is accepted as it is; {told}")


def _names(ledger: Ledger, population: str | None) -> list[str]:
    known = ledger.populations()
    if population is None:
        return known
    if population not in known:
        raise ParameterError(
            "population", population, f"known are: {', '.join(map(ascii, known)) or 'none'}"
        )
    return [population]
