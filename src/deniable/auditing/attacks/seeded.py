"""A seeded generator: whoever finds the seed subtracts the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deniable.auditing.attacks.made_up import Floats, Integers, below, laplace_of
from deniable.auditing.attacks.story import Attack, AttackFinding, Row, above_zero, share, size
from deniable.mechanisms.laplace import Laplace
from deniable.plots import grouped_bars
from deniable.privacy.parameters import parameter, parameters

Words = npt.NDArray[np.uint64]

# Knuth's constants for a linear congruential generator modulo 2^64.
_MULTIPLY, _ADD = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
_WHOLE = 1e-6  # how near to a whole number a count must come once the right noise is taken off


@dataclass(frozen=True)
class SeededFound(AttackFinding):
    """Seeds tried, and counts told exactly."""

    seeds: int
    counts: int
    naive_found: float  # share of attacks that are left with one seed, the right one
    naive_exact: float  # share of counts told exactly
    private_matches: float  # seeds left, on average, when the same is tried on Deniable's counts
    private_exact: float  # share of counts told exactly by rounding what is published
    expected_exact: float  # of one count, for Laplace noise of this ε

    @property
    def sentence(self) -> str:
        return (
            f"Trying all {self.seeds:,} seeds on {self.counts} noisy counts, which must be whole, "
            f"finds the seed in {self.naive_found:.0%} of attacks and {self.naive_exact:.0%} of "
            f"counts; no seed fits Deniable's, and {self.private_exact:.0%} are told by rounding."
        )

    @property
    def table(self) -> tuple[Row, ...]:
        chance = share(self.expected_exact)
        return (
            ("noise", "seed found", "counts told exactly", "by chance"),
            ("seeded generator", share(self.naive_found), share(self.naive_exact), chance),
            ("Deniable, no seed", "none fits", share(self.private_exact), chance),
        )

    def plot(self, path: str | Path) -> Path:
        return grouped_bars(
            ["seeded generator", "Deniable, no seed"],
            {
                "counts told exactly": [self.naive_exact, self.private_exact],
                "by rounding what is published": [self.expected_exact] * 2,
            },
            title="Noise from a seed, found by trying all seeds",
            x_label="",
            y_label="share of counts",
            path=path,
        )


@parameters
class Seeded(Attack):
    """Laplace noise from a linear congruential generator, whose seed is one of a few million.

    The attacker knows the program and that counts are whole: with the right seed's noise taken off,
    all of them are. The clock, a process number or 42 are seeds of that kind. Deniable's source has
    no seed and is keyed by the operating system, so the same search finds nothing.
    """

    name: ClassVar[str] = "seed"
    title: ClassVar[str] = "Noise from a seed that can be guessed"

    seeds: int = parameter(size(most=1 << 24), default=1 << 20)
    counts: int = parameter(size(4, 1_000), default=8)
    epsilon: float = parameter(above_zero, default=1.0)
    rounds: int = parameter(size(most=10_000), default=50)

    def run(self) -> SeededFound:
        mechanism = Laplace(epsilon=self.epsilon, sensitivity=1)
        everything = self._noise(np.arange(self.seeds, dtype=np.uint64), 1)[:, 0]
        found, told, matches, rounded = [], [], [], []
        for _ in range(self.rounds):
            truth = below(10_000, self.counts)
            chosen = below(self.seeds, 1).astype(np.uint64)
            naive = truth + self._noise(chosen, self.counts)[0]
            fits = self._fitting(naive, everything)
            found.append(fits.size == 1 and fits[0] == chosen[0])
            told.append(self._told(naive, fits, truth))
            private = np.array([mechanism.release(float(count)) for count in truth])
            fits = self._fitting(private, everything)
            matches.append(fits.size)
            rounded.append(self._told(private, fits, truth))
        return SeededFound(
            seeds=self.seeds,
            counts=self.counts,
            naive_found=float(np.mean(found)),
            naive_exact=float(np.mean(told)),
            private_matches=float(np.mean(matches)),
            private_exact=float(np.mean(rounded)),
            expected_exact=1 - math.exp(-self.epsilon / 2),
        )

    def _noise(self, states: Words, count: int) -> Floats:
        """Laplace noise by inversion, one row for each starting state."""
        rows = np.empty((states.size, count))
        for place in range(count):
            states = states * _MULTIPLY + _ADD
            u = ((states >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
            rows[:, place] = laplace_of(u)
        return rows / self.epsilon

    def _fitting(self, published: Floats, first: Floats) -> Words:
        """The seeds whose noise, taken off, leaves whole counts."""
        fits = np.flatnonzero(_is_whole(published[0] - first)).astype(np.uint64)
        left = published - self._noise(fits, self.counts)
        return fits[_is_whole(left).all(axis=1)]

    def _told(self, published: Floats, fits: Words, truth: Integers) -> float:
        """The share of counts told exactly: with the seed, or without it by rounding."""
        noise = self._noise(fits[:1], self.counts)[0] if fits.size else np.zeros(self.counts)
        return float((np.round(published - noise) == truth).mean())


def _is_whole(values: Floats) -> npt.NDArray[np.bool_]:
    return np.abs(values - np.round(values)) < _WHOLE
