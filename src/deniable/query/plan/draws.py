"""Numbers that follow from released ones, for post-processing: no noise is ever drawn with them."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from scipy.special import ndtri, pdtrik

from deniable.intervals import Floats

_MANY = 1e4  # a mean beyond which a Poisson law is normal, nearly


class HashedDraws:
    """Uniform, normal and Poisson numbers out of a hash: the same for the same release."""

    def __init__(self, *released: object) -> None:
        self._seed = hashlib.sha256(repr(released).encode()).digest()
        self._block = 0

    def uniform(self, *shape: int) -> Floats:
        """Between 0 and 1, neither of them included."""
        self._block += 1
        stream = hashlib.shake_128(self._seed + self._block.to_bytes(8, "big"))
        words = np.frombuffer(stream.digest(8 * math.prod(shape)), dtype="<u8") >> np.uint64(11)
        return np.asarray((words.astype(np.float64) + 0.5) / 2.0**53).reshape(shape)

    def normal(self, *shape: int) -> Floats:
        """Standard normal."""
        return np.asarray(ndtri(self.uniform(*shape)))

    def order(self, size: int) -> list[int]:
        """The numbers below `size` in an order of chance."""
        return [int(each) for each in np.argsort(self.uniform(size))]

    def poisson(self, mean: Floats) -> Floats:
        """Whole numbers of these means, by inversion."""
        chance = self.uniform(*mean.shape)
        small = np.clip(mean, 1e-12, _MANY)
        few = np.maximum(np.ceil(pdtrik(chance, small)), 0.0)
        many = np.rint(mean + np.sqrt(np.maximum(mean, 0.0)) * ndtri(chance))
        made = np.where(mean > _MANY, many, np.where(np.isfinite(few), few, 0.0))
        return np.asarray(np.where(mean <= 0, 0.0, made))
