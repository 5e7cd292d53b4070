"""Worst pairs of releases from a Poisson sample; `losses.sampled` has the proofs."""

from __future__ import annotations

import math

import numpy as np

from deniable.privacy.accountants.law import (
    ULP,
    Atoms,
    Curve,
    DominatingPair,
    Floats,
    Reading,
    Rest,
    mirrored,
)

_LARGE = 600.0  # exponents from which sums are taken in logarithms
_SMALL = 0.02  # exponents up to which differences are taken as series
_LEAST = 1e-305


def sampled_law(law: DominatingPair, q: float, rest: float) -> DominatingPair:
    """((1-q)Q + qP, Q) for a symmetric pair (P, Q) without a certain part; `rest` is 1 - q."""
    listed, smooth = law.atoms, law.rest

    def atoms(tail: float) -> Atoms:
        base = listed(tail) if listed is not None else mirrored(np.zeros(0), np.zeros(0))
        mass = rest * base.other + q * base.mass
        return Atoms(_mixed(base.x, q, rest), mass, base.other, base.above, base.below)

    grain = None
    if smooth is not None and law.grain is not None:
        grain = float(_mixed(np.array(law.grain), q, rest))
    return DominatingPair(
        None if listed is None else atoms,
        None
        if smooth is None
        else Rest(_away(smooth.forward, q, rest), _added(smooth.forward, q, rest), smooth.mass),
        grain=grain,
        symmetric=False,
    )


def _mixed(x: Floats, q: float, rest: float) -> Floats:
    """ln(1 - q + q e^x), by what does not cancel."""
    near = np.log1p(q * np.expm1(np.clip(x, -1.0, 1.0)))
    low = np.log(rest + q * np.exp(np.minimum(x, 0.0)))
    large = np.maximum(x, 1.0)
    high = large + np.log(q + rest * np.exp(-large))
    return np.where(x > 1, high, np.where(x < -1, low, near))


def unmixed(epsilon: Floats, q: float, rest: float) -> Floats:
    """ln(1 + (e^ε - 1)/q), the inverse, right to 8 ulps."""
    small = np.log1p(np.expm1(np.minimum(epsilon, 1.0)) / q)
    large = np.maximum(epsilon, 1.0)
    far = large - math.log(q) + np.log1p(-rest * np.exp(-large))
    return np.where(epsilon < 1, small, far)


def _away(base: Curve, q: float, rest: float) -> Curve:
    """q H(1 + (y-1)/q)."""

    def curve(epsilon: Floats) -> Reading:
        values, error = base(unmixed(epsilon, q, rest))
        return Reading(q * values, q * (error + 4 * ULP * values))

    return curve


def _added(base: Curve, q: float, rest: float) -> Curve:
    """w H(qy/w), w = 1 - (1-q)y, where w is positive.

    Near the end w is a small difference. It is moved by what it may be off, both ways.
    """

    def moved(epsilon: Floats, ulps: float) -> tuple[Floats, Floats]:
        rise = np.expm1(np.minimum(epsilon, 700.0))
        w = q - rest * rise + ulps * ULP * (q + rise)
        inside = w > 0
        values, error = np.zeros(len(epsilon)), np.zeros(len(epsilon))
        found = base(np.log1p(rise[inside] / w[inside]))
        values[inside], error[inside] = w[inside] * found.values, w[inside] * found.error
        return values, error

    def curve(epsilon: Floats) -> Reading:
        high, error = moved(epsilon, 4)
        low, _ = moved(epsilon, -4)
        return Reading((high + low) / 2, (high - low) / 2 + error + 4 * ULP * high)

    return curve


def replaced_gaussian_law(mu: float, q: float, rest: float) -> DominatingPair:
    """(1-q)N(0) + qN(μ) against (1-q)N(0) + qN(-μ).

    The best half-line starts where q A = a + b e^(-μ²)/A, A = N(μ)/N(0) there. A start that is a
    little off changes the value in second order only.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415  (slow to import, and seldom needed)

    def curve(epsilon: Floats) -> Reading:
        epsilon = np.minimum(epsilon, 1e8)  # by then nothing is left
        log_b = epsilon + math.log(q)
        with np.errstate(divide="ignore"):
            log_a = epsilon + np.log(-np.expm1(-epsilon)) + math.log(rest)
            # ln A + μ²/2 = ε/2 + asinh(a e^((μ²-ε)/2) / 2q), where nothing cancels.
            inside = log_a - epsilon / 2 + mu * mu / 2 - math.log(2 * q)
        inner = np.where(inside < 300, np.arcsinh(np.exp(np.minimum(inside, 300.0))), inside)
        start = (epsilon / 2 + inner + np.where(inside < 300, 0.0, math.log(2))) / mu
        logs = [log_ndtr(mu - start), log_a + log_ndtr(-start), log_b + log_ndtr(-start - mu)]
        terms = np.exp(np.array([logs[0] + math.log(q), *logs[1:]]))
        ulps = 8 + 4 * epsilon - 2 * math.log(q) + 2 * (np.abs(start) + mu) ** 2
        error = ULP * ulps * terms.sum(axis=0) + 1e-305
        return Reading(np.maximum(terms[0] - terms[1] - terms[2], 0.0), error)

    return DominatingPair(rest=Rest(curve, curve))


def replaced_laplace_law(pure: float, top: float, q: float, rest: float) -> DominatingPair:
    """The same for Laplace noise moved by `pure` scales: (q/2)(1 - e^-g)² between two atoms.

    A half-line from t has g = pure - t, and e^(2t - pure) q = (y-1)(1-q) + y q e^-pure. The atoms
    lie at the largest log ratio, `top`, and its mirror image.
    """

    def curve(epsilon: Floats) -> Reading:
        with np.errstate(divide="ignore"):
            log_a = epsilon + np.log(-np.expm1(-epsilon)) + math.log(rest)
        start = np.logaddexp(log_a, epsilon + math.log(q) - pure) - math.log(q)
        share = -np.expm1(-np.maximum(pure - start, 0.0) / 2)
        ulps = 16 * share + 16 * (pure + epsilon) - 8 * math.log(q)
        return Reading(q * share**2 / 2, q * share * ULP * ulps)

    shrink = math.exp(-pure)
    mass = np.array([rest * shrink + q * shrink * shrink, rest * shrink + q]) / 2
    between = -rest * math.expm1(-pure) - q * math.expm1(-2 * pure) / 2
    ends = mirrored(np.array([-top, top]), mass)
    return DominatingPair(lambda _: ends, Rest(curve, curve, between), grain=top)


def gaussian_divergence(mu: float, q: float, rest: float, order: float, *, replaced: bool) -> float:
    """The Rényi divergence of the sampled Gaussian pair, the larger of both ways.

    The trapezoidal rule over the line: the integrand is analytic and falls like a Gaussian, so that
    steps of a twentieth leave nothing to see.
    """

    def mixed(sign: float) -> Floats:
        moved = sign * mu * x - mu * mu / 2
        near = np.log1p(q * np.expm1(np.clip(moved, -1.0, 1.0)))
        far = np.logaddexp(math.log(rest), math.log(q) + moved)
        return np.where(np.abs(moved) < 1, near, far)

    reach = 14 + 2 * order * mu
    x = np.arange(-reach, reach, min(0.05, 0.05 / mu))
    density = -x * x / 2 - 0.5 * math.log(2 * math.pi) + math.log(x[1] - x[0])
    one, other = mixed(1.0), (mixed(-1.0) if replaced else np.zeros(len(x)))
    return max(
        _divergence(density + q_law, p - q_law, order) for p, q_law in ((one, other), (other, one))
    )


def _divergence(log_weight: Floats, ratio: Floats, order: float) -> float:
    """From E_Q (e^(αr) - 1 - α(e^r - 1)), whose terms are positive and do not cancel."""
    if order * float(np.abs(ratio).max()) > _LARGE:
        exponent = log_weight + order * ratio
        top = float(exponent.max())
        return (top + math.log(float(np.exp(exponent - top).sum()))) / (order - 1)
    weight = np.exp(log_weight)
    if order == 1:
        direct = ratio * np.exp(ratio) - np.expm1(ratio)
        series = sum((k - 1) * ratio**k / math.factorial(k) for k in range(2, 9))
        inside = np.where(np.abs(ratio) < _SMALL, series, direct)
        return float((weight * inside).sum()) + _LEAST
    direct = np.expm1(order * ratio) - order * np.expm1(ratio)
    series = sum((order**k - order) * ratio**k / math.factorial(k) for k in range(2, 9))
    inside = np.where(np.abs(order * ratio) < _SMALL, series, direct)
    return math.log1p(float((weight * inside).sum())) / (order - 1) + _LEAST
