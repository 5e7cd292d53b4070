"""The last-bit attack: floating-point noise lands on different numbers for different inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from deniable.auditing.attacks.made_up import Floats, Integers, laplace_of, uniforms
from deniable.auditing.attacks.story import (
    Attack,
    AttackFinding,
    Row,
    above_zero,
    chance,
    share,
    size,
)
from deniable.auditing.sampled.bounds import EventCounts
from deniable.mechanisms.laplace import Laplace
from deniable.plots import lines
from deniable.privacy.parameters import parameter, parameters

_FINE = -54  # 1 + noise is a multiple of 2^-53; 0 + noise need not be
_POINTS = 25


@dataclass(frozen=True)
class LastBitFound(AttackFinding):
    """How often the lowest set bit of an output tells the input, and how soon it is proved."""

    claimed_epsilon: float
    samples: int
    naive_tell: float  # share of outputs of input 0 that input 1 can never give
    naive_mistakes: float  # share of outputs of input 1 that look like that
    power: float  # share of attacks that prove the claim wrong with `samples` outputs of each input
    grid: tuple[int, ...]
    powers: tuple[float, ...]  # for each number of samples in `grid`
    private_samples: int
    private_tell: float
    private_mistakes: float
    private_epsilon: float  # the most that a lowest bit, at any level, proves of Deniable's

    @property
    def sentence(self) -> str:
        return (
            f"{self.naive_tell:.0%} of outputs of floating-point noise name their input by their "
            f"last bits, and {self.samples} outputs of each input refute ε = "
            f"{self.claimed_epsilon:g} in {self.power:.0%} of attacks; {self.private_samples:,} of "
            f"Deniable's show nothing."
        )

    @property
    def table(self) -> tuple[Row, ...]:
        broken = self.private_epsilon > self.claimed_epsilon
        return (
            ("noise", "samples of each", "input told", "wrongly", "claim refuted"),
            (
                "Laplace in floats",
                f"{self.samples}",
                share(self.naive_tell),
                share(self.naive_mistakes),
                f"{self.power:.0%} of attacks",
            ),
            (
                "Deniable's lattice",
                f"{self.private_samples:,}",
                share(self.private_tell),
                share(self.private_mistakes),
                "yes" if broken else "no",
            ),
        )

    def plot(self, path: str | Path) -> Path:
        return lines(
            self.grid,
            {
                "Laplace in floats": self.powers,
                "Deniable's lattice": [float(self.private_epsilon > self.claimed_epsilon)]
                * len(self.grid),
            },
            title=f"Refuting ε = {self.claimed_epsilon:g} by the last bit",
            x_label="samples of each input",
            y_label="share of attacks that succeed",
            path=path,
        )


@parameters
class LastBit(Attack):
    """Laplace noise of scale 1/ε on 0 and on 1, looked at in its lowest set bit (Mironov 2012).

    Naively noise is the logarithm of a 53-bit uniform number, added in floats. A sum 1 + noise is a
    multiple of 2^-53, whatever the noise; noise alone, when small, is finer. So one finer output
    proves that the input was 0. The claim of ε is refuted, with the stated confidence, by exact
    binomial bounds on how often the event happens on both sides. Deniable's outputs are multiples
    of the lattice's step for every input.
    """

    name: ClassVar[str] = "last-bit"
    title: ClassVar[str] = "The lowest bit of floating-point noise"

    epsilon: float = parameter(above_zero, default=1.0)
    samples: int = parameter(size(most=10_000), default=83)
    confidence: float = parameter(chance, default=0.95)
    rounds: int = parameter(size(most=10_000), default=400)
    private_samples: int = parameter(size(), default=50_000)

    def run(self) -> LastBitFound:
        most = 2 * self.samples
        fine = [
            lowest_bit(value + float_laplace(self.rounds * most, 1 / self.epsilon)) <= _FINE
            for value in (0.0, 1.0)
        ]
        fine = [each.reshape(self.rounds, most) for each in fine]
        grid = sorted({*np.linspace(2, most, _POINTS).astype(int).tolist(), self.samples})
        powers = tuple(
            self._power(fine[0][:, :n].sum(axis=1), fine[1][:, :n].sum(axis=1), n) for n in grid
        )
        mechanism = Laplace(epsilon=self.epsilon, sensitivity=1)
        # Each coordinate is a release of its own.
        zero, one = (
            lowest_bit(np.asarray(mechanism.release(np.full(self.private_samples, value))))
            for value in (0.0, 1.0)
        )
        return LastBitFound(
            claimed_epsilon=self.epsilon,
            samples=self.samples,
            naive_tell=float(fine[0].mean()),
            naive_mistakes=float(fine[1].mean()),
            power=powers[grid.index(self.samples)],
            grid=tuple(grid),
            powers=powers,
            private_samples=self.private_samples,
            private_tell=float((zero <= _FINE).mean()),
            private_mistakes=float((one <= _FINE).mean()),
            private_epsilon=self._best(zero, one),
        )

    def _power(self, hits: Integers, misses: Integers, n: int) -> float:
        certified = [self._certified(int(a), int(b), n) for a, b in zip(hits, misses, strict=True)]
        return float(np.mean([epsilon > self.epsilon for epsilon in certified]))

    def _best(self, zero: Integers, one: Integers) -> float:
        """The most that any event "the lowest bit is at k or below", or its opposite, proves."""
        levels = np.unique(np.concatenate([zero, one]))
        return max(
            self._certified(int(hits.sum()), int(misses.sum()), zero.size, events=4 * levels.size)
            for level in levels
            for here, there in ((zero, one), (one, zero))
            for hits, misses in ((here <= level, there <= level), (here > level, there > level))
        )

    def _certified(self, hits: int, misses: int, n: int, *, events: int = 1) -> float:
        """The ε that the counts prove: Clopper-Pearson, what may go wrong shared by all events."""
        seen = EventCounts(hits, misses, n, (1 - self.confidence) / events)
        low = seen.sure_more
        return max(0.0, math.log(low / seen.at_most_less)) if low else 0.0


def float_laplace(count: int, scale: float) -> Floats:
    """Laplace noise as textbooks write it: a logarithm of a uniform float. Not for release."""
    return scale * laplace_of(uniforms(count))


def lowest_bit(outputs: Floats) -> Integers:
    """The exponent of the lowest set bit of each output; 0 itself has none, and counts as 1024."""
    mantissa, exponent = np.frexp(outputs)
    whole = np.ldexp(np.abs(mantissa), 53).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1)).astype(np.int64)
    found: Integers = np.where(whole == 0, 1024, lowest + exponent - 53).astype(np.int64)
    return found
