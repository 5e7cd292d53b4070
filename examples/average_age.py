"""The average age of a group, with and without a public minimum size.

The scale of the noise is public, so it must fit every data set it may meet. One record of a hundred
moves an average of ages in [0, 120] by 1.2 years at most. If a single record is possible, that
record is the average, and moves it by 120 years. Where the size itself is public, it is its own
minimum.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import deniable as dp
from deniable import plots
from deniable.privacy import sensitivity

BOUNDS = (0, 120)
EPSILON = 1
MINIMUM_SIZES = (1, 10, 100, 1_000)


def average(epsilon: float, at_least: int) -> dp.Laplace:
    """The mechanism for groups of at least this size, one record replaced."""
    moved = sensitivity.mean(BOUNDS, at_least=at_least, relation="replace")
    return dp.Laplace(epsilon=epsilon, sensitivity=moved.l1, relation="replace")


def main() -> None:
    """Release one average twice: knowing that there are a hundred records, and not knowing."""
    made_up = np.random.default_rng(7)  # data, not noise
    ages = made_up.normal(44, 18, size=250).round().astype(int).clip(*BOUNDS)
    truth = Fraction(int(ages.sum()), ages.size)  # exact, so that its sensitivity is
    print(f"the true average of {ages.size} ages: {float(truth):.2f}\n")
    print(f"{'at least':>8} {'sensitivity':>12} {'95 % error':>11} {'released':>10}")
    for at_least in (1, 100):
        mechanism = average(EPSILON, at_least)
        moved, error = float(mechanism.sensitivity), mechanism.error(confidence=0.95)
        released = float(mechanism.release(truth))
        print(f"{at_least:>8} {moved:>12g} {error:>11.2f} {released:>10.2f}")
    print("\nA public promise of 100 records makes the answer a hundred times better.")

    epsilons = np.round(np.geomspace(0.05, 5, 40), 4)
    curves = {
        f"at least {size:,}": [average(e, size).error(confidence=0.95) for e in epsilons.tolist()]
        for size in MINIMUM_SIZES
    }
    picture = plots.lines(
        epsilons,
        curves,
        log_y=True,
        title="Error of a private average age, by public minimum size",
        x_label="ε",
        y_label="95 % error, years",
        path="average_age.png",
    )
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
