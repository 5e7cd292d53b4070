"""The law of a sum of log ratios, each on a ladder, by the fast Fourier transform.

With X the sum, the finite part of δ(ε) is E (1 - e^(ε-X))+ . To keep its digits where δ is small,
masses are *tilted*: with K(θ) = ln E e^(θX), the law with masses p(x) e^(θx - K) has its centre
near ε when θ is the saddle point, and δ = e^(K-θε) times a sum of order one. Any tilt is sound.
Every answer carries, on the side that was asked for,

* **wrap-around**: the transform adds up all x that agree modulo n steps. What lies outside the
  window has tilted mass at most 2 e^-36 (Chernoff, by K itself), and is worth at most e^(K-θε) per
  unit of it, so δ moves by at most 2 e^(K-θε-36) either way;
* **rounding**: an input reaches an output of the transform through log2 n butterflies, each with a
  relative error of a few units in the last place, and masses sum to 1. So spectra are off by
  e = 8 u log2 n, their k-th power by k e (|φ| + e)^(k-1), and a mass of the sum by the mean of that
  over all frequencies, and e times the mean of |φ|^k for the way back;
* **tilting and adding**: 4u (ln 1/p + θ|x|) of δ for every release, and n u of each of two sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable.lazy import lazy
from deniable.privacy.accountants.ladder import Ladder, TooLongError
from deniable.privacy.accountants.law import ULP, Floats

_FAR = 36.0
_DEEP = 90.0  # spectra below e^-90 are left out
_STEEPEST = 6.0  # tilts change masses by at most e^6 from one rung to the next

Side = Literal[-1, 1]


@dataclass(frozen=True)
class Cumulants:
    """K, K' and K'' at one tilt."""

    log: float
    mean: float
    variance: float


@dataclass(frozen=True)
class Tower:
    """Ladders on one step, the i-th climbed `counts[i]` times."""

    ladders: tuple[Ladder, ...]
    counts: tuple[int, ...]
    most_points: int

    @property
    def step(self) -> float:
        return self.ladders[0].step

    @lazy
    def beyond(self) -> float:
        """The probability that some log ratio is infinite."""
        if any(ladder.beyond >= 1 for ladder in self.ladders):
            return 1.0
        pairs = zip(self.ladders, self.counts, strict=True)
        return -math.expm1(sum(k * math.log1p(-ladder.beyond) for ladder, k in pairs))

    @lazy
    def _logs(self) -> tuple[tuple[Floats, Floats], ...]:
        """ln of the masses, and where they lie."""
        with np.errstate(divide="ignore"):
            return tuple((np.log(each.mass), each.places()) for each in self.ladders)

    def tilted(self, tilt: float) -> tuple[list[Floats], Cumulants]:
        """Each ladder's masses p e^(θx), scaled to sum to 1, and the cumulants of the sum."""
        weights, log, mean, variance = [], 0.0, 0.0, 0.0
        for (log_mass, x), count in zip(self._logs, self.counts, strict=True):
            exponent = log_mass + tilt * x
            top = float(exponent.max())
            each = np.exp(exponent - top)
            total = float(each.sum())
            each /= total
            centre = float((each * x).sum())  # no BLAS, whose threads cost more than they save
            weights.append(each)
            log += count * (top + math.log(total))
            mean += count * centre
            variance += count * float((each * np.square(x - centre)).sum())
        return weights, Cumulants(log, mean, variance)

    def tilt_for_delta(self, log_inverse: float) -> tuple[float, float]:
        """The tilt whose bound on δ(ε) falls to a given δ first, and that ε.

        The bound is ln δ(ε) <= K - θε + θ ln(θ/(1+θ)) - ln(1+θ) (Canonne, Kamath & Steinke 2020,
        Prop. 12); its ε is least where θK' - K + ln(1+θ) = ln 1/δ.
        """
        start = self.tilted(0.0)[1]
        above = max(log_inverse + start.log, 1e-3)
        tilt = self._climb(
            math.sqrt(2 * above / max(start.variance, self.step**2)),
            lambda tilt, k: (
                tilt * k.mean - k.log - log_inverse + math.log1p(tilt),
                tilt * k.variance + 1 / (1 + tilt),
            ),
            lambda _: 0.3,
        )
        log = self.tilted(tilt)[1].log
        spare = math.log1p(tilt) + tilt * math.log1p(1 / tilt)
        return tilt, (log + log_inverse - spare) / tilt

    def tilt_for_epsilon(self, epsilon: float) -> tuple[float, float]:
        """The tilt with the least bound on δ(ε), and ln of that bound."""
        start = self.tilted(0.0)[1]
        spread = max(math.sqrt(start.variance), self.step)
        tilt = self._climb(
            max((epsilon - start.mean) / spread**2, 0.1 / (1 + spread)),
            lambda tilt, k: (
                k.mean - epsilon - math.log1p(1 / tilt),
                k.variance + 1 / (tilt * (1 + tilt)),
            ),
            lambda k: 0.2 * max(math.sqrt(k.variance), self.step),
        )
        log = self.tilted(tilt)[1].log - tilt * epsilon
        return tilt, log - math.log1p(tilt) - tilt * math.log1p(1 / tilt)

    def _climb(
        self,
        first: float,
        gap: Callable[[float, Cumulants], tuple[float, float]],
        tolerance: Callable[[Cumulants], float],
    ) -> float:
        """Newton's method for a gap that rises with the tilt, held inside what is known."""
        low, high = 0.0, _STEEPEST / self.step
        tilt = min(first, high)
        for _ in range(40):
            k = self.tilted(tilt)[1]
            value, slope = gap(tilt, k)
            if abs(value) <= tolerance(k) or (value < 0 and tilt == high):
                break
            low, high = (tilt, high) if value < 0 else (low, tilt)
            ahead = tilt - value / slope if slope > 0 else math.inf
            if low < ahead < high:
                tilt = ahead
            elif value < 0:
                tilt = min(high, 4 * tilt)
            else:
                tilt = math.sqrt(low * high) if low > 0 else high / 8
        return tilt

    def sums(self, tilt: float, centre: float, side: Side) -> WindowSums:
        """δ around `centre`, never too small (side 1) or never too large (side -1)."""
        weights, at = self.tilted(tilt)
        start, size = self._window(tilt, at)
        mass, off = self._convolve(weights, start, size)
        x = self.step * np.arange(start, start + size, dtype=np.float64)
        # Beyond these ends weights overflow, or count for less than e^-60.
        ends = (centre - 600 / (tilt + 1), centre + 60 / tilt if tilt > 0 else math.inf)
        inside = slice(*np.searchsorted(x, ends))
        mass, x = np.maximum(mass[inside] + side * off, 0.0), x[inside]
        # The answer may lie below all of the mass: a few empty rungs there.
        first_rung = min(float(x[0]), centre) if len(x) else centre
        lead = np.arange(160, -1, -1) * min(0.25 / max(tilt, 1e-3), 3 / (tilt + 1))
        empty = np.append(centre - lead, first_rung)
        empty = np.unique(empty[empty <= first_rung])
        x, mass = np.concatenate([empty, x]), np.concatenate([np.zeros(len(empty)), mass])
        ahead = x - centre
        weight = np.exp(-tilt * ahead)
        first = _after(mass * weight)
        second = _after(mass * weight * np.exp(-ahead))
        lost = 2 * math.exp(-_FAR) * weight + math.exp(-60)
        first = first * (1 + side * size * ULP) + side * lost
        share = max(0.0, 1 + side * (self._rounding(tilt) + 1e-14))
        return WindowSums(
            x,
            centre,
            at.log - tilt * centre,
            share * first,
            share * second * (1 - side * size * ULP),
            side,
        )

    def _rounding(self, tilt: float) -> float:
        """What rounding may have done to the tilted masses, all releases together."""
        return sum(
            4 * ULP * count * (750 + tilt * max(abs(float(x[0])), abs(float(x[-1]))))
            for (_, x), count in zip(self._logs, self.counts, strict=True)
        )

    def _window(self, tilt: float, at: Cumulants) -> tuple[int, int]:
        """First rung and number of rungs that hold all but 2 e^-36 of the tilted sum."""
        spread = max(math.sqrt(at.variance), self.step)

        def end(move: float) -> float:
            """Chernoff: e^(K(θ+t) - K(θ) - t end) = e^-36."""
            return (self.tilted(tilt + move)[1].log - at.log + _FAR) / move

        def nearest(sign: float) -> float:
            """The best of a few moves, large ones first: heavy tails ask for small ones."""
            best = math.inf
            for factor in (8.5, 6.0, 4.0, 2.8, 2.0, 1.4, 1.0, 0.7, 0.5, 0.3):
                found = sign * end(sign * factor / spread)
                if found > best:
                    break
                best = found
            return sign * best

        high, low = nearest(1.0), nearest(-1.0)
        start = math.floor(low / self.step) - 1
        points = math.ceil(high / self.step) + 2 - start
        if not 0 < points <= self.most_points:
            raise TooLongError(points / self.most_points if points > 0 else math.inf)
        return start, _good_size(points)

    def _convolve(self, weights: list[Floats], start: int, size: int) -> tuple[Floats, float]:
        """Masses of the tilted sum on the window, and how far each may be off."""
        e = 8 * ULP * math.log2(size)
        half = size // 2 + 1
        total, exact, phase = np.zeros(half), np.zeros(half), np.zeros(half)
        least, moved = np.zeros(half), 0
        for each, ladder, count in zip(weights, self.ladders, self.counts, strict=True):
            # Turned so that the mean lies near 0 and phases stay small.
            middle = round(float((each * np.arange(len(each))).sum()))
            moved += count * (ladder.first + middle)
            spectrum = np.fft.rfft(_folded(each, middle, size))
            length = np.abs(spectrum)
            log = np.log(length + e)
            total += count * log
            exact += count * np.log(np.maximum(length, 1e-300))
            phase += count * np.angle(spectrum)
            np.minimum(least, log, out=least)
        kept = np.flatnonzero(total > -_DEEP)
        product = np.zeros(half, dtype=np.complex128)
        product[kept] = np.exp(exact[kept] + 1j * phase[kept])
        mass = np.roll(np.fft.irfft(product, size), (moved - start) % size)
        # Σ k e Π |φ|^k / |φ_i|, the divisor being at least the least of all.
        rest = sum(self.counts) * float(np.exp(np.minimum(total - least, 0.0)).sum())
        off = (2 / size) * e * (rest + float(np.abs(product).sum())) * 1.01 + math.exp(-_DEEP)
        return mass, off


@dataclass(frozen=True)
class WindowSums:
    """The finite part of δ over a window: first - e^(ε - centre) * second, in units of e^scale.

    Both hold for ε from a rung of `x` up to the next, and err to `side`.
    """

    x: Floats
    centre: float
    scale: float
    first: Floats
    second: Floats
    side: Side

    def delta(self, epsilon: float) -> float:
        """The finite part of δ."""
        at = int(np.searchsorted(self.x, epsilon, side="right")) - 1
        if at < 0:
            return 1.0 if self.side == 1 else self.delta(float(self.x[0]))
        ahead = epsilon - self.centre
        if ahead > 700 and self.side == -1:
            return 0.0
        inner = float(self.first[at]) - math.exp(min(ahead, 700.0)) * float(self.second[at])
        return min(1.0, math.exp(min(self.scale, 700.0)) * max(inner, 0.0))

    def epsilon(self, delta: float) -> float:
        """The least ε whose finite part of δ is at most `delta`."""
        wanted = math.exp(math.log(delta) - self.scale)
        too_large = self.values() > wanted
        if self.side == 1:  # δ is small enough at this rung, and so at all later ones
            if too_large.all():
                return math.inf
            at = int(np.argmin(too_large))
        else:  # δ is too large at the rung before this one, and so at all earlier ones
            at = len(too_large) - int(np.argmax(too_large[::-1])) if too_large.any() else 0
            if at == len(too_large):
                return float(self.x[-1])
        if at == 0:
            return float(self.x[0]) if self.side == 1 else 0.0
        # Just below this rung δ is still larger: the line between the two rungs crosses here.
        left, right = float(self.x[at - 1]), float(self.x[at])
        slope = float(self.second[at - 1])
        ratio = (float(self.first[at - 1]) - wanted) / slope if slope > 0 else math.inf
        crossing = self.centre + math.log(ratio) if 0 < ratio < math.inf else right
        return min(max(crossing, left), right)

    def values(self) -> Floats:
        """At every rung, in units of e^scale."""
        ahead = self.x - self.centre
        near = self.first - np.exp(np.minimum(ahead, 700.0)) * self.second
        if self.side == 1:
            return near
        return np.where(ahead > 700, 0.0, near)


def _folded(masses: Floats, middle: int, size: int) -> Floats:
    """Masses by their place modulo `size`, counted from `middle`."""
    lead = -middle % size
    padded = np.zeros(-(-(lead + len(masses)) // size) * size)
    padded[lead : lead + len(masses)] = masses
    folded: Floats = padded.reshape(-1, size).sum(axis=0)
    return folded


def _after(values: Floats) -> Floats:
    """At each place the sum of all later values."""
    sums = np.cumsum(values[::-1])[::-1]
    return np.append(sums[1:], 0.0)


def _good_size(points: int) -> int:
    """The least f * 2^a that is enough, f one of a few small numbers."""
    return min(f << max(0, (-(-points // f) - 1).bit_length()) for f in (1, 3, 5, 7, 9, 15))
