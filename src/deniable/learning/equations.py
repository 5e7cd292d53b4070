"""Noisy normal equations: solved so that what noise drowns is left out. All post-processing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.learning.rows import Floats

_ROUNDS = 20


_TYPICAL = 0.25  # of means in [-1, 1]: their variance, as far as anybody knows beforehand


def shrunken_mean(sums: Floats, count: float, noise: float, longest: float = 1.0) -> Floats:
    """Noisy sums over a noisy count, drawn towards 0 where noise of this deviation drowns them.

    Means of single columns lie in ±`longest`.
    """
    return sums * count / (count**2 + noise**2 / (_TYPICAL * longest**2))


@dataclass(frozen=True, eq=False)
class Solved:
    """Coefficients, and the covariance of their error through noise and sampling."""

    weights: Floats
    covariance: Floats


@dataclass(frozen=True, eq=False)
class Equations:
    """A θ = b, both noisy: A symmetric with deviation `noise` off its diagonal, b with `right`.

    `total` is the noisy sum of squares on the right, with deviation `total_noise`, of `count` rows
    of size 1 at most; `alpha` is the ridge that was asked for.
    """

    matrix: Floats
    right: Floats
    noise: float
    right_noise: float
    total: float
    total_noise: float
    count: float
    alpha: float = 0.0

    def solve(self) -> Solved:
        """The Wiener filter θ = a b / (a² + v/τ²) in each eigendirection of A.

        v = right² + noise²|θ|² + r·a is the variance of b - Aθ there, r that of one row's error
        (here at most that of its target), and τ² the variance of θ's entries, found from b by its
        second moment (empirical Bayes). Directions that are known well are solved as they stand;
        those in which noise is all there is are left at zero. Where the smallest eigenvalue is far
        above the noise this is least squares, as in AdaSSP (Wang 2018, Alg. 2), whose ridge also
        vanishes there.
        """
        values, vectors = np.linalg.eigh((self.matrix + self.matrix.T) / 2)
        values = np.maximum(values, 0.0)
        turned = vectors.T @ self.right
        most = min(max(self.total, 1.0) / self.count, 1.0)
        spread = self._spread(values, turned, most)
        ridged = values + self.alpha
        variance = self._variance(values, spread, most)
        with np.errstate(all="ignore"):
            gain = np.where(
                spread > 0, values / (values * ridged + variance / max(spread, 1e-300)), 0.0
            )
        gain = np.nan_to_num(gain, nan=0.0, posinf=0.0)
        weights = vectors @ (gain * turned)
        # Errors are told with τ² one deviation above its estimate, which may be 0 by chance.
        wide = spread + self._doubt(values, variance, spread)
        heard = self._variance(values, wide, self._residual(weights))
        missed = wide * np.square(1 - gain * values)
        covariance = (vectors * (np.square(gain) * heard + missed)) @ vectors.T
        return Solved(weights, covariance)

    def _residual(self, weights: Floats) -> float:
        """The variance of one row's error: what the weights leave, or its own noise if more."""
        length = float(weights @ weights)
        left = self.total - 2 * weights @ self.right + weights @ self.matrix @ weights
        noise = np.sqrt(
            self.total_noise**2 + 4 * self.right_noise**2 * length + 2 * (self.noise * length) ** 2
        )
        return float(min(max(left, noise, 1.0) / self.count, 1.0))

    def _variance(self, values: Floats, spread: float, residual: float) -> Floats:
        fixed = self.right_noise**2 + self.noise**2 * spread * len(values)
        return fixed + residual * values

    @staticmethod
    def _doubt(values: Floats, variance: Floats, spread: float) -> float:
        """The deviation of the estimate of τ²."""
        known = np.square(values / np.maximum(values**2 * spread + variance, 1e-300) * values)
        return float(np.sqrt(2 / max(known.sum(), 1e-300)))

    def _spread(self, values: Floats, turned: Floats, residual: float) -> float:
        """τ² with E b² = a²τ² + v, each direction weighted by how well it tells τ²."""
        spread = 0.0
        for _ in range(_ROUNDS):
            variance = self._variance(values, spread, residual)
            weight = np.square(values) / np.square(np.square(values) * spread + variance)
            top = float(weight @ (np.square(turned) - variance))
            bottom = float(weight @ np.square(values))
            spread = max(top / bottom, 0.0) if bottom > 0 else 0.0
        return spread
