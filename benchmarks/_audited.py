"""Mechanisms as a stranger would write them: thirty-eight with a fault, twenty without.

Noise is exact but for the two faults that are about its source, so that what is to be found is the
fault that the name says. Beside each fault stand the probabilities of the best event that its
author knows, on the side where it is likelier and on the other.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import deniable as dp
from deniable.randomness.noise import GaussianLaw, LaplaceLaw, noise

ONE, TWO = dp.PureDP(1), dp.PureDP(2)
INTEGER, RATIONAL, FLOAT = "integer", "rational", "float"
_STEPS = {INTEGER: 1, RATIONAL: 21, FLOAT: 2**20}
_SIMULATED = 1_000_000

Draw = Callable[[], Any]
Pairs = list[tuple[Any, Any]]
Best = tuple[float, float]


@dataclass(frozen=True)
class Fault:
    """What is audited, and how likely the best event is on each side."""

    name: str
    kind: str
    scale: float
    call: Callable[[Any], Any]
    claim: Any
    pairs: Pairs
    best: Best


@dataclass(frozen=True)
class Correct:
    """What is audited and keeps its claim."""

    name: str
    call: Any
    claim: Any
    pairs: Pairs | None


def laplace(kind: str, scale: Fraction | float) -> Draw:
    """Exact noise: whole numbers, fractions of 21, or floats on a fine lattice."""
    steps = _STEPS[kind]
    return _of(kind, LaplaceLaw(Fraction(scale) * steps), steps)


def gaussian(kind: str, sigma: Fraction) -> Draw:
    """The same with normal tails."""
    steps = _STEPS[kind]
    return _of(kind, GaussianLaw((sigma * steps) ** 2), steps)


def _of(kind: str, law: Any, steps: int) -> Draw:
    one = noise(law).one
    if kind == INTEGER:
        return one
    if kind == RATIONAL:
        return lambda: Fraction(one(), steps)
    return lambda: one() / steps


def half_line(moves: float) -> Best:
    """At or above where Laplace noise is centred, with the other side so many scales below."""
    return 0.5, 0.5 * math.exp(-moves)


def normal(distance: float) -> Best:
    """Above the middle of two normal laws."""
    upper = 0.5 * math.erfc(-distance / 2 / math.sqrt(2))
    return upper, 1 - upper


# Faults


def too_small(kind: str, scale: int, start: int = 1000) -> Fault:
    """Noise a tenth too small."""
    draw = laplace(kind, Fraction(9 * scale, 10))
    pairs: Pairs = [(start, start + scale)]
    best = half_line(1 / 0.9)
    if scale == 1 and kind == INTEGER:
        tail = math.exp(-1 / 0.9)
        best = 1 / (1 + tail), tail / (1 + tail)
    return Fault("a tenth too small", kind, scale, lambda x: x + draw(), ONE, pairs, best)


def gaussian_too_small(kind: str, sigma: int) -> Fault:
    """The same, of normal noise, against its own curve."""
    draw = gaussian(kind, Fraction(9 * sigma, 10))
    pairs: Pairs = [(0, sigma)]
    name = "Gaussian, a tenth too small"
    return Fault(name, kind, sigma, lambda x: x + draw(), dp.GDP(1), pairs, normal(1 / 0.9))


def sensitivity_halved(kind: str, scale: int) -> Fault:
    """Bounds are (-1, 1), and a record moves the sum by two."""
    draw = laplace(kind, scale)
    pairs: Pairs = [(-scale, scale)]
    best = half_line(2)
    return Fault("sensitivity halved", kind, scale, lambda x: x + draw(), ONE, pairs, best)


def clamped_after() -> Fault:
    """Values are clamped when the noise is on, not before."""
    draw = laplace(FLOAT, 10)

    def total(values: Sequence[float]) -> float:
        return float(min(30.0, max(0.0, sum(values) + draw())))

    pairs: Pairs = [([5.0, 5.0], [5.0, 5.0, 500.0])]
    best = (1.0, 0.5 * math.exp(-2))
    return Fault("clamping after noise", FLOAT, 10, total, ONE, pairs, best)


def noise_reused(kind: str, scale: int) -> Fault:
    """One draw for two outputs."""
    draw = laplace(kind, scale)

    def count_and_sum(given: tuple[int, int]) -> tuple[Any, Any]:
        drawn = draw()
        return given[0] + drawn, given[1] + drawn

    pairs: Pairs = [((200, 1000), (200 + scale, 1000))]
    name = "noise reused between outputs"
    return Fault(name, kind, scale, count_and_sum, TWO, pairs, (1.0, 0.0))


def grid_of_data(kind: str) -> Fault:
    """Rounded to a grid that is taken from the data."""
    draw = laplace(kind, 100)

    def rounded(values: Sequence[int]) -> int:
        grid = 10 if max(values) > 50 else 5
        return grid * int(round((sum(min(v, 100) for v in values) + draw()) / grid))  # noqa: RUF046

    pairs: Pairs = [([10, 20], [10, 20, 60])]
    return Fault("data-dependent grid", kind, 100, rounded, ONE, pairs, (0.5, 0.0))


def order_of_keys() -> Fault:
    """Noisy counts, in the order of the true ones."""
    draw = laplace(INTEGER, 1)

    def counts(table: dict[str, int]) -> dict[str, int]:
        ranked = sorted(table, key=lambda key: -table[key])
        return {key: table[key] + draw() for key in ranked}

    pairs: Pairs = [({"a": 5, "b": 5}, {"a": 5, "b": 6})]
    return Fault("key order", INTEGER, 1, counts, ONE, pairs, (1.0, 0.0))


def seeded_by_clock() -> Fault:
    """The generator starts from the second in which the process calls it first."""
    kept: list[random.Random] = []

    def noisy(x: int) -> int:
        if not kept:
            kept.append(random.Random(int(time.time())))  # noqa: S311
        return x + int(kept[0].expovariate(1)) - int(kept[0].expovariate(1))

    return Fault("seed from the clock", INTEGER, 1, noisy, ONE, [(0, 1)], (1.0, 0.0))


def group_forgotten(kind: str, scale: int) -> Fault:
    """A person has three rows, and noise is for one."""
    draw = laplace(kind, scale)
    pairs: Pairs = [(0, 3 * scale)]
    best = half_line(3)
    return Fault("group privacy forgotten", kind, scale, lambda x: x + draw(), ONE, pairs, best)


def parts_overlap(kind: str, scale: int, parts: int) -> Fault:
    """A record is in all parts, which are charged as if in one."""
    draw = laplace(kind, scale)

    def totals(x: int) -> list[Any]:
        return [x + draw() for _ in range(parts)]

    pairs: Pairs = [(0, scale)]
    best = (0.5**parts, (0.5 * math.exp(-1)) ** parts)
    name = f"{parts} overlapping parts called parallel"
    return Fault(name, kind, scale, totals, ONE, pairs, best)


def stream_without_threshold_noise() -> Fault:
    """Sparse vector: noise on the values alone."""
    draw = laplace(FLOAT, 4)

    def answers(values: Sequence[float]) -> list[bool]:
        found = []
        for value in values:
            found.append(value + draw() >= 0)
            if found[-1]:
                break
        return found

    pairs: Pairs = [([0.0] * 12, [1.0] * 12)]
    best = (0.5**6, (0.5 * math.exp(-0.25)) ** 6)
    name = "sparse vector: no noise on the threshold"
    return Fault(name, "truth values", 4, answers, ONE, pairs, best)


def stream_without_value_noise() -> Fault:
    """Sparse vector: noise on the threshold alone."""
    draw = laplace(FLOAT, 2)

    def answers(values: Sequence[float]) -> list[bool]:
        level = draw()
        return [value >= level for value in values]

    pairs: Pairs = [([0.0] * 5 + [1.0] * 5, [1.0] * 5 + [0.0] * 5)]
    best = (0.5 * (1 - math.exp(-0.5)), 0.0)
    name = "sparse vector: no noise on the values"
    return Fault(name, "truth values", 2, answers, ONE, pairs, best)


def stream_without_end() -> Fault:
    """Sparse vector: it goes on after the first positive answer."""
    draw, level_draw = laplace(FLOAT, 4), laplace(FLOAT, 2)

    def answers(values: Sequence[float]) -> list[bool]:
        level = level_draw()
        return [value + draw() >= level for value in values]

    streams = [0.0] * 6 + [1.0] * 6, [1.0] * 6 + [0.0] * 6
    rng = np.random.default_rng(1)

    def chance(values: Sequence[float]) -> float:
        """Four more of the later ones above than of the earlier ones."""
        level = rng.laplace(scale=2, size=(_SIMULATED // 5, 1))
        above = rng.laplace(scale=4, size=(_SIMULATED // 5, 12)) + values >= level
        return float((above[:, 6:].sum(axis=1) - above[:, :6].sum(axis=1) >= 4).mean())

    best = chance(streams[0]), chance(streams[1])
    name = "sparse vector: no end after a positive answer"
    return Fault(name, "truth values", 4, answers, ONE, [streams], best)


def stream_of_values() -> Fault:
    """Sparse vector: every noisy value that is compared is shown."""
    draw = laplace(INTEGER, 40)
    rng = np.random.default_rng(4)
    drawn = rng.laplace(size=(_SIMULATED // 5, 8))

    def score(values: Any) -> Any:
        return (np.abs(values) - np.abs(values - 0.25)).sum(axis=1)

    best = float((score(drawn + 0.25) > 1.3).mean()), float((score(drawn) > 1.3).mean())
    name = "sparse vector: all values are shown"
    pairs: Pairs = [([0] * 8, [10] * 8)]
    return Fault(name, INTEGER, 40, lambda xs: [x + draw() for x in xs], ONE, pairs, best)


def stream_that_shows() -> Fault:
    """Sparse vector: the noisy value that came above the threshold is shown as well."""
    draw, level_draw = laplace(FLOAT, 4), laplace(FLOAT, 2)

    def answers(values: Sequence[float]) -> list[float | None]:
        level, found = level_draw(), list[float | None]()
        for value in values:
            noisy = value + draw()
            found.append(noisy if noisy >= level else None)
            if noisy >= level:
                break
        return found

    rng = np.random.default_rng(2)
    streams = [0.0] * 6 + [1.0], [1.0] * 6 + [0.0]

    def chance(values: Sequence[float]) -> float:
        """All but the last below, and the last shown below its centre."""
        level = rng.laplace(scale=2, size=_SIMULATED)
        noisy = rng.laplace(scale=4, size=(_SIMULATED, len(values))) + values
        below = (noisy[:, :-1] < level[:, None]).all(axis=1)
        return float((below & (noisy[:, -1] >= level) & (noisy[:, -1] < 0)).mean())

    best = chance(streams[0]), chance(streams[1])
    name = "sparse vector: the value is shown"
    return Fault(name, FLOAT, 4, answers, ONE, [streams], best)


def size_of_data() -> Fault:
    """The mean, with a scale of one over how many there are."""
    draw = laplace(FLOAT, 1)

    def mean(values: Sequence[float]) -> float:
        return float(sum(values) / len(values) + draw() / len(values))

    pairs: Pairs = [([0.0, 0.0], [0.0, 0.0, 1.0])]
    best = (0.5 * math.exp(-1), 0.5 * math.exp(-3 * (0.5 + 1 / 3)))
    return Fault("a scale that depends on the size", FLOAT, 1, mean, ONE, pairs, best)


def delta_misspent() -> Fault:
    """Keys stand above a threshold that is a scale or two too low."""
    draw = laplace(INTEGER, 2)

    def keys(counts: dict[str, int]) -> dict[str, int]:
        noisy = {key: count + draw() for key, count in counts.items()}
        return {key: count for key, count in noisy.items() if count >= 9}

    tail = math.exp(-0.5)
    best = (tail**8 / (1 + tail), 0.0)
    claim = dp.ApproxDP(0.5, 1e-3)
    return Fault("δ mis-spent", INTEGER, 2, keys, claim, [({}, {"a": 1})], best)


def leak_by_chance(kind: str) -> Fault:
    """Once in five hundred calls the plain value comes out."""
    draw = laplace(kind, 10)

    def noisy(x: float) -> float:
        return x if random.SystemRandom().random() < 0.002 else float(x + draw())

    pairs: Pairs = [(0.0, 1.0)]
    return Fault("a rare leak", kind, 10, noisy, ONE, pairs, (0.002, 0.0))


def truncated(kind: str, scale: int, reach: int) -> Fault:
    """Drawn again until the noise is no more than so many scales."""
    draw = laplace(kind, scale)

    def noisy(x: int) -> Any:
        while abs(drawn := draw()) > reach * scale:
            pass
        return x + drawn

    pairs: Pairs = [(100, 100 + scale)]
    beyond = 0.5 * (math.exp(1 - reach) - math.exp(-reach)) / (1 - math.exp(-reach))
    return Fault("truncated Laplace", kind, scale, noisy, ONE, pairs, (beyond, 0.0))


def factor_forgotten() -> Fault:
    """The exponential mechanism without the two under the fraction."""
    draw = random.SystemRandom()

    def choose(scores: dict[str, int]) -> str:
        weights = [math.exp(score) for score in scores.values()]
        return draw.choices(list(scores), weights)[0]

    pairs: Pairs = [({"a": 1, "b": 0, "c": 0, "d": 0}, {"a": 0, "b": 1, "c": 1, "d": 1})]
    best = (math.e / (math.e + 3), 1 / (1 + 3 * math.e))
    return Fault("a factor of two forgotten", "text", 1, choose, ONE, pairs, best)


def coin_of_two() -> Fault:
    """Ten answers, and the coin that is right for two."""
    draw = random.SystemRandom()

    def respond(truth: int) -> int:
        if draw.random() < math.e / (1 + math.e):
            return truth
        return draw.choice([other for other in range(10) if other != truth])

    best = (math.e / (1 + math.e), 1 / (1 + math.e) / 9)
    return Fault("a coin for two of ten answers", "answers", 1, respond, ONE, [(0, 1)], best)


def raises_for_missing() -> Fault:
    """A missing value is an error."""
    draw = laplace(INTEGER, 10)

    def total(values: Sequence[int | None]) -> int:
        if None in values:
            raise ValueError("missing value")
        return sum(v for v in values if v is not None) + int(draw())

    pairs: Pairs = [([1, 2], [1, 2, None])]
    return Fault("an error for a missing value", INTEGER, 10, total, ONE, pairs, (1.0, 0.0))


def over_true_count() -> Fault:
    """A noisy sum over the exact count."""
    draw = laplace(RATIONAL, 1)

    def mean(values: Sequence[int]) -> Fraction:
        return Fraction(sum(values) + draw()) / len(values)

    pairs: Pairs = [([0] * 4, [0] * 5)]
    best = (0.8, 0.0)  # the denominator is one that only five people make
    return Fault("a noisy sum over the exact count", RATIONAL, 1, mean, ONE, pairs, best)


def prints() -> Fault:
    """A line for debugging."""
    draw = laplace(INTEGER, 10)

    def count(values: Sequence[int]) -> int:
        print("rows:", len(values))
        return len(values) + int(draw())

    pairs: Pairs = [([1, 2], [1, 2, 3])]
    return Fault("a line for debugging", INTEGER, 10, count, ONE, pairs, (1.0, 0.0))


def noise_for_each_row() -> Fault:
    """As many numbers as rows."""
    draw = laplace(INTEGER, 10)
    pairs: Pairs = [([1, 2], [1, 2, 3])]
    return Fault(
        "as many numbers as rows",
        INTEGER,
        10,
        lambda values: [v + draw() for v in values],
        dp.PureDP(3),
        pairs,
        (1.0, 0.0),
    )


def one_sided(scale: int) -> Fault:
    """Noise that only adds."""
    draw = laplace(INTEGER, scale)
    pairs: Pairs = [(100, 100 + scale)]
    best = (1 - math.exp(-1), 0.0)
    name = "noise that only adds"
    return Fault(name, INTEGER, scale, lambda x: x + abs(draw()), ONE, pairs, best)


def replaced_as_added() -> Fault:
    """A histogram whose neighbours replace a record, priced as if they added one."""
    draw = laplace(INTEGER, 20)
    first = [50, 20, 100, 0, 0, 0]
    second = [30, 40, 100, 0, 0, 0]
    best = (0.25, 0.25 * math.exp(-2))
    return Fault(
        "replacing priced as adding",
        INTEGER,
        20,
        lambda bins: [count + draw() for count in bins],
        ONE,
        [(first, second)],
        best,
    )


def split_forgotten() -> Fault:
    """Six questions share a budget of one, and each takes a third."""
    draw = laplace(FLOAT, 3)
    rng = np.random.default_rng(3)
    drawn = rng.laplace(scale=3, size=(_SIMULATED // 5, 6))

    def score(values: Any) -> Any:
        return (np.abs(values) - np.abs(values - 1)).sum(axis=1) / 3

    best = float((score(drawn + 1) > 1.4).mean()), float((score(drawn) > 1.4).mean())
    return Fault(
        "a budget split too well",
        FLOAT,
        3,
        lambda x: [x + draw() for _ in range(6)],
        ONE,
        [(0.0, 1.0)],
        best,
    )


def float_noise(scale: float) -> Fault:
    """Noise of floats, whose low bits tell the value."""
    generator = random.SystemRandom()

    def noisy(x: float) -> float:
        return x + scale * (generator.expovariate(1) - generator.expovariate(1))

    return Fault("floating-point noise", FLOAT, scale, noisy, ONE, [(0.0, scale)], (0.4, 0.0))


def faults() -> list[Fault]:
    """All of them."""
    return [
        too_small(INTEGER, 1),
        too_small(INTEGER, 10),
        too_small(INTEGER, 10**6),
        too_small(RATIONAL, 1),
        too_small(FLOAT, 100),
        gaussian_too_small(INTEGER, 100),
        gaussian_too_small(FLOAT, 10**4),
        sensitivity_halved(INTEGER, 1000),
        sensitivity_halved(RATIONAL, 1),
        clamped_after(),
        noise_reused(INTEGER, 1),
        noise_reused(FLOAT, 10**6),
        grid_of_data(INTEGER),
        order_of_keys(),
        seeded_by_clock(),
        group_forgotten(INTEGER, 10**5),
        parts_overlap(FLOAT, 1, 2),
        parts_overlap(RATIONAL, 10, 4),
        stream_without_threshold_noise(),
        stream_without_value_noise(),
        stream_without_end(),
        stream_of_values(),
        stream_that_shows(),
        size_of_data(),
        delta_misspent(),
        leak_by_chance(FLOAT),
        truncated(INTEGER, 1, 4),
        truncated(FLOAT, 100, 5),
        factor_forgotten(),
        coin_of_two(),
        raises_for_missing(),
        over_true_count(),
        prints(),
        noise_for_each_row(),
        one_sided(10**3),
        replaced_as_added(),
        split_forgotten(),
        float_noise(1.0),
    ]


# What keeps its claim


def correct() -> list[Correct]:
    """Twenty of them."""
    exact = {
        "whole Laplace": (INTEGER, 10),
        "wide whole Laplace": (INTEGER, 10**6),
        "fractions": (RATIONAL, 1),
        "floats": (FLOAT, 100),
    }
    found = [
        Correct(name, _plus(laplace(kind, scale)), ONE, [(1000, 1000 + scale)])
        for name, (kind, scale) in exact.items()
    ]
    whole, wide = gaussian(INTEGER, Fraction(100)), gaussian(FLOAT, Fraction(1))
    found += [
        Correct("whole Gaussian", _plus(whole), dp.GDP(1), [(0, 100)]),
        Correct("Gaussian, zCDP", _plus(wide), dp.ZCDP(0.5), [(0, 1)]),
        Correct("clamped before noise", _clamped(laplace(FLOAT, 10)), ONE, [([5.0], [5.0, 500.0])]),
        Correct("two parts, ε split", _twice(laplace(INTEGER, 20)), ONE, [(0, 10)]),
        Correct("ten questions, ε split", _often(laplace(FLOAT, 10)), ONE, [(0.0, 1.0)]),
        Correct("keys in a fixed order", _sorted(laplace(INTEGER, 1)), ONE, [({"a": 1}, {"a": 2})]),
        Correct("a unit of three rows", _plus(laplace(INTEGER, 30)), ONE, [(0, 30)]),
        Correct("noise cut to a range", _cut(laplace(INTEGER, 10)), ONE, [(5, 15)]),
    ]
    release = dp.RandomizedResponse(epsilon=1).release
    known: list[tuple[str, Any, Any, Pairs | None]] = [
        ("randomised response", _through(release), ONE, [(True, False)]),
        ("geometric", dp.Geometric(epsilon=1, sensitivity=1), ONE, None),
        ("truncated geometric", _by_hand_truncated(), ONE, [(0, 1)]),
        ("sparse vector", dp.SparseVector(epsilon=1, threshold=0, sensitivity=1), ONE, None),
        ("exponential", dp.Exponential(epsilon=1, sensitivity=1), ONE, None),
        ("noisy max", dp.ReportNoisyMax(epsilon=1, sensitivity=1), ONE, None),
        ("histogram", dp.Histogram(epsilon=1, cells="ab"), ONE, None),
        ("Gaussian", dp.Gaussian(sigma=1, sensitivity=1), dp.GDP(1), None),
    ]
    return [*found, *(Correct(*each) for each in known)]


def _plus(draw: Draw) -> Callable[[Any], Any]:
    return lambda x: x + draw()


def _clamped(draw: Draw) -> Callable[[Any], Any]:
    return lambda values: sum(min(10.0, max(0.0, v)) for v in values) + draw()


def _twice(draw: Draw) -> Callable[[Any], Any]:
    return lambda x: (x + draw(), x + draw())


def _often(draw: Draw) -> Callable[[Any], Any]:
    return lambda x: [x + draw() for _ in range(10)]


def _sorted(draw: Draw) -> Callable[[Any], Any]:
    return lambda counts: {key: counts[key] + draw() for key in sorted(counts)}


def _cut(draw: Draw) -> Callable[[Any], Any]:
    return lambda x: min(40, max(0, x + draw()))


def _by_hand_truncated() -> Callable[[Any], Any]:
    draw = laplace(INTEGER, 1)
    return lambda x: min(3, max(0, x + draw()))


def _through(release: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """So that it is sampled and not read as a mechanism of this library."""
    return lambda x: (release(x), 0)
