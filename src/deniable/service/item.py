"""The four kinds of questions, each with its protocol, its design and how its share is read."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

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


@dataclass(frozen=True)
class FormItem(ABC):
    """One question. A report is a whole number, 0 to `reports` - 1.

    Formal guarantee: one report is ε-DP for its sender under "replace", ε being `epsilon`, that
    of the rounded probabilities that the device draws; it is never above the ε asked for.
    """

    kind: ClassVar[str]
    id: str
    text: Text
    asked: Fraction

    def __post_init__(self) -> None:
        if self.asked > MOST_EPSILON:
            raise ParameterError(
                f"epsilon of {self.id}",
                rounded_epsilon(self.asked),
                f"must be {MOST_EPSILON} at most: beyond it a report all but tells the answer",
            )
        _ = self.protocol  # a size that cannot be served is refused here

    @property
    @abstractmethod
    def protocol(self) -> KaryResponse | OneBitMean:
        """What the device draws."""

    @property
    @abstractmethod
    def labels(self) -> tuple[Hashable, ...]:
        """The true answers of the design, in the order of the reports."""

    @property
    def values(self) -> tuple[Fraction, ...] | None:
        """Numbers of the answers, where their mean has a meaning."""
        return None

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
            else protocol.channel([_ZERO, _ONE])
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
        return self.protocol.truth

    @property
    def told(self) -> Fraction:
        """The probability that the answer decides at all; a fair die decides otherwise."""
        k = self.reports
        return (k * self.truth - 1) / (k - 1)

    def option(self, report: int, language: str) -> str | None:
        """The text of a report where the document gives one."""
        del report, language
        return None

    def shown_epsilon(self) -> str:
        """ε for the eye, rounded up at the fourth decimal."""
        return rounded_epsilon(self.loss_epsilon)


_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class YesNo(FormItem):
    """Yes or no; report 1 is YES."""

    kind: ClassVar[str] = "yes/no"

    @lazy
    def protocol(self) -> KaryResponse:
        """k-ary response of two."""
        return KaryResponse(k=2, epsilon=self.asked)

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """NO, YES."""
        return (False, True)


@dataclass(frozen=True)
class Choice(FormItem):
    """One of several options; a report is an option's place."""

    kind: ClassVar[str] = "choice"
    options: tuple[Text, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.options) <= MOST_OPTIONS:
            raise ParameterError("options", len(self.options), f"must be 2 to {MOST_OPTIONS}")
        for language, _ in self.text:
            if len({said(option, language) for option in self.options}) != len(self.options):
                raise ParameterError("options", self.id, "must differ from each other")
        super().__post_init__()

    @lazy
    def protocol(self) -> KaryResponse:
        """k-ary response."""
        return KaryResponse(k=len(self.options), epsilon=self.asked)

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The options in the first language."""
        return tuple(option[0][1] for option in self.options)

    def option(self, report: int, language: str) -> str:
        """The option's text."""
        return said(self.options[report], language)


@dataclass(frozen=True)
class Scale(FormItem):
    """A whole number from low to high; a report is its place."""

    kind: ClassVar[str] = "scale"
    low: int
    high: int

    def __post_init__(self) -> None:
        if not 2 <= self.high - self.low + 1 <= MOST_OPTIONS:
            raise ParameterError(
                "scale", f"{self.low} to {self.high}", f"must have 2 to {MOST_OPTIONS} steps"
            )
        super().__post_init__()

    @lazy
    def protocol(self) -> KaryResponse:
        """k-ary response."""
        return KaryResponse(k=self.high - self.low + 1, epsilon=self.asked)

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The steps."""
        return tuple(range(self.low, self.high + 1))

    @property
    def values(self) -> tuple[Fraction, ...]:
        """The steps."""
        return tuple(Fraction(step) for step in range(self.low, self.high + 1))

    def option(self, report: int, language: str) -> str:
        """The step."""
        del language
        return str(self.low + report)


@dataclass(frozen=True)
class NumberLine(FormItem):
    """A number between bounds; report 0 is the lower bound, 1 the upper one.

    The device moves the number at random to one of the bounds, and that bit goes through the coins
    (Duchi, Jordan & Wainwright 2018): the mean is estimated as a share of the way.
    """

    kind: ClassVar[str] = "number"
    low: Fraction
    high: Fraction

    @lazy
    def protocol(self) -> OneBitMean:
        """One bit."""
        return OneBitMean(epsilon=self.asked, bounds=(self.low, self.high))

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The bounds."""
        return (show(self.low), show(self.high))

    @property
    def values(self) -> tuple[Fraction, ...]:
        """The bounds."""
        return (self.low, self.high)

    def option(self, report: int, language: str) -> str:
        """The bound."""
        del language
        return show(self.values[report])
