"""`deniable explain`: what a question would cost and how wrong its answer would be."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

import typer

from deniable.cli.failures import told
from deniable.cli.metadata import Metadata, read_metadata
from deniable.cli.query import plain_console
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
from deniable.ledger.ledger import Ledger
from deniable.tables import PrivateTable


@told("explain")
def explain(  # noqa: PLR0917
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
) -> None:
    """Tell a question's price, noise and expected errors. Nothing is read, spent or recorded.

    Example: deniable explain visits.toml --epsilon 0.5 "SELECT AVG(cost) FROM visits"
    """
    metadata = read_metadata(file)
    text, errors = read_text(sql), read_errors(error)
    wanted = read_wanted_keys(keys, metadata, new=new_keys)
    with _ledger(metadata) as ledger, metadata.session(ledger=ledger) as session:
        explanation = session.explain(
            text,
            epsilon=epsilon,
            rho=rho,
            error=errors,
            keys=wanted,
            max_rows=max_rows,
            max_groups=max_groups,
            profile=profile,
        )
    if as_json:
        typer.echo(explanation.to_json())
        return
    plain_console().print(replace(explanation, statements=()))
    typer.echo(f"SQL: {len(explanation.statements)} statements, which --json shows")


def _ledger(metadata: Metadata) -> Ledger:
    """The ledger where it knows the populations: it knows what is left, and what was estimated.

    Else one of its own, so that looking at prices binds no population to a budget.
    """
    private = (each for each in metadata.tables.values() if isinstance(each, PrivateTable))
    if "://" not in metadata.ledger and not Path(metadata.ledger).exists():
        return Ledger(key=secrets.token_bytes(32))
    found = Ledger(metadata.ledger, create=False)
    if {each.population for each in private} <= set(found.store.populations()):
        return found
    found.close()
    return Ledger(key=secrets.token_bytes(32))
