"""Sparse vectors that are not private: four published variants, and ours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from deniable.auditing.attacks.made_up import Bits, Floats, fair
from deniable.auditing.attacks.story import (
    Attack,
    AttackFinding,
    Row,
    above_zero,
    guess_limit,
    share,
    size,
)
from deniable.auditing.exact.streams import stream_channel
from deniable.auditing.exact.verification import verify, verify_channel
from deniable.errors import ParameterError
from deniable.mechanisms.laplace import Laplace
from deniable.mechanisms.sparse_vector import SparseVector
from deniable.plots import grouped_bars
from deniable.privacy.parameters import parameter, parameters

_HALF = 4  # values in each half of the streams that are verified
_REACH = 8.0  # how far around the threshold the game looks, in units of 1/ε


@dataclass(frozen=True)
class SparseVectorVariant:
    """A sparse vector: its noises in units of 1/ε, and whether it ends."""

    name: str
    threshold_scale: float
    value_scale: float
    ends: bool = True
    shows_values: bool = False


VARIANTS = (
    SparseVectorVariant("3: shows the noisy value", 2, 2, shows_values=True),
    SparseVectorVariant("4: noise for one positive", 4, 4 / 3),
    SparseVectorVariant("5: no noise on values", 2, 0, ends=False),
    SparseVectorVariant("6: never ends", 2, 2, ends=False),
)
"""As numbered by Lyu, Su & Li 2017, Fig. 1: from Roth 2011, Lee & Clifton 2014, Stoddard, Chen &
Machanavajjhala 2014, and Chen, Xiao, Zhang & Xu 2015."""


@dataclass(frozen=True)
class Streamed:
    """What a variant is, beside what it claims."""

    variant: str
    exact_epsilon: float  # the least ε that holds on the verified streams; infinity: none does
    guessed: float | None  # share of games in which the secret bit is guessed right
    games: int


@dataclass(frozen=True)
class SparseVectorFound(AttackFinding):
    """Four broken variants, and ours, on the same streams."""

    claimed_epsilon: float
    limit: float  # of guesses right, for any attack on what is claimed
    broken: tuple[Streamed, ...]
    ours: Streamed

    @property
    def sentence(self) -> str:
        worst = max(self.broken, key=lambda each: each.guessed or 0)
        return (
            f"Four published sparse vectors that claim ε = {self.claimed_epsilon:g} are "
            f"{', '.join(f'{each.exact_epsilon:.3g}' for each in self.broken)} on short streams, "
            f"and a secret bit is guessed right in {worst.guessed:.0%} of games; ours is "
            f"{self.ours.exact_epsilon:.3g}, and {self.ours.guessed:.0%}."
        )

    @property
    def table(self) -> tuple[Row, ...]:
        return (
            ("variant", "claimed ε", "exact ε", "bit guessed right", "limit"),
            *(
                (
                    each.variant,
                    f"{self.claimed_epsilon:g}",
                    f"{each.exact_epsilon:.3f}",
                    "-" if each.guessed is None else share(each.guessed),
                    share(self.limit),
                )
                for each in (*self.broken, self.ours)
            ),
        )

    def plot(self, path: str | Path) -> Path:
        played = [each for each in (*self.broken, self.ours) if each.guessed is not None]
        return grouped_bars(
            [each.variant.replace(": ", ":\n") for each in played],
            {
                "guessed right": [each.guessed or 0.0 for each in played],
                f"most that ε = {self.claimed_epsilon:g} allows": [self.limit] * len(played),
            },
            title="A secret bit from a sparse vector",
            x_label="variant",
            y_label="share of games",
            path=path,
        )


@parameters
class BrokenSparseVector(Attack):
    """Wrong sparse vectors, verified on short streams and played with on long ones.

    Verified: four values at the threshold and four more, against four above and four below by the
    sensitivity. Played: a count that is a secret bit, and a public ½, are both lowered by the same
    steps and asked in turn from the lowest on; whichever is above more often is taken for larger.
    Variant 3 is not played with: it gives away e^(m/scale) by one value after m negative answers,
    exactly, but seldom.
    """

    name: ClassVar[str] = "sparse-vector"
    title: ClassVar[str] = "Sparse vectors that are not private"

    epsilon: float = parameter(above_zero, default=1.0)
    positives: int = parameter(size(most=10_000), default=50)
    steps: int = parameter(size(8, 10_000), default=400)
    games: int = parameter(size(most=100_000), default=1_000)
    private_games: int = parameter(size(most=10_000), default=100)

    def __post_init__(self) -> None:
        if self.epsilon > 20:
            raise ParameterError("epsilon", self.epsilon, "must be 20 at most")
        if self.steps * self.games > 10**7:
            raise ParameterError("games", self.games, "steps times games is 1e7 at most")

    def run(self) -> SparseVectorFound:
        return SparseVectorFound(
            claimed_epsilon=self.epsilon,
            limit=guess_limit(self.epsilon),
            broken=tuple(self._broken(variant) for variant in VARIANTS),
            ours=self._ours(),
        )

    def _broken(self, variant: SparseVectorVariant) -> Streamed:
        guessed = None if variant.shows_values else self._played(variant)
        return Streamed(f"variant {variant.name}", self._exact(variant), guessed, self.games)

    def _exact(self, variant: SparseVectorVariant) -> float:
        if variant.shows_values:
            # For an output v at the threshold the noise of the threshold was below v, where each
            # of m negative answers is e^(1/scale) times as likely on values that are lower by 1.
            return 2 * _HALF * self.epsilon / variant.value_scale
        _, rows = stream_channel(
            _streams(),
            threshold=0,
            threshold_scale=variant.threshold_scale / self.epsilon,
            value_scale=variant.value_scale / self.epsilon,
            positives=_HALF if variant.ends else None,
        )
        return verify_channel(rows).epsilon

    def _ours(self) -> Streamed:
        short = SparseVector(epsilon=self.epsilon, threshold=0, sensitivity=1, positives=_HALF)
        long = SparseVector(
            epsilon=self.epsilon, threshold=0, sensitivity=1, positives=self.positives
        )
        secret = fair(self.private_games)
        coins = fair(self.private_games)
        right = [
            self._stream(long, bool(bit), coin=bool(coin)) == bit
            for bit, coin in zip(secret, coins, strict=True)
        ]
        exact = verify(short, _streams()).epsilon
        return Streamed("Deniable", exact, float(np.mean(right)), self.private_games)

    def _stream(self, mechanism: SparseVector, bit: bool, *, coin: bool) -> bool:
        """One game against a real stream: the guess."""
        stream = mechanism.open()
        lead = 0
        for down in self._ladder().tolist():
            for value, weight in ((bit - down, 1), (0.5 - down, -1)):
                if stream.positives_left:
                    lead += weight * stream.ask(value).above
        return lead > 0 or (lead == 0 and coin)

    def _played(self, variant: SparseVectorVariant) -> float:
        """Many games at once against a variant."""
        secret = fair(self.games)
        down = self._ladder()
        values = np.empty((self.games, 2 * self.steps))
        values[:, ::2] = secret[:, None] - down
        values[:, 1::2] = 0.5 - down
        above = values + self._noise(variant.value_scale, values.shape) >= self._noise(
            variant.threshold_scale, (self.games, 1)
        )
        if variant.ends:
            above &= above.cumsum(axis=1) <= self.positives
        lead = above[:, ::2].sum(axis=1) - above[:, 1::2].sum(axis=1)
        guess: Bits = (lead > 0) | ((lead == 0) & fair(self.games))
        return float((guess == secret).mean())

    def _ladder(self) -> Floats:
        """By how much values are lowered, the most first."""
        reach = _REACH / self.epsilon
        return np.linspace(reach, -reach, self.steps)

    def _noise(self, scale: float, shape: tuple[int, ...]) -> Floats:
        if scale == 0:
            return np.zeros(shape)
        wide = Laplace(scale=scale / self.epsilon, sensitivity=1)
        return np.asarray(wide.release(np.zeros(shape)))


def _streams() -> list[list[float]]:
    """All at the threshold; and half of them above, half below, by the sensitivity."""
    return [[0.0] * (2 * _HALF), [1.0] * _HALF + [-1.0] * _HALF]
