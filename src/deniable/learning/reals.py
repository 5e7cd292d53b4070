"""Real-valued draws in floats, from the house's bytes: for what is labelled real-arithmetic."""

from __future__ import annotations

import numpy as np

from deniable.learning.rows import Floats
from deniable.randomness.source import SECURE, words


def uniforms(count: int) -> Floats:
    """Numbers in (0, 1), multiples of 2^-53 and half of one."""
    return ((words(SECURE, count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def normals(count: int) -> Floats:
    """Standard normal numbers (Box & Muller 1958)."""
    pairs = (count + 1) // 2
    radius = np.sqrt(-2 * np.log(uniforms(pairs)))
    angle = 2 * np.pi * uniforms(pairs)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]


def spherical_laplace(width: int, scale: float) -> Floats:
    """A vector with density proportional to exp(-|b|/scale): its length is Gamma(width, scale)."""
    length = -float(np.log(uniforms(width)).sum()) * scale
    direction = normals(width)
    return direction * (length / max(float(np.linalg.norm(direction)), 1e-300))
