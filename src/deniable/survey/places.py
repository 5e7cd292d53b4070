"""Places: each person moves their own by planar Laplace noise before sending it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from deniable.errors import PrivateValueError, ReportError
from deniable.lazy import lazy
from deniable.mechanisms.planar import PlanarLaplace
from deniable.privacy.exact import Number, positive
from deniable.privacy.losses.base import Loss
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.survey.averages import MeanEstimate
from deniable.survey.formats import Json, columns_of
from deniable.survey.thresholds import read_epsilon
from deniable.trace import traced

Floats = npt.NDArray[np.float64]


@parameters
class Places:
    """A place (x, y) moved by planar Laplace noise.

    Formal guarantee (geo-indistinguishability; Andrés et al. 2013): for two places up to `within`
    apart, in the unit of the coordinates, one report is ε-DP; for places d apart, ε d/within. It
    does not hide in which country somebody is. See `dp.PlanarLaplace` for the exact law.
    """

    kind: ClassVar[str] = "places"
    epsilon: Parameter[Number, Fraction] = parameter(read_epsilon)
    within: Parameter[Number, Fraction] = parameter(positive)

    @lazy
    def mechanism(self) -> PlanarLaplace:
        """The noise."""
        return PlanarLaplace(epsilon=self.epsilon, sensitivity=self.within)

    @property
    def loss(self) -> Loss:
        """What one report costs its sender, for places up to `within` apart."""
        return self.mechanism.loss

    @traced
    def randomize(self, values: Any) -> Floats:
        """One moved place for each place, a row (x, y) each."""
        moved = self.mechanism.release(values)
        if moved.ndim > 2:
            raise PrivateValueError("places are rows of two numbers, x and y")
        return np.atleast_2d(moved)

    def aggregate(self, reports: Floats) -> tuple[MeanEstimate, MeanEstimate]:
        """The mean place, x and y: unbiased, since the noise has mean zero."""
        places = self._check(reports)
        n = len(places)
        # Of a single report the noise alone: the square of its length has mean 6 scale².
        least = 3 * float(self.mechanism.scale) ** 2
        spread = places.var(axis=0, ddof=1) if n > 1 else np.zeros(2)
        errors = np.sqrt(np.maximum(spread, least) / n)
        x, y = (
            MeanEstimate(float(mean), float(error), n)
            for mean, error in zip(places.mean(axis=0), errors, strict=True)
        )
        return x, y

    def to_wire(self, reports: Floats) -> list[Json]:
        """A list of two numbers each."""
        return [*self._check(reports).tolist()]

    def from_wire(self, payloads: Sequence[Json]) -> Floats:
        """Two finite numbers."""
        columns = columns_of(payloads, 2)
        for value in (each for column in columns for each in column):
            if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
                raise ReportError("a place is two finite numbers")
        return self._check(np.array(columns, dtype=np.float64).T)

    def _check(self, reports: Floats) -> Floats:
        array = np.asarray(reports)
        if array.dtype != np.float64 or array.ndim != 2 or array.shape[1] != 2 or not array.size:
            raise ReportError("reports are rows of two floats, x and y")
        if not bool(np.isfinite(array).all()):
            raise ReportError("a place is two finite numbers")
        return array
