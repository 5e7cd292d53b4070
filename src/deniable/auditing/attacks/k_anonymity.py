"""Two k-anonymous tables about one person, each harmless alone, pin her together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.auditing.attacks.anonymity import candidates, is_k_anonymous, partition
from deniable.auditing.attacks.desk import desk
from deniable.auditing.attacks.made_up import Integers, below
from deniable.auditing.attacks.story import (
    Attack,
    AttackFinding,
    Row,
    above_zero,
    several,
    share,
    size,
)
from deniable.mechanisms.laplace import Geometric
from deniable.plots import grouped_bars
from deniable.privacy.parameters import parameter, parameters
from deniable.privacy.units import ROW
from deniable.tables import PrivateTable

VICTIM: Mapping[str, Any] = {"zip": "13012", "age": 28}

CITY_HOSPITAL = pa.table(
    {
        "zip": ["130**"] * 4 + ["130**"] * 4 + ["148**"] * 4,
        "age": ["<30"] * 4 + ["30..39"] * 4 + [">=40"] * 4,
        "condition": [
            *("AIDS", "asthma", "fracture", "fracture"),
            *("cancer", "cancer", "cancer", "cancer"),
            *("angina", "influenza", "influenza", "angina"),
        ],
    }
)
"""4-anonymous. Everybody of 30 to 39 has cancer: that is a disclosure without a second table."""

VALLEY_CLINIC = pa.table(
    {
        "zip": ["130**"] * 6 + ["1****"] * 6,
        "age": ["<35"] * 6 + [">=35"] * 6,
        "condition": [
            *("AIDS", "diabetes", "diabetes", "gastritis", "migraine", "migraine"),
            *("angina", "cancer", "diabetes", "influenza", "influenza", "migraine"),
        ],
    }
)
"""6-anonymous. Of what people under 35 have here, the city hospital shares AIDS alone."""

_QUASI = ("zip", "age")
_CELLS = 9 * 10 * 2


@dataclass(frozen=True)
class Lecture:
    """The built-in tables: a person of 28 from zip 13012, who was in both hospitals."""

    city_k: int
    valley_k: int
    by_city: tuple[str, ...]
    by_valley: tuple[str, ...]
    by_both: tuple[str, ...]
    homogeneous: tuple[str, ...]  # a person of 33 from the same zip, in the city hospital alone
    with_background: tuple[str, ...]  # one of 50 who is known not to have influenza
    private_counts: tuple[float, ...]  # of AIDS, asthma, fracture, from a session, at `epsilon`
    epsilon: float


@dataclass(frozen=True)
class Intersected:
    """How many people in both releases have their value pinned by one of them, and by both.

    `guess_limit` is e^2ε/(e^2ε + values - 1): under two ε-DP releases no value is e^2ε times as
    likely to give an output as another one, so that is the most of the whole that the best can be.
    """

    k: int
    values: int
    by_one: float
    by_both: float
    guessed_private: float  # share of best guesses right from two private histograms
    guess_limit: float


@dataclass(frozen=True)
class KAnonymityFound(AttackFinding):
    """The lecture's two tables, and two releases of made-up people."""

    lecture: Lecture
    intersected: tuple[Intersected, ...]
    epsilon: float

    @property
    def sentence(self) -> str:
        told, worst = self.lecture, max(self.intersected, key=lambda each: each.by_both)
        return (
            f"A {told.city_k}-anonymous and a {told.valley_k}-anonymous table leave a person of 28 "
            f"from zip 13012 with {' or '.join(told.by_both)}; two {worst.k}-anonymous releases "
            f"pin {worst.by_both:.0%} of the people in both, one alone {worst.by_one:.1%}; two "
            f"private histograms of ε = {self.epsilon:g} pin nobody, and a guess from them is "
            f"right for {worst.guessed_private:.1%}."
        )

    @property
    def table(self) -> tuple[Row, ...]:
        return (
            ("k", "values", "pinned by one", "pinned by both", "DP, guessed", "limit"),
            *(
                (
                    str(each.k),
                    str(each.values),
                    share(each.by_one),
                    share(each.by_both),
                    share(each.guessed_private),
                    share(each.guess_limit),
                )
                for each in self.intersected
            ),
        )

    def plot(self, path: str | Path) -> Path:
        return grouped_bars(
            [f"{each.k}\n{each.values}" for each in self.intersected],
            {
                "pinned by one release": [each.by_one for each in self.intersected],
                "pinned by two": [each.by_both for each in self.intersected],
                f"guessed from two ε = {self.epsilon:g} histograms": [
                    each.guessed_private for each in self.intersected
                ],
            },
            title="Two k-anonymous releases of the same people",
            x_label="k, and the number of sensitive values",
            y_label="share of people in both",
            path=path,
        )


@parameters
class KAnonymity(Attack):
    """Two releases, each generalised by Mondrian, with some people in both.

    The reader knows a person's age, zip code and sex, finds her group in both releases, and
    intersects their sensitive values (Ganta, Kasiviswanathan & Smith 2008). A value is pinned when
    it is the only one left. Through Deniable each release is a histogram of sensitive values over
    public cells (decade of age, hundred of zip codes, sex), ε-DP for one person replaced; everybody
    keeps every value with some chance. The best guess adds both histograms up.
    """

    name: ClassVar[str] = "k-anonymity"
    title: ClassVar[str] = "Two k-anonymous tables, one person"

    people: int = parameter(size(most=100_000), default=5_000)
    shared: int = parameter(size(), default=1_000)
    ks: tuple[int, ...] = parameter(several(size(2)), default=(3, 5, 10))
    values: tuple[int, ...] = parameter(several(size(2, 1_000)), default=(10, 50, 200))
    epsilon: float = parameter(above_zero, default=0.5)
    rounds: int = parameter(size(most=1_000), default=1)

    def __post_init__(self) -> None:
        size(most=self.people)(self.shared, "shared")
        size(most=self.people)(max(self.ks), "ks")

    def run(self) -> KAnonymityFound:
        found = tuple(self._intersected(k, values) for k in self.ks for values in self.values)
        return KAnonymityFound(lecture(self.epsilon), found, self.epsilon)

    def _intersected(self, k: int, values: int) -> Intersected:
        rounds = np.array([self._once(k, values) for _ in range(self.rounds)])
        by_one, by_both, guessed = rounds.mean(axis=0).tolist()
        both = math.exp(min(700.0, 2 * self.epsilon))
        return Intersected(k, values, by_one, by_both, guessed, both / (both + values - 1))

    def _once(self, k: int, values: int) -> tuple[float, float, float]:
        everybody = 2 * self.people - self.shared
        known = np.column_stack(
            [18 + below(72, everybody), below(1_000, everybody), below(2, everybody)]
        ).astype(np.float64)
        secret = below(values, everybody)
        # The first `shared` people are in both releases.
        first = np.arange(self.people)
        second = np.concatenate([np.arange(self.shared), np.arange(self.people, everybody)])
        seen, scores = [], below(1024, self.shared * values).reshape(-1, values)
        for rows in (first, second):
            group = _groups(known[rows], k)
            counts = _counts(group, secret[rows], int(group.max()) + 1, values)
            seen.append(counts[group[: self.shared]] > 0)
            scores += 1024 * self._private(_cells(known[rows]), secret[rows], values)
        return (
            float((seen[0].sum(axis=1) == 1).mean()),
            float(((seen[0] & seen[1]).sum(axis=1) == 1).mean()),
            # Where counts are equal the last ten bits, which are chance, settle it.
            float((scores.argmax(axis=1) == secret[: self.shared]).mean()),
        )

    def _private(self, cell: Integers, secret: Integers, values: int) -> Integers:
        """The noisy counts of each value in the cells of those who are in both releases."""
        mechanism = Geometric(epsilon=self.epsilon, sensitivity=2, relation="replace")
        counts = _counts(cell, secret, _CELLS, values)
        noisy: Integers = np.asarray(mechanism.release(counts))
        of_shared: Integers = noisy[cell[: self.shared]]
        return of_shared


def _cells(known: npt.NDArray[np.float64]) -> Integers:
    """Public cells: decade of age, hundred of zip codes, sex."""
    age, area, sex = (column.astype(np.int64) for column in known.T)
    cell: Integers = (age // 10 * 10 + area // 100) * 2 + sex
    return cell


def _groups(known: npt.NDArray[np.float64], k: int) -> Integers:
    """The Mondrian group of each row."""
    group = np.empty(len(known), dtype=np.int64)
    for number, rows in enumerate(partition(known, k)):
        group[rows] = number
    return group


def _counts(group: Integers, secret: Integers, groups: int, values: int) -> Integers:
    """How often each value occurs in each group."""
    counts = np.bincount(group * values + secret, minlength=groups * values)
    return counts.astype(np.int64).reshape(-1, values)


def lecture(epsilon: float) -> Lecture:
    """What the two built-in tables tell, and what a session tells of the first one's people."""
    by_city = candidates(CITY_HOSPITAL, VICTIM, "condition")
    by_valley = candidates(VALLEY_CLINIC, VICTIM, "condition")
    conditions = sorted(set(CITY_HOSPITAL["condition"].to_pylist()))
    table = PrivateTable(
        CITY_HOSPITAL, unit=ROW, population="city", keys={"condition": conditions}, max_rows=1
    )
    with desk("city", table, budget=epsilon) as session:
        answer = session.sql(
            "SELECT condition, COUNT(*) AS n FROM city WHERE age = '<30' GROUP BY condition",
            epsilon=epsilon,
        )
    private = dict(zip(answer["condition"], answer["n"], strict=True))
    return Lecture(
        city_k=_largest_k(CITY_HOSPITAL),
        valley_k=_largest_k(VALLEY_CLINIC),
        by_city=tuple(sorted(by_city)),
        by_valley=tuple(sorted(by_valley)),
        by_both=tuple(sorted(by_city & by_valley)),
        homogeneous=tuple(sorted(candidates(CITY_HOSPITAL, {**VICTIM, "age": 33}, "condition"))),
        with_background=tuple(
            sorted(
                candidates(
                    CITY_HOSPITAL,
                    {"zip": "14853", "age": 50},
                    "condition",
                    ruled_out=["influenza"],
                )
            )
        ),
        private_counts=tuple(float(private[name]) for name in sorted(by_city)),
        epsilon=float(epsilon),
    )


def _largest_k(table: pa.Table) -> int:
    return max(k for k in range(1, table.num_rows + 1) if is_k_anonymous(table, _QUASI, k))
