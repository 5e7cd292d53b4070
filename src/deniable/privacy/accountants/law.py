"""What the numerical accountant asks of a loss: its worst pair of laws (P, Q), told in two parts.

*Atoms* are log ratios ln P/Q with a mass of their own. The *rest* is told by its curve
H(y) = sup_S P(S) - y Q(S), y = e^ε >= 1, and by the curve of (Q, P). Curves of disjoint parts add
up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
ULP = 2.0**-53  # half a unit in the last place of 1


class Reading(NamedTuple):
    """Values of a curve, and how far each may be off."""

    values: Floats
    error: Floats


Curve = Callable[[Floats], Reading]
"""A reading allows for its ε being off by 8 units in the last place."""


@dataclass(frozen=True)
class Atoms:
    """Log ratios in rising order, the masses of P and of Q there, and what either has elsewhere.

    `above` bounds what P has above all that are listed, `below` what P or Q has below. Masses are
    right to 2e-13 of themselves, log ratios to two units in the last place.
    """

    x: Floats
    mass: Floats
    other: Floats
    above: float = 0.0
    below: float = 0.0

    def reversed(self) -> Atoms:
        """The atoms of (Q, P)."""
        tail = max(self.above, self.below)
        return Atoms(-self.x[::-1], self.other[::-1], self.mass[::-1], tail, tail)


def mirrored(x: Floats, mass: Floats, tail: float = 0.0) -> Atoms:
    """The atoms of a pair in which Q is the mirror image of P; x is its own mirror image."""
    return Atoms(x, mass, mass[::-1], tail, tail)


@dataclass(frozen=True)
class Rest:
    """The part without atoms: its curves both ways, and its mass, which P and Q share."""

    forward: Curve
    backward: Curve
    mass: float = 1.0


@dataclass(frozen=True)
class DominatingPair:
    """The worst pair of one release.

    `forward` is the pair for a unit taken away, the reverse for a unit added. `certain` is the
    probability of telling all, on either side; atoms and rest are those of the remaining release.
    `atoms` lists all but a given tail; they lie on multiples of `grain`, if that is given.
    """

    atoms: Callable[[float], Atoms] | None = None
    rest: Rest | None = None
    grain: float | None = None
    certain: float = 0.0
    symmetric: bool = True

    def reversed(self) -> DominatingPair:
        """The law of the pair (Q, P)."""
        if self.symmetric:
            return self
        atoms, rest = self.atoms, self.rest
        return DominatingPair(
            None if atoms is None else lambda tail: atoms(tail).reversed(),
            None if rest is None else Rest(rest.backward, rest.forward, rest.mass),
            self.grain,
            self.certain,
            symmetric=False,
        )


TELLS_NOTHING = DominatingPair(atoms=lambda _: mirrored(np.zeros(1), np.ones(1)))
