"""`deniable synth`: a synthetic table of a private one, in a file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from deniable.cli.failures import told
from deniable.cli.metadata import read_metadata
from deniable.cli.question import AsJson, Epsilon, File, MaxRows, Rho
from deniable.errors import ParameterError
from deniable.synthesis.chosen import METHODS
from deniable.synthesis.method import Progress as Told, silent
from deniable.synthesis.synthesize import synthesize
from deniable.synthesis.synthetic import SyntheticTable

_ENDINGS = {".csv", ".parquet"}


@told("synth")
def synth(  # noqa: PLR0917
    file: File,
    table: Annotated[str, typer.Argument(help="The private table.")],
    out: Annotated[Path, typer.Argument(help="Where rows go (.csv or .parquet).")],
    epsilon: Epsilon = None,
    rho: Rho = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "aim",
    workload: Annotated[
        str,
        typer.Option(help="How many columns the marginals have that matter; or age+sex,ward+cost."),
    ] = "2",
    columns: Annotated[
        list[str] | None, typer.Option("--column", help="A column. All unless some are named.")
    ] = None,
    bins: Annotated[
        list[str] | None, typer.Option("--bins", help="Bins of a column: age=10. May be repeated.")
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option("--missing", help="A column in which missing is a value. May be repeated."),
    ] = None,
    discover: Annotated[
        list[str] | None,
        typer.Option("--discover", help="A column whose values or bounds are found privately."),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="How many rows; about as many as there are unless said.")
    ] = None,
    max_rows: MaxRows = None,
    max_memory: Annotated[
        float | None,
        typer.Option("--max-memory", help="How large the model may become, in MB; aim takes 1."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Keep what is drawn in this file, and go on from it if it is there."),
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Also keep the model in this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a report (.html).")] = None,
    as_json: AsJson = False,
    who: Annotated[str, typer.Option(help="Who asks; it is recorded.")] = "analyst",
) -> None:
    """Make a synthetic table and charge its price. The same again is free.

    Example: deniable synth visits.toml visits synthetic.csv --epsilon 1 --method aim
    """
    for path in (out, model, report, resume):
        if path is not None and not path.absolute().parent.is_dir():
            raise ParameterError("out", str(path), "there is no such folder")
        if path is not None and path.is_dir():
            raise ParameterError("out", str(path), "is a folder")
    if rows is not None and rows < 0:
        raise ParameterError("rows", rows, "must be 0 or more")
    if out.suffix.lower() not in _ENDINGS:
        raise ParameterError("out", str(out), "must end in .csv or .parquet")
    metadata = read_metadata(file)
    started = time.monotonic()
    with metadata.session(who=who) as session, _shown() as progress:
        made = synthesize(
            session,
            table,
            epsilon=epsilon,
            rho=rho,
            method=method,
            columns=columns,
            bins=_bins(bins),
            missing=missing or (),
            discover=discover or (),
            workload=_workload(workload),
            max_megabytes=max_memory,
            max_rows=max_rows,
            journal=resume,
            progress=progress,
        )
    _write(made, out, rows)
    if model is not None:
        made.save(model)
    if report is not None:
        report.write_text(made.report(), encoding="utf-8")
    about = {
        "rows": made.rows if rows is None else rows,
        "method": method,
        "receipt": {what: str(price) for what, price in made.receipt},
        "seconds": round(time.monotonic() - started, 1),
        "out": str(out),
    }
    if as_json:
        typer.echo(json.dumps(about, indent=2, ensure_ascii=False))
        return
    typer.echo(f"{about['rows']:,} rows in {out}, after {about['seconds']} s")
    for what, price in made.receipt:
        typer.echo(f"paid for {what}: {price}")


def _write(made: SyntheticTable, out: Path, rows: int | None) -> None:
    table = made.sample(rows)
    if out.suffix.lower() == ".csv":
        from pyarrow import csv  # noqa: PLC0415  (slow to import)

        csv.write_csv(table, out)
    else:
        from pyarrow import parquet  # noqa: PLC0415  (slow to import)

        parquet.write_table(table, out)


def _workload(given: str) -> int | list[list[str]]:
    """A number, or columns joined by +, separated by commas."""
    if given.strip().isdecimal():
        return int(given)
    return [[name.strip() for name in each.split("+")] for each in given.split(",")]


def _bins(given: list[str] | None) -> dict[str, int]:
    found = {}
    for each in given or ():
        name, _, count = each.partition("=")
        if not count.isdecimal():
            raise ParameterError("bins", each, "must be a column and a number: age=10")
        found[name] = int(count)
    return found


@contextmanager
def _shown() -> Iterator[Told]:
    """A bar with the time that is left, on stderr, for people only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    parts = (TextColumn("synthesising"), BarColumn(), TimeRemainingColumn())
    with Progress(*parts, console=console) as bar:
        task = bar.add_task("synthesising", total=1.0)
        yield lambda done: bar.update(task, completed=done)
