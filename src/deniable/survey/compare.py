"""Do groups differ? Differences of shares, with intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from deniable.errors import ParameterError, ParameterTypeError
from deniable.mechanisms.labels import read_answer
from deniable.privacy.exact import Number
from deniable.survey.estimates import ResponseEstimate


@dataclass(frozen=True)
class GroupDifference:
    """The share of one group minus that of another."""

    difference: float
    standard_error: float
    low: float
    high: float
    z: float
    p_value: float


@dataclass(frozen=True)
class ChiSquare:
    """A statistic, its degrees of freedom, and how often chance alone exceeds it."""

    statistic: float
    degrees: int
    p_value: float


def difference(
    first: ResponseEstimate,
    second: ResponseEstimate,
    answer: Hashable = True,
    *,
    confidence: Number = 0.95,
) -> GroupDifference:
    """Compare two groups of different people; they may have been asked by different designs.

    The interval joins the two score intervals (Newcombe 1998; Zou & Donner 2008), so it does not
    shrink to a point when all reports are alike. The test is a score test, with the pooled share,
    where both groups have one design; otherwise the difference over its standard error.
    """
    _read_estimates(first, second)
    one, other = first.share(answer), second.share(answer)
    low_1, high_1 = first.interval(answer, confidence=confidence, method="score")
    low_2, high_2 = second.interval(answer, confidence=confidence, method="score")
    gap = one - other
    z = _z(first, second, answer, gap)
    return GroupDifference(
        gap,
        math.hypot(first.standard_error(answer), second.standard_error(answer)),
        gap - math.hypot(one - low_1, high_2 - other),
        gap + math.hypot(high_1 - one, other - low_2),
        z,
        math.erfc(abs(z) / math.sqrt(2)),
    )


def _z(first: ResponseEstimate, second: ResponseEstimate, answer: Hashable, gap: float) -> float:
    """The difference in standard deviations; 0 where nothing varies and nothing differs."""
    if first.design == second.design:
        n_1, n_2 = first.effective_size(answer), second.effective_size(answer)
        pooled = (n_1 * first.reported + n_2 * second.reported) / (n_1 + n_2)
        z = first.design.decoder[read_answer(first.design.answers, answer)]
        mean = float(z @ pooled)
        variance = float((z - mean) ** 2 @ pooled) * (1 / n_1 + 1 / n_2)
    else:
        variance = first.standard_error(answer) ** 2 + second.standard_error(answer) ** 2
    if variance == 0:
        return math.copysign(math.inf, gap) if gap else 0.0
    return gap / math.sqrt(variance)


def homogeneity(groups: Sequence[ResponseEstimate], answer: Hashable = True) -> ChiSquare:
    """Whether several groups of different people have one share.

    Where all have one design the variance is that of the pooled reports (Pearson's test, through
    the channel), so that groups in which all reports are alike are no trouble; otherwise each
    group has its own (Cochran's Q, 1954).
    """
    from scipy.special import chdtrc  # noqa: PLC0415  (slow to import)

    _read_estimates(*groups)
    shares = [group.share(answer) for group in groups]
    precision = _precisions(groups, answer)
    middle = math.fsum(p * s for p, s in zip(precision, shares, strict=True)) / math.fsum(precision)
    q = math.fsum(p * (s - middle) ** 2 for p, s in zip(precision, shares, strict=True))
    return ChiSquare(q, len(groups) - 1, float(chdtrc(len(groups) - 1, q)))


def _precisions(groups: Sequence[ResponseEstimate], answer: Hashable) -> list[float]:
    first = groups[0]
    if all(group.design == first.design for group in groups):
        sizes = [group.effective_size(answer) for group in groups]
        pooled = sum(n * g.reported for n, g in zip(sizes, groups, strict=True)) / sum(sizes)
        z = first.design.decoder[read_answer(first.design.answers, answer)]
        variance = float((z - float(z @ pooled)) ** 2 @ pooled)
        return [n / variance if variance else n for n in sizes]
    errors = [group.standard_error(answer) for group in groups]
    if min(errors) == 0:
        raise ParameterError(
            "groups", "all reports alike", "a group has no standard error; merge it with another"
        )
    return [1 / error**2 for error in errors]


def _read_estimates(*groups: object) -> None:
    if len(groups) < 2 or not all(isinstance(group, ResponseEstimate) for group in groups):
        raise ParameterTypeError("groups", len(groups), "must be two estimates or more")
