"""One histogram of k cells costs noise 1/ε; k separate counts cost noise k/ε.

A person is in one cell. Asked jointly, the k counts move by one altogether, and the noise does not
grow with k. Asked one by one, as if a person might be in all of them, each count gets ε/k.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import deniable as dp
from deniable import plots

EPSILON = Fraction(1)
MOST_CELLS = 50


def jointly(k: int) -> dp.Histogram:
    """All k counts at once."""
    return dp.Histogram(epsilon=EPSILON, cells=range(k))


def one_by_one(k: int) -> dp.Geometric:
    """One of k counts that share ε."""
    return dp.Geometric(epsilon=EPSILON / k, sensitivity=1)


def main() -> None:
    """Compare the errors for k = 1, ..., 50."""
    made_up = np.random.default_rng(1)  # data, not noise
    print("             95 % error of a count       worst error of one noisy run")
    print("   k        jointly     one by one        jointly     one by one")
    for k in (1, 2, 5, 10, 20, 50):
        counts = made_up.poisson(80, size=k)
        released = jointly(k).release(dict(enumerate(counts.tolist())))
        together = max(abs(released[cell] - int(counts[cell])) for cell in range(k))
        apart = int(np.abs(np.asarray(one_by_one(k).release(counts)) - counts).max())
        promised = (jointly(k).error(confidence=0.95), one_by_one(k).error(confidence=0.95))
        print(f"{k:>4} {promised[0]:>14} {promised[1]:>14} {together:>14} {apart:>14}")
    same = dp.repeat(one_by_one(MOST_CELLS).loss, MOST_CELLS).pure
    print(f"\nboth cost the same: ε = {jointly(MOST_CELLS).loss.pure} and ε = {same}, exactly")

    sizes = range(1, MOST_CELLS + 1)
    picture = plots.lines(
        list(sizes),
        {
            "k separate counts: noise k/ε": [one_by_one(k).error(confidence=0.95) for k in sizes],
            "one histogram: noise 1/ε": [jointly(k).error(confidence=0.95) for k in sizes],
        },
        title=f"Ask jointly what is disjoint, ε = {EPSILON} in all",
        x_label="cells k",
        y_label="95 % error of one count",
        path="jointly_beats_composed.png",
    )
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
