"""`deniable demo`: four questions about a made-up clinic, answered privately in DuckDB."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from deniable.answer import Answer
from deniable.cli.clinic import MOST, PATIENTS, VISITS, WARDS, write_clinic
from deniable.cli.failures import told
from deniable.cli.query import check_picture, left_line, plain_console, waiting
from deniable.ledger.ledger import Ledger
from deniable.ledger.reservation import Balance
from deniable.ledger.verify import VerifiedChain, verify as verify_chain
from deniable.privacy.guarantees import ApproxDP
from deniable.session import Session
from deniable.tables import PrivateTable

_PEOPLE = "clinic/patient"
_BUDGET = ApproxDP(3.0, 1e-6)


@dataclass(frozen=True)
class DemoQuestion:
    """A question; `alone` where a patient counts once, in one group."""

    title: str
    sql: str
    alone: bool = False


QUESTIONS = (
    DemoQuestion(
        "How many visits did each ward have?",
        "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward",
    ),
    DemoQuestion(
        "What did a visit cost on average?",
        "SELECT ward, AVG(cost) AS mean_cost FROM visits GROUP BY ward",
    ),
    DemoQuestion(
        "How old are the patients?",
        "SELECT age // 10 * 10 AS decade, COUNT(DISTINCT patient_id) AS patients "
        "FROM visits GROUP BY decade ORDER BY decade",
        alone=True,
    ),
    DemoQuestion(
        "When did they come?",
        "SELECT CAST(DATE_TRUNC('month', visited) AS DATE) AS month, COUNT(*) AS visits "
        "FROM visits GROUP BY month ORDER BY month",
    ),
)
DRAWN = 2  # the question that makes the picture: patients by decade


@dataclass(frozen=True)
class DemoAnswers:
    """Four answers, what is left of the budget, and the ledger, checked."""

    answers: tuple[Answer, ...]
    balance: Balance
    verified: VerifiedChain


@told("demo")
def demo(
    epsilon: Annotated[float, typer.Option(help="ε of each of the four questions.")] = 0.5,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the patients by age here (.svg or .png).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask four questions about a made-up clinic, privately, with error bars.

    Example: deniable demo --picture demo.png
    """
    if picture is not None:
        check_picture(picture)
    with waiting("making up a clinic, and asking about it"), TemporaryDirectory() as folder:
        found = ask(write_clinic(Path(folder) / "visits.parquet"), epsilon)
    if picture is not None:
        found.answers[DRAWN].plot(picture)
    if as_json:
        typer.echo(json.dumps(_as_dict(found), indent=2, ensure_ascii=False))
        return
    _print(found)
    if picture is not None:
        typer.echo(f"picture: {picture}")


def visits_table(file: Path) -> PrivateTable:
    """The visits, with what the clinic declares about them."""
    return PrivateTable(
        file,
        unit="patient_id",
        population=_PEOPLE,
        bounds={"age": (0, 110), "cost": (0, MOST)},
        keys={"ward": WARDS},
        max_rows=20,
        max_groups=12,
        size=VISITS,
    )


def ask(file: Path, epsilon: float) -> DemoAnswers:
    """Put the four questions to a file of visits, with a ledger beside it."""
    # A key of its own: a demo leaves nothing in anybody's configuration folder.
    key = secrets.token_bytes(32)
    with (
        Ledger(file.with_name("ledger.db"), key=key) as ledger,
        Session({"visits": visits_table(file)}, budget=_BUDGET, ledger=ledger) as session,
    ):
        answers = tuple(_answer(session, each, epsilon) for each in QUESTIONS)
        verified = verify_chain(ledger, _PEOPLE, head=answers[-1].head)
        return DemoAnswers(answers, session.remaining[_PEOPLE], verified)


def _answer(session: Session, question: DemoQuestion, epsilon: float) -> Answer:
    most = 1 if question.alone else None
    return session.sql(question.sql, epsilon=epsilon, max_rows=most, max_groups=most)


def _as_dict(found: DemoAnswers) -> Mapping[str, Any]:
    questions = [
        {"title": question.title, "sql": question.sql, **json.loads(answer.to_json())}
        for question, answer in zip(QUESTIONS, found.answers, strict=True)
    ]
    left = {name: float(value) for name, value in found.balance.remaining.items()}
    ledger = {"entries": found.verified.entries, "head": found.verified.head}
    return {"questions": questions, "left": left, "ledger": ledger}


def _print(found: DemoAnswers) -> None:
    console, verified = plain_console(), found.verified
    console.print(f"A made-up clinic: {VISITS:,} visits of {PATIENTS:,} patients.")
    console.print(f"Budget: {_BUDGET} for every patient, all questions together.")
    for question, answer in zip(QUESTIONS, found.answers, strict=True):
        console.print(f"\n{question.title}\n  {question.sql}")
        console.print(answer)
    console.print(
        "\n± holds the noise, and what was cut off of patients with very many visits, so that "
        "none of them shows."
    )
    console.print(f"Budget: {left_line(found.balance, found.answers[-1].cost)}.")
    console.print(
        f"Ledger: {verified.entries} entries, {verified.reservations} releases charged, "
        f"{verified.answers} answered; the chain holds. head {verified.head[:18]}..."
    )
