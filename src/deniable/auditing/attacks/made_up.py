"""Made-up people, from the house's own random source: nothing here is ever released as noise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE, words

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]


def uniforms(count: int) -> Floats:
    """Numbers strictly between 0 and 1, 53 bits each."""
    return ((words(SECURE, count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def laplace_of(uniform: Floats) -> Floats:
    """Laplace noise of scale 1 by inversion, as textbooks write it. Not for release."""
    return np.where(uniform < 0.5, np.log(2 * uniform), -np.log(2 - 2 * uniform))


def normals(count: int) -> Floats:
    """Standard normal numbers."""
    found: Floats = ndtri(uniforms(count))
    return found


def below(bound: int, count: int) -> Integers:
    """Whole numbers from 0 to bound - 1."""
    return uniform_below(bound, count, SECURE)


def fair(*shape: int) -> Bits:
    """Fair coins."""
    count = int(np.prod(shape))
    packed = SECURE.draw((count + 7) // 8)
    return np.unpackbits(packed)[:count].astype(np.bool_).reshape(shape)


def people_with(chances: Floats, count: int) -> Bits:
    """One row for each person, who has attribute j with chance chances[j], to 16 bits."""
    drawn = SECURE.draw(2 * count * chances.size).view(np.uint16).reshape(count, chances.size)
    return drawn < np.round(chances * 2**16).astype(np.uint16)


def some_of(total: int, count: int) -> Integers:
    """So many different numbers below `total`."""
    return np.argsort(words(SECURE, total), kind="stable")[:count].astype(np.int64)
