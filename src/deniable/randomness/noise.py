"""Laws as data, and the one entry point through which released noise is drawn.

`noise(law)` gives the shared `Noise` of a law: `many(count)` for vectors, `one()` from a pool. A
pool belongs to one process, is refilled in bulk so that the time of a single draw does not follow
its size, and each place is zeroed as its value is handed out.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.randomness.fork import process_mark
from deniable.randomness.gaussian import GaussianSampler
from deniable.randomness.inversion import ChoiceSampler
from deniable.randomness.laplace import LaplaceSampler
from deniable.randomness.source import SECURE, Source
from deniable.trace import LISTENER

_POOL = 4096
# A draw beyond 62 bits, or beyond the 2^15 entries of a table, is an error: at these scales, one
# with probability below exp(-1000).
_LARGEST_SCALE = 1 << 52
_LARGEST_SIGMA = 1 << 56
_SMALLEST = Fraction(1, 10**9)


class Sampler(Protocol):
    """Exact integer draws."""

    def sample(self, count: int, source: Source) -> npt.NDArray[np.int64]:
        """Draw `count` integers."""


class Law(Hashable, Protocol):
    """A law on the integers, as frozen data."""

    def check(self) -> None:
        """Raise `ParameterError` where the law cannot be drawn exactly in 64 bits."""

    def sampler(self) -> Sampler:
        """Build the exact sampler of this law."""


@dataclass(frozen=True)
class GeometricLaw:
    """P(x) = (1 - q) q^x on 0, 1, 2, ..., q = exp(-1/scale)."""

    scale: Fraction

    def check(self) -> None:
        """Scales from 1e-9 to 2^52."""
        _check_scale(self.scale)

    def sampler(self) -> Sampler:
        return LaplaceSampler(self.scale, one_sided=True)


@dataclass(frozen=True)
class LaplaceLaw:
    """P(x) = (1 - q)/(1 + q) q^|x| on the integers, q = exp(-1/scale)."""

    scale: Fraction

    def check(self) -> None:
        """Scales from 1e-9 to 2^52."""
        _check_scale(self.scale)

    def sampler(self) -> Sampler:
        return LaplaceSampler(self.scale)


@dataclass(frozen=True)
class GaussianLaw:
    """P(x) proportional to exp(-x^2 / (2 variance)) on the integers."""

    variance: Fraction

    def check(self) -> None:
        """Standard deviations from 1e-9 to 2^56."""
        if not _SMALLEST**2 <= self.variance <= _LARGEST_SIGMA**2:
            raise _out_of_range("sigma", _root(self.variance))

    def sampler(self) -> Sampler:
        return GaussianSampler(self.variance)


@dataclass(frozen=True)
class ChoiceLaw:
    """Index i with probability weights[i]; the weights are rational and sum to one."""

    weights: tuple[Fraction, ...]

    def check(self) -> None:
        """Probabilities that sum to one, at most 16,384 of them."""
        if min(self.weights) < 0 or sum(self.weights) != 1 or len(self.weights) > 1 << 14:
            raise ParameterError(
                "weights", len(self.weights), "must be probabilities, 16,384 at most"
            )

    def sampler(self) -> Sampler:
        return ChoiceSampler(self.weights)


class _Pool:
    """Draws made in advance, for one process.

    `drawing` is seen true only by a signal handler of the thread that holds the lock.
    """

    def __init__(self, mark: tuple[int, int]) -> None:
        self.mark = mark
        self.lock = threading.RLock()
        self.drawing = False
        self.values = np.empty(0, dtype=np.int64)
        self.left = 0


class Noise:
    """Draws from one law, for release. Obtain it from `noise(law)`."""

    def __init__(self, law: Law) -> None:
        law.check()
        self.law = law
        self._sampler = law.sampler()
        self._pool = _Pool(process_mark())
        _ALL.add(self)

    def many(self, count: int) -> npt.NDArray[np.int64]:
        """Draw `count` integers."""
        return self._sampler.sample(count, SECURE)

    def one(self) -> int:
        """Draw one integer from the pool."""
        pool = self._pool
        if pool.mark != (mark := process_mark()):
            # A parent's pool, its lock included, is not ours. Two threads may both start anew:
            # each pool is fresh.
            pool = self._pool = _Pool(mark)
        with pool.lock:
            if not pool.drawing:
                pool.drawing = True
                try:
                    return self._next(pool)
                finally:
                    pool.drawing = False
        # We are a signal handler in the midst of `_next`: the pool is left to it.
        self._pool = _Pool(mark)
        return self.one()

    def _next(self, pool: _Pool) -> int:
        if pool.left == 0:
            pool.values = self._sampler.sample(_POOL, SECURE)
            pool.left = _POOL
        pool.left -= 1
        value = int(pool.values[pool.left])
        pool.values[pool.left] = 0
        return value

    def wipe(self) -> None:
        """Forget what was drawn in advance."""
        self._pool.values[:] = 0
        self._pool = _Pool(process_mark())

    def __reduce__(self) -> tuple[object, tuple[Law]]:
        """A copy draws its own noise: neither pool nor lock is ever duplicated."""
        return (noise, (self.law,))


def noise(law: Law) -> Noise:
    """The shared source of noise of this law; tables are built once."""
    if (listener := LISTENER.get()) is not None:
        listener.noise(law)
    return _shared(law)


@lru_cache(maxsize=128)
def _shared(law: Law) -> Noise:
    return Noise(law)


_ALL: weakref.WeakSet[Noise] = weakref.WeakSet()


def _wipe_all() -> None:
    for each in list(_ALL):
        each.wipe()


os.register_at_fork(after_in_child=_wipe_all)


def _check_scale(scale: Fraction) -> None:
    if not _SMALLEST <= scale <= _LARGEST_SCALE:
        raise _out_of_range("scale", scale)


def _root(value: Fraction) -> float:
    return math.sqrt(value) if value < 10**300 else math.inf


def _out_of_range(argument: str, value: Fraction | float) -> ParameterError:
    return ParameterError(
        argument,
        value if isinstance(value, float) else float(min(value, Fraction(10**300))),
        "exact integer noise is drawn for scales from 1e-9 to 2^52 (4.5e15), Gaussian up to 2^56, "
        "in units of 1 or of the lattice's step; rescale the query or choose another epsilon",
    )
