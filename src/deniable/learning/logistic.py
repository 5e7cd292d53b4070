"""Logistic and softmax regression by noisy gradient descent in private coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.learning.classifier import LinearClassifier
from deniable.learning.descent import STEP, Descent
from deniable.learning.noise import Share
from deniable.learning.rows import Floats, Ranges
from deniable.learning.scikit import NoisySums, SumsEstimator
from deniable.learning.sums import Gradients, Moments, Sums
from deniable.privacy.exact import whole

_MOMENTS = Moments(row=0.8**0.5, one=0.2**0.5)
_MOMENTS_SHARE = Share(Fraction(15, 100))
_STEPS_PART = Fraction(85, 100)
_FAINT = 0.01
_LATEST = 4.0  # rows that are uniform in a box are at most sqrt(3) times as long as is usual


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where the optimiser works: (u, 1) times `transform`, rows clipped to length 1.

    `stretch` is what that length stands for in the whitened coordinates; `doubt` is the deviation
    of the noise on the moments beside their mean eigenvalue.
    """

    transform: Floats
    stretch: float
    count: float
    doubt: float

    def lengthened(self, noise: float) -> Coordinates:
        """Rows clipped later, up to four times as late, while that leaves noise faint.

        `noise` is the length of the noise on a mean gradient; it grows with the clipping length,
        and where it is faint, the bias of clipped rows weighs more.
        """
        by = min(max(_FAINT / max(noise, 1e-300), 1.0), _LATEST)
        return replace(self, transform=self.transform / by, stretch=self.stretch * by)


def whitened(matrix: Floats, noise: float, moments: Moments) -> Coordinates:
    """Coordinates in which the noisy second moments of the rows are nearly the unit matrix.

    P = (M₊/n + λ)^(-1/2), λ the level of the noise on M/n; the clipping length is the root of the
    effective dimension that the noisy spectrum shows. All from released numbers.
    """
    width = len(matrix) - 1
    weights = np.array([moments.row] * width + [moments.one])
    count = max(matrix[width, width], 1.0)
    values, vectors = np.linalg.eigh(matrix * np.outer(weights, weights) / count)
    level = noise * np.sqrt(width + 1) / count
    values = np.maximum(values, 0.0)
    stretch = float(np.sqrt(max((values / (values + level)).sum(), 1.0)))
    root = (vectors / np.sqrt(values + level)) @ vectors.T
    doubt = np.sqrt(2) * noise / count / max(float(values.mean()), level)
    return Coordinates(weights[:, None] * root / stretch, stretch, count, float(doubt))


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(LinearClassifier, SumsEstimator):
    """Logistic regression, for two classes or more, by full-batch noisy gradient descent.

    Formal guarantee: that of every `PrivateEstimator`, by one release of second moments
    (`sums.Moments`) and `max_iter` releases of the sum of gradients (`sums.Gradients`), adaptively
    composed (Dong, Roth & Su 2022, Cor. 3.3; Bun & Steinke 2016, Lemma 1.7). Rows are shortened
    again in the coordinates of the optimiser.

    Args, beside those of every `PrivateEstimator`:
        classes: all labels; nothing is read from the data.
        max_iter: how many gradients are released.

    Attributes:
        classes_, coef_, intercept_: the model, in the units of the data.
        coef_standard_errors_: deviations of `coef_` from noise and sampling, to first order;
            where noise is loud, clipped rows draw `coef_` towards 0 by more, up to a tenth of it.
        n_rows_: the noisy number of rows.
    """

    norm: Any = None
    max_iter: Any = 16

    def _steps(self) -> Share:
        return Share(_STEPS_PART, whole(self.max_iter, "max_iter"))

    def _parts(self) -> Sequence[tuple[Sums, Share]]:
        gradients = Gradients(np.ones((1, 1)), np.zeros((self._directions(), 1)))
        return [(_MOMENTS, _MOMENTS_SHARE), (gradients, self._steps())]

    def _drawn(self, width: int) -> Sequence[Sums]:
        start = np.zeros((self._directions(), width + 1))
        return [_MOMENTS, Gradients(np.eye(width + 1), start)]

    def _learn(self, reader: NoisySums, ranges: Ranges) -> None:
        width = ranges.width
        drawn, spread = self._heard(reader, _MOMENTS, _MOMENTS_SHARE, width)
        matrix, noise = _MOMENTS.matrix(drawn, width), _MOMENTS.noise(spread, width)
        place = whitened(matrix, noise, _MOMENTS)
        weights = last = np.zeros((self._directions(), width + 1))
        mean = np.zeros_like(weights)
        stepping = self._noise(Gradients(place.transform, weights), self._steps(), width)
        each = Gradients(place.transform, weights).noise(stepping.deviation)
        place = place.lengthened(each * place.stretch / place.count * weights.size**0.5)
        scale = place.stretch / place.count
        heard = each * scale
        descent = Descent(self.max_iter, heard, weights.size)
        for turn, share in enumerate(descent.weights):
            ahead = weights + descent.momentum(turn) * (weights - last)
            gradients = Gradients(place.transform, place.stretch * ahead)
            slope = gradients.read(reader.draw(stepping, gradients))
            last, weights = weights, ahead - STEP * scale * slope
            mean += share * weights
        back = place.stretch * place.transform
        self._keep(mean @ back.T, ranges)
        # Noise on the moments turns and stretches the weights themselves.
        turned = place.doubt * np.linalg.norm(mean, axis=1, keepdims=True)
        lengths = np.sqrt(np.square(back).sum(axis=1))[:-1] / ranges.scale
        self.coef_standard_errors_ = np.hypot(descent.error(place.count), turned) * lengths
        self.n_rows_ = place.count
        self.n_iter_ = self.max_iter
