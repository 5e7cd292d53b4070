"""The `deniable` command: each of its commands is loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command as as_command

from deniable import __version__

# In the order of the help; each has a file of its name. One need not wait for the others.
_COMMANDS = ("init", "check", "query", "explain", "attack", "learn", "synth", "demo")
_GROUPS = ("ledger", "audit", "survey")


class _OnDemand(TyperGroup):
    """A group that knows its commands by name and loads them by need."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return [*_COMMANDS, *_GROUPS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, loaded now; None where there is none."""
        del ctx
        if cmd_name not in (*_COMMANDS, *_GROUPS):
            return None
        home = import_module(f"deniable.cli.{cmd_name}")
        if cmd_name in _GROUPS:
            found = home.app
        else:
            found = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
            found.command(cmd_name)(getattr(home, cmd_name))
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
