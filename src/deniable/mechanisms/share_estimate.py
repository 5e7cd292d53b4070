"""Shares of the true answers, from reports, with intervals that cover."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable.errors import ParameterError
from deniable.mechanisms import share_intervals
from deniable.mechanisms.design import Design
from deniable.mechanisms.labels import read_answer
from deniable.mechanisms.values import Floats
from deniable.privacy.exact import Number

IntervalMethod = Literal["exact", "score", "wald"]


@dataclass(frozen=True, eq=False)
class Weighting:
    """The weights of all respondents, summed up by report."""

    n: int
    first: Floats
    second: Floats

    @property
    def effective(self) -> float:
        """Kish's effective sample size, (Σw)²/Σw²: n equal weights have n (Kish 1965)."""
        return float(self.first.sum() ** 2 / self.second.sum())

    @property
    def design_effect(self) -> float:
        """n over the effective size: by how much the weights inflate a variance."""
        return self.n / self.effective

    def covariance(self, decoded: Floats, shares: Floats) -> Floats:
        """Of the weighted shares, by linearisation: n/(n-1) Σ w² (z - θ)(z - θ)ᵀ / (Σw)².

        `decoded` holds one column z for each report. Respondents are taken as drawn independently
        (with replacement); what they reported and what the coins said are both inside z
        (Särndal, Swensson & Wretman 1992, section 5.5-5.7).
        """
        off = decoded - shares[:, None]
        total: Floats = off * (self.second / self.first.sum() ** 2) @ off.T
        return total * self.n / (self.n - 1)


@dataclass(frozen=True, eq=False)
class ResponseEstimate:
    """Unbiased shares of the true answers. They are kept as they are: below 0 and above 1 too.

    Cutting them to [0, 1] would bias every average and difference made of them; `clipped` does it
    for display, and says so. Errors are those of people drawn at random from a large population:
    sampling and coins together. For the very people who were asked they are a little too wide.
    """

    design: Design
    counts: tuple[int, ...]
    reported: Floats
    shares: Floats
    covariance: Floats
    weighting: Weighting | None = None

    @property
    def n(self) -> int:
        """Reports that count."""
        return sum(self.counts) if self.weighting is None else self.weighting.n

    def share(self, answer: Hashable = True) -> float:
        """The estimated share of an answer; unbiased, so it may fall outside [0, 1]."""
        return float(self.shares[read_answer(self.design.answers, answer)])

    def standard_error(
        self, answer: Hashable = True, *, divisor: Literal["n", "n-1"] = "n"
    ) -> float:
        """The estimated standard deviation of the share.

        Divided by n (the plug-in), or by n - 1, whose square is unbiased. With weights it is
        design-based, always with n - 1.
        """
        place = read_answer(self.design.answers, answer)
        variance = max(0.0, float(self.covariance[place, place]))
        if divisor not in ("n", "n-1"):
            raise ParameterError("divisor", divisor, 'must be "n" or "n-1"')
        if divisor == "n-1" and self.weighting is None:
            if self.n == 1:
                raise ParameterError("divisor", divisor, "needs two reports or more")
            variance *= self.n / (self.n - 1)
        return math.sqrt(variance)

    def interval(
        self,
        answer: Hashable = True,
        *,
        confidence: Number = 0.95,
        method: IntervalMethod | None = None,
    ) -> tuple[float, float]:
        """An interval for the share, not cut to [0, 1].

        "exact" (Clopper & Pearson through the channel) covers at least this often at every share
        and size, and is the default where it exists: without weights, where the share depends on
        one count. "score" (Wilson through the channel) is the default elsewhere. "wald" is the
        textbook's, and misses too often where few reports of a kind come in.
        """
        place = read_answer(self.design.answers, answer)
        chosen = method or self.method(answer)
        if chosen == "exact":
            return self._exact(place, confidence)
        if chosen == "score":
            z, prior = self.design.decoder[place], self.design.matrix.mean(axis=0)
            size = self._effective(place)
            return share_intervals.score(z, self.reported, size, prior, confidence)
        if chosen == "wald":
            return share_intervals.wald(self.share(answer), self.standard_error(answer), confidence)
        raise ParameterError("method", method, 'must be "exact", "score" or "wald"')

    def method(self, answer: Hashable = True) -> IntervalMethod:
        """The default interval of this answer."""
        weights = set(self.design.inverse[read_answer(self.design.answers, answer)])
        return "exact" if len(weights) == 2 and self.weighting is None else "score"

    def _exact(self, place: int, confidence: Number) -> tuple[float, float]:
        if self.method(self.design.answers[place]) != "exact":
            raise ParameterError(
                "method",
                "exact",
                'needs reports without weights, and a share that depends on one count; use "score"',
            )
        weights = self.design.inverse[place]
        low, high = float(min(weights)), float(max(weights))
        count = sum(c for c, w in zip(self.counts, weights, strict=True) if w == max(weights))
        below, above = map(float, share_intervals.clopper_pearson(count, self.n, confidence))
        return low + (high - low) * below, low + (high - low) * above

    def effective_size(self, answer: Hashable = True) -> float:
        """How many equally weighted reports would estimate this share as well (n, unweighted).

        Never more than Kish's size: where the few reports of a rare kind happen to have small
        weights, their sum says little about the true variance.
        """
        return self._effective(read_answer(self.design.answers, answer))

    def _effective(self, place: int) -> float:
        if self.weighting is None:
            return float(self.n)
        z, mean = self.design.decoder[place], self.shares[place]
        spread, variance = float((z - mean) ** 2 @ self.reported), self.covariance[place, place]
        kish = self.weighting.effective
        return min(kish, spread / float(variance)) if variance > 0 else kish

    def clipped(self, answer: Hashable = True, *, confidence: Number = 0.95) -> ClippedShare:
        """The share and its interval cut to [0, 1], for display only."""
        low, high = self.interval(answer, confidence=confidence)
        raw = self.share(answer)
        share, low, high = (min(max(value, 0.0), 1.0) for value in (raw, low, high))
        return ClippedShare(share, low, high, unclipped=raw)


@dataclass(frozen=True)
class ClippedShare:
    """A share and an interval cut to [0, 1]: for the eye, not for further arithmetic."""

    share: float
    low: float
    high: float
    unclipped: float

    @property
    def changed(self) -> bool:
        """Whether the share itself was cut."""
        return self.share != self.unclipped


def estimate_of(design: Design, counts: list[int]) -> ResponseEstimate:
    """From how often each report came in, in the order of the reports."""
    n = sum(counts)
    reported = np.array([count / n for count in counts])
    shares = design.decoder @ reported
    off = design.decoder - shares[:, None]
    covariance = off * (reported / n) @ off.T
    return ResponseEstimate(design, tuple(counts), reported, shares, covariance)
