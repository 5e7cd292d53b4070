"""The `deniable` command."""

from __future__ import annotations

from typing import Annotated

import typer

from deniable import __version__
from deniable.cli import audit, ledger, survey
from deniable.cli.attack import attack
from deniable.cli.demo import demo
from deniable.cli.explain import explain
from deniable.cli.init import init
from deniable.cli.learn import learn
from deniable.cli.query import query
from deniable.cli.synth import synth

app = typer.Typer(
    name="deniable",
    help="Answers about people that give no person away.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.command()(init)
app.command()(query)
app.command()(explain)
app.command()(attack)
app.command()(learn)
app.command()(synth)
app.command()(demo)
app.add_typer(ledger.app, name="ledger")
app.add_typer(audit.app, name="audit")
app.add_typer(survey.app, name="survey")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deniable {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Answers about people that give no person away."""
