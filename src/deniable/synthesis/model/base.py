"""What every model can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from deniable.synthesis.domain import Codes, Domain, Floats


class Model(Protocol):
    """A distribution over a domain, made of measurements alone."""

    @property
    def domain(self) -> Domain:
        """What the columns are."""

    @property
    def total(self) -> float:
        """The number of rows it stands for, estimated."""

    def marginal(self, columns: Sequence[str]) -> Floats:
        """Expected counts over these columns."""

    def sample(self, rows: int) -> Codes:
        """Rows of codes."""
