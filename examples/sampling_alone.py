"""Publishing a random sample is not private, however small the sample.

Whoever is drawn is shown as they are. No ε describes that: the shown record is possible from one
data set and impossible from its neighbour. A δ does, and shows what δ is worth: a mechanism that
publishes each record with probability δ passes (0, δ)-DP and exposes n·δ people.
"""

from __future__ import annotations

import numpy as np

import deniable as dp
from deniable import plots
from deniable.privacy import semantics

VALUES = ("healthy", "ill")
RATE = 0.1
DELTA = 0.01
PRIOR = 0.02  # of being ill
PEOPLE = 10_000


def people_exposed(chance: float) -> int:
    """How many of the people are shown when each is drawn with this probability."""
    coin = dp.RandomizedResponse(truth=1 - chance)  # says True of a False with this chance
    return sum(coin.release([False] * PEOPLE))


def main() -> None:
    """Look at a sample of three, then at name-and-shame, then at coins that do protect."""
    sample = semantics.sampling_channel(VALUES, people=3, rate=RATE)
    print(f"a {RATE:.0%} sample of three records: ε = {sample.epsilon()}")
    shown = (None, "ill", None)
    ill, not_ill = ("healthy", "ill", "healthy"), ("healthy", "healthy", "healthy")
    print(f"P(shows {shown}) = {float(sample.probability(shown, ill)):.3f} if Bob is ill,", end="")
    print(f" {float(sample.probability(shown, not_ill)):.3f} if he is not")
    after = semantics.posterior({ill: PRIOR, not_ill: 1 - PRIOR}, sample, shown)[ill]
    print(f"belief that Bob is ill: {PRIOR} before, {float(after)} after\n")

    shame = semantics.name_and_shame(VALUES, people=1, delta=DELTA)
    belief = semantics.strong_adversary(
        {("ill",): PRIOR, ("healthy",): 1 - PRIOR}, shame, ("ill",), ("ill",)
    )
    print(f"name and shame: (0, {shame.delta(0):g})-DP for each person, and ε = {shame.epsilon()}")
    promised = semantics.posterior_bounds(PRIOR, epsilon=0.0)
    print(f"belief after being named: {float(belief.posterior)}, where ε = 0 would", end="")
    print(f" promise {promised.low:g} to {promised.high:g}")
    print(f"expected exposed of {PEOPLE:,}: {PEOPLE * DELTA:g}; in one run:", end="")
    print(f" {people_exposed(DELTA)}. Keep δ far below 1/n.\n")

    coins = dp.RandomizedResponse.two_coins()
    bounds = semantics.posterior_bounds(PRIOR, coins.loss.epsilon(delta=0))
    print(f"two coins, ε = ln 3: belief from {PRIOR} to {bounds.low:.4f}...{bounds.high:.4f}")

    one_record = semantics.sampling_channel(VALUES, people=1, rate=RATE)
    epsilons = np.round(np.linspace(0, 2, 81), 4)
    channels = {
        f"{RATE:.0%} sample": one_record,
        f"name and shame, {DELTA:.0%}": shame,
        "two coins": coins.channel(),
    }
    picture = plots.lines(
        epsilons,
        {name: [c.delta(e) for e in epsilons.tolist()] for name, c in channels.items()},
        title="A sample needs its δ at every ε; coins need none from ln 3 on",
        x_label="ε",
        y_label="least δ for (ε, δ)-DP",
        path="sampling_alone.png",
    )
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
