"""Membership from many means: whoever's attributes lean towards the published averages is in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from deniable.auditing.attacks.made_up import Bits, Floats, people_with, uniforms
from deniable.auditing.attacks.story import (
    Attack,
    AttackFinding,
    Row,
    above_zero,
    chance,
    several,
    share,
    size,
)
from deniable.mechanisms.gaussian import Gaussian
from deniable.plots import lines
from deniable.privacy.exact import sqrt_up
from deniable.privacy.parameters import parameter, parameters

_POINTS = 101
_Z_RARE = -2.3263478740408408  # Φ⁻¹(0.01)


@dataclass(frozen=True)
class Traced:
    """How well members are told from outsiders, with so many attributes published."""

    attributes: int
    release: str
    auc: float
    tpr_at_1_percent: float
    auc_limit: float
    tpr_limit: float
    roc: tuple[float, ...]  # true positive rates at false positive rates 0, 0.01, ..., 1


@dataclass(frozen=True)
class MembershipFound(AttackFinding):
    """Members told from outsiders by published means."""

    members: int
    traced: tuple[Traced, ...]

    @property
    def sentence(self) -> str:
        worst = max((t for t in self.traced if t.auc_limit == 1), key=lambda t: t.auc)
        kept = next(t for t in self.traced if t.attributes == worst.attributes and t.auc_limit < 1)
        return (
            f"{worst.attributes:,} exact means of {self.members} people tell members from "
            f"outsiders with an AUC of {worst.auc:.3f}, and find {worst.tpr_at_1_percent:.0%} of "
            f"them at 1% false alarms; with {kept.release} it is {kept.auc:.3f} and "
            f"{kept.tpr_at_1_percent:.0%}."
        )

    @property
    def table(self) -> tuple[Row, ...]:
        return (
            ("attributes", "release", "AUC", "TPR at 1 % FPR", "AUC limit", "TPR limit"),
            *(
                (
                    f"{t.attributes:,}",
                    t.release,
                    share(t.auc),
                    share(t.tpr_at_1_percent),
                    share(t.auc_limit),
                    share(t.tpr_limit),
                )
                for t in self.traced
            ),
        )

    def plot(self, path: str | Path) -> Path:
        most = max(t.attributes for t in self.traced)
        x = np.linspace(0, 1, _POINTS)
        curves = {t.release: np.array(t.roc) for t in self.traced if t.attributes == most}
        return lines(
            x,
            {**curves, "guessing": x},
            title=f"Who was in the study? {most:,} published means",
            x_label="share of outsiders suspected",
            y_label="share of members found",
            path=path,
        )


@parameters
class Membership(Attack):
    """The average of each attribute over the members of a study, and one suspect at a time.

    The attacker knows the suspect's attributes and a reference sample as large as the study; the
    score is the inner product of the suspect, less the reference, with the published means, less
    the reference (Homer et al. 2008; Dwork et al. 2015). Through Deniable all means are one vector
    with Gaussian noise of L2 sensitivity √attributes/members, (ε, δ)-DP through zCDP for a member
    replaced. Its limits are those of Gaussian noise with μ = sensitivity/σ (Dong, Roth & Su 2022,
    Thm 1): no attack has an AUC above Φ(μ/√2), nor finds more than Φ(Φ⁻¹(0.01) + μ) of members at
    1 % false alarms.
    """

    name: ClassVar[str] = "membership"
    title: ClassVar[str] = "Who was in the study, from many published means"

    members: int = parameter(size(2, 100_000), default=100)
    outsiders: int = parameter(size(100, 100_000), default=500)
    attributes: tuple[int, ...] = parameter(
        several(size(most=100_000)), default=(10, 100, 1_000, 5_000)
    )
    epsilons: tuple[float, ...] = parameter(several(above_zero), default=(0.5, 1.0, 5.0))
    delta: float = parameter(chance, default=1e-6)
    rounds: int = parameter(size(most=10_000), default=5)

    def run(self) -> MembershipFound:
        traced = [each for attributes in self.attributes for each in self._traced(attributes)]
        return MembershipFound(self.members, tuple(traced))

    def _rho(self, epsilon: float) -> float:
        """The zCDP that is (ε, δ)-DP: ε = ρ + 2 sqrt(ρ ln(1/δ)) (Bun & Steinke 2016, Prop. 1.3)."""
        rare = -math.log(self.delta)
        return (math.sqrt(rare + epsilon) - math.sqrt(rare)) ** 2 * (1 - 1e-9)

    def _traced(self, attributes: int) -> list[Traced]:
        moved = sqrt_up(Fraction(attributes), 12) / self.members
        mechanisms: dict[str, Gaussian | None] = {"exact means": None} | {
            f"Deniable, ε = {epsilon:g}": Gaussian(
                rho=self._rho(epsilon), sensitivity=moved, relation="replace"
            )
            for epsilon in self.epsilons
        }
        curves: dict[str, list[tuple[float, Floats]]] = {name: [] for name in mechanisms}
        for _ in range(self.rounds):
            world = _World.made_up(attributes, self.members, self.outsiders)
            for name, mechanism in mechanisms.items():
                means = world.means if mechanism is None else mechanism.release(world.means)
                curves[name].append(_curve(*world.scores(np.asarray(means))))
        found = []
        for name, mechanism in mechanisms.items():
            roc = np.mean([curve for _, curve in curves[name]], axis=0)
            mu = math.inf if mechanism is None else float(moved / mechanism.sigma)
            found.append(
                Traced(
                    attributes=attributes,
                    release=name,
                    auc=float(np.mean([auc for auc, _ in curves[name]])),
                    tpr_at_1_percent=float(roc[1]),
                    auc_limit=float(ndtr(mu / math.sqrt(2))),
                    tpr_limit=float(ndtr(_Z_RARE + mu)),
                    roc=tuple(roc.tolist()),
                )
            )
        return found


@dataclass(frozen=True, eq=False)
class _World:
    """A study, people outside it, and a reference sample of the same population."""

    study: Bits
    outside: Bits
    reference: Floats
    means: Floats

    @classmethod
    def made_up(cls, attributes: int, members: int, outsiders: int) -> _World:
        """Every attribute has a frequency of its own, from 5 % to 95 %."""
        chances = 0.05 + 0.9 * uniforms(attributes)
        study = people_with(chances, members)
        reference = people_with(chances, members).mean(axis=0)
        return cls(study, people_with(chances, outsiders), reference, study.mean(axis=0))

    def scores(self, means: Floats) -> tuple[Floats, Floats]:
        """The scores of members and of outsiders."""
        lean = means - self.reference
        offset = float(self.reference @ lean)
        return self.study @ lean - offset, self.outside @ lean - offset


def _curve(inside: Floats, outside: Floats) -> tuple[float, Floats]:
    """The area under the curve, ties counted half, and the curve at 101 false positive rates."""
    ranked = np.sort(outside)
    beaten = np.searchsorted(ranked, inside, "left") + np.searchsorted(ranked, inside, "right")
    auc = float(beaten.mean()) / (2 * outside.size)
    # The j-th highest of N outsiders is exceeded by another one with chance j/(N + 1): take the
    # largest j that keeps the rate.
    highest = np.floor(np.linspace(0, 1, _POINTS) * (outside.size + 1) + 1e-9).astype(np.int64)
    ends = np.concatenate([[np.inf], ranked[::-1], [-np.inf]])
    rates: Floats = 1 - np.searchsorted(np.sort(inside), ends[highest], "right") / inside.size
    return auc, rates
