"""A question of a form, with its protocol, its design and how its share is read."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.mechanisms.design import Design
from deniable.privacy.channel import worst_of_all
from deniable.privacy.exact import float_above, log_up, show
from deniable.survey import designs
from deniable.survey.kary import KaryResponse
from deniable.survey.means import OneBitMean
from deniable.survey.wire import Item

Text = tuple[tuple[str, str], ...]

MOST_OPTIONS = 32
MOST_EPSILON = 8  # `brief.js` keeps to it, too


def said(text: Text, language: str) -> str:
    """A text in one language."""
    return dict(text)[language]


def rounded_epsilon(value: Fraction) -> str:
    """ε for the eye: up at the fourth decimal, apart from the 1e-40 by which logarithms exceed."""
    return rounded_up(value - Fraction(1, 10**34), 4)


def rounded_up(value: Fraction, places: int) -> str:
    """A number for the eye, never below itself: all digits down to this place."""
    whole, rest = divmod(math.ceil(value * 10**places), 10**places)
    return f"{whole}.{rest:0{places}d}".rstrip("0").rstrip(".")


class ItemKind(StrEnum):
    """The kinds of questions."""

    YES_NO = "yes/no"
    """Report 1 is YES."""
    CHOICE = "choice"
    """One of several options; a report is an option's place."""
    SCALE = "scale"
    """A whole number from low to high; a report is its place."""
    NUMBER = "number"
    """A number between bounds; report 0 is the lower bound, 1 the upper one.

    The device moves the number at random to one of the bounds, and that bit goes through the coins
    (Duchi, Jordan & Wainwright 2018): the mean is estimated as a share of the way.
    """


@dataclass(frozen=True)
class FormItem:
    """One question. A report is a whole number, 0 to `reports` - 1.

    Formal guarantee: one report is ε-DP for its sender under "replace", ε being `epsilon`, that
    of the rounded probabilities that the device draws; it is never above the ε asked for.
    """

    kind: ItemKind
    id: str
    text: Text
    asked: Fraction
    options: tuple[Text, ...] = ()
    """The texts of a choice."""
    values: tuple[Fraction, ...] | None = None
    """Numbers of the answers, where their mean has a meaning: the steps of a scale, or bounds."""

    def __post_init__(self) -> None:
        if self.asked > MOST_EPSILON:
            raise ParameterError(
                f"epsilon of {self.id}",
                rounded_epsilon(self.asked),
                f"must be {MOST_EPSILON} at most: beyond it a report all but tells the answer",
            )
        if self.kind == ItemKind.CHOICE and not 2 <= len(self.options) <= MOST_OPTIONS:
            raise ParameterError("options", len(self.options), f"must be 2 to {MOST_OPTIONS}")
        for language, _ in self.text:
            if len({said(option, language) for option in self.options}) != len(self.options):
                raise ParameterError("options", self.id, "must differ from each other")
        _ = self.protocol  # a size that cannot be served is refused here

    @lazy
    def protocol(self) -> KaryResponse | OneBitMean:
        """What the device draws."""
        if self.values is not None and self.is_number:
            return OneBitMean(epsilon=self.asked, bounds=(self.values[0], self.values[1]))
        return KaryResponse(k=self.reports, epsilon=self.asked)

    @property
    def is_number(self) -> bool:
        """Whether any number between two bounds is an answer, not one of a few categories."""
        return self.kind == ItemKind.NUMBER

    @lazy
    def labels(self) -> tuple[Hashable, ...]:
        """The true answers of the design, in the order of the reports."""
        if self.values is None:
            return tuple(option[0][1] for option in self.options) or (False, True)
        return tuple(show(each) if self.is_number else int(each) for each in self.values)

    @lazy
    def wire(self) -> Item:
        """The protocol as it goes over the wire."""
        return Item(self.id, self.protocol)

    @property
    def reports(self) -> int:
        """How many different reports there are."""
        return len(self.labels)

    @lazy
    def design(self) -> Design:
        """The exact channel that everything is estimated with."""
        protocol = self.protocol
        ends = (
            protocol.channel()
            if isinstance(protocol, KaryResponse)
            else protocol.channel([Fraction(0), Fraction(1)])
        )
        return designs.from_matrix(ends.rows, self.labels, method=protocol.kind)

    @lazy
    def loss_epsilon(self) -> Fraction:
        """The ε of the law that is drawn, at or above it by 1e-40 at most."""
        return log_up(Fraction(worst_of_all(self.design.channel.rows)))

    @property
    def epsilon(self) -> float:
        """The same as a float, rounded up."""
        return float_above(self.loss_epsilon)

    @property
    def truth(self) -> Fraction:
        """The probability that the true report is sent."""
        return self.protocol.law.truth

    @property
    def told(self) -> Fraction:
        """The probability that the answer decides at all; a fair die decides otherwise."""
        k = self.reports
        return (k * self.truth - 1) / (k - 1)

    def option(self, report: int, language: str) -> str | None:
        """The text of a report where the document gives one."""
        if self.values is not None:
            return show(self.values[report])
        return said(self.options[report], language) if self.options else None

    def shown_option(self, report: int, language: str, words: Mapping[str, str]) -> str:
        """The same, or the page's own word for it."""
        return self.option(report, language) or words["yes" if report else "no"]

    def shown_epsilon(self) -> str:
        """ε for the eye, rounded up at the fourth decimal."""
        return rounded_epsilon(self.loss_epsilon)


def scale_steps(low: int, high: int) -> tuple[Fraction, ...]:
    """The answers of a scale."""
    if not 2 <= high - low + 1 <= MOST_OPTIONS:
        raise ParameterError("scale", f"{low} to {high}", f"must have 2 to {MOST_OPTIONS} steps")
    return tuple(Fraction(step) for step in range(low, high + 1))
