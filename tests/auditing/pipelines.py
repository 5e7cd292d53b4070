"""Random pipelines that are private as charged, and faults to plant into them."""

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import deniable as dp

GROUPS = ("a", "b", "rare")
Record = tuple[float | None, str]
Release = Callable[[Any, Any], Any]
Step = Callable[[list[Record], Release, str], Any]


def clean(value: float | None) -> int:
    """Whatever stands there, as a whole number from 0 to 10."""
    if value is None or math.isnan(value):
        return 0
    return int(min(max(value, 0), 10))


def total(data: list[Record]) -> int:
    return sum(clean(value) for value, _ in data)


def counts(data: list[Record]) -> list[int]:
    found = Counter(group for _, group in data)
    return [found[group] for group in GROUPS]


def raw(data: list[Record]) -> list[float]:
    return [v for v, _ in data if v is not None and math.isfinite(v)]


# One unit added or removed moves one count by one, a unit exchanged moves two: both are within
# the sensitivities stated below.
def laplace(data, release, relation):
    return release(dp.Laplace(epsilon=1, sensitivity=10, relation=relation), float(total(data)))


def laplace_vector(data, release, relation):
    mechanism = dp.Laplace(epsilon=1, sensitivity=2, relation=relation)
    return max(release(mechanism, np.array(counts(data), float)))


def geometric(data, release, relation):
    return release(dp.Geometric(epsilon=1, sensitivity=1, relation=relation), len(data))


def gaussian(data, release, relation):
    mechanism = dp.Gaussian(rho=0.5, sensitivity=2, relation=relation)
    return sum(release(mechanism, [total(data) / 10, float(len(data))]))


def discrete_gaussian(data, release, relation):
    mechanism = dp.DiscreteGaussian(sigma=3, sensitivity=2, relation=relation)
    return sum(release(mechanism, counts(data)))


def truncated(data, release, relation):
    mechanism = dp.TruncatedGeometric(
        epsilon=1, sensitivity=1, lower=0, upper=50, relation=relation
    )
    return release(mechanism, len(data))


def planar(data, release, relation):
    mechanism = dp.PlanarLaplace(epsilon=1, sensitivity=2, relation=relation)
    return release(mechanism, [total(data) / 10, float(len(data))])[0]


def metric(data, release, relation):
    line = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    mechanism = dp.MetricExponential(epsilon=1, points=[0, 1, 2], distances=line)
    return release(mechanism, total(data) % 3)


def response(data, release, relation):
    reports = dp.RandomizedResponse.two_coins()
    if relation == "replace":
        return sum(release(reports, [clean(value) > 5 for value, _ in data]))
    return int(release(reports, len(data) % 2 == 0))


def post_processed(data, release, relation):
    inner = dp.Laplace(epsilon=1, sensitivity=10, relation=relation)
    return release(dp.post_process(inner, lambda x: max(0.0, x)), total(data))


def histogram(data, release, relation):
    mechanism = dp.Histogram(epsilon=1, cells=GROUPS, relation=relation)
    return release(mechanism, dict(zip(GROUPS, counts(data), strict=True)))["a"]


def stability(data, release, relation):
    mechanism = dp.StabilityHistogram(epsilon=1, delta=0.01, relation=relation)
    return len(release(mechanism, Counter(group for _, group in data)))


def quantile(data, release, relation):
    mechanism = dp.Quantile(epsilon=1, share=0.5, bounds=(0, 10), relation=relation)
    return release(mechanism, [clean(value) for value, _ in data])


def choices(data, release, relation):
    best = [
        dp.Exponential(epsilon=1, sensitivity=1, relation=relation),
        dp.PermuteAndFlip(epsilon=1, sensitivity=1, relation=relation),
        dp.ReportNoisyMax(epsilon=1, sensitivity=1, relation=relation),
        dp.ReportNoisyMax(epsilon=1, sensitivity=1, noise="gumbel", relation=relation),
    ]
    chosen = [release(mechanism, dp.Scores(GROUPS, counts(data))) for mechanism in best]
    two = dp.TopK(dp.Exponential(epsilon=1, sensitivity=1, relation=relation), 2)
    return len(set(chosen + release(two, dp.Scores(GROUPS, counts(data)))))


def monotone_choice(data, release, relation):
    mechanism = dp.Exponential(
        epsilon=1, sensitivity=1, monotone=relation == "add_remove", relation=relation
    )
    return len(release(mechanism, dp.Scores(GROUPS, np.array(counts(data)))))


# Asked value by value, and so used bare even beside a gate.
def stream(data, release, relation):
    opened = dp.SparseVector(
        epsilon=1,
        threshold=5,
        sensitivity=1,
        positives=2,
        numeric=True,
        monotone=relation == "add_remove",
        relation=relation,
    ).open()
    answers = []
    for value in (*counts(data), len(data), *counts(data)):
        if opened.positives_left == 0:
            break
        answers.append(opened.ask(value))
    return sum(bool(answer) for answer in answers)


def propose(data, release, relation):
    mechanism = dp.ProposeTestRelease(epsilon=1, delta=0.01, bound=10, relation=relation)
    return release(mechanism, (total(data), min(len(data), 12))) or 0.0


def robust_median(data, release, relation):
    if relation != "replace":
        return 0
    values = [clean(value) for value, _ in data]
    median, scale = (
        dp.ProposeTestRelease(epsilon=1, delta=0.01, bound=3, function=each, bounds=(0, 10))
        for each in ("median", "scale")
    )
    return (release(median, values) or 0.0) + (release(scale, values) or 0.0)


def blocks(data, release, relation):
    mechanism = dp.SubsampleAggregate(
        epsilon=1,
        blocks=2,
        aggregate="mean",
        bounds=(0, 10),
        default=0,
        function=np.mean,
        relation=relation,
    )
    return release(mechanism, [clean(value) for value, _ in data])


def descent(data, release, relation):
    mechanism = dp.learning.ProjectedDescent(
        "absolute", guarantee=dp.PureDP(1), width=1, radius=1, size=5, steps=2, relation=relation
    )
    rows = [[value] for value, _ in data] or np.empty((0, 1))
    return release(mechanism, (rows, [1.0] * len(data)))


STEPS = (
    laplace,
    laplace_vector,
    geometric,
    gaussian,
    discrete_gaussian,
    truncated,
    planar,
    metric,
    response,
    post_processed,
    histogram,
    stability,
    quantile,
    choices,
    monotone_choice,
    stream,
    propose,
    robust_median,
)
RARE_STEPS = (blocks, descent)  # which are slow


def half_the_sensitivity(data, release, relation):
    return release(dp.Laplace(epsilon=1, sensitivity=5, relation=relation), float(total(data)))


def bounds_from_data(data, release, relation):
    low, high = min(raw(data)), max(raw(data))
    mechanism = dp.Laplace(epsilon=1, sensitivity=high - low + 1, relation=relation)
    return release(mechanism, sum(min(max(v, low), high) for v in raw(data)))


def mean_over_true_n(data, release, relation):
    # A unit exchanged leaves the number of rows, but not that of valid ones.
    usual = raw(data) if relation == "add_remove" else [v for v in raw(data) if v < 100]
    mechanism = dp.Laplace(epsilon=1, sensitivity=10 / max(1, len(usual)), relation=relation)
    return release(mechanism, total(data) / max(1, len(usual)))


def branch_on_exact_value(data, release, relation):
    if max(raw(data)) > 100:
        return release(dp.Geometric(epsilon=1, sensitivity=1, relation=relation), 0)
    return 0


def one_sided_exception(data, release, relation):
    if max(raw(data)) > 100:
        raise ValueError("too large")
    return 0


def price_from_data(data, release, relation):
    epsilon = 1 if counts(data)[2] else 2
    return release(dp.Geometric(epsilon=epsilon, sensitivity=1, relation=relation), 0)


def no_noise_on_empty_groups(data, release, relation):
    mechanism = dp.Geometric(epsilon=1, sensitivity=2, relation=relation)
    return [release(mechanism, count) if count else 0 for count in counts(data)]


def unclamped(data, release, relation):
    return release(dp.Laplace(epsilon=1, sensitivity=10, relation=relation), sum(raw(data)))


FAULTS = (
    half_the_sensitivity,
    bounds_from_data,
    mean_over_true_n,
    branch_on_exact_value,
    one_sided_exception,
    price_from_data,
    no_noise_on_empty_groups,
    unclamped,
)


def bare(mechanism: Any, value: Any) -> Any:
    return mechanism.release(value)


def gated(gate: dp.Gate) -> Release:
    def release(mechanism: Any, value: Any) -> Any:
        if mechanism.loss.relation != "add_remove":  # a gate holds one relation
            return mechanism.release(value)
        return gate.release(mechanism, lambda: value, purpose="a random pipeline").value

    return release


@dataclass(frozen=True)
class Pipeline:
    """Steps one after another; some are taken or not by what was released before."""

    steps: tuple[Step, ...]
    detours: tuple[Step, ...]
    relation: str

    def run(self, data: list[Record], release: Release) -> list[Any]:
        outputs = []
        for step, detour in zip(self.steps, self.detours, strict=True):
            outputs.append(step(data, release, self.relation))
            public = outputs[-1]
            if isinstance(public, int | float | np.number) and int(public) % 2:
                outputs.append(detour(data, release, self.relation))
        return outputs

    def with_fault(self, fault: Step, place: int) -> "Pipeline":
        steps = list(self.steps)
        steps[place % len(steps)] = fault
        return Pipeline(tuple(steps), self.detours, self.relation)


def random_pipeline(rng: random.Random) -> Pipeline:
    length = rng.randint(1, 4)

    def some() -> tuple[Step, ...]:
        every = STEPS + RARE_STEPS if rng.random() < 0.02 else STEPS
        return tuple(rng.choice(every) for _ in range(length))

    return Pipeline(some(), some(), rng.choice(["add_remove", "replace"]))


def random_pair(rng: random.Random, relation: str) -> tuple[list[Record], list[Record]]:
    """Two neighbours that differ in one nasty record."""
    usual = [rng.choice([0, 1, 3.5, 10, -4, 12, math.nan, None]) for _ in range(rng.randint(8, 15))]
    data: list[Record] = [(0.0, "a"), *((value, rng.choice("ab")) for value in usual)]
    nasty: Record = (10_000.0, "rare")
    if relation == "add_remove":
        return data, [*data, nasty]
    return data, [nasty, *data[1:]]
