"""Counts by ward come out well, a maximum does not: sensitivity decides, not the noise.

A patient moves one count by one. A patient may move the largest weight by the whole range of
weights, so its noise is as wide as anything that could be said about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np

import deniable as dp
from deniable import plots
from deniable.privacy import sensitivity

WARDS = ("surgery", "cardiology", "maternity", "geriatrics", "eye clinic")
WEIGHTS = (0, 300)  # kg, public bounds
EPSILON = 0.5


def released_counts(wards: list[str]) -> None:
    """Count diabetics by ward, and draw the counts with their intervals."""
    counts: Counter[Hashable] = Counter(wards)
    histogram = dp.Histogram(epsilon=EPSILON, cells=WARDS)
    released = histogram.release(counts)
    error = histogram.error(confidence=0.95)
    print(f"diabetics by ward, ε = {EPSILON} for all wards together, ±{error} at 95 %")
    for ward in WARDS:
        print(f"  {ward:<12} true {counts[ward]:>4}   released {released[ward]:>4}")
    picture = plots.grouped_bars(
        WARDS,
        {
            "true": [counts[ward] for ward in WARDS],
            "released, 95 % interval": [released[ward] for ward in WARDS],
        },
        half_widths={"released, 95 % interval": [error] * len(WARDS)},
        title=f"Diabetics by ward, ε = {EPSILON}",
        x_label="ward",
        y_label="patients",
        path="diabetic_counts_and_weight.png",
    )
    print(f"  picture: {picture}")


def released_maximum(weights: list[int]) -> None:
    """Release the largest weight: with plain noise, kept in its range, and by a better question."""
    low, high = WEIGHTS
    heaviest = max(weights)
    moved = sensitivity.maximum(WEIGHTS).l1
    plain = dp.Geometric(epsilon=EPSILON, sensitivity=moved)
    print(f"\nlargest weight, truly {heaviest} kg, sensitivity {moved} kg")
    error = plain.error(confidence=0.95)
    print(f"  Geometric           released {plain.release(heaviest):>6} kg, ±{error} at 95 %")

    inside = dp.TruncatedGeometric(epsilon=EPSILON, sensitivity=moved, lower=low, upper=high)
    law = inside.channel([heaviest])
    at_the_ends = float(law.probability(low, heaviest) + law.probability(high, heaviest))
    print(f"  TruncatedGeometric  released {inside.release(heaviest):>6} kg, always in range")
    print(f"                      but {low} or {high} kg with probability {at_the_ends:.2f}")

    most = dp.Quantile(epsilon=EPSILON, share=0.9, bounds=WEIGHTS)
    truth = float(np.quantile(weights, 0.9))
    print(f"  Quantile            90 % weigh less than {most.release(weights):.0f} kg", end="")
    print(f" (truly {truth:.0f}): the better question")


def main() -> None:
    """Make up a hospital and ask it both questions."""
    made_up = np.random.default_rng(11)  # data, not noise
    wards = made_up.choice(WARDS, size=400, p=[0.25, 0.3, 0.08, 0.32, 0.05]).tolist()
    weights = made_up.normal(82, 16, size=400).round().astype(int).clip(*WEIGHTS).tolist()
    released_counts(wards)
    released_maximum(weights)


if __name__ == "__main__":
    main()
