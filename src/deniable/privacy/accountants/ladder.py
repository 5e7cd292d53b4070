"""A privacy-loss distribution on a ladder: whole multiples of one step, from above and from below.

The curve H(y) = sup_S P(S) - y Q(S), y = e^ε, is convex, falls from 1 and lies above (1 - y)+ . Of
two pairs the one with the higher curve is the worse one, and stays so in every composition (Zhu,
Dong & Wang 2022, Thm 10); the proof uses P as a measure only, so masses need not sum to 1. A curve
that is straight between the rungs y_k = e^(kh) belongs to a pair with log ratios on multiples of h;
the mass P puts on kh is y_k times the change of slope at y_k.

* **Above**: the chords between the rungs (Doroshenko et al. 2022), and what is left at the top rung
  as mass at infinity. They exceed a smooth curve by O(h²). For an atom this is a split between the
  two rungs around it.
* **Below, the rest**: a convex curve lies above its own chords extended from both sides, so between
  two rungs it sinks below its chord by at most w q q' / (q + q'), w the distance and q, q' the
  changes of slope at the two rungs. Lowering both rungs by this bound gives a curve below H; where
  that is not convex, rungs are left out until it is.
* **Below, atoms**: each moves to the next rung towards 0, with its P-mass if it is positive and its
  Q-mass if it is negative. That lowers Σ p (1 - y e^-x)+ over the positive ones and
  Σ (y e^-x - 1)+ p over the negative ones. The rung 0 then takes any mass with which P sums to at
  most what it was and Q to at least that; the others shrink until there is one.

The rest is computed from the excess E = H - m(1 - y)+, which is H itself for y >= 1 and y H'(1/y)
below, H' being the curve of (Q, P): positive numbers, and differences of neighbours. The error of a
curve's values lifts the curve from above and lowers it from below; rounding in the masses is added
to or taken from each of them. δ of a composition rises with every mass, so that this needs no
further proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.privacy.accountants.law import (
    ULP,
    Atoms,
    Curve,
    DominatingPair,
    Floats,
    Reading,
    Rest,
)

_ROUNDING = 4e-16
_ATOM_ERROR = 3e-13
_MOST_ROUNDS = 100
_BEYOND_ALL = 1e15

Rungs = npt.NDArray[np.int64]


class TooLongError(Exception):
    """A ladder, or a window, with more rungs than memory should hold: `excess` times too many."""

    def __init__(self, excess: float) -> None:
        super().__init__(excess)
        self.excess = excess


@dataclass(frozen=True)
class Ladder:
    """P-masses of the log ratios step * (first, first + 1, ...), and of infinity."""

    step: float
    first: int
    mass: Floats
    beyond: float

    def places(self) -> Floats:
        return self.step * np.arange(self.first, self.first + len(self.mass), dtype=np.float64)


@dataclass(frozen=True)
class Rungwise:
    """A law read on the rungs, from which both ladders follow."""

    step: float
    certain: float
    atoms: Atoms | None
    excess: Excess | None

    def above(self) -> Ladder:
        """The least ladder whose pair is at least as bad."""
        return self._by(_atoms_above, _rest_above)

    def below(self) -> Ladder:
        """A ladder whose pair is at most as bad."""
        return self._by(_atoms_below, _rest_below)

    def _by(
        self, of_atoms: Callable[[Atoms, float], Ladder], of_rest: Callable[[Excess], Ladder]
    ) -> Ladder:
        parts = [] if self.atoms is None else [of_atoms(self.atoms, self.step)]
        parts += [] if self.excess is None else [of_rest(self.excess)]
        return _joined(parts, self.certain)


@dataclass(frozen=True)
class Excess:
    """E of the rest on the rungs from -zero to the top, and how far its values may be off."""

    step: float
    zero: int
    values: Floats
    error: Floats
    mass: float


def read(law: DominatingPair, step: float, tail: float, most: int) -> Rungwise:
    """Read a law on at most so many rungs, until what remains is at most `tail` on either side."""
    atoms = None if law.atoms is None else law.atoms(tail)
    if atoms is not None and np.ptp(atoms.x) > step * most:
        raise TooLongError(float(np.ptp(atoms.x)) / step / most)
    rest = None if law.rest is None else _read_rest(law.rest, step, tail, most)
    return Rungwise(step, law.certain, atoms, rest)


def _joined(parts: list[Ladder], certain: float) -> Ladder:
    """Ladders of disjoint parts as one, beside the certain part."""
    first = min(part.first for part in parts)
    end = max(part.first + len(part.mass) for part in parts)
    mass = np.zeros(end - first)
    for part in parts:
        mass[part.first - first : part.first - first + len(part.mass)] += part.mass
    beyond = sum(part.beyond for part in parts)
    return Ladder(parts[0].step, first, (1 - certain) * mass, certain + (1 - certain) * beyond)


def _atoms_above(atoms: Atoms, step: float) -> Ladder:
    x = atoms.x + 2 * _ROUNDING * np.abs(atoms.x)
    rung = np.floor(x / step).astype(np.int64)
    first = int(rung[0])
    right = np.clip(np.expm1(step * rung - x) / math.expm1(-step), 0.0, 1.0)
    mass = atoms.mass * (1 + _atom_error(atoms))
    size = int(rung[-1]) + 2 - first
    whole: Floats = np.bincount(rung - first, mass * (1 - right), size).astype(np.float64)
    whole += np.bincount(rung - first + 1, mass * (right + _ROUNDING), size)
    whole[0] += atoms.below
    return Ladder(step, first, whole, atoms.above)


def _atoms_below(atoms: Atoms, step: float) -> Ladder:
    nothing = Ladder(step, 0, np.zeros(1), 0.0)
    x = atoms.x - 2 * _ROUNDING * np.abs(atoms.x)
    rung = np.trunc(x / step).astype(np.int64)
    less = 1 - _atom_error(atoms)
    up, down = rung > 0, rung < 0
    p, q = atoms.mass * less, atoms.other * less
    p_all, q_all = float(p.sum()), float(q.sum())
    q[up] = p[up] * np.exp(-step * rung[up])
    p[down] = q[down] * np.exp(step * rung[down])
    moved = up | down
    if not moved.any():
        return Ladder(step, 0, np.array([p_all]), 0.0) if abs(p_all - q_all) < 1e-12 else nothing
    # The rung 0 takes from q_all - Σq to p_all - Σp: not empty, and not below 0.
    room = 8 * ULP * (p_all + q_all)
    short = (q_all - float(q[moved].sum())) - (p_all - float(p[moved].sum())) + room
    gain = float(p[up].sum()) - float(q[up].sum())
    if short > 0 and short >= gain:
        return nothing
    shrink = 1 - short / gain if short > 0 else 1.0
    p[up] *= shrink
    q[up] *= shrink
    shrink = min(1.0, p_all / max(float(p[moved].sum()), 1e-300))
    if shrink * float((q - p)[moved].sum()) < q_all - p_all + room / 2:
        return nothing
    first = min(int(rung[0]), 0)
    size = max(int(rung[-1]), 0) + 1 - first
    whole: Floats = np.bincount(rung[moved] - first, p[moved], size).astype(np.float64) * shrink
    whole[-first] = max(0.0, p_all - float(whole.sum()))
    return Ladder(step, first, whole * (1 - _ATOM_ERROR), 0.0)


def _atom_error(atoms: Atoms) -> Floats:
    return _ATOM_ERROR + 4 * _ROUNDING * np.abs(atoms.x)


def _read_rest(rest: Rest, step: float, tail: float, most: int) -> Excess:
    up, down = (_read_curve(curve, step, tail, most) for curve in (rest.forward, rest.backward))
    shrink = np.exp(-step * np.arange(len(down.values), dtype=np.float64))
    values = np.concatenate([(shrink * down.values)[:0:-1], up.values])
    error = np.concatenate([(shrink * down.error)[:0:-1], up.error])
    return Excess(step, len(down.values) - 1, values, error + _ROUNDING * values, rest.mass)


def _read_curve(curve: Curve, step: float, tail: float, most: int) -> Reading:
    rungs = 16
    while float(curve(np.array([step * rungs])).values[0]) > tail:
        rungs *= 2
        if step * rungs > _BEYOND_ALL:
            raise TooLongError(math.inf)
    if rungs > 2 * most:
        raise TooLongError(rungs / most / 1.5)
    values, error = curve(step * np.arange(rungs + 1, dtype=np.float64))
    end = int(np.argmax(values <= tail)) + 1
    return Reading(values[:end], error[:end])


def _rest_above(found: Excess) -> Ladder:
    rungs = np.arange(len(found.values)) - found.zero
    lifted = found.values + found.error
    # Where the error has bent the curve, a mass of 0 keeps it convex and lifts it further.
    mass, rounding = _masses(lifted, rungs, found.step, found.mass)
    return Ladder(found.step, -found.zero, np.maximum(mass, 0.0) + rounding, float(lifted[-1]))


def _rest_below(found: Excess) -> Ladder:
    step, zero = found.step, found.zero
    values = found.values - found.error - _sag(found)
    kept = _grounded(values, zero, step)
    for _ in range(_MOST_ROUNDS):
        rungs = kept - zero
        mass, rounding = _masses(values[kept], rungs, step, found.mass)
        bad = (mass < 0) & (rungs != 0)
        if not bad.any():
            break
        kept = kept[~bad]
    else:
        return Ladder(step, 0, np.array([found.mass]), 0.0)
    if (centre := float(mass[rungs == 0][0])) < 0:  # mix with the pair that tells nothing
        mass *= found.mass / (found.mass - centre)
    whole = np.zeros(len(values))
    whole[kept] = np.maximum(mass - rounding, 0.0)
    return Ladder(step, -zero, whole, 0.0)


def _sag(found: Excess) -> Floats:
    """How far both rungs must come down for their chord to lie below the curve."""
    rungs = np.arange(len(found.values)) - found.zero
    mass, rounding = _masses(found.values, rungs, found.step, found.mass)
    blur = 2 * found.error
    blur[1:] += found.error[:-1]
    blur[:-1] += found.error[1:]
    mass = np.maximum(mass, 0.0) + rounding + blur / -math.expm1(-found.step)
    # w q q' / (q + q') with q = mass / y, both sides divided by e^h.
    total = mass[:-1] + mass[1:] * math.exp(-found.step)
    share = np.divide(mass[1:], total, out=np.zeros_like(total), where=total > 0)
    between = -math.expm1(-found.step) * mass[:-1] * share
    sag = np.zeros(len(mass))
    sag[:-1] = between
    sag[1:] = np.maximum(sag[1:], between)
    return sag


def _grounded(values: Floats, zero: int, step: float) -> Rungs:
    """The rungs to keep of a lowered curve, which is set to 0 where it ends.

    A value that is not above 0 is no bound: the curve ends one rung earlier, so that its last chord
    stays below. The tangent from that end then touches the curve a little further in.
    """
    low = np.flatnonzero(values <= 0)
    left, right = low[low <= zero], low[low >= zero]
    start = int(left[-1]) + 1 if len(left) else 0
    stop = int(right[0]) - 1 if len(right) else len(values) - 1
    if start >= zero or stop <= zero:
        values[:] = 0.0
        return np.array([zero])
    values[: start + 1] = 0.0
    values[stop:] = 0.0
    with np.errstate(over="ignore"):
        inner = np.arange(zero, stop)
        last = zero + int(np.argmin(values[inner] / -np.expm1(step * (inner - stop))))
        inner = np.arange(start + 1, zero + 1)
        first = start + 1 + int(np.argmin(values[inner] / np.expm1(step * (inner - start))))
    kept = np.concatenate([[start], np.arange(first, last + 1), [stop]])
    return np.unique(np.append(kept, zero)).astype(np.int64)


def _masses(values: Floats, rungs: Rungs, step: float, mass: float) -> tuple[Floats, Floats]:
    """y times the change of slope at each rung, and how far off rounding may put it.

    The curve runs straight to E = 0 at y = 0, and level from the top.
    """
    gaps = step * np.diff(rungs)
    change = np.diff(values)
    masses, moved = np.zeros(len(values)), np.zeros(len(values))
    with np.errstate(over="ignore"):
        right = change / np.expm1(gaps)
    left = change / np.expm1(-gaps)
    masses[:-1] += right
    masses[1:] += left
    moved[:-1] += np.abs(right)
    moved[1:] += np.abs(left)
    masses[0] -= values[0]
    middle = np.searchsorted(rungs, 0)
    masses[middle] += mass
    moved[middle] += mass
    return masses, _ROUNDING * moved
