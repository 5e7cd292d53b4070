"""Smoking causes cancer: what a study teaches about Alice, with her record and without it.

Alice smokes, and everyone knows. A study of smokers finds that smoking causes cancer, so everyone
now thinks it likelier that Alice falls ill. That changes her premium, and no privacy tool can stop
it: the study says so whether or not Alice was in it. Differential privacy promises the rest. For
every prior, the belief after a study with her record and the belief after the same study without it
differ by a factor e^(2ε) at most.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt

import deniable as dp
from deniable import plots
from deniable.privacy import semantics

EPSILON = 0.1
RISKS = (Fraction(5, 100), Fraction(20, 100))  # if smoking is harmless, and if it causes cancer
OTHERS = 600  # smokers in the study beside Alice

Floats = npt.NDArray[np.float64]


@cache
def binomial(size: int, risk: float) -> Floats:
    """P(k of `size` are ill) for k = 0, ..., size."""
    return np.array(
        [math.comb(size, k) * risk**k * (1 - risk) ** (size - k) for k in range(size + 1)]
    )


def noisy_count(counts: Floats, released: int) -> float:
    """P(released) when P(count = k) = counts[k] and geometric noise is added."""
    q = math.exp(-EPSILON)
    distances = np.abs(released - np.arange(counts.size))
    return float(counts @ ((1 - q) / (1 + q) * q**distances))


def belief_that_alice_is_ill(released: int, *, her_record_is_used: bool) -> float:
    """P(Alice is ill | released count), from even odds that smoking causes cancer."""
    weights = {True: 0.0, False: 0.0}
    for risk in map(float, RISKS):
        others = binomial(OTHERS, risk)
        for ill, chance in ((True, risk), (False, 1 - risk)):
            seen = released - 1 if ill and her_record_is_used else released
            weights[ill] += chance / 2 * noisy_count(others, seen)
    return weights[True] / (weights[True] + weights[False])


def exact_channel(people: int) -> tuple[dp.Channel, dict[Hashable, Fraction]]:
    """A tiny study as its exact channel, and a prior in which the risk is common to all.

    A data set has a 1 for each person who is ill; None in the first place means that Alice is out.
    """
    data = list(product((0, 1), repeat=people))
    inputs = [*data, *((None, *rest) for rest in product((0, 1), repeat=people - 1))]
    counts = [sum(value or 0 for value in row) for row in inputs]
    law = dp.TruncatedGeometric(epsilon=EPSILON, sensitivity=1, lower=0, upper=people)
    by_count = law.channel(range(people + 1))
    channel = dp.Channel(
        tuple(inputs), by_count.outputs, tuple(by_count.rows[count] for count in counts)
    )
    prior: dict[Hashable, Fraction] = {
        row: sum(
            (risk ** sum(row) * (1 - risk) ** (people - sum(row)) / 2 for risk in RISKS),
            Fraction(0),
        )
        for row in data
    }
    return channel, prior


def main() -> None:
    """One study of six hundred smokers, then every data set of a tiny one."""
    before = float(sum(RISKS)) / 2
    made_up = np.random.default_rng(9)  # data, not noise
    others = int(made_up.binomial(OTHERS, float(RISKS[1])))
    study = dp.Geometric(epsilon=EPSILON, sensitivity=1)
    with_alice, without_alice = int(study.release(others + 1)), int(study.release(others))
    used = belief_that_alice_is_ill(with_alice, her_record_is_used=True)
    left_out = belief_that_alice_is_ill(without_alice, her_record_is_used=False)
    print(f"P(Alice is ill) before the study                     {before:.4f}")
    print(f"one noisy study with her record,    count {with_alice:>3}:       {used:.4f}")
    print(f"one noisy study without her record, count {without_alice:>3}:       {left_out:.4f}")
    print("The belief moves without her record too: the study is about smoking, not about her.\n")

    released = np.arange(0, 181)
    curves = {
        f"her record {'used' if there else 'left out'}": np.array(
            [belief_that_alice_is_ill(int(y), her_record_is_used=there) for y in released]
        )
        for there in (True, False)
    }
    ratios = np.divide(*curves.values())
    print(f"same count, with or without her: factors {ratios.min():.3f} to {ratios.max():.3f}")
    print(f"the promise, e^(2ε) at ε = {EPSILON}: {math.exp(2 * EPSILON):.3f}\n")

    channel, prior = exact_channel(people=6)
    factors = [
        float(pair.with_them / pair.without)
        for output in channel.outputs
        for pair in semantics.with_and_without(
            prior, channel, output, person=0, absent=None
        ).values()
    ]
    worst = max(max(factor, 1 / factor) for factor in factors)
    print(f"a study of 6, exactly: over all {len(factors)} data sets and outputs the two beliefs")
    print(f"differ by a factor {worst:.3f} at most, within {math.exp(2 * EPSILON):.3f}")
    print("A promise of no change at all would need equal rows: a study that says nothing.")

    picture = plots.lines(
        released,
        {**curves, "before the study": np.full(released.size, before)},
        title=f"What a study of smokers tells about Alice, ε = {EPSILON}",
        x_label=f"released number of ill smokers, of about {OTHERS}",
        y_label="belief that Alice is ill",
        path="smoking_study.png",
    )
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
