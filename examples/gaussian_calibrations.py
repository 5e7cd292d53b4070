"""Three ways from (ε, δ) to a Gaussian: lecture, classical and analytic.

The first two are formulas, proved for ε up to 1. The analytic way solves for the least σ, and holds
for every ε. The mechanism's own loss says how much of ε the formulas leave unused.
"""

from __future__ import annotations

import math

import numpy as np

import deniable as dp
from deniable import plots

DELTA = 1e-6
FORMULAS = {
    "lecture": "sqrt(2 ln(2/δ))/ε",
    "classical": "sqrt(2 ln(1.25/δ))/ε",
    "analytic": "the least σ",
}


def calibrated(epsilon: float, way: str) -> dp.Gaussian:
    """Gaussian noise for sensitivity 1, calibrated in this way."""
    return dp.Gaussian(epsilon=epsilon, delta=DELTA, sensitivity=1, calibration=way)


def sigma(epsilon: float, way: str) -> float:
    """The standard deviation, or NaN where the formula is not proved."""
    if epsilon > 1 and way != "analytic":
        return math.nan
    return float(calibrated(epsilon, way).sigma)


def main() -> None:
    """Compare σ at ε = 1, then over a range of ε."""
    print(f"ε = 1, δ = {DELTA:g}, sensitivity 1\n")
    print(f"{'way':<10} {'formula':<22} {'σ':>7} {'ε it needs':>11} {'one noisy 100':>14}")
    for way, formula in FORMULAS.items():
        mechanism = calibrated(1, way)
        needed = mechanism.loss.epsilon(delta=DELTA)
        released = float(mechanism.release(100))
        print(f"{way:<10} {formula:<22} {float(mechanism.sigma):>7.4f} {needed:>11.4f}", end="")
        print(f" {released:>14.3f}")

    epsilons = np.round(np.linspace(0.2, 3, 57), 4)
    picture = plots.lines(
        epsilons,
        {
            f"{way}: {formula}": [sigma(epsilon, way) for epsilon in epsilons.tolist()]
            for way, formula in FORMULAS.items()
        },
        title=f"Gaussian noise for sensitivity 1, δ = {DELTA:g}; formulas end at ε = 1",
        x_label="ε",
        y_label="σ",
        path="gaussian_calibrations.png",
    )
    print(f"\npicture: {picture}")


if __name__ == "__main__":
    main()
