"""Linear reconstruction: many subset counts, each a little wrong, give nearly every bit away."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from deniable.auditing.attacks.made_up import Bits, Floats, Integers, fair, uniforms
from deniable.auditing.attacks.story import (
    Attack,
    AttackFinding,
    Row,
    above_zero,
    chance,
    guess_limit,
    several,
    share,
    size,
)
from deniable.errors import ParameterError
from deniable.mechanisms.gaussian import DiscreteGaussian
from deniable.mechanisms.laplace import Geometric
from deniable.plots import grouped_bars
from deniable.privacy.exact import sqrt_up
from deniable.privacy.parameters import parameter, parameters

Release = Callable[[Integers], Floats]

_RIDGE = 1e-9


@dataclass(frozen=True)
class Reconstructed:
    """The share of bits that are right, under one kind of noise; 0.5 is guessing."""

    noise: str
    least_squares: tuple[float, ...]  # for each number of counts
    linear_program: float | None  # at `program_factor` counts for each bit
    limit: float | None  # for any attack, where the counts are private


@dataclass(frozen=True)
class ReconstructionFound(AttackFinding):
    """How many bits come back from noisy subset counts."""

    bits: int
    factors: tuple[int, ...]
    program_factor: int
    bounded: tuple[Reconstructed, ...]
    private: tuple[Reconstructed, ...]

    @property
    def sentence(self) -> str:
        small, strict = self.bounded[1], self.private[0]
        return (
            f"Of {self.bits} secret bits, counts with noise {small.noise} give back "
            f"{small.least_squares[-1]:.1%}; private ones ({strict.noise}) give "
            f"{strict.least_squares[-1]:.1%}, where guessing gives half."
        )

    @property
    def table(self) -> tuple[Row, ...]:
        squares = tuple(f"least squares, m = {factor}n" for factor in self.factors)
        return (
            ("noise", *squares, f"linear program, m = {self.program_factor}n", "limit"),
            *(
                (
                    each.noise,
                    *(share(right) for right in each.least_squares),
                    "-" if each.linear_program is None else share(each.linear_program),
                    "-" if each.limit is None else share(each.limit),
                )
                for each in (*self.bounded, *self.private)
            ),
        )

    def plot(self, path: str | Path) -> Path:
        every = (*self.bounded, *self.private)
        return grouped_bars(
            [_two_lines(each.noise) for each in every],
            {
                f"least squares, m = {factor}n": [each.least_squares[place] for each in every]
                for place, factor in enumerate(self.factors)
            },
            title=f"{self.bits} secret bits from subset counts",
            x_label="noise",
            y_label="share of bits right",
            path=path,
        )


@parameters
class Reconstruction(Attack):
    """Counts over random subsets, solved for the bits by least squares and linear programming.

    Bounded noise is uniform within ±b (Dinur & Nissim 2003: b below √n protects nothing once there
    are enough counts; Dwork, McSherry & Talwar 2007 for the linear program, which minimises the sum
    of residuals with bits in [0, 1]). Through Deniable all m counts together are private for each
    bit: geometric noise of L1 sensitivity m, or discrete Gaussian noise of L2 sensitivity √m.
    """

    name: ClassVar[str] = "reconstruction"
    title: ClassVar[str] = "Secret bits from many noisy subset counts"

    bits: int = parameter(size(8, 2_000), default=128)
    factors: tuple[int, ...] = parameter(several(size(most=64)), default=(1, 4, 16))
    program_factor: int = parameter(size(most=16), default=4)
    pure_epsilon: float = parameter(above_zero, default=1.0)
    gaussian_epsilons: tuple[float, ...] = parameter(several(above_zero), default=(1.0, 10.0))
    delta: float = parameter(chance, default=1e-6)
    rounds: int = parameter(size(most=10_000), default=5)

    def __post_init__(self) -> None:
        if self.bits * max(self.factors) > 100_000:
            raise ParameterError("factors", self.factors, "bits times factor is 100,000 at most")

    def run(self) -> ReconstructionFound:
        root = math.sqrt(self.bits)
        bounded = {
            "none": 0.0,
            "±2.5": 2.5,
            f"±√n/2 = {root / 2:.1f}": root / 2,
            f"±√n = {root:.1f}": root,
            f"±n/4 = {self.bits / 4:g}": self.bits / 4,
        }
        return ReconstructionFound(
            bits=self.bits,
            factors=self.factors,
            program_factor=self.program_factor,
            bounded=tuple(
                self._reconstructed(name, partial(_bounded, within), program=True)
                for name, within in bounded.items()
            ),
            private=tuple(self._private()),
        )

    def _private(self) -> list[Reconstructed]:
        def pure(m: int) -> Release:
            return _released(
                Geometric(epsilon=self.pure_epsilon, sensitivity=m, relation="replace")
            )

        def gaussian(epsilon: float, m: int) -> Release:
            moved = sqrt_up(Fraction(m), 9)
            return _released(
                DiscreteGaussian(
                    epsilon=epsilon, delta=self.delta, sensitivity=moved, relation="replace"
                )
            )

        strict = f"DP ε = {self.pure_epsilon:g}"
        return [
            self._reconstructed(strict, pure, limit=guess_limit(self.pure_epsilon)),
            *(
                self._reconstructed(
                    f"DP ({epsilon:g}, {self.delta:g})",
                    partial(gaussian, epsilon),
                    limit=guess_limit(epsilon, self.delta),
                )
                for epsilon in self.gaussian_epsilons
            ),
        ]

    def _reconstructed(
        self,
        name: str,
        release_of: Callable[[int], Release],
        *,
        program: bool = False,
        limit: float | None = None,
    ) -> Reconstructed:
        def mean(factor: int, solve: Callable[[Bits, Floats], Floats]) -> float:
            release = release_of(factor * self.bits)
            return float(np.mean([self._once(factor, release, solve) for _ in range(self.rounds)]))

        return Reconstructed(
            noise=name,
            least_squares=tuple(mean(factor, least_squares) for factor in self.factors),
            linear_program=mean(self.program_factor, linear_program) if program else None,
            limit=limit,
        )

    def _once(
        self, factor: int, release: Release, solve: Callable[[Bits, Floats], Floats]
    ) -> float:
        secret = fair(self.bits)
        subsets = fair(factor * self.bits, self.bits)
        counts = subsets.astype(np.int64) @ secret.astype(np.int64)
        guess = solve(subsets, release(counts)) > 0.5
        return float((guess == secret).mean())


def least_squares(subsets: Bits, answers: Floats) -> Floats:
    """The bits, as numbers, that miss the answers least in squares."""
    counts = subsets.astype(np.float64)
    # The ridge is far below any eigenvalue that matters; it only makes every square regular.
    gram = counts.T @ counts + _RIDGE * np.eye(counts.shape[1])
    return np.linalg.solve(gram, counts.T @ answers).astype(np.float64)


def linear_program(subsets: Bits, answers: Floats) -> Floats:
    """Numbers in [0, 1] that miss the answers least in absolute values."""
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to import)

    m, n = subsets.shape
    # The dual has one row for each bit, not for each count, and is ten times faster: the answers
    # are weighted within ±1, and what the weights of a bit's counts exceed 0 by is paid for.
    rows = np.hstack([subsets.T.astype(np.float64), -np.eye(n)])
    costs = np.concatenate([-answers, np.ones(n)])
    within = [(-1, 1)] * m + [(0, None)] * n
    solved = linprog(costs, A_ub=rows, b_ub=np.zeros(n), bounds=within, method="highs-ds")
    found: Floats = -solved.ineqlin.marginals
    return found


def _bounded(within: float, _: int) -> Release:
    """Noise within ±`within`, however many counts there are."""
    return lambda counts: counts + within * (2 * uniforms(counts.size) - 1)


def _released(mechanism: Geometric | DiscreteGaussian) -> Release:
    return lambda counts: np.asarray(mechanism.release(counts)).astype(np.float64)


def _two_lines(noise: str) -> str:
    """A label broken after its first word, or before its number."""
    return noise.replace("DP ", "DP\n") if "DP" in noise else noise.replace(" = ", "\n= ")
