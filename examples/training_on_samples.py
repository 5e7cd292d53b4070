"""How much noise does private training need, and what would the wrong account say?

A model takes a thousand steps. Each sees every person with probability one in a hundred and adds
Gaussian noise to a sum of clipped gradients. The steps together must be (1, 1e-6)-DP.
"""

from __future__ import annotations

from fractions import Fraction

import deniable as dp

RATE, STEPS, DELTA = Fraction(1, 100), 1_000, 1e-6
TARGET = dp.ApproxDP(1, DELTA)


def training(sigma: Fraction, relation: str = "add_remove") -> dp.Loss:
    """The loss of all steps, for gradients clipped to length 1."""
    step = dp.losses.GaussianLoss(sigma=sigma, sensitivity=Fraction(1))
    return dp.repeat(dp.losses.poisson_sampled(step, rate=RATE, relation=relation), STEPS)


def main() -> None:
    """Calibrate, then read the same noise in other ways."""
    sigma = dp.losses.least_noise(training, TARGET)
    loss = training(sigma)
    low, high = loss.bounds(delta=DELTA)
    print(f"least noise for {TARGET}: σ = {float(sigma):.4f}")
    print(f"certified: {low:.5f} <= ε <= {high:.5f}")

    plain = dp.repeat(dp.losses.GaussianLoss(sigma=sigma, sensitivity=Fraction(1)), STEPS)
    swapped = training(sigma, "replace")
    print(f"ε if every step saw everybody       {plain.epsilon(delta=DELTA):8.3f}")
    print(f"ε if a person is replaced           {swapped.epsilon(delta=DELTA):8.3f}")
    print(f"an attacker's advantage             {loss.advantage:8.3f}")
    print(f"a suspicion of 1 in 2 errs at least {loss.bayes_risk(prior=0.5):8.3f} of the time")

    picture = dp.losses.plot_tradeoff(
        {"sampled": loss, "a person replaced": swapped, "no sampling": plain},
        "training_on_samples.png",
    )
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
