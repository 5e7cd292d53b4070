"""Averaging: one noisy question asked many times, and how a ledger ends it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from deniable.auditing.attacks.desk import desk
from deniable.auditing.attacks.made_up import Floats, fair
from deniable.auditing.attacks.story import (
    Attack,
    AttackFinding,
    Row,
    above_zero,
    several,
    share,
    size,
)
from deniable.errors import BudgetError, ParameterError
from deniable.mechanisms.laplace import Geometric, Laplace
from deniable.plots import lines
from deniable.privacy.parameters import parameter, parameters
from deniable.tables import PrivateTable

_QUESTION = "SELECT COUNT(*) AS n FROM patients WHERE ill"
_MOST_WORDINGS = 200


@dataclass(frozen=True)
class AveragedOver:
    """How often the average of so many answers, rounded, is the exact count."""

    questions: int
    exact_share: float
    epsilon_spent: float


@dataclass(frozen=True)
class AveragingFound(AttackFinding):
    """Averages without a budget, and what a session lets through.

    `limit` is tanh(budget/2): noise that does not depend on the count hits it exactly with some
    chance p, and then, being ε-DP, the count k away with p·exp(-kε) or more; all of them sum to 1.
    """

    naive: tuple[AveragedOver, ...]
    different_repeats: int  # answers to one question asked again and again
    repeats_cost: float  # of all repeats after the first
    repeated_share: float
    reworded_answered: int
    spent: float
    reworded_share: float
    limit: float

    @property
    def sentence(self) -> str:
        last = self.naive[-1]
        return (
            f"Without a budget the average of {last.questions:,} answers is the exact count in "
            f"{last.exact_share:.1%} of attacks, and costs ε = {last.epsilon_spent:,.0f} in truth; "
            f"a session gives a repeated question its one answer, answers {self.reworded_answered} "
            f"rewordings and refuses the rest, and {self.reworded_share:.1%} of attacks succeed."
        )

    @property
    def table(self) -> tuple[Row, ...]:
        heads = ("release", "questions", "exact after rounding", "ε spent")
        naive = [
            ("fresh noise, no budget", f"{a.questions:,}", a.exact_share, a.epsilon_spent)
            for a in self.naive
        ]
        first = self.spent / self.reworded_answered
        asked = [
            ("Deniable, repeated", "any number", self.repeated_share, first + self.repeats_cost),
            (
                "Deniable, reworded",
                f"{self.reworded_answered}, then refused",
                self.reworded_share,
                self.spent,
            ),
        ]
        rows = [(what, n, share(hit), f"{spent:g}") for what, n, hit, spent in naive + asked]
        return (heads, *rows)

    def plot(self, path: str | Path) -> Path:
        x = [a.questions for a in self.naive]
        return lines(
            x,
            {
                "fresh noise, no budget": [a.exact_share for a in self.naive],
                "Deniable, budget used up": [self.reworded_share] * len(x),
                "limit for the whole budget": [self.limit] * len(x),
            },
            log_x=True,
            title="A count from many noisy answers",
            x_label="questions",
            y_label="share of exact counts",
            path=path,
        )


@parameters
class Averaging(Attack):
    """The same count asked many times, averaged and rounded.

    Naively every answer has fresh Laplace noise and nobody adds up what was spent. Through Deniable
    a repeated question gets the answer that was given, for free; a reworded one is another
    question, is charged, and is refused when the budget ends. (Fixed noise for each question would
    not do: rewordings average it away.)
    """

    name: ClassVar[str] = "averaging"
    title: ClassVar[str] = "One noisy question, asked many times"

    people: int = parameter(size(), default=1_000)
    epsilon: float = parameter(above_zero, default=0.1)
    budget: float = parameter(above_zero, default=1.0)
    questions: tuple[int, ...] = parameter(
        several(size(most=100_000)), default=(1, 10, 100, 1_000, 10_000)
    )
    rounds: int = parameter(size(most=100_000), default=200)

    def __post_init__(self) -> None:
        if not 1 <= self.budget / self.epsilon <= _MOST_WORDINGS:
            raise ParameterError(
                "budget", self.budget, f"must pay for 1 to {_MOST_WORDINGS} questions at epsilon"
            )

    def run(self) -> AveragingFound:
        ill = fair(self.people)
        patients = pa.table({"id": np.arange(self.people), "ill": ill})
        repeats, cost, answered, spent = self._asked(patients)
        count = Geometric(epsilon=self.epsilon, sensitivity=1)
        # Each coordinate is a release of its own, as far as it is charged here: not at all.
        one = np.asarray(count.release(np.zeros((self.rounds, 1), dtype=np.int64)))
        many = np.asarray(count.release(np.zeros((self.rounds, answered), dtype=np.int64)))
        return AveragingFound(
            naive=tuple(self._averaged(int(ill.sum()), each) for each in self.questions),
            different_repeats=repeats,
            repeats_cost=cost,
            repeated_share=_exact(one.astype(np.float64)),
            reworded_answered=answered,
            spent=spent,
            reworded_share=_exact(many.astype(np.float64)),
            limit=math.tanh(self.budget / 2),
        )

    def _averaged(self, truth: int, questions: int) -> AveragedOver:
        mechanism = Laplace(epsilon=self.epsilon, sensitivity=1)
        hits = 0.0
        for _ in range(self.rounds):
            answers = np.asarray(mechanism.release(np.full((1, questions), float(truth))))
            hits += _exact(answers - truth)
        return AveragedOver(questions, hits / self.rounds, questions * self.epsilon)

    def _asked(self, patients: pa.Table) -> tuple[int, float, int, float]:
        """Ask a session: different repeats, their cost, rewordings answered, all that was spent."""
        table = PrivateTable(patients, unit="id", population="patients", max_rows=1, cap_rows=1)
        with desk("patients", table, budget=self.budget) as session:
            same = [session.sql(_QUESTION, epsilon=self.epsilon) for _ in range(5)]
            after_one = session.spent["patients"]
            answered = 1
            try:
                for wording in range(1, _MOST_WORDINGS + 2):
                    session.sql(f"{_QUESTION} AND {wording} = {wording}", epsilon=self.epsilon)
                    answered += 1
            except BudgetError:
                pass
            return (
                len({answer["n"][0] for answer in same}),
                after_one - self.epsilon,
                answered,
                session.spent["patients"],
            )


def _exact(missed: Floats) -> float:
    """The share of rows whose average rounds to nothing missed."""
    return float((np.round(missed.mean(axis=1)) == 0).mean())
