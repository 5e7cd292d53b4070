"""`deniable explain`: what a question would cost and how wrong its answer would be."""

from __future__ import annotations

import secrets

import typer

from deniable.cli.failures import told
from deniable.cli.metadata import read_metadata
from deniable.cli.query import plain_console
from deniable.cli.question import (
    AsJson,
    Asked,
    Epsilon,
    Errors,
    File,
    Keys,
    MaxGroups,
    MaxRows,
    Rho,
    Sql,
    read_errors,
    read_keys,
    read_text,
)
from deniable.ledger.ledger import Ledger


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
    as_json: AsJson = False,
) -> None:
    """Tell a question's price, noise and expected errors. Nothing is read, spent or recorded.

    Example: deniable explain visits.toml --epsilon 0.5 "SELECT AVG(cost) FROM visits"
    """
    metadata = read_metadata(file)
    asked = Asked(
        read_text(sql),
        epsilon,
        rho,
        read_errors(error),
        read_keys(keys, metadata),
        max_rows,
        max_groups,
    )
    # A ledger of its own, so that looking at prices binds no population to a budget.
    with (
        Ledger(key=secrets.token_bytes(32)) as ledger,
        metadata.session(ledger=ledger) as session,
    ):
        explanation = asked.explanation(session)
    if as_json:
        typer.echo(explanation.to_json())
    else:
        plain_console().print(explanation)
