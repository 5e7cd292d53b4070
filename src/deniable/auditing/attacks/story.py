"""What every attack and every finding offers, and how their public parameters are read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Protocol

from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import Number, positive, whole

Row = tuple[str, ...]

_MOST = 10**7


class AttackFinding(Protocol):
    """What an attack found, on a naive release and on the same release through Deniable.

    The numbers are its fields.
    """

    @property
    def sentence(self) -> str:
        """What happened, in one sentence."""
        ...

    @property
    def columns(self) -> Row:
        """The heads of the table."""
        ...

    @property
    def rows(self) -> tuple[Row, ...]:
        """The table, as text."""
        ...

    def plot(self, path: str | Path) -> Path:
        """Draw the picture."""
        ...


class Attack(Protocol):
    """A frozen set of public parameters; the people are made up afresh on each run."""

    name: ClassVar[str]
    title: ClassVar[str]

    def run(self) -> AttackFinding:
        """Make people up, publish, attack, and tell."""
        ...


def size(value: int, argument: str, *, least: int = 1, most: int = _MOST) -> int:
    """Read a size that a computer can hold."""
    number = whole(value, argument, least=least)
    if number > most:
        raise ParameterError(argument, value, f"must be from {least} to {most:,}")
    return number


def sizes(values: Iterable[int], argument: str, *, least: int = 1, most: int = _MOST) -> None:
    """Check a list of sizes."""
    for value in _some(values, argument):
        size(value, argument, least=least, most=most)


def positives(values: Iterable[Number], argument: str) -> None:
    """Check a list of numbers above zero."""
    for value in _some(values, argument):
        positive(value, argument)


def _some(values: Any, argument: str) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterTypeError(argument, values, "must be a list of numbers")
    listed = list(values)
    if not listed:
        raise ParameterError(argument, values, "must hold one number or more")
    return listed


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
