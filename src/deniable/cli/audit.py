"""`deniable audit`: the library audited by itself, as a table of certificates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deniable.auditing.self_audit import (
    FULL,
    QUICK,
    Certificate,
    Subject,
    mechanism_subjects,
    self_audit,
    sql_subjects,
)
from deniable.cli.audited import learning_subjects, survey_subjects, synthesis_subjects
from deniable.cli.failures import told
from deniable.cli.query import check_file, plain_console
from deniable.errors import ParameterError

LAYERS: dict[str, Callable[[], list[Subject]]] = {
    "mechanisms": mechanism_subjects,
    "sql": sql_subjects,
    "survey": survey_subjects,
    "learning": learning_subjects,
    "synthesis": synthesis_subjects,
}

app = typer.Typer(help="Attack the library's own claims.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Attack the library's own claims."""


@app.command("self")
@told("audit self")
def audit_self(
    full: Annotated[
        bool, typer.Option("--full", help=f"{FULL:,} calls on each side instead of {QUICK:,}.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only this layer or subject; may be given several times."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the whole table.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    page: Annotated[
        Path | None, typer.Option("--html", help="Also write a page with pictures here.")
    ] = None,
) -> None:
    """Audit everything that this library ships; exit with 1 where a claim is refuted.

    Example: deniable audit self --only sql --html certificate.html
    """
    subjects = _chosen(only)
    if page is not None:
        check_file("html", page)
    with _bar(len(subjects)) as progress:
        certificate = self_audit(
            subjects, n=FULL if full else QUICK, confidence=confidence, progress=progress
        )
    if page is not None:
        page.write_text(certificate.to_html(), encoding="utf-8")
    if as_json:
        typer.echo(certificate.to_json())
    else:
        _print(certificate)
    if not certificate.ok:
        raise typer.Exit(1)


def _chosen(only: list[str] | None) -> list[Subject]:
    listed = [subject for layer in LAYERS.values() for subject in layer()]
    if not only:
        return listed
    wanted = {name.lower() for name in only}
    known = [*LAYERS, *(each.name for each in listed)]
    unknown = [name for name in only if name.lower() not in {each.lower() for each in known}]
    if unknown:
        raise ParameterError("only", ", ".join(unknown), f"must be one of {', '.join(known)}")
    return [each for each in listed if {each.layer.lower(), each.name.lower()} & wanted]


@contextmanager
def _bar(count: int) -> Iterator[Callable[[Subject], Callable[[str, float], None]]]:
    """A bar on stderr, for people only."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("auditing", total=count)
        seen: list[str] = []

        def begin(subject: Subject) -> Callable[[str, float], None]:
            seen.append(subject.name)
            done = len(seen) - 1

            def tell(stage: str, share: float) -> None:
                text = f"{subject.layer}, {subject.name}: {stage} {share:.0%}"
                bar.update(task, completed=done, description=text)

            tell("rehearsing", 0.0)
            return tell

        yield begin
        bar.update(task, completed=count)


def _print(certificate: Certificate) -> None:
    table = Table("layer", "subject", "claim", "verdict", "at least", "ceiling")
    for layer, name, report in certificate.reports:
        sign = report.claim.sign
        table.add_row(
            layer,
            name,
            report.claim.text,
            report.verdict if report.violated else "not refuted",
            f"{sign} {report.lower:.3g}",
            f"{sign} {report.ceiling:.3g}",
        )
    console = plain_console()
    console.print(table)
    for layer, name, report in certificate.reports:
        if report.violated:
            console.print(f"\n{layer}, {name}:\n{report}")
    found = "No violation found" if certificate.ok else "A claim was refuted"
    console.print(
        f"{found}, at confidence {certificate.confidence:g} for the whole table. So few calls can "
        "certify no more than the ceiling; --full makes more."
    )
