"""What the reports of a survey tell: shares and means with intervals, growth, cross-tabs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.mechanisms.share_intervals import bounded
from deniable.privacy.amplification import shuffled
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.units import Relation
from deniable.service.document import SurveyDocument
from deniable.service.item import FormItem, rounded_epsilon
from deniable.survey.crosstab import CrossTab, cross_tabulate
from deniable.survey.estimates import ResponseEstimate, estimate_counts

Reports = Sequence[tuple[int, ...]]

_STEPS = 40
CROWD_DELTA = 1e-6


@dataclass(frozen=True)
class Line:
    """One estimated number with its 95 % interval; unbiased, so a share may leave [0, 1]."""

    label: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ItemResult:
    """What is known about one question. `lines` are shares of the answers; `mean` of numbers."""

    item: FormItem
    n: int
    lines: tuple[Line, ...]
    mean: Line | None

    @property
    def main(self) -> Line:
        """The one number to draw: the share of YES, the mean, or the share of the first option."""
        return self.mean or self.lines[-1 if self.item.kind == "yes/no" else 0]


def results(document: SurveyDocument, reports: Reports) -> list[ItemResult]:
    """Every question, estimated from all reports; an empty list before the first."""
    if not reports:
        return []
    return [
        item_result(item, [each[place] for each in reports])
        for place, item in enumerate(document.items)
    ]


def item_result(item: FormItem, reports: Sequence[int]) -> ItemResult:
    """One question from its reports.

    Intervals are those of the design: exact (Clopper & Pearson through the channel) for shares and
    for numbers, whose bits are Bernoulli; that of bets for the mean of a scale. All of them cover
    at least as often as they say, however few reports there are.
    """
    return _from_counts(item, np.bincount(reports, minlength=item.reports))


def _from_counts(item: FormItem, counts: npt.NDArray[np.int64]) -> ItemResult:
    found = estimate_counts(item.design, dict(zip(item.labels, counts.tolist(), strict=True)))
    if item.is_number:
        return ItemResult(item, found.n, (), _number(item, found))
    lines = tuple(
        Line(_shown(label), found.share(label), *found.interval(label)) for label in item.labels
    )
    mean = _scale(item, found) if item.values else None
    return ItemResult(item, found.n, lines, mean)


def _number(item: FormItem, found: ResponseEstimate) -> Line:
    least, most = item.values or ()
    low, span, high = float(least), float(most - least), item.labels[1]
    ends = (low + span * end for end in found.interval(high))
    return Line("mean", low + span * found.share(high), *ends)


def _scale(item: FormItem, found: ResponseEstimate) -> Line:
    steps = np.array([float(value) for value in item.values or ()])
    z, matrix = steps @ found.design.decoder, found.design.matrix
    # An answer alone spreads its reports by so much at least.
    least = float((matrix @ z**2 - (matrix @ z) ** 2).min())
    ends = (float(steps[0]), float(steps[-1]))
    counts = np.array(found.counts, dtype=float)
    return Line("mean", float(z @ found.reported), *bounded(z, counts, ends, least, 0.95))


def growth(item: FormItem, reports: Sequence[int]) -> list[tuple[int, Line]]:
    """The main number after more and more reports, in the order of their random keys."""
    n, column = len(reports), np.asarray(reports, dtype=np.int64)
    sizes = sorted({max(1, round(n * step / _STEPS)) for step in range(1, _STEPS + 1)}) if n else []
    points, counts, start = [], np.zeros(item.reports, dtype=np.int64), 0
    for size in sizes:
        counts = counts + np.bincount(column[start:size], minlength=item.reports)
        points.append((size, _from_counts(item, counts).main))
        start = size
    return points


def crossed(document: SurveyDocument, reports: Reports, first: str, second: str) -> CrossTab:
    """Two questions against each other."""
    one, other = document.item(first), document.item(second)
    if one is other or one.is_number or other.is_number:
        raise ParameterError(
            "questions", f"{first}, {second}", "must be two different ones that have categories"
        )
    at, on = document.place(first), document.place(second)
    return cross_tabulate(
        one.design,
        other.design,
        [one.labels[each[at]] for each in reports],
        [other.labels[each[on]] for each in reports],
    )


def in_the_crowd(document: SurveyDocument, n: int) -> str | None:
    """ε of one whole submission among n that nobody can link to people, for information.

    Feldman, McMillan & Talwar 2021, Thm 3.1, at δ = 1e-6 (`dp.losses.shuffled`); None where n is
    too small for it; rounded up. What holds in any case, against the operator too, is the
    document's ε.
    """
    try:
        whole = PureLoss(bound=document.epsilon, relation=Relation.REPLACE)
        return rounded_epsilon(shuffled(whole, people=n, delta=CROWD_DELTA).bound)
    except ParameterError:
        return None


def _shown(label: object) -> str:
    return ("YES" if label else "NO") if isinstance(label, bool) else str(label)
