"""`deniable survey`: a sensitive survey from the first draft to the estimate."""

from __future__ import annotations

import json
import os
import secrets
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from deniable.cli.failures import told
from deniable.cli.query import plain_console, waiting
from deniable.errors import MissingExtraError, ParameterError
from deniable.ledger.ledger import Ledger
from deniable.privacy.exact import float_above
from deniable.service.admission import read_people
from deniable.service.deposits import Outcome
from deniable.service.document import SurveyDocument, load_document, read_document
from deniable.service.draft import new_document
from deniable.service.entry import read_sheets
from deniable.service.export import export as export_files, no_formula
from deniable.service.plan import EPSILONS
from deniable.service.results import CROWD_DELTA, in_the_crowd, results as all_results
from deniable.service.store import SurveyStore
from deniable.survey import planner
from deniable.survey.codebook import csv_text

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(help="Sensitive surveys that respondents can deny.", no_args_is_help=True)

Document = Annotated[Path, typer.Argument(help="The survey document (JSON).")]
Where = Annotated[
    str | None,
    typer.Option("--store", help="SQLite file or Postgres URL; else the document's name with .db."),
]
LedgerFile = Annotated[
    str | None,
    typer.Option(
        "--ledger", help="Note the survey in this ledger, under its population, for information."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_told = told("survey", code=1)
_FIRST_CODES = 5
_OPERATOR_KEY = "DENIABLE_OPERATOR_KEY"


@app.command()
@_told
def new(
    document: Annotated[Path, typer.Argument(help="The file to write.")],
    question: Annotated[str, typer.Option(help="The first question (yes/no).")] = (
        "Have you taken drugs in the last twelve months?"
    ),
    epsilon: Annotated[str, typer.Option(help='A number, or "ln 3": two fair coins.')] = "ln 3",
    admission: Annotated[
        str, typer.Option(help='"blind tokens", or "linkable codes".')
    ] = "blind tokens",
) -> None:
    """Write a document of one yes/no question, to be edited.

    Blind tokens need pages over https, or on the respondent's own machine.

    Example: deniable survey new drugs.json
    """
    stem = document.stem.lower()
    name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in stem)[:60]
    value: float | str = epsilon if epsilon.startswith("ln") else _number(epsilon)
    data = new_document(
        name=name.strip("-") or "survey", question=question, epsilon=value, admission=admission
    )
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    made = read_document(text)
    with document.open("x", encoding="utf-8") as file:
        file.write(text)
    typer.echo(f"{document}: one question, ε = {made.items[0].shown_epsilon()} per person")
    typer.echo(f"next: deniable survey serve {document}")


@app.command()
@_told
def plan(
    document: Annotated[
        Path | None, typer.Argument(help="Plan the questions of this document.")
    ] = None,
    margin: Annotated[float, typer.Option(help="Half-width of the 95 % interval.")] = 0.03,
    share: Annotated[float, typer.Option(help="The share you expect.")] = 0.1,
    as_json: AsJson = False,
) -> None:
    """How many people a margin needs, for several ε or for the questions of a document."""
    if document is not None:
        _plan_document(load_document(document), margin, share, as_json=as_json)
        return
    rows = planner.planning_table(EPSILONS, margin=margin, share=share)
    if as_json:
        typer.echo(json.dumps([vars(row) for row in rows]))
        return
    table = Table("ε", "truth is sent", "a YES makes 10% suspicion", "people", "× direct question")
    for row in rows:
        table.add_row(
            f"{row.epsilon:.3f}", f"{row.truth:.1%}", f"{row.suspicion:.1%}", f"{row.n:,}",
            f"{row.times_direct:.1f}",
        )  # fmt: skip
    plain_console().print(table)


def _plan_document(document: SurveyDocument, margin: float, share: float, *, as_json: bool) -> None:
    rows = [
        {
            "question": item.id,
            "epsilon": item.epsilon,
            "people": planner.sample_size(
                item.design, margin=margin, share=share, answer=item.labels[-1]
            ),
        }
        for item in document.items
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table("question", "ε", "people")
    for row in rows:
        table.add_row(str(row["question"]), f"{row['epsilon']:.4g}", f"{row['people']:,}")
    console = plain_console()
    console.print(table)
    console.print(f"One person's answers together: ε = {document.shown_epsilon()}")
    console.print("A number's margin is a share of the way between its bounds.")


@app.command()
@_told
def serve(
    document: Document,
    store: Where = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65_535)] = 8000,
    ledger: LedgerFile = None,
) -> None:
    """Serve the survey: respondents' pages and the operator's.

    Where nobody is invited yet, five codes without names are made. Behind other machines than this
    one, put a server with TLS in front. The operator's key is fresh at each start unless
    DENIABLE_OPERATOR_KEY holds one.
    """
    try:
        from deniable.service.listening import bind, run  # noqa: PLC0415  (part of an extra)
        from deniable.service.pages import page_hashes  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("survey pages", "serve") from None
    survey, place = load_document(document), _place(document, store)
    _note(survey, ledger)
    sockets = bind(host, port)  # before codes are made, which are shown once
    with closing(SurveyStore(place, keys=_keys(document))) as opened:
        with waiting("the survey and its key"):
            opened.add(survey)
        token_key = opened.tokens(survey).public
        opened.settle()
        fresh = opened.first_codes(survey, _FIRST_CODES)
    base = f"http://{host}:{port}"
    key = os.environ.get(_OPERATOR_KEY) or secrets.token_urlsafe(24)

    def ready() -> None:
        typer.echo(f"operator:    {base}/operator/enter/{key}")
        typer.echo(f"respondents: {base}/s/{survey.id}")
        for code in fresh:
            typer.echo(f"  invitation {base}/s/{survey.id}#{code}")
        for name, digest in page_hashes(survey).items():
            typer.echo(f"publish:     {digest}  {name}")
        if token_key is not None:
            typer.echo(f"publish:     {token_key.fingerprint}  token key")
        sys.stdout.flush()

    run(place, keys=_keys(document), sockets=sockets, operator_key=key, ready=ready)
    typer.echo("stopped; every answer that was acknowledged is stored")


@app.command()
@_told
def invite(
    document: Document,
    count: Annotated[int | None, typer.Option(help="So many codes without names.")] = None,
    people: Annotated[
        Path | None, typer.Option(help="A file of names, one to a line; each is invited once.")
    ] = None,
    base: Annotated[str, typer.Option(help="Where the survey is served.")] = (
        "http://127.0.0.1:8000"
    ),
    store: Where = None,
) -> None:
    """Make invitation codes, printed once as CSV: person, link. The store keeps their hashes only.

    In a survey with "linkable codes", who keeps this list and records submissions as they come in
    can tell whose randomised report is whose; with "blind tokens" a code only buys a token that
    nobody recognises. ε holds either way.
    """
    if (count is None) == (people is None):
        raise ParameterError("count", count, "give either --count or --people")
    if count is not None and not 1 <= count <= 1_000_000:
        raise ParameterError("count", count, "must be from 1 to 1,000,000")
    survey = load_document(document)
    wanted: list[str | None] = (
        [None] * (count or 0)
        if people is None
        else [*read_people(people.read_text(encoding="utf-8").splitlines())]
    )
    with closing(SurveyStore(_place(document, store), keys=_keys(document))) as opened:
        opened.add(survey)
        codes = opened.invite(survey, wanted)
    rows = (
        [no_formula(person or ""), f"{base}/s/{survey.id}#{code}"]
        for person, code in zip(wanted, codes, strict=True)
    )
    typer.echo(csv_text(["person", "link"], rows), nl=False)


@app.command()
@_told
def enter(
    document: Document,
    batch: Annotated[str, typer.Argument(help="A name for this batch; it counts once.")],
    sheets: Annotated[Path, typer.Argument(help="CSV: one sheet to a line, no header.")],
    store: Where = None,
) -> None:
    """Store reports that were given on paper, thrown with real coins or dice."""
    survey = load_document(document)
    read = read_sheets(survey, sheets.read_text(encoding="utf-8"))
    with closing(SurveyStore(_place(document, store), keys=_keys(document))) as opened:
        opened.add(survey)
        outcome = opened.enter(survey, batch, read)
    if outcome is Outcome.SPENT:
        raise ParameterError("batch", batch, "another batch has this name; choose another one")
    known = " before; nothing was counted twice" if outcome is Outcome.ALREADY else ""
    typer.echo(f"{len(read)} sheets were stored{known}")


@app.command()
@_told
def status(document: Document, store: Where = None, as_json: AsJson = False) -> None:
    """How many were invited, and how many answered."""
    survey = load_document(document)
    with closing(_opened(document, store, survey)) as opened:
        found = opened.status(survey)
    if as_json:
        typer.echo(json.dumps({"survey": survey.id, **vars(found)}))
        return
    state = "; closed" if found.closed else ""
    typer.echo(
        f"{survey.name}, wave {survey.wave}: {found.answered:,} answers, "
        f"{found.invited:,} invited{state}"
    )


@app.command()
@_told
def close(document: Document, store: Where = None) -> None:
    """Take no more answers, for good, and lay the rows down so that no order of arrival remains."""
    survey = load_document(document)
    with closing(_opened(document, store, survey)) as opened:
        opened.close_survey(survey)
        found = opened.status(survey)
    typer.echo(f"{survey.name}, wave {survey.wave} is closed with {found.answered:,} answers")


@app.command()
@_told
def results(document: Document, store: Where = None, as_json: AsJson = False) -> None:
    """Estimates with 95 % intervals, from all reports so far."""
    survey, reports = _collected(document, store)
    found = all_results(survey, reports)
    rows = [
        {
            "question": each.item.id, "answer": line.label, "estimate": line.value,
            "low": line.low, "high": line.high, "n": each.n, "epsilon": each.item.epsilon,
        }
        for each in found
        for line in (*each.lines, *([each.mean] if each.mean else []))
    ]  # fmt: skip
    if as_json:
        typer.echo(json.dumps(rows))
        return
    if not rows:
        typer.echo("no answers yet")
        return
    table = Table("question", "answer", "estimate", "95% interval", "reports", "ε")
    for row in rows:
        table.add_row(
            str(row["question"]), str(row["answer"]), f"{row['estimate']:.4g}",
            f"{row['low']:.4g} to {row['high']:.4g}", f"{row['n']:,}", f"{row['epsilon']:.4g}",
        )  # fmt: skip
    console = plain_console()
    console.print(table)
    crowd = in_the_crowd(survey, len(reports))
    if crowd is not None:
        console.print(
            f"For information: if nobody can tell whose submission is whose, one of "
            f"{len(reports):,} is ({crowd}, {CROWD_DELTA:g})-DP to who sees them "
            f"all. What holds against everybody is ε = {survey.shown_epsilon()}."
        )


@app.command()
@_told
def export(
    document: Document,
    folder: Annotated[Path, typer.Argument(help="A new folder for the files.")],
    store: Where = None,
) -> None:
    """Write reports, codebook with channel matrices, and snippets in R and Python."""
    survey, reports = _collected(document, store)
    if folder.exists():
        raise ParameterError("folder", str(folder), "is there already; name a new one")
    folder.mkdir()
    for name, text in export_files(survey, reports).items():
        (folder / name).write_text(text, encoding="utf-8")
    typer.echo(f"{len(reports):,} submissions in {folder}")


def _collected(
    document: Path, store: str | None
) -> tuple[SurveyDocument, Sequence[tuple[int, ...]]]:
    survey = load_document(document)
    with closing(_opened(document, store, survey)) as opened:
        return survey, opened.reports(survey)


def _opened(document: Path, store: str | None, survey: SurveyDocument) -> SurveyStore:
    """A store that is there, and has this very text."""
    opened = SurveyStore(_place(document, store), keys=_keys(document), create=False)
    try:
        opened.check_known(survey)
    except BaseException:
        opened.close()
        raise
    return opened


def _note(survey: SurveyDocument, ledger: str | None) -> None:
    """Tell the ledger of the population about a survey.

    Each answer is ε-DP before anybody sees it, so it does not spend the budget for what is asked
    of the data.
    """
    if ledger is None:
        return
    told = {
        "survey": survey.id,
        "name": survey.name,
        "wave": survey.wave,
        "epsilon": float_above(survey.epsilon),
        "relation": "replace",
        "model": "local",
    }
    with Ledger(ledger, create=False) as opened:
        opened.note(survey.population, told, who="survey operator", purpose="survey")


def _keys(document: Path) -> Path:
    return document.with_suffix(".keys")


def _place(document: Path, store: str | None) -> str:
    return store if store is not None else str(document.with_suffix(".db"))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError("epsilon", text, 'must be a number such as 1.0, or "ln 3"') from None
