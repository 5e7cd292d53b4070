"""How many units have more rows than were declared, and how many rows those have: noisy bins.

A declared bound says where to look, so no place has to be found: bins of rows lie around it. A unit
is in one of them, so that many bins cost no more than one. Everything here is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable.query.plan.tail import UPPER_END, Lost, Tail, stands_out, tail_of

_BELOW, _ABOVE = 6, 4  # octaves of bins below what was declared, and above


def edges_about(rows: int, cap: int | None) -> tuple[int, ...]:
    """Where bins begin: half octaves about the least number of rows that is cut, which is one.

    No bin begins beyond what is promised.
    """
    first = rows + 1
    steps = [(1 << octave, half) for octave in range(1, _BELOW + 1) for half in (2, 3)]
    below = {math.ceil(first * half / (2 * whole)) for whole, half in steps}
    above = {first * half * (1 << octave) // 2 for octave in range(_ABOVE) for half in (2, 3)}
    found = sorted(below | above | {first << _ABOVE})
    return tuple(each for each in found if cap is None or each <= max(cap, first))


@dataclass(frozen=True)
class Above:
    """Noisy numbers of units by their rows: below all edges, and from each to the next."""

    rows: int
    """What was declared: so many count in full."""
    cap: int | None
    """What was promised: nobody has more."""
    bins: tuple[int, ...]
    deviation: float
    """The standard deviation of the noise of each bin."""

    @property
    def units(self) -> float:
        """How many units there are, nearly."""
        return max(1.0, float(sum(self.bins)))

    @property
    def unknown(self) -> bool:
        """Whether nothing bounds what is lost: too few units, or heavy ones beyond all bins."""
        far = stands_out(self.bins[-1], self.deviation) and self.cap is None
        return far or self.units < UPPER_END * self.deviation

    @property
    def tail(self) -> Tail:
        """Draws of how many units have so many rows, given these bins."""
        edges = edges_about(self.rows, self.cap)
        x = np.array(edges, dtype=float) - 0.5  # whole numbers are read half a step below
        return tail_of(tuple(x.tolist()), self.bins[1:], self.deviation)

    @property
    def lost(self) -> Lost:
        """What is lost of units with more rows, draw by draw."""
        cap = math.inf if self.cap is None else float(self.cap)
        return self.tail.beyond(self.rows + 0.5, cap)
