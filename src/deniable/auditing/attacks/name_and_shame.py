"""Name and shame: publish one record whole. It is (0, 1/n)-DP, so δ must be far below 1/n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from deniable.auditing.attacks.made_up import below
from deniable.auditing.attacks.story import (
    Attack,
    AttackFinding,
    Row,
    above_zero,
    chance,
    several,
    size,
)
from deniable.auditing.exact.verification import verify_channel
from deniable.errors import ParameterError
from deniable.mechanisms.histogram import StabilityHistogram
from deniable.plots import lines
from deniable.privacy.exact import Number
from deniable.privacy.parameters import parameter, parameters

_VERIFIED = 12


@dataclass(frozen=True)
class Shamed:
    """People whose whole record is public after so many releases."""

    releases: int
    naive: int
    expected_naive: float
    large_delta: int  # through Deniable, at δ = 1/n
    private: int  # through Deniable, at a small δ
    most_private: float  # n·δ·releases, on average: what the small δ allows, for everybody


@dataclass(frozen=True)
class NameAndShameFound(AttackFinding):
    """What a δ of 1/n means, and a small one."""

    people: int
    verified_people: int
    verified_delta: Fraction  # of the naive release, of so many people, at ε = 0
    delta: float
    shamed: tuple[Shamed, ...]

    @property
    def sentence(self) -> str:
        last = self.shamed[-1]
        return (
            f"A release of one whole record is (0, 1/n)-DP, exactly, and after {last.releases:,} "
            f"of them {last.naive:,.0f} of {self.people:,} people are exposed; at δ = "
            f"{self.delta:g}, far below 1/n, {last.private:,.0f} are."
        )

    @property
    def table(self) -> tuple[Row, ...]:
        return (
            (
                "releases",
                "exposed, whole records",
                "by theory",
                "Deniable, δ = 1/n",
                f"Deniable, δ = {self.delta:g}",
                "at most, on average",
            ),
            *(
                (
                    f"{each.releases:,}",
                    f"{each.naive:,.0f}",
                    f"{each.expected_naive:,.1f}",
                    f"{each.large_delta:,.0f}",
                    f"{each.private:,.0f}",
                    f"{each.most_private:.2g}",
                )
                for each in self.shamed
            ),
        )

    def plot(self, path: str | Path) -> Path:
        return lines(
            [each.releases for each in self.shamed],
            {
                "one record whole: δ = 1/n": [each.naive for each in self.shamed],
                "Deniable, δ = 1/n": [each.large_delta for each in self.shamed],
                f"Deniable, δ = {self.delta:g}": [each.private for each in self.shamed],
            },
            log_x=True,
            title=f"{self.people:,} people, one whole record at a time",
            x_label="releases",
            y_label="people exposed",
            path=path,
        )


@parameters
class NameAndShame(Attack):
    """One random person's record, whole; and a list of everybody's record under a small δ.

    Replacing one record changes the naive release with chance 1/n, so it is (0, 1/n)-DP, exactly
    (Dwork & Roth 2014, section 2.3); and somebody is exposed each time. Through Deniable the
    records, each of them its owner's alone, are the cells of a `StabilityHistogram`: a single
    person's cell shows with chance δ or less.
    """

    name: ClassVar[str] = "name-and-shame"
    title: ClassVar[str] = "One whole record at a time: why δ must be far below 1/n"

    people: int = parameter(size(2, 100_000), default=500)
    releases: tuple[int, ...] = parameter(several(size(most=100_000)), default=(1, 10, 100, 500))
    epsilon: float = parameter(above_zero, default=1.0)
    delta: float = parameter(chance, default=1e-9)

    def __post_init__(self) -> None:
        if self.people * max(self.releases) > 10**7:
            raise ParameterError("releases", self.releases, "people times releases is 1e7 at most")

    def run(self) -> NameAndShameFound:
        few = min(self.people, _VERIFIED)
        return NameAndShameFound(
            people=self.people,
            verified_people=few,
            verified_delta=exact_delta(few),
            delta=self.delta,
            shamed=self._shamed(),
        )

    def _shamed(self) -> tuple[Shamed, ...]:
        most = max(self.releases)
        named = below(self.people, most).tolist()
        naive = self._exposed([[each] for each in named])
        large = self._exposed(self._shown(Fraction(1, self.people), most))
        small = self._exposed(self._shown(self.delta, most))
        return tuple(
            Shamed(
                releases=releases,
                naive=naive[releases],
                expected_naive=self.people * (1 - (1 - 1 / self.people) ** releases),
                large_delta=large[releases],
                private=small[releases],
                most_private=self.people * self.delta * releases,
            )
            for releases in self.releases
        )

    def _shown(self, delta: Number, releases: int) -> list[list[Any]]:
        """The records that each release shows; everybody's record is a cell of one person."""
        mechanism = StabilityHistogram(epsilon=self.epsilon, delta=delta)
        records = dict.fromkeys(range(self.people), 1)
        return [list(mechanism.release(records)) for _ in range(releases)]

    def _exposed(self, shown: Sequence[Sequence[Any]]) -> dict[int, int]:
        """How many people are exposed after each of the numbers of releases."""
        seen: set[Any] = set()
        found = {}
        for number, records in enumerate(shown, 1):
            seen.update(records)
            if number in self.releases:
                found[number] = len(seen)
        return found


def exact_delta(people: int) -> Fraction:
    """δ at ε = 0 of publishing one of so many records, person 0 having one of two of them."""
    chance = Fraction(1, people)
    others = [chance] * (people - 1)
    found = verify_channel([[chance, Fraction(0), *others], [Fraction(0), chance, *others]])
    return Fraction(found.delta(epsilon=0))
