"""What a design means, in sentences a respondent can read."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction

from deniable.errors import ParameterError
from deniable.mechanisms.base import read_confidence
from deniable.mechanisms.design import Design, read_design
from deniable.mechanisms.labels import read_answer
from deniable.privacy.channel import worst_of_all
from deniable.privacy.exact import Number, probability
from deniable.survey.estimates import ResponseEstimate

HONESTY = (
    "Coins protect an answer; they do not make it true. In a validation study of 6,505 people "
    "(Höglinger & Jann 2018), forced-response and unrelated-question designs did not reduce false "
    "answers below those to a direct question; the crosswise model had fewer false denials, but "
    "more people were wrongly counted as having the trait. A device that tosses the coins stops "
    "people from disobeying them, not from lying to the device."
)


def suspicion(
    design: Design, report: Hashable, *, answer: Hashable = True, prior: Number = Fraction(1, 10)
) -> Fraction:
    """The most that anyone who gave an answer this chance can give it after the report, exactly.

    π P(report | answer) against the rest of the belief on the answer that explains it worst; for
    two answers that is Bayes' rule, whatever else is known.
    """
    place = read_answer(read_design(design).answers, answer)
    pi = probability(prior, "prior")
    chances = [design.channel.probability(report, each) for each in design.answers]
    others = [p for i, p in enumerate(chances) if i != place]
    seen = pi * chances[place] + (1 - pi) * min(others)
    if seen == 0:
        raise ParameterError("report", report, "is never sent")
    return pi * chances[place] / seen


def deniability(design: Design, *, prior: Number = Fraction(1, 10)) -> tuple[str, ...]:
    """One sentence for each report: what someone with a suspicion can think after seeing it.

    Percentages are rounded against the design, at the first decimal.
    """
    return tuple(_deniable(design, report, prior) for report in design.reports)


def _deniable(design: Design, report: Hashable, prior: Number) -> str:
    chances = [design.channel.probability(report, answer) for answer in design.answers]
    before = _exactly(probability(prior, "prior"))
    if design.answers != (False, True):
        answer = design.answers[chances.index(max(chances))]
        after = suspicion(design, report, answer=answer, prior=prior)
        return (
            f"If you report {report!r}, anyone who thought there was a {before} chance that "
            f"{answer!r} is true of you can think at most {_percent(after, up=True)}."
        )
    said = f"answer {report!r}"
    if isinstance(report, bool):
        said = "say YES" if report else "say NO"
    after = suspicion(design, report, prior=prior)
    if after in (0, 1):
        known = "applies" if after else "does not apply"
        return f"If you {said}, it is certain that it {known} to you."
    more = chances[1] >= chances[0]
    bound = f"at most {_percent(after, up=True)}" if more else f"as little as {_percent(after)}"
    return (
        f"If you {said}, anyone who thought there was a {before} chance it applied to you "
        f"can think {bound}."
    )


def promise(design: Design) -> str:
    """The guarantee in one sentence; the warning where there is none."""
    if (warning := design.warning) is not None:
        return warning
    ratio = Fraction(worst_of_all(design.channel.rows))
    return (
        f"Whatever is sent, no answer of yours makes it more than {_up(ratio, 2)} times as likely "
        f"as another (ε = {_up(Fraction(design.epsilon), 4)})."
    )


def finding(
    estimate: ResponseEstimate, answer: Hashable = True, *, confidence: Number = 0.95
) -> str:
    """The estimate in one sentence, cut to [0%, 100%] for reading."""
    seen = estimate.clipped(answer, confidence=confidence)
    note = " The raw estimate lies outside and was cut for display." if seen.changed else ""
    level = _exactly(read_confidence(confidence))
    return (
        f"{100 * seen.share:.1f}% ({level} interval {100 * seen.low:.1f}% to "
        f"{100 * seen.high:.1f}%), estimated from {estimate.n:,} randomised reports.{note}"
    )


def _percent(value: Fraction, *, up: bool = False) -> str:
    """With one decimal, or as many as tell it from 0 and from 100%."""
    digits, rest = 1, min(value, 1 - value)
    while 0 < rest * 10 ** (digits + 2) < 1:
        digits += 1
    scaled = value * 100 * 10**digits
    number = math.ceil(scaled) if up else math.floor(scaled)
    return f"{_plain(Fraction(number, 10**digits), digits)}%"


def _exactly(value: Fraction) -> str:
    """A percentage as it was given, to ten decimals."""
    return f"{_plain(Fraction(round(value * 10**12), 10**10), 10)}%"


def _up(value: Fraction, digits: int) -> str:
    return _plain(Fraction(math.ceil(value * 10**digits), 10**digits), digits)


def _plain(value: Fraction, digits: int) -> str:
    """All digits before the point, so many after it, without zeros at the end."""
    whole, rest = divmod(round(value * 10**digits), 10**digits)
    return f"{whole:,}.{rest:0{digits}}".rstrip("0").rstrip(".")
