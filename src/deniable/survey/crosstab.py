"""Two randomised items of the same people, crossed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.mechanisms.design import Design, read_design
from deniable.mechanisms.labels import Reports, as_array, report_places
from deniable.privacy.exact import Number
from deniable.survey.compare import ChiSquare
from deniable.survey.designs import joint
from deniable.survey.estimates import ResponseEstimate, estimate
from deniable.survey.reading import same_length

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrossTab:
    """Estimated shares of all pairs of true answers: rows are the first item, columns the second.

    Cells are unbiased and sum to one. Noise may make some of them negative; that is not a mistake,
    and they are kept as they are. Both items together cost ε₁ + ε₂.
    """

    first: Design
    second: Design
    estimate: ResponseEstimate

    @property
    def cells(self) -> Floats:
        """The shares."""
        return self.estimate.shares.reshape(self._shape)

    @property
    def standard_errors(self) -> Floats:
        """One for each cell; the covariance of all cells is `estimate.covariance`."""
        return np.sqrt(np.maximum(np.diag(self.estimate.covariance), 0)).reshape(self._shape)

    @property
    def negative(self) -> int:
        """How many cells are below 0."""
        return int((self.cells < 0).sum())

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.first.answers), len(self.second.answers)

    def cell(self, first: Hashable, second: Hashable) -> float:
        """The share of people with both answers."""
        return self.estimate.share((first, second))

    def interval(
        self, first: Hashable, second: Hashable, *, confidence: Number = 0.95
    ) -> tuple[float, float]:
        """A score interval for one cell."""
        return self.estimate.interval((first, second), confidence=confidence, method="score")

    def independence(self) -> ChiSquare:
        """Pearson's test on the table of reports as they came in.

        Coins are tossed apart for each item, so reports are independent if and only if the true
        answers are (the Kronecker product has an inverse): the test needs no correction.
        """
        from scipy.special import chdtrc  # noqa: PLC0415  (slow to import)

        if self.estimate.weighting is not None:
            raise ParameterError("weights", "given", "the test is for tables without weights")
        shape = len(self.first.reports), len(self.second.reports)
        seen = np.array(self.estimate.counts, dtype=float).reshape(shape)
        seen = seen[seen.sum(axis=1) > 0][:, seen.sum(axis=0) > 0]
        degrees = (seen.shape[0] - 1) * (seen.shape[1] - 1)
        if degrees == 0:  # one item has reports of a single kind: nothing speaks against it
            return ChiSquare(0.0, 0, 1.0)
        expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
        statistic = float(((seen - expected) ** 2 / expected).sum())
        return ChiSquare(statistic, degrees, float(chdtrc(degrees, statistic)))


def cross_tabulate(
    first: Design,
    second: Design,
    first_reports: Reports,
    second_reports: Reports,
    *,
    weights: Any = None,
) -> CrossTab:
    """The corrected table of two items; entry i of both lists comes from the same person."""
    rows = report_places(read_design(first).reports, first_reports, "first_reports")
    columns = report_places(read_design(second).reports, second_reports, "second_reports")
    same_length("second_reports", columns.size, rows.size)
    both = joint(first, second)
    pairs = as_array(both.reports)[rows * len(second.reports) + columns]
    return CrossTab(first, second, estimate(both, pairs, weights=weights))
