"""k-means by noisy Lloyd steps from a private start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from deniable.errors import ParameterError
from deniable.learning.noise import Share
from deniable.learning.pca import covariance_of
from deniable.learning.rows import GRID, Floats, Labels, Ranges
from deniable.learning.scikit import NoisySums, SumsEstimator
from deniable.learning.sums import CellCounts, GroupSums, Moments, Sums, nearest
from deniable.privacy.exact import whole

_MOMENTS = Moments(row=0.9**0.5, one=0.1**0.5)
_MOMENTS_SHARE, _CELLS_SHARE = Share(Fraction(15, 100)), Share(Fraction(20, 100))
_STEPS_PART = Fraction(65, 100)
_ONE, _ROW = 0.15**0.5, 0.85**0.5
_MOST_CELLS, _MOST_AXES = 4096, 4
_ROUNDS = 50
_MOST_CLUSTERS = 1000


@dataclass(kw_only=True, eq=False, repr=False)
class KMeans(TransformerMixin, SumsEstimator):  # type: ignore[misc]
    """k-means: centres of clusters, by a fixed number of noisy Lloyd steps.

    Formal guarantee: that of every `PrivateEstimator`, by one release of second moments, one of
    counts in cells along the noisy principal directions, from which the start is found, and
    `max_iter` releases of every cluster's count and sum, with noise on empty clusters too (Su et
    al. 2016, with the sensitivities of `sums.Moments`, `sums.CellCounts` and `sums.GroupSums`).
    Which clusters keep their centre is decided by noisy counts alone; neither labels nor the
    inertia of the training rows are kept.

    Args, beside those of every `PrivateEstimator`:
        n_clusters: how many.
        bounds: (low, high) of the columns. Distances are taken in units of half spans.
        max_iter: how many noisy Lloyd steps.

    Attributes:
        cluster_centers_, cluster_sizes_: noisy.
    """

    n_clusters: Any = field(kw_only=False)
    norm: Any = None
    max_iter: Any = 4

    def _parts(self) -> Sequence[tuple[Sums, Share]]:
        clusters = whole(self.n_clusters, "n_clusters")
        if clusters > _MOST_CLUSTERS:
            raise ParameterError("n_clusters", clusters, f"must be {_MOST_CLUSTERS:,} at most")
        cells = CellCounts(np.zeros(1), np.ones((1, 1)), np.ones(1), 1)
        return [
            (_MOMENTS, _MOMENTS_SHARE),
            (cells, _CELLS_SHARE),
            (GroupSums(clusters, _ONE, _ROW), self._steps()),
        ]

    def _drawn(self, width: int) -> Sequence[Sums]:
        cells = _cells(np.zeros(width), np.eye(width), 0.0, self.n_clusters)
        centres = ((0.0,) * width,) * self.n_clusters
        return [_MOMENTS, cells, GroupSums(self.n_clusters, _ONE, _ROW, centres=centres)]

    def _steps(self) -> Share:
        return Share(_STEPS_PART, whole(self.max_iter, "max_iter"))

    def _learn(self, reader: NoisySums, ranges: Ranges) -> None:
        centres = self._start(reader, ranges.width)
        sizes = np.zeros(len(centres))
        for _ in range(self.max_iter):
            centres, sizes = self._step(reader, centres)
        self.cluster_centers_ = ranges.middle + centres * ranges.scale
        self.cluster_sizes_ = sizes
        self.n_iter_ = self.max_iter
        self._scale = ranges.scale

    def _start(self, reader: NoisySums, width: int) -> Floats:
        """The k centres of cells along the noisy principal directions, by their noisy counts."""
        drawn, spread = self._heard(reader, _MOMENTS, _MOMENTS_SHARE, width)
        matrix, noise = _MOMENTS.matrix(drawn, width), _MOMENTS.noise(spread, width)
        mean, covariance = covariance_of(matrix, noise / (_MOMENTS.row * _MOMENTS.one))
        drowned = 2 * noise / _MOMENTS.row**2 * width**0.5 / max(matrix[width, width], 1.0)
        cells = _cells(mean, covariance, drowned, self.n_clusters)
        drawn, spread = self._heard(reader, cells, _CELLS_SHARE, width)
        counts = drawn / GRID
        weights = np.where(counts > 2 * spread / GRID, counts, 0.0)
        if np.count_nonzero(weights) < self.n_clusters:
            weights = np.maximum(counts - counts.min(), 1e-9)
        return weighted_centres(cells.middles(), weights, self.n_clusters)

    def _step(self, reader: NoisySums, centres: Floats) -> tuple[Floats, Floats]:
        clusters, width = centres.shape
        sums = GroupSums(clusters, _ONE, _ROW, centres=tuple(map(tuple, centres.tolist())))
        drawn, spread = self._heard(reader, sums, self._steps(), width)
        (counts, totals, _), noise = sums.read(drawn, width), sums.noise(spread, width)
        count = np.maximum(counts, 1.0)[:, None]
        # A move of typical size 1/k of the range is believed as far as it stands out of the noise.
        moved = totals / count - centres
        typical = np.square(centres - centres.mean(axis=0)).mean() + 1e-6
        kept = count**2 / (count**2 + (noise / _ROW) ** 2 / typical)
        kept = np.where(counts[:, None] > 2 * noise / _ONE, kept, 0.0)
        found = centres + kept * moved
        length = np.sqrt(np.square(found).sum(axis=1, keepdims=True))
        return found / np.maximum(length, 1.0), np.maximum(counts, 0.0)

    def predict(self, X: Any) -> Labels:
        """The nearest centre, distances in units of half spans."""
        values = self._known(X)
        return nearest(values / self._scale, self.cluster_centers_ / self._scale)

    def transform(self, X: Any) -> Floats:
        """Distances from the centres, in units of half spans."""
        away = self._known(X)[:, None, :] - self.cluster_centers_
        made: Floats = np.sqrt(np.square(away / self._scale).sum(axis=2))
        return made

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


def _cells(mean: Floats, covariance: Floats, drowned: float, clusters: int) -> CellCounts:
    """A grid over 2.5 deviations each way along the leading noisy directions.

    Noise raises the leading eigenvalues by about `drowned`.
    """
    values, vectors = np.linalg.eigh(covariance)
    axes = min(len(mean), _MOST_AXES, max(1, clusters - 1))
    bins = max(2, min(32, int(_MOST_CELLS ** (1 / axes))))
    spread = np.sqrt(np.clip(values[::-1][:axes] - drowned, 0.1 / len(mean), 1.0))
    return CellCounts(mean, vectors[:, ::-1].T[:axes], np.minimum(spread * 5, 2.0) / bins, bins)


def weighted_centres(points: Floats, weights: Floats, clusters: int) -> Floats:
    """k-means of weighted points: greedy starts, then Lloyd's steps; the best of a few. Public."""
    found = [_lloyd(points, weights, _greedy(points, weights**p, clusters)) for p in (1, 0.5, 0.25)]
    return min(found, key=lambda each: each[1])[0]


def _greedy(points: Floats, weights: Floats, clusters: int) -> Floats:
    """Each next centre is the point that adds most: its weight times its distance squared."""
    at = [int(np.argmax(weights))]
    far = np.square(points - points[at[0]]).sum(axis=1)
    for _ in range(clusters - 1):
        at.append(int(np.argmax(weights * far)))
        far = np.minimum(far, np.square(points - points[at[-1]]).sum(axis=1))
    return points[at]


def _lloyd(points: Floats, weights: Floats, centres: Floats) -> tuple[Floats, float]:
    for _ in range(_ROUNDS):
        label = nearest(points, centres)
        made = centres.copy()
        for each in range(len(centres)):
            own = weights * (label == each)
            if own.sum() > 0:
                made[each] = own @ points / own.sum()
        if np.allclose(made, centres, atol=1e-12):
            break
        centres = made
    far = np.square(points - centres[nearest(points, centres)]).sum(axis=1)
    return centres, float(weights @ far)
