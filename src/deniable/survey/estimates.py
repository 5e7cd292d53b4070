"""Shares of the true answers, from reports: counted one by one, or with survey weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from deniable.errors import ParameterError, ParameterTypeError
from deniable.mechanisms.design import Design, read_design
from deniable.mechanisms.labels import Reports, read_answer, report_places
from deniable.mechanisms.share_estimate import (
    ClippedShare,
    IntervalMethod,
    ResponseEstimate,
    estimate_of,
)
from deniable.privacy.exact import whole
from deniable.survey.weights import read_weights

__all__ = ["ClippedShare", "IntervalMethod", "ResponseEstimate", "estimate", "estimate_counts"]


def estimate(design: Design, reports: Reports, *, weights: Any = None) -> ResponseEstimate:
    """Estimate the shares of all answers from reports, with survey weights if there are any.

    Raises:
        ParameterError: a report is none of the design's, or a weight is negative or not finite.
            Nothing is counted then.
    """
    places = report_places(read_design(design).reports, reports, "reports")
    counts = np.bincount(places, minlength=len(design.reports))
    if weights is None:
        return estimate_of(design, counts.tolist())
    weighting = read_weights(weights, places, len(design.reports))
    reported = weighting.first / weighting.first.sum()
    shares = design.decoder @ reported
    covariance = weighting.covariance(design.decoder, shares)
    return ResponseEstimate(design, tuple(counts.tolist()), reported, shares, covariance, weighting)


def estimate_counts(design: Design, counts: Mapping[Hashable, int]) -> ResponseEstimate:
    """The same from the number of times each report came in; those not named came never."""
    if not isinstance(counts, Mapping):
        raise ParameterTypeError("counts", type(counts).__name__, "must map reports to counts")
    known = {
        read_answer(read_design(design).reports, report, "counts"): c
        for report, c in counts.items()
    }
    read = [whole(known.get(i, 0), "counts", least=0) for i in range(len(design.reports))]
    if sum(read) == 0:
        raise ParameterError("counts", 0, "must be one or more reports")
    return estimate_of(design, read)
