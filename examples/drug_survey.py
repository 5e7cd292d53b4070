"""A yes/no question nobody answers honestly: two coins make every answer deniable.

Each respondent tosses a coin. Heads: tell the truth. Tails: toss again, say YES on heads and NO on
tails. Whatever is said, the coins may have said it. Yet P(YES) = 1/4 + θ/2, so the share θ of those
who took the drug follows from the share of YES.
"""

from __future__ import annotations

import math

import numpy as np

import deniable as dp
from deniable import plots

TRUE_SHARE = 0.12
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)


def main() -> None:
    """Ask larger and larger groups, and see the interval close in on the truth."""
    coins = dp.RandomizedResponse.two_coins()
    channel = coins.channel()
    yes_if_no, yes_if_yes = channel.probability(True, False), channel.probability(True, True)
    print(f"P(YES) = {yes_if_no} + {yes_if_yes - yes_if_no}·θ")
    print(f"each answer is ε-DP with ε = {coins.loss.epsilon(delta=0):.4f} (ln 3)\n")

    people = np.random.default_rng(2024)  # made-up people, not noise
    p_yes = float(yes_if_no + (yes_if_yes - yes_if_no) * TRUE_SHARE)
    print(f"{'people':>8} {'s.e. (theory)':>14} {'s.e. (run)':>11} {'θ, 95 % interval':>26}")
    estimates, ends = [], []
    for size in SIZES:
        truth = people.random(size) < TRUE_SHARE
        survey = coins.estimate(coins.release(truth.tolist()))
        low, high = survey.interval(True, confidence=0.95)
        estimates.append(survey.share(True))
        ends.append((low, high))
        theory = 2 * math.sqrt(p_yes * (1 - p_yes) / size)
        shown = f"{survey.share(True):.3f} in [{low:.3f}, {high:.3f}]"
        print(f"{size:>8} {theory:>14.4f} {survey.standard_error(True):>11.4f} {shown:>26}")

    lows, highs = zip(*ends, strict=True)
    picture = plots.line_with_band(
        [f"{size:,}" for size in SIZES],
        estimates,
        (lows, highs),
        title=f"Who took the drug? Two coins, ε = ln 3; in truth {TRUE_SHARE:.0%}",
        y_label="estimated share θ, by people asked",
        path="drug_survey.png",
    )
    print(
        f"\nfor a standard error of one point in a hundred: ask {coins.sample_size(0.01):,} people"
    )
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
