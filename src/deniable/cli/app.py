"""The `deniable` command: each of its commands is loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command as as_command

from deniable import __version__

# Where each command is, in the order of the help. One command need not wait for the others.
_HOMES = {
    "init": "init",
    "check": "check",
    "query": "query",
    "explain": "explain",
    "attack": "attack",
    "learn": "learn",
    "synth": "synth",
    "demo": "demo",
    "ledger": "app",
    "audit": "app",
    "survey": "app",
}


class _OnDemand(TyperGroup):
    """A group that knows its commands by name and loads them by need."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(_HOMES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, loaded now; None where there is none."""
        del ctx
        if cmd_name not in _HOMES:
            return None
        found = getattr(import_module(f"deniable.cli.{cmd_name}"), _HOMES[cmd_name])
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
            alone.command(cmd_name)(found)
            found = alone
        command = as_command(found)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="deniable",
    cls=_OnDemand,
    help="Answers about people that give no person away.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


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
