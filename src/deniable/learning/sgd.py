"""Stochastic gradient descent on Poisson samples, accounted by numerical composition."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.learning.classifier import LinearClassifier
from deniable.learning.outlook import Outlook
from deniable.learning.rows import GRID, Floats, Ranges, Rows
from deniable.learning.scikit import read_positive
from deniable.learning.sums import Gradients, GradientSums, Integers
from deniable.mechanisms.sampled_sum import SampledSum
from deniable.privacy.calibrate import least_noise
from deniable.privacy.composition import repeat
from deniable.privacy.exact import exact, probability, whole
from deniable.privacy.guarantees import ApproxDP, Guarantee
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.gaussian import GaussianLoss
from deniable.privacy.losses.generic import ApproxLoss
from deniable.privacy.losses.sampled import poisson_sampled
from deniable.privacy.units import Relation

_HAIR = Fraction(1, 10**6)


@dataclass(frozen=True, eq=False)
class RowGradients:
    """The gradients of private rows, made for those that are sampled."""

    rows_: Rows
    gradients: GradientSums

    @property
    def count(self) -> int:
        return len(self.rows_.units)

    @property
    def width(self) -> int:
        return self.gradients.weights.size

    def rows(self, at: npt.NDArray[np.int64]) -> Integers:
        return self.gradients.each(self.rows_.some(at)).astype(np.int64)


@dataclass(kw_only=True, eq=False, repr=False)
class SGDClassifier(LinearClassifier):
    """Logistic regression, for two classes or more, by noisy gradients of Poisson samples.

    Formal guarantee: that of every `PrivateEstimator`, by `max_iter` releases of `SampledSum`,
    composed numerically (Koskela, Jälkö & Honkela 2020; certified by `privacy/accountants/pld.py`),
    each relation with a pair of its own. Sums are divided by `rate`·`size`, which is public, never
    by how many were sampled.

    Where the rows fit in memory `LogisticRegression` has less noise for the same budget; samples
    save time. A ledger charges such a fit as (ε, δ), for no ρ is known that sampling lowers.

    Args, beside those of every `PrivateEstimator`:
        epsilon: stored, and refused: samples are priced in (ε, δ) only.
        rho: the same.
        guarantee: what a fit may cost, as `dp.ApproxDP`.
        classes: all labels; nothing is read from the data.
        size: about how many rows there are, a public number.
        rate: with what probability a row is in a sample.
        max_iter: how many samples are drawn.
        eta0: the length of a step, falling with the root of their number.

    Attributes:
        classes_, coef_, intercept_: the model, in the units of the data: the mean of the last half
            of the steps.
        coef_standard_errors_: deviations of `coef_` through noise and samples, as of a walk that
            no curvature calls back; they are rather too large.
    """

    size: Any
    rate: Any = 0.05
    norm: Any = None
    max_iter: Any = 200
    eta0: Any = 8.0

    @property
    def loss(self) -> Loss:
        self._directions()
        whole(self.size, "size")
        read_positive(self.eta0, "eta0")
        return repeat(self._mechanism().loss, whole(self.max_iter, "max_iter"))

    def _charged(self) -> Loss:
        """As (ε, δ): no ρ is known that sampling lowers."""
        kept, relation = self._approximate(), self.loss.relation
        return ApproxLoss(bound=kept.epsilon, slack=kept.delta, relation=relation)

    def _approximate(self) -> ApproxDP:
        return read_approximate(self._kept())

    def _mechanism(self) -> SampledSum:
        rate = probability(self.rate, "rate")
        times, relation = whole(self.max_iter, "max_iter"), self._relation()
        return sampled_sum(self._approximate(), rate, times, relation)

    def outlook(self, *, size: int, features: int) -> Outlook:
        """Whether the budget can support the model on so many rows; nothing is read or spent."""
        mechanism, rows = self._mechanism(), whole(size, "size")
        numbers = self._directions() * (whole(features, "features") + 1)
        noise = float(mechanism.sigma) / GRID * np.sqrt(numbers / self.max_iter)
        return Outlook(float(noise / (float(mechanism.rate) * rows * 0.5)), rows)

    def _train(self, rows: Rows, ranges: Ranges) -> None:
        mechanism, width = self._mechanism(), ranges.width + 1
        batch = float(mechanism.rate) * whole(self.size, "size")
        step = read_positive(self.eta0, "eta0")
        transform = np.eye(width) / np.sqrt(2)  # rows (u, 1) have length sqrt(2) at most
        weights = np.zeros((self._directions(), width))
        late = np.zeros_like(weights)
        half = self.max_iter // 2
        sizes = step / np.sqrt(1 + np.arange(self.max_iter) / 10)
        for turn, size in enumerate(sizes):
            gradients = Gradients(transform, weights)
            slope = gradients.read(mechanism.release(RowGradients(rows, gradients))) / batch
            weights = weights - size * slope
            late += weights * (turn >= half)
        self._keep(late / (self.max_iter - half) @ transform, ranges)
        # A sample's sum has a variance of `batch` at most, which its entries share: no gradient is
        # longer than 1.
        wobble = np.hypot(float(mechanism.sigma) / GRID, np.sqrt(batch / weights.size)) / batch
        error = wobble * _walked(sizes, half) / np.sqrt(2)
        self.coef_standard_errors_ = np.full_like(self.coef_, error) / ranges.scale

    def _recall(self) -> None:
        super()._recall()
        self.n_iter_ = self.max_iter


def _walked(sizes: Floats, half: int) -> float:
    """The deviation of the mean of the late places of a walk of such steps."""
    late = np.minimum(len(sizes) - np.arange(len(sizes)), len(sizes) - half) / (len(sizes) - half)
    return float(np.sqrt(np.square(sizes * late).sum()))


def read_approximate(kept: Guarantee) -> ApproxDP:
    """The guarantee, if samples can be priced under it."""
    if not isinstance(kept, ApproxDP):
        raise ParameterError(
            "guarantee",
            str(kept),
            "samples are priced in (ε, δ) only; say guarantee=dp.ApproxDP(1.0, 1e-6)",
        )
    return kept


@lru_cache(maxsize=64)
def sampled_sum(kept: ApproxDP, rate: Fraction, times: int, relation: Relation) -> SampledSum:
    """Sums of gradients with the least noise at which so many samples keep (ε, δ)."""

    def loss(sigma: Fraction) -> Loss:
        base = GaussianLoss(sigma=sigma, sensitivity=Fraction(1))
        return repeat(poisson_sampled(base, rate=rate, relation=relation), times)

    sigma = exact(float(least_noise(loss, kept) * (1 + _HAIR)), "sigma")
    return SampledSum(rate=rate, bound=GRID, sigma=sigma * GRID, relation=relation)
