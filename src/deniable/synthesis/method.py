"""What a method is: it draws through the door, and hands out a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from deniable.synthesis.domain import Domain
from deniable.synthesis.measure import Draws
from deniable.synthesis.model.base import Model

Progress = Callable[[float], None]
"""Told the part that is done, from 0 to 1."""


def silent(_: float) -> None:
    """Nobody is told."""


class Method(Protocol):
    """Public parameters; data come in through the door alone."""

    def check(self, domain: Domain) -> None:
        """Refuse, before anything is spent, a domain that is too large for the method."""

    def run(self, draws: Draws, progress: Progress = silent) -> Model:
        """Spend what the door reserves, and fit a model to what came out."""
