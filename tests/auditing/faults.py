"""Mechanisms with a planted fault, and their correct twins."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import deniable as dp
from deniable.mechanisms.keys import WEIGHT, KeySelection
from deniable.randomness.noise import LaplaceLaw, noise

ONE = dp.PureDP(1)
LAPLACE, GEOMETRIC = dp.Laplace(epsilon=1, sensitivity=1), dp.Geometric(epsilon=1, sensitivity=1)
KEYS = KeySelection(rho=0.1, delta=1e-6, max_groups=1)
STEPS = 2**20


def bare_laplace(scale: float) -> Callable[[float], float]:
    """Noise by hand, which a replay cannot compare: only samples tell."""
    law = LaplaceLaw(Fraction(scale) * STEPS)
    return lambda value: value + noise(law).one() / STEPS


def rounded_laplace(scale: Fraction, steps: int) -> Callable[[float], float]:
    """The same, rounded to so many steps a unit."""
    law = LaplaceLaw(scale * steps)
    return lambda value: value + noise(law).one() / steps


def sparse_vector(*, threshold_noise: bool) -> Callable[[list[float]], list[bool]]:
    """The library's own, up to one positive answer, with or without noise on the threshold."""
    shares = dp.SparseVector(epsilon=1, threshold=0, sensitivity=1).shares
    threshold = dp.Laplace(epsilon=shares[0], sensitivity=1)
    values = dp.Laplace(epsilon=shares[1], sensitivity=2)

    def answers(stream: list[float]) -> list[bool]:
        level = threshold.release(0.0) if threshold_noise else 0.0
        found = []
        for value in stream:
            found.append(values.release(value) >= level)
            if found[-1]:
                break
        return found

    return answers


def all_keys(counts: dict[str, int]) -> list[str]:
    return sorted(counts)


@dataclass(frozen=True)
class Planted:
    mechanism: Any
    claim: Any
    pairs: list[tuple[Any, Any]] | None = None
    n: int = 50_000


STREAMS = [([0.0] * 12, [1.0] * 12)]
FAULTS = {
    "Laplace x 0.9": Planted(dp.Laplace(scale=0.9, sensitivity=1), ONE),
    "geometric x 0.9": Planted(dp.Geometric(scale=0.9, sensitivity=1), ONE),
    "sensitivity x 2": Planted(bare_laplace(1), ONE, [(0.0, 2.0)]),
    "sensitivity x 2, charged": Planted(LAPLACE, ONE, [(0.0, 2.0)]),
    "sparse vector without threshold noise": Planted(
        sparse_vector(threshold_noise=False), ONE, STREAMS
    ),
    "keys without a threshold": Planted(all_keys, KEYS.loss, [({}, {"a": WEIGHT})]),
    "Gaussian x 0.9": Planted(dp.Gaussian(sigma=0.9, sensitivity=1), dp.GDP(1)),
    # Whole numbers with wide noise, far from zero: hardly a value comes twice.
    **{
        f"whole Laplace of scale {9 * k}": Planted(
            dp.Geometric(scale=9 * k, sensitivity=10 * k), ONE, [(1000, 1000 + 10 * k)]
        )
        for k in (1, 3, 10)
    },
    "whole Gaussian of deviation 90": Planted(
        dp.DiscreteGaussian(sigma=90, sensitivity=100), dp.GDP(1), [(1000, 1100)]
    ),
    "Laplace x 0.9, rounded to 1/64": Planted(
        rounded_laplace(Fraction(9, 10), 64), ONE, [(100.0, 101.0)]
    ),
    "Laplace x 0.9, as a fraction": Planted(
        lambda value: value + Fraction(noise(LaplaceLaw(Fraction(189, 10))).one(), 21),
        ONE,
        [(100, 101)],
    ),
    "discrete Gaussian x 0.9, zCDP": Planted(
        dp.DiscreteGaussian(sigma=18, sensitivity=20), dp.ZCDP(0.5), n=200_000
    ),
    "discrete Gaussian x 0.9, its loss": Planted(
        dp.DiscreteGaussian(sigma=18, sensitivity=20),
        dp.DiscreteGaussian(sigma=20, sensitivity=20).loss,
        n=200_000,
    ),
}
CORRECT = {
    "Laplace": Planted(LAPLACE, ONE),
    "Laplace by hand": Planted(bare_laplace(1), ONE, [(0.0, 1.0)]),
    "geometric": Planted(GEOMETRIC, ONE),
    "sparse vector": Planted(sparse_vector(threshold_noise=True), ONE, STREAMS),
    "keys": Planted(KEYS, KEYS.loss),
    "Gaussian": Planted(dp.Gaussian(sigma=1, sensitivity=1), dp.GDP(1)),
    "Gaussian, zCDP": Planted(dp.Gaussian(sigma=1, sensitivity=1), dp.ZCDP(0.5)),
    "randomised response": Planted(dp.RandomizedResponse(epsilon=1), ONE),
}


def audited(planted: Planted, *, n: int | None = None) -> dp.auditing.AuditReport:
    return dp.audit(planted.mechanism, planted.claim, planted.pairs, n or planted.n)
