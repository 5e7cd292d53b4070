"""The difference attack: a total with one person, less the total without her."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from deniable.auditing.attacks.desk import desk, refused
from deniable.auditing.attacks.made_up import Integers, below, normals
from deniable.auditing.attacks.story import Attack, AttackFinding, Row, above_zero, several, size
from deniable.mechanisms.laplace import Laplace
from deniable.plots import lines
from deniable.privacy.exact import exact
from deniable.privacy.parameters import parameter, parameters
from deniable.tables import PrivateTable

_ALL = "SELECT SUM(salary) AS total FROM staff"
_MEDIAN = 1.1461932  # of |X - Y| for X, Y of the Laplace law of scale 1: (1 + t/2) exp(-t) = 1/2


@dataclass(frozen=True)
class DifferenceAt:
    """What two noisy totals give away, at ε for the two of them together."""

    epsilon: float
    estimate: float  # from two questions to a session
    median_error: float  # of the difference of two releases, over all rounds
    expected_median: float


@dataclass(frozen=True)
class DifferenceFound(AttackFinding):
    """One salary, as exact totals and as private ones tell it."""

    salary: int
    naive: int
    private: tuple[DifferenceAt, ...]
    refused: int

    @property
    def sentence(self) -> str:
        last = self.private[-1]
        return (
            f"Two exact totals tell a salary of {self.naive:,} to the last digit; two private ones "
            f"miss it by {last.median_error:,.0f} in the median at ε = {last.epsilon:g}, and a "
            "third question is refused."
        )

    @property
    def table(self) -> tuple[Row, ...]:
        return (
            ("release", "salary told", "median error", "by theory"),
            ("exact totals", f"{self.naive:,}", "0", "0"),
            *(
                (
                    f"Deniable, ε = {at.epsilon:g}",
                    f"{at.estimate:,.0f}",
                    f"{at.median_error:,.0f}",
                    f"{at.expected_median:,.0f}",
                )
                for at in self.private
            ),
        )

    def plot(self, path: str | Path) -> Path:
        return lines(
            [at.epsilon for at in self.private],
            {
                "median error of the difference": [at.median_error for at in self.private],
                "the salary itself": [float(self.salary)] * len(self.private),
            },
            log_x=True,
            log_y=True,
            title="A salary from two totals",
            x_label="ε of both questions",
            y_label="error",
            path=path,
        )


@parameters
class Difference(Attack):
    """SUM(salary) of all, less SUM(salary) of all but one.

    Through Deniable, both totals are asked of a session whose whole budget is ε, at ε/2 each; the
    median error is that of Laplace noise of the declared bound, over `rounds` pairs of releases. A
    session measures counts and centred sums together, and its own errors are somewhat larger.
    """

    name: ClassVar[str] = "difference"
    title: ClassVar[str] = "A total with one person, less the total without her"

    people: int = parameter(size(2), default=1_000)
    bound: int = parameter(size(1_000), default=200_000)
    epsilons: tuple[float, ...] = parameter(several(above_zero), default=(0.1, 1.0, 10.0))
    rounds: int = parameter(size(), default=2_001)

    def run(self) -> DifferenceFound:
        wages = self.bound / 4 * np.exp(0.4 * normals(self.people))
        salaries = wages.clip(0, self.bound).astype(np.int64)
        victim = int(below(self.people, 1)[0])
        total = int(salaries.sum())
        found = [self._private(salaries, victim, epsilon) for epsilon in self.epsilons]
        return DifferenceFound(
            salary=int(salaries[victim]),
            naive=total - int(np.delete(salaries, victim).sum()),
            private=tuple(at for at, _ in found),
            refused=sum(refused for _, refused in found),
        )

    def _private(
        self, salaries: Integers, victim: int, epsilon: float
    ) -> tuple[DifferenceAt, bool]:
        half = exact(epsilon, "epsilon") / 2
        staff = pa.table(
            {
                "id": np.arange(self.people),
                "badge": np.arange(self.people),  # the unit itself may not stand in WHERE
                "salary": salaries,
            }
        )
        table = PrivateTable(
            staff, unit="id", population="staff", bounds={"salary": (0, self.bound)}, max_rows=1
        )
        without = f"{_ALL} WHERE badge <> {victim}"
        with desk("staff", table, budget=2 * half) as session:
            with_her, without_her = (
                float(session.sql(text, epsilon=half)["total"][0]) for text in (_ALL, without)
            )
            turned_away = refused(session, f"{without} AND badge >= 0", epsilon=half)
        mechanism = Laplace(epsilon=half, sensitivity=self.bound)
        total = np.full(self.rounds, float(salaries.sum()))  # each coordinate is one release
        rest = total - float(salaries[victim])
        missed = mechanism.release(total) - np.asarray(mechanism.release(rest))
        error = float(np.median(np.abs(missed - float(salaries[victim]))))
        at = DifferenceAt(
            epsilon=epsilon,
            estimate=with_her - without_her,
            median_error=error,
            expected_median=_MEDIAN * self.bound / float(half),
        )
        return at, turned_away
