"""What every attack and every finding offers, and how their public parameters are read."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import Number, positive, probability, whole

Row = tuple[str, ...]
Value = TypeVar("Value")


class AttackFinding(ABC):
    """What an attack found, on a naive release and on the same release through Deniable.

    The numbers are its fields.
    """

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What happened, in one sentence."""

    @property
    @abstractmethod
    def table(self) -> tuple[Row, ...]:
        """The figures, as text: the heads, then the rows."""

    @property
    def columns(self) -> Row:
        """The heads of the table."""
        return self.table[0]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The table without its heads."""
        return self.table[1:]

    @abstractmethod
    def plot(self, path: str | Path) -> Path:
        """Draw the picture."""


class Attack(ABC):
    """A frozen set of public parameters; the people are made up afresh on each run."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def run(self) -> AttackFinding:
        """Make people up, publish, attack, and tell."""


def size(least: int = 1, most: int = 10**7) -> Callable[[int, str], int]:
    """Reads a size that a computer can hold."""

    def read(value: int, argument: str) -> int:
        number = whole(value, argument, least=least)
        if number > most:
            raise ParameterError(argument, value, f"must be from {least} to {most:,}")
        return number

    return read


def above_zero(value: Number, argument: str) -> float:
    """Read a number above zero; what computes with floats needs no more of it."""
    return float(positive(value, argument))


def chance(value: Number, argument: str) -> float:
    """Read a number strictly between 0 and 1, as a float."""
    return float(probability(value, argument))


def several(read: Callable[[Any, str], Value]) -> Callable[[object, str], tuple[Value, ...]]:
    """Reads a list of one or more such values."""

    def read_all(values: object, argument: str) -> tuple[Value, ...]:
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise ParameterTypeError(argument, values, "must be a list of numbers")
        found = tuple(read(value, argument) for value in values)
        if not found:
            raise ParameterError(argument, values, "must hold one number or more")
        return found

    return read_all


def guess_limit(epsilon: Number, delta: Number = 0) -> float:
    """How often anybody guesses a fair bit right from an (ε, δ)-DP release: (e^ε + δ)/(1 + e^ε).

    False alarms plus e^ε misses are 1 - δ or more, and the other way round (Kairouz, Oh & Viswanath
    2015, Thm 2.1); add both up.
    """
    return (1 + float(delta) * math.exp(-float(epsilon))) / (1 + math.exp(-float(epsilon)))


def share(value: float) -> str:
    """A share as the tables show it."""
    return f"{value:.3f}"


def numbers(finding: Any) -> Any:
    """The fields of a finding, all the way down, as plain values for JSON."""
    if is_dataclass(finding) and not isinstance(finding, type):
        return {field.name: numbers(getattr(finding, field.name)) for field in fields(finding)}
    if isinstance(finding, tuple):
        return [numbers(each) for each in finding]
    if isinstance(finding, Fraction):
        return float(finding)
    if isinstance(finding, float) and not math.isfinite(finding):
        return str(finding)
    return finding
