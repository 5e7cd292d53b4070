"""A price for an auction that gives no bidder away.

A digital good is sold at one price to all who value it as much. The best price depends on single
bidders, and a cent too much may sell nothing: noise on the price would ruin it. The exponential
mechanism chooses among prices by their revenue instead. One bidder moves the revenue of a price by
that price at most, so by the highest bid that is allowed.
"""

from __future__ import annotations

import numpy as np

import deniable as dp
from deniable import plots

HIGHEST_BID = 10
PRICES = tuple(range(1, HIGHEST_BID + 1))
EPSILONS = (0.1, 1.0)
BETA = 0.05


def revenues(values: list[float]) -> list[int]:
    """What each candidate price would bring in."""
    return [price * sum(value >= price for value in values) for price in PRICES]


def main() -> None:
    """Price a good for a thousand made-up bidders, with little and with more ε."""
    made_up = np.random.default_rng(3)  # bidders, not noise
    values = made_up.gamma(6, 1, size=1_000).clip(0, HIGHEST_BID).round(2).tolist()
    earned = revenues(values)
    best = max(earned)
    print(f"best revenue {best} at price {PRICES[earned.index(best)]}\n")

    chances = {}
    for epsilon in EPSILONS:
        mechanism = dp.Exponential(epsilon=epsilon, sensitivity=HIGHEST_BID)
        probabilities = [float(p) for p in mechanism.probabilities(earned)]
        chances[f"ε = {epsilon}"] = probabilities
        expected = sum(p * r for p, r in zip(probabilities, earned, strict=True))
        bound = mechanism.utility_bound(candidates=len(PRICES), beta=BETA)
        missed = sum(p for p, r in zip(probabilities, earned, strict=True) if r < best - bound)
        price = mechanism.choose(PRICES, earned)
        print(f"ε = {epsilon}")
        print(f"  expected revenue  {expected:.0f}")
        print(f"  promise           at most {bound:.0f} below the best, but for {BETA:.0%}")
        print(f"  truly             below that with probability {missed:.2g}")
        print(f"  one noisy price   {price}, which earns {earned[PRICES.index(price)]}")
    print("\nA new bidder can only raise revenues: monotone=True would double the sharpness.")

    picture = plots.grouped_bars(
        [f"{price}\n({revenue})" for price, revenue in zip(PRICES, earned, strict=True)],
        chances,
        title="Which price is announced?",
        x_label="price (revenue)",
        y_label="probability",
        path="auction_price.png",
    )
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
