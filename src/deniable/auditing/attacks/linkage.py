"""Linkage: rows without names are joined to named ones by what both say about a person."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.auditing.attacks.anonymity import uniqueness
from deniable.auditing.attacks.desk import desk, refused
from deniable.auditing.attacks.made_up import below, fair, some_of, uniforms
from deniable.auditing.attacks.story import (
    Attack,
    AttackFinding,
    Row,
    above_zero,
    guess_limit,
    several,
    share,
    size,
)
from deniable.errors import ParameterError
from deniable.mechanisms.laplace import Geometric
from deniable.plots import lines
from deniable.privacy.parameters import parameter, parameters
from deniable.tables import PrivateTable

_QUASI = ("sex", "born", "area")
_YEAR = 365.2425
_ABSENT = -(10**6)  # a day on which nothing was rated


@dataclass(frozen=True)
class KnownItems:
    """How many users are alone with so many ratings that are known of them."""

    items: int
    unique: float
    unique_with_dates: float


@dataclass(frozen=True)
class LinkageFound(AttackFinding):
    """Who is alone in tables without names."""

    people: int
    unique_by_birth_date: float
    unique_by_birth_year: float
    told_naive: float  # share of people whose rows, or row, say the same of their illness
    told_private: float  # share of guesses right from private counts of one's own cell
    limit: float  # for any guess, at `epsilon`
    epsilon: float
    rows_refused: bool
    ratings: tuple[KnownItems, ...]
    days: int

    @property
    def sentence(self) -> str:
        few = self.ratings[0]
        return (
            f"Sex, birth date and area single out {self.unique_by_birth_date:.1%} of "
            f"{self.people:,} people, and {few.items} rated items with dates "
            f"{few.unique_with_dates:.0%} of users; a session shows no rows, and counts at "
            f"ε = {self.epsilon:g} tell an illness in {self.told_private:.1%} of cases, where a "
            "coin tells half."
        )

    @property
    def table(self) -> tuple[Row, ...]:
        by_date, told = share(self.unique_by_birth_date), share(self.told_naive)
        private = f"{share(self.told_private)} (limit {share(self.limit)})"
        return (
            ("known", "unique", f"with dates ±{self.days} days", "secret told"),
            ("sex, birth date, area", by_date, "-", told),
            ("sex, birth year, area", f"{self.unique_by_birth_year:.4f}", "-", "-"),
            *(
                (
                    f"{each.items} rated items",
                    share(each.unique),
                    share(each.unique_with_dates),
                    "-",
                )
                for each in self.ratings
            ),
            (f"Deniable, ε = {self.epsilon:g}", "no rows", "no rows", private),
        )

    def plot(self, path: str | Path) -> Path:
        return lines(
            [each.items for each in self.ratings],
            {
                "items": [each.unique for each in self.ratings],
                f"items, dates ±{self.days} days": [
                    each.unique_with_dates for each in self.ratings
                ],
            },
            title="Users who are alone with what is known of them",
            x_label="known ratings",
            y_label="share of users",
            path=path,
        )


@parameters
class Linkage(Attack):
    """A medical table without names beside a named register; ratings beside a few known ones.

    People have a sex, a birth date within 70 years and one of `areas` (Sweeney 2000). Users have
    rated `rated` of `items` items, popular by Zipf's law, on days of two years (Narayanan &
    Shmatikov 2008); the attacker knows some of a victim's items, and their dates to within `days`.
    Through Deniable no row is shown. What can be asked is how many people of one sex, birth date
    and area are ill: geometric noise at ε, from which no guess about a fair bit is right more often
    than e^ε/(1 + e^ε).
    """

    name: ClassVar[str] = "linkage"
    title: ClassVar[str] = "Rows without names, joined to named ones"

    people: int = parameter(size(most=1_000_000), default=100_000)
    areas: int = parameter(size(), default=100)
    users: int = parameter(size(most=100_000), default=20_000)
    items: int = parameter(size(most=10_000), default=2_000)
    rated: int = parameter(size(), default=60)
    known: tuple[int, ...] = parameter(several(size()), default=(2, 3, 4, 8))
    days: int = parameter(size(0, 365), default=14)
    victims: int = parameter(size(), default=500)
    epsilon: float = parameter(above_zero, default=1.0)

    def __post_init__(self) -> None:
        size(most=self.items // 2)(self.rated, "rated")
        size(most=self.rated)(max(self.known), "known")
        size(most=self.users)(self.victims, "victims")
        if self.users * self.items > 10**8:
            raise ParameterError("users", self.users, "users times items is 1e8 at most")

    def run(self) -> LinkageFound:
        born = below(int(70 * _YEAR), self.people)
        ill = fair(self.people)
        patients = pa.table(
            {
                "id": np.arange(self.people),
                "sex": below(2, self.people),
                "born": born,
                "year": (born / _YEAR).astype(np.int64),
                "area": below(self.areas, self.people),
                "ill": ill,
            }
        )
        told, rows_refused = self._asked(patients)
        return LinkageFound(
            people=self.people,
            unique_by_birth_date=uniqueness(patients, _QUASI),
            unique_by_birth_year=uniqueness(patients, ["sex", "year", "area"]),
            told_naive=_told(patients),
            told_private=told,
            limit=guess_limit(self.epsilon),
            epsilon=self.epsilon,
            rows_refused=rows_refused,
            ratings=self._ratings(),
            days=self.days,
        )

    def _asked(self, patients: pa.Table) -> tuple[float, bool]:
        """Guess illnesses from private counts of victims' own cells; and ask for rows."""
        table = PrivateTable(
            patients.slice(0, min(self.people, 1_000)), unit="id", population="p", max_rows=1
        )
        with desk("patients", table, budget=self.epsilon) as session:
            shown = "SELECT sex, born, area, ill FROM patients"
            rows_refused = refused(session, shown, epsilon=self.epsilon)
        # The worst case, a victim who is alone: the exact count of ill people in the cell is that
        # person's own bit. Each count is a release of its own, about another victim.
        own = patients["ill"].to_numpy(zero_copy_only=False)
        counts = Geometric(epsilon=self.epsilon, sensitivity=1).release(own.astype(np.int64))
        return float(((np.asarray(counts) > 0) == own).mean()), rows_refused

    def _ratings(self) -> tuple[KnownItems, ...]:
        rated_on = self._rated_on()
        found = []
        for known in self.known:
            alone = np.array(
                [
                    self._alone(rated_on, victim, known)
                    for victim in some_of(self.users, self.victims)
                ]
            )
            found.append(KnownItems(known, *alone.mean(axis=0).tolist()))
        return tuple(found)

    def _rated_on(self) -> npt.NDArray[np.int32]:
        """The day on which each item was rated by each user."""
        rated_on = np.full((self.items, self.users), _ABSENT, dtype=np.int32)
        popularity = np.log(1 / np.arange(1, self.items + 1))
        for user in range(self.users):
            # The highest of log-weights plus Gumbel noise are a sample without replacement.
            keys = popularity - np.log(-np.log(uniforms(self.items)))
            chosen = np.argpartition(-keys, self.rated)[: self.rated]
            rated_on[chosen, user] = below(730, self.rated)
        return rated_on

    def _alone(self, rated_on: npt.NDArray[np.int32], victim: int, known: int) -> tuple[bool, bool]:
        """Whether nobody else rated the known items; and nobody about the same days."""
        own = np.flatnonzero(rated_on[:, victim] != _ABSENT)
        seen = rated_on[own[some_of(own.size, known)]]
        near = np.abs(seen - seen[:, victim, None]) <= self.days
        return (
            int((seen != _ABSENT).all(axis=0).sum()) == 1,
            int(near.all(axis=0).sum()) == 1,
        )


def _told(patients: pa.Table) -> float:
    """The share of people of whom a join with the published rows leaves one answer."""
    rows = patients.set_column(
        patients.column_names.index("ill"), "ill", patients["ill"].cast(pa.int8())
    )
    groups = rows.group_by(list(_QUASI)).aggregate(
        [("ill", "min"), ("ill", "max"), ([], "count_all")]
    )
    lowest, highest, people = (
        groups[name].to_numpy() for name in ("ill_min", "ill_max", "count_all")
    )
    return float(people[lowest == highest].sum() / people.sum())
