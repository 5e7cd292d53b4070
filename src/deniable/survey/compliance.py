"""People who do not follow the design: what they do to an estimate, and how many they are.

A device that tosses the coins itself leaves no way to disobey them. It does not stop anyone from
lying to it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.mechanisms.design import Design, read_design
from deniable.mechanisms.labels import Reports, read_answer, report_places
from deniable.mechanisms.share_intervals import quantile, score
from deniable.privacy.exact import Number
from deniable.survey.reading import read_share, same_length

Floats = npt.NDArray[np.float64]
Behaviour = Literal["safe", "random"]

_FAR = 1e6  # an interval that reaches this far says nothing


def safe_report(design: Design, answer: Hashable = True) -> Hashable:
    """The report that speaks least for an answer: what a cautious cheater always sends."""
    row = read_design(design).channel.row(answer)
    most = [max(column) for column in zip(*design.channel.rows, strict=True)]
    support = [p / top if top else Fraction(1) for p, top in zip(row, most, strict=True)]
    return design.reports[support.index(min(support))]


def expected_share(
    design: Design,
    share: Number,
    *,
    cheaters: Number,
    behaviour: Behaviour = "safe",
    answer: Hashable = True,
) -> float:
    """What the estimated share is on average if some people do not follow the design.

    "safe" cheaters always send the report that speaks least for the answer: with NO-sayers,
    ((1-c)(θp + (1-θ)q) - q)/(p - q). "random" ones send any report equally often.
    """
    theta, c = read_share(share, "share"), read_share(cheaters, "cheaters")
    place, honest = _honest(read_design(design), theta, answer)
    astray = _astray(design, behaviour, answer)
    seen = [(1 - c) * h + c * b for h, b in zip(honest, astray, strict=True)]
    return float(sum(w * s for w, s in zip(design.inverse[place], seen, strict=True)))


@dataclass(frozen=True)
class Noncompliance:
    """The estimated share of people who did not follow the design; may fall below 0 by chance."""

    share: float
    standard_error: float
    low: float
    high: float
    behaviour: Behaviour
    n: int

    @property
    def detected(self) -> bool:
        """Whether the interval lies above 0."""
        return self.low > 0


@dataclass(frozen=True)
class AdjustedShare:
    """A share corrected for people who did not follow the design."""

    share: float
    standard_error: float
    low: float
    high: float
    noncompliance: Noncompliance


def noncompliance(
    design: Design,
    control: Reports,
    *,
    prevalence: Number,
    behaviour: Behaviour = "safe",
    answer: Hashable = True,
    confidence: Number = 0.95,
) -> Noncompliance:
    """How many do not follow the design, from a control item of known prevalence.

    The control is asked by the same design and nobody has a reason to lie about it; its true share
    is known to be `prevalence`. Reports R then come with probability (1-c) P(R) + c B(R), P being
    what the design gives and B what such people send, so c = (seen - P)/(B - P).
    """
    places = report_places(read_design(design).reports, control, "control")
    control_item = _Control(design, prevalence, behaviour, answer)
    hits = places == control_item.place
    shares = np.array([1 - hits.mean(), hits.mean()])
    z = np.array([-control_item.base, 1 - control_item.base]) / control_item.reach
    prior = np.array([1 - control_item.base, control_item.base])
    low, high = score(z, shares, float(places.size), prior, confidence)
    error = math.sqrt(shares[0] * shares[1] / places.size) / abs(control_item.reach)
    return Noncompliance(float(z @ shares), error, low, high, behaviour, places.size)


def adjusted_share(
    design: Design,
    reports: Reports,
    control: Reports,
    *,
    prevalence: Number,
    same_people: bool,
    behaviour: Behaviour = "safe",
    answer: Hashable = True,
    confidence: Number = 0.95,
) -> AdjustedShare:
    """The share among those who follow the design, corrected for those who do not.

    θ = (mean of z - c mean of z among cheaters)/(1 - c), assuming that whoever cheats on one item
    cheats on both. `same_people` says whether entry i of both lists is one person; standard errors
    by linearisation in both cases.

    The interval holds all shares t at which mean of z - t + (t - mean among cheaters) c is within
    its own error of 0 (Fieller 1954), taken at the rates that t itself implies (as in Wilson's), so
    that it does not shrink where few reports of a kind came in. An end is infinite where the
    control does not exclude that nobody follows the design. It covers about as often as it says.
    """
    main = report_places(read_design(design).reports, reports, "reports")
    found = noncompliance(
        design,
        control,
        prevalence=prevalence,
        behaviour=behaviour,
        answer=answer,
        confidence=confidence,
    )
    if found.share >= 1:
        raise ParameterError("control", "no honest report", "nobody seems to follow the design")
    z = design.decoder[read_answer(design.answers, answer)]
    cheating = np.array([float(p) for p in _astray(design, behaviour, answer)])
    astray = float(z @ cheating)
    c, mean = found.share, float(z[main].mean())
    share = (mean - c * astray) / (1 - c)
    own = (z[main] - mean) / (1 - c)
    item = _Control(design, prevalence, behaviour, answer)
    hits = report_places(design.reports, control, "control") == item.place
    other = (hits - hits.mean()) / item.reach * (mean - astray) / (1 - c) ** 2
    error = _combined(own, other, same_people)
    yes, both = design.matrix[read_answer(design.answers, answer)], design.matrix.sum(axis=0)
    test = _Fieller(
        z=z,
        yes=yes,
        no=both - yes,
        cheating=cheating,
        item=item,
        mean=mean,
        cheaters=c,
        sizes=(main.size, hits.size),
        tie=_correlation(z[main], hits / item.reach) if same_people else 0.0,
    )
    return AdjustedShare(share, error, *test.interval(share, quantile(confidence)), found)


@dataclass(frozen=True)
class _Fieller:
    """The test of a share t against both items, and the shares that pass it."""

    z: Floats
    yes: Floats
    no: Floats
    cheating: Floats
    item: _Control
    mean: float
    cheaters: float
    sizes: tuple[int, int]
    tie: float

    def interval(self, share: float, width: float) -> tuple[float, float]:
        return self._end(share, width, -1.0), self._end(share, width, 1.0)

    def _end(self, share: float, width: float, side: float) -> float:
        """The last share on this side that passes, by doubling and halving the step."""
        inside, step = share, side
        while abs(step) < _FAR and self._distance(share + step) <= width:
            inside, step = share + step, 2 * step
        if abs(step) >= _FAR:
            return side * math.inf
        outside = share + step
        for _ in range(45):
            middle = (inside + outside) / 2
            if self._distance(middle) <= width:
                inside = middle
            else:
                outside = middle
        return inside

    def _distance(self, share: float) -> float:
        """How many standard errors the two items are away from this share."""
        c, t = (min(max(value, 0.0), 1.0) for value in (self.cheaters, share))
        rates = (1 - c) * (t * self.yes + (1 - t) * self.no) + c * self.cheating
        main = float((self.z - float(self.z @ rates)) ** 2 @ rates) / self.sizes[0]
        hit = self.item.base + c * self.item.reach
        lean = share - float(self.z @ self.cheating)
        control = lean**2 * hit * (1 - hit) / self.sizes[1] / self.item.reach**2
        both = 2 * math.copysign(self.tie, self.tie * lean) * math.sqrt(main * control)
        off = self.mean - share + lean * self.cheaters
        error = math.sqrt(max(0.0, main + control + both))
        return abs(off) / error if error else math.inf


def _combined(own: Floats, other: Floats, same_people: bool) -> float:
    if same_people:
        same_length("control", other.size, own.size)
        return float(np.sqrt(((own + other) ** 2).mean() / own.size))
    return math.hypot(own.std() / math.sqrt(own.size), other.std() / math.sqrt(other.size))


def _correlation(first: Floats, second: Floats) -> float:
    """Of one person's two reports; 0 where all of a list are alike."""
    if first.min() == first.max() or second.min() == second.max():
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


class _Control:
    """The report that shows cheaters best: how often it comes, and how much more from them."""

    def __init__(
        self, design: Design, prevalence: Number, behaviour: Behaviour, answer: Hashable
    ) -> None:
        _, honest = _honest(design, read_share(prevalence, "prevalence"), answer)
        astray = _astray(design, behaviour, answer)
        gaps = [b - h for b, h in zip(astray, honest, strict=True)]
        best = max(range(len(gaps)), key=lambda i: abs(gaps[i]))
        if gaps[best] == 0:
            raise ParameterError(
                "prevalence", prevalence, "such people send what honest ones do; use another item"
            )
        self.place, self.base, self.reach = best, float(honest[best]), float(gaps[best])


def _honest(design: Design, share: Fraction, answer: Hashable) -> tuple[int, list[Fraction]]:
    """The answer's place, and the reports of people who follow the design, if it has this share."""
    if len(design.answers) != 2:
        raise ParameterError("design", len(design.answers), "must have two true answers")
    place = read_answer(design.answers, answer)
    rows = design.channel.rows
    both = zip(rows[place], rows[1 - place], strict=True)
    return place, [share * a + (1 - share) * b for a, b in both]


def _astray(design: Design, behaviour: Behaviour, answer: Hashable) -> list[Fraction]:
    """The reports of people who do not follow the design."""
    if behaviour == "random":
        return [Fraction(1, len(design.reports))] * len(design.reports)
    if behaviour == "safe":
        safe = safe_report(design, answer)
        return [Fraction(report == safe) for report in design.reports]
    raise ParameterError("behaviour", behaviour, 'must be "safe" or "random"')
