"""Several questions to one person: all of them with a part of ε each, or one of them with all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, ParameterTypeError, PrivateValueError, ReportError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.channel import ChannelLoss
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE
from deniable.survey.answers import Answers, read_answers, read_numbers
from deniable.survey.averages import MeanProtocol, MeanTally
from deniable.survey.formats import Json, columns_of
from deniable.survey.frequency import Frequency
from deniable.survey.laws import enumerable
from deniable.survey.protocol import Reports
from deniable.survey.shares import Tally
from deniable.trace import traced

Part = Frequency | MeanProtocol
Columns = Sequence[Answers]
ReportParts = tuple[Reports, ...]
Given = TypeVar("Given")

_MOST_PARTS = 10_000


@dataclass(frozen=True)
class _Parts:
    """Protocols for the questions of one person."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", read_parts(self.parts))

    def each(self, column: Sequence[Given]) -> Iterator[tuple[Part, Given]]:
        """Every part beside what is its own."""
        return zip(self.parts, column, strict=True)


@dataclass(frozen=True)
class Together(_Parts):
    """Every person answers all parts.

    Formal guarantee: what one person sends is as private as the composition of the parts' losses;
    ε add up. Give each part its share of ε. Answers of one person stay together, so tables across
    parts can be made.
    """

    kind: ClassVar[str] = "together"

    @lazy
    def loss(self) -> Loss:
        """What one person's reports cost: the parts, composed."""
        return compose(*(part.loss for part in self.parts))

    def channel(self, inputs: Sequence[tuple[Any, ...]], parts: Sequence[Channel]) -> Channel:
        """P(reports | answers), given the channels of the parts."""
        enumerable(int(np.prod([float(len(part.outputs)) for part in parts])))
        outputs = tuple(product(*(part.outputs for part in parts)))
        rows = []
        for answers in inputs:
            laws = [part.row(answer) for part, answer in zip(parts, answers, strict=True)]
            rows.append(tuple(prod(law, start=Fraction(1)) for law in product(*laws)))
        return Channel(tuple(inputs), outputs, tuple(rows))

    @traced
    def randomize(self, values: Columns) -> ReportParts:
        """The reports of each part; person i is row i of each."""
        columns = read_columns(values, len(self.parts))
        return tuple(part.randomize(column) for part, column in self.each(columns))

    def aggregate(self, reports: ReportParts) -> tuple[Tally | MeanTally, ...]:
        """The tally of each part; an error in one of them leaves none."""
        self._check(reports)
        return tuple(part.aggregate(mine) for part, mine in self.each(reports))

    def to_wire(self, reports: ReportParts) -> list[Json]:
        """A list of the parts' values each."""
        self._check(reports)
        each = [part.to_wire(mine) for part, mine in self.each(reports)]
        return [list(row) for row in zip(*each, strict=True)]

    def from_wire(self, payloads: Sequence[Json]) -> ReportParts:
        """Lists of the parts' values."""
        columns = columns_of(payloads, len(self.parts))
        return tuple(part.from_wire(column) for part, column in self.each(columns))

    def _check(self, reports: ReportParts) -> None:
        sizes = part_sizes(reports)
        if len(sizes) != len(self.parts) or len({*sizes}) != 1:
            raise ReportError(f"reports are {len(self.parts)} parts, of the same people each")


@dataclass(frozen=True)
class SampleOne(_Parts):
    """Every person answers one part, drawn uniformly without looking at the answers.

    Formal guarantee: what one person sends is as private as the part that was drawn; if all have
    ε, it is ε-DP however many parts there are. Which part was drawn is public. For d parts of one
    ε this is better than splitting it: d times the variance instead of about d².
    """

    kind: ClassVar[str] = "sample one"

    @lazy
    def loss(self) -> Loss:
        """What one person's report costs, all answers being exchanged."""
        share = Fraction(1, len(self.parts))
        pairs = [part.pair for part in self.parts]
        one, other = (tuple(share * p for pair in pairs for p in pair[side]) for side in (0, 1))
        return ChannelLoss(rows=(one, other))

    def channel(self, inputs: Sequence[tuple[Any, ...]], parts: Sequence[Channel]) -> Channel:
        """P(part, report | answers), given the channels of the parts."""
        share = Fraction(1, len(self.parts))
        outputs = tuple((i, y) for i, part in enumerate(parts) for y in part.outputs)
        rows = tuple(
            tuple(
                share * p
                for part, answer in zip(parts, answers, strict=True)
                for p in part.row(answer)
            )
            for answers in inputs
        )
        return Channel(tuple(inputs), outputs, rows)

    @traced
    def randomize(self, values: Columns) -> ReportParts:
        """The reports of each part, by those who drew it."""
        columns = read_columns(values, len(self.parts))
        # All are read before one is drawn: whether an answer is refused is not left to the draw.
        read = [_read(part, column) for part, column in self.each(columns)]
        drawn = uniform_below(len(self.parts), len(read[0]), SECURE)
        return tuple(
            _randomized(part, column[drawn == number])
            for number, (part, column) in enumerate(self.each(read))
        )

    def aggregate(self, reports: ReportParts) -> tuple[Tally | MeanTally | None, ...]:
        """The tally of each part, None where nobody drew it; an error in one leaves none."""
        self._check(reports)
        return tuple(
            part.aggregate(mine) if len(mine) else None for part, mine in self.each(reports)
        )

    def to_wire(self, reports: ReportParts) -> list[Json]:
        """The part's number and its value each."""
        self._check(reports)
        return [
            [number, value]
            for number, (part, mine) in enumerate(self.each(reports))
            if len(mine)
            for value in part.to_wire(mine)
        ]

    def from_wire(self, payloads: Sequence[Json]) -> ReportParts:
        """A part's number and its value."""
        drawn, values = columns_of(payloads, 2)
        if any(type(number) is not int or not 0 <= number < len(self.parts) for number in drawn):
            raise ReportError(f"a report must name one of {len(self.parts)} parts")
        each: list[list[Json]] = [[] for _ in self.parts]
        for number, value in zip(drawn, values, strict=True):
            each[number].append(value)
        return tuple(part.from_wire(mine) if mine else NOBODY for part, mine in self.each(each))

    def _check(self, reports: ReportParts) -> None:
        sizes = part_sizes(reports)
        if len(sizes) != len(self.parts) or not any(sizes):
            raise ReportError(f"reports are {len(self.parts)} parts, with one report or more")


class Drawn(ABC):
    """A protocol of which everybody draws one part, chosen by itself."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def drawn(self) -> SampleOne:
        """The parts."""

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Of each part, and the whole numbers that were chosen for it, by its number and kind."""
        found = {}
        for number, part in enumerate(self.drawn.parts):
            chosen = {
                each.name: getattr(part, each.name) for each in fields(part) if each.type == "int"
            }
            for name, value in {**chosen, **part.thresholds}.items():
                found[f"{number} {part.kind} {name}"] = value
        return found

    @property
    def loss(self) -> Loss:
        """What one report costs its sender."""
        return self.drawn.loss

    def to_wire(self, reports: ReportParts) -> list[Json]:
        """The part's number and its report each."""
        return self.drawn.to_wire(reports)

    def from_wire(self, payloads: Sequence[Json]) -> ReportParts:
        """A part's number and its report."""
        return self.drawn.from_wire(payloads)


NOBODY: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)


def read_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Read one or more protocols for single answers."""
    if not isinstance(parts, list | tuple) or not 1 <= len(parts) <= _MOST_PARTS:
        raise ParameterError("parts", type(parts).__name__, f"must be 1 to {_MOST_PARTS} protocols")
    for part in parts:
        if not isinstance(part, Frequency | MeanProtocol):
            raise ParameterTypeError("parts", type(part).__name__, "must be protocols")
    return tuple(parts)


def part_sizes(reports: ReportParts) -> list[int]:
    """How many reports each part has; an error if these are no parts."""
    given: object = reports
    if not isinstance(given, list | tuple) or not all(hasattr(mine, "__len__") for mine in given):
        raise ReportError("reports are a list of parts, each a list of reports")
    return [len(mine) for mine in given]


def read_columns(values: Columns, count: int) -> list[Answers]:
    """One list of answers for each part, of the same people."""
    if not isinstance(values, list | tuple) or len(values) != count:
        raise PrivateValueError(f"give a list of {count} columns of answers, one to a part")
    if not all(hasattr(column, "__len__") for column in values):
        raise PrivateValueError("a column is a list of answers, one to a person")
    if len({len(column) for column in values}) != 1:
        raise PrivateValueError("columns of answers must be of the same people")
    if not len(values[0]):
        raise PrivateValueError("an empty list holds nothing to report")
    return [*values]


def _read(part: Part, column: Answers) -> npt.NDArray[Any]:
    """A column as an array of what the part itself would read, to pick people from."""
    if isinstance(part, Frequency):
        return read_answers(column, part.k)
    reals = read_numbers(column, *part.bounds)
    if reals.doubles is not None:
        return reals.doubles
    boxed = np.empty(len(reals.rationals), dtype=object)
    boxed[:] = reals.rationals
    return boxed


def _randomized(part: Part, column: npt.NDArray[Any]) -> Reports:
    if not column.size:
        return NOBODY
    return part.randomize(column.tolist() if column.dtype == object else column)
