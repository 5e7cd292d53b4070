"""The minimum of a penalised logistic loss, certified on every data set.

F(w) = Σ ln(1 + exp(-z·w)) + Λ/2 |w|² + b·w, with rows |z| <= 1, times their signs. A guarantee that
rests on a point within γ/Λ of the minimum must have it for all rows, or neighbours could part where
one is solved and the other is not. |∇F| <= γ is enough. So floats come first, digits after them:

* Newton's method in doubles; its point is taken only if a bound on |∇F|, with all rounding of
  sums and products counted (Higham 2002, section 3.1), is γ or less;
* else Newton's method in decimals of more and more digits, with steps of length 1/(1 + λ). For
  |D³F[h,h,h]| <= |h| D²F[h,h] and D²F >= Λ, so F/4Λ is self-concordant, and such steps lower it
  by λ - ln(1 + λ) each until they converge quadratically, from any start (Nesterov & Nemirovskii
  1994, section 2.2): how many suffice is known. With n + |b| < 10¹⁰, |w| is (n + |b|)/Λ at most, so
  80 digits lose less than the certificate leaves, and so does rounding w to doubles.

Beyond such sizes the answer is zero, whatever the rows are: it fails closed.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from deniable.learning.rows import Floats
from deniable.privacy.exact import decimals

GRADIENT = 1e-5
"""γ: the solver comes within γ/Λ of the minimum."""

_FLOAT_STEPS = 60
_DIGITS = (40, 80, 160)
_FALL = 0.25 - math.log(1.25)  # of F/4Λ at least, in a step with λ > 1/4
_QUADRATIC = 12  # steps from λ <= 1/4 to the last of 160 digits
_UNIT = 2.0**-52
_BLOCK = 64  # rows that are summed in doubles, before sums are added exactly


def minimum(rows: Floats, tilt: Floats, penalty: float) -> Floats:
    """A point within GRADIENT/penalty of the minimum."""
    with np.errstate(all="ignore"):  # a warning would tell of rows
        weights = newton(rows, tilt, penalty)
    if slope_bound(rows, tilt, penalty, weights) <= GRADIENT:
        return weights
    for digits in _DIGITS:
        found = in_decimals(rows, tilt, penalty, start=weights, digits=digits)
        if found is not None:
            return found
    return np.zeros(rows.shape[1])


def newton(rows: Floats, tilt: Floats, penalty: float) -> Floats:
    """Newton's method with backtracking, in doubles, as far as it comes."""
    weights = np.zeros(rows.shape[1])
    for _ in range(_FLOAT_STEPS):
        value, slope, curve = derivatives(rows, tilt, penalty, weights)
        if float(np.linalg.norm(slope)) <= GRADIENT / 4:
            break
        try:
            step = np.linalg.solve(curve, slope)
        except np.linalg.LinAlgError:
            break
        size, down = 1.0, float(slope @ step)
        while size > 1e-10:
            tried = _value(rows, tilt, penalty, weights - size * step)
            if tried <= value - 0.25 * size * down + 1e-12 * abs(value):
                break
            size /= 2
        weights = weights - size * step
    return weights


def slope_bound(rows: Floats, tilt: Floats, penalty: float, weights: Floats) -> float:
    """An upper bound on |∇F(w)|, rounding included; infinite where it cannot be told."""
    count, width = rows.shape
    with np.errstate(all="ignore"):
        pull = -_wrong(rows @ weights)[:, None] * rows
        parts = np.add.reduceat(pull, range(0, count, _BLOCK)) if count else pull
        push = penalty * weights
        size = float(np.abs(weights).sum())
        if not (np.isfinite(parts).all() and math.isfinite(size)):
            return math.inf
        slope = [
            math.fsum([*column, push[at], tilt[at]]) for at, column in enumerate(parts.T.tolist())
        ]
        # Of one row: its product with w, an exponential, a quotient, and its place in a block.
        each = (width + 2) * size / 4 + 16 + _BLOCK
        lost = _UNIT * math.sqrt(width) * (count * each + 4 * float(np.abs(push).sum()))
        bound: float = math.hypot(*slope) * (1 + width * _UNIT) + lost
    return bound * (1 + 2.0**-40)


def _wrong(margin: Any) -> Any:
    return 1 / (1 + np.exp(np.clip(margin, -700, 700)))


def _value(rows: Floats, tilt: Floats, penalty: float, weights: Floats) -> float:
    losses = np.logaddexp(0, -(rows @ weights)).sum()
    return float(losses + penalty / 2 * weights @ weights + tilt @ weights)


def derivatives(
    rows: Floats, tilt: Floats, penalty: float, weights: Floats
) -> tuple[float, Floats, Floats]:
    """F, its slope and its curve, in doubles."""
    wrong = _wrong(rows @ weights)
    slope = -wrong @ rows + penalty * weights + tilt
    curve = (rows * (wrong * (1 - wrong))[:, None]).T @ rows + penalty * np.eye(len(weights))
    return _value(rows, tilt, penalty, weights), slope, curve


def in_decimals(
    rows: Floats, tilt: Floats, penalty: float, *, start: Floats, digits: int
) -> Floats | None:
    """The same in decimals, exact inputs and damped steps; None where digits do not suffice."""
    exact = np.vectorize(Decimal, otypes=[object])
    count, width = rows.shape
    with localcontext(decimals(digits)):
        signed = exact(rows) if count else np.empty((0, width), object)
        push, b = Decimal(penalty), exact(tilt)
        weights = exact(np.where(np.isfinite(start).all(), start, 0.0))
        for _ in range(_most_steps(count, tilt, penalty, start)):
            wrong = np.array([_decimal_wrong(m, digits) for m in signed @ weights], object)
            slope = -(wrong @ signed) + push * weights + b
            length = sum((each * each for each in slope), Decimal(0)).sqrt()
            if length <= Decimal(GRADIENT) / 4:
                return weights.astype(np.float64) if _holds(weights, rows, push, digits) else None
            curve = (signed * (wrong * (1 - wrong))[:, None]).T @ signed
            step = _solved(curve + push * np.eye(width, dtype=int).astype(object), slope)
            decrement = sum((s * t for s, t in zip(slope, step, strict=True)), Decimal(0))
            if decrement <= 0:
                return None
            weights = weights - step / (1 + (decrement / (4 * push)).sqrt())
    return None


def _most_steps(count: int, tilt: Floats, penalty: float, start: Floats) -> int:
    """How many damped steps suffice: F(w) - min F <= n(1 + |w|) + Λ|w|² + |b|²/Λ."""
    far, pull = (
        sum(Decimal(each) ** 2 for each in np.nan_to_num(v).tolist()) for v in (start, tilt)
    )
    above = count * (1 + far) + Decimal(penalty) * far + pull / Decimal(penalty)
    return int(above / (4 * Decimal(penalty)) / Decimal(_FALL)) + _QUADRATIC


def _holds(weights: Any, rows: Floats, penalty: Decimal, digits: int) -> bool:
    """Whether the digits, and rounding to doubles, lose less than is left of the certificate."""
    count, width = rows.shape
    size = sum((abs(each) for each in weights), Decimal(0))
    lost = count * (width + 2) * (size + 1) + penalty * size
    lost *= width * Decimal(10) ** (3 - digits)
    return bool(lost + Decimal(_UNIT) * size * penalty <= Decimal(GRADIENT) / 2)


def _decimal_wrong(margin: Decimal, digits: int) -> Decimal:
    """1/(1 + e^m); beyond what the digits tell, m counts as less."""
    most = Decimal(3 * digits)
    return 1 / (1 + min(max(margin, -most), most).exp())


def _solved(matrix: Any, right: Any) -> Any:
    """A x = b for a positive definite matrix of decimals, by elimination."""
    a, b = matrix.copy(), right.copy()
    for at in range(len(b)):
        for below in range(at + 1, len(b)):
            factor = a[below, at] / a[at, at]
            a[below] = a[below] - factor * a[at]
            b[below] = b[below] - factor * b[at]
    for at in reversed(range(len(b))):
        b[at] = (b[at] - sum(a[at, at + 1 :] * b[at + 1 :], Decimal(0))) / a[at, at]
    return b
