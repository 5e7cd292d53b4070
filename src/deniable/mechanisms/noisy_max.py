"""Report noisy max: add noise to every score, report which is largest."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.mechanisms.selection import Exponential, Selection, read_scores
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.parameters import Parameter, one_of, parameter, parameters
from deniable.randomness.categorical import ScoreList, exact_score
from deniable.randomness.lattice import Lattice, lattice_for
from deniable.randomness.noise import LaplaceLaw, noise

_MOST = 256


class MaxNoise(StrEnum):
    """The noise on every score."""

    LAPLACE = "laplace"
    GUMBEL = "gumbel"


@parameters
class ReportNoisyMax(Selection):
    """Add noise to every score and report the candidate with the largest sum, nothing else.

    Formal guarantee. For scores each of which moves by at most `sensitivity` between neighbours
    under `relation`, the candidates being public:

    * with Laplace noise of scale 2·sensitivity/ε (sensitivity/ε for monotone scores) one report is
      ε-DP (Dwork & Roth 2014, Claim 3.9): given the noise of the others, a candidate wins iff its
      own noise reaches some threshold, which moves by 2·sensitivity at most. This holds on a
      lattice too, for any fixed way to break ties; here they go to the earlier candidate;
    * with Gumbel noise the law is that of the exponential mechanism, and is drawn as such;
    * the probabilities are exactly these.

    A bare choice is unledgered: the caller keeps the budget.
    """

    noise: Parameter[MaxNoise | str, MaxNoise] = parameter(
        one_of(MaxNoise), default=MaxNoise.LAPLACE
    )

    def __post_init__(self) -> None:
        self._law.check()

    @lazy
    def _exponential(self) -> Exponential:
        return Exponential(
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            monotone=self.monotone,
            relation=self.relation,
        )

    @lazy
    def loss(self) -> Loss:
        if self.noise == MaxNoise.GUMBEL:
            return self._exponential.loss
        return PureLoss(bound=self.epsilon, relation=self.relation)

    @lazy
    def lattice(self) -> Lattice:
        """The multiples of a power of two on which noisy scores live."""
        return lattice_for(sensitivity=self.sensitivity, scale=2 * self.sensitivity / self.epsilon)

    @lazy
    def _law(self) -> LaplaceLaw:
        moved = self.lattice.l1_steps(self.sensitivity, 1) * (1 if self.monotone else 2)
        return LaplaceLaw(moved / self.epsilon)

    def _place(self, scores: ScoreList) -> int:
        if self.noise == MaxNoise.GUMBEL:
            return self._exponential._place(scores)
        drawn = noise(self._law).many(len(scores))
        points = self._small_points(scores)
        if points is not None:
            return int(np.argmax(points + drawn))
        exact = [_steps(exact_score(score), self.lattice) for score in scores]
        sums = [point + z for point, z in zip(exact, drawn.tolist(), strict=True)]
        return max(range(len(sums)), key=lambda i: (sums[i], -i))

    def _small_points(self, scores: ScoreList) -> npt.NDArray[np.int64] | None:
        """The scores in steps, if they fit 62 bits, so that sums are exact in 64."""
        if not isinstance(scores, np.ndarray) or scores.dtype.kind != "f":
            return None
        with np.errstate(all="ignore"):
            points = self.lattice.nearest(scores.astype(np.float64))
            steps = np.ldexp(points, -self.lattice.exponent)
        return steps.astype(np.int64) if bool((np.abs(steps) < 2.0**61).all()) else None

    def same_law(self) -> Exponential | None:
        """The exponential mechanism of the same law, where there is one."""
        return self._exponential if self.noise == MaxNoise.GUMBEL else None

    def probabilities(self, scores: Any) -> list[float]:
        """The probability of each candidate, to about ten digits. These are private."""
        if self.noise == MaxNoise.GUMBEL:
            return [float(p) for p in self._exponential.probabilities(scores)]
        exact = [exact_score(score) for score in read_scores(scores)]
        if len(exact) > _MOST:
            raise ParameterError("scores", len(exact), f"{_MOST} candidates are the most here")
        scale = self._law.scale * self.lattice.step
        deficit = np.array([float(min((max(exact) - s) / scale, Fraction(10**6))) for s in exact])
        return _laplace_max_probabilities(deficit)


def _laplace_max_probabilities(deficit: np.ndarray[Any, np.dtype[np.float64]]) -> list[float]:
    """∫ f(t + d_i) Π_{j≠i} F(t + d_j) dt by quadrature, panel by panel between the kinks."""
    kinks = sorted({0.0, *(-d for d in deficit.tolist() if d < 60)})
    edges = sorted({*kinks, *np.linspace(min(kinks) - 45, 45, 121).tolist()})
    x, w = np.polynomial.legendre.leggauss(24)
    t = np.concatenate([a + (b - a) * (x + 1) / 2 for a, b in pairwise(edges)])
    weights = np.concatenate([(b - a) * w / 2 for a, b in pairwise(edges)])
    shifted = t[None, :] + deficit[:, None]
    upper = np.where(
        shifted < 0, np.exp(np.minimum(shifted, 0)) / 2, 1 - np.exp(-np.abs(shifted)) / 2
    )
    logs = np.log(np.maximum(upper, 1e-320))
    density = np.exp(-np.abs(shifted)) / 2
    others = np.exp(logs.sum(axis=0)[None, :] - logs)
    found: list[float] = ((density * others) @ weights).tolist()
    return found


def _steps(score: Fraction, lattice: Lattice) -> int:
    return int(lattice.nearest_exact(score) / lattice.step)
