"""What every protocol is: a law that makes a report of an answer, and the format of its reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy.typing as npt

from deniable.lazy import lazy
from deniable.privacy.exact import Number
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.channel import ChannelLoss
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.survey.answers import Answers
from deniable.survey.formats import Format, Json
from deniable.survey.thresholds import read_epsilon

Pair = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
Reports = npt.NDArray[Any]


@parameters
class Protocol(ABC):
    """A client that randomises one answer, and a server that reads the reports.

    The law is what subclasses say: `pair` states what it tells, `thresholds` are all that a client
    needs to draw it, `randomize` draws it. The `format` checks, writes and reads its reports.
    """

    kind: ClassVar[str]
    epsilon: Parameter[Number, Fraction] = parameter(read_epsilon)
    """The ε that is asked for."""

    @property
    @abstractmethod
    def pair(self) -> Pair:
        """The laws of a report under the two answers that differ most, in classes of one ratio."""

    @property
    @abstractmethod
    def thresholds(self) -> Mapping[str, int]:
        """What a client compares 64 random bits with."""

    @property
    @abstractmethod
    def format(self) -> Format:
        """What reports look like."""

    @abstractmethod
    def randomize(self, values: Answers) -> Reports:
        """The clients' part: one report for each true answer."""

    @lazy
    def loss(self) -> Loss:
        """What one report costs its sender."""
        return ChannelLoss(rows=self.pair)

    @property
    def report_bits(self) -> int:
        """How many bits a report has."""
        return self.format.bits

    def check(self, reports: Reports) -> Reports:
        """The reports, if all of them are such as a client sends; an error if one is not."""
        checked: Reports = self.format.check(reports)
        return checked

    def to_wire(self, reports: Reports) -> list[Json]:
        """One JSON value for each report."""
        return self.format.to_wire(self.check(reports))

    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """Reports from their JSON values, checked."""
        return self.check(self.format.from_wire(payloads))
