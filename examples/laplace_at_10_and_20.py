"""Laplace noise around 10 and around 20: no output tells which, beyond a factor e^ε.

Two neighbouring data sets have the true answers 10 and 20, and the sensitivity is 10. Noise of
scale 10/ε makes every output possible from both, with densities whose ratio never exceeds e^ε.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

import deniable as dp
from deniable import plots

ANSWERS = (10, 20)
EPSILON = 1


def density(
    outputs: npt.NDArray[np.float64], answer: float, scale: float
) -> npt.NDArray[np.float64]:
    """The density of the answer plus Laplace noise."""
    centred: npt.NDArray[np.float64] = np.abs(outputs - answer)
    return np.exp(-centred / scale) / (2 * scale)


def main() -> None:
    """Compare the two densities, output by output."""
    here, there = ANSWERS
    mechanism = dp.Laplace(epsilon=EPSILON, sensitivity=there - here)
    scale = float(mechanism.scale)
    print(f"sensitivity {mechanism.sensitivity}, ε = {EPSILON}: Laplace noise of scale {scale:g}\n")

    print("output   density at 10   density at 20   privacy loss")
    for output in (0, 10, 12, 15, 18, 20, 30):
        at = np.array([float(output)])
        first, second = density(at, here, scale)[0], density(at, there, scale)[0]
        loss = mechanism.privacy_loss(output, here, there)
        print(f"{output:>6} {first:>15.5f} {second:>15.5f} {loss:>+14.3f}")

    worst = max(abs(mechanism.privacy_loss(y, here, there)) for y in range(-200, 231))
    print(f"\nthe largest |privacy loss| of any output from -200 to 230: {worst:g}")
    print(f"it never exceeds ε = {EPSILON}: {worst <= EPSILON}")
    drawn = mechanism.release(here)
    loss = mechanism.privacy_loss(drawn, here, there)
    print(f"one noisy answer to 10: {drawn:.3f}, with a privacy loss of {loss:+.3f}")

    outputs = np.linspace(-30, 60, 901)
    at_here, at_there = (density(outputs, answer, scale) for answer in ANSWERS)
    picture = plots.lines(
        outputs,
        {
            "true answer 10": at_here,
            "true answer 20": at_there,
            "ceiling: e^ε times the lower of the two": math.exp(EPSILON)
            * np.minimum(at_here, at_there),
        },
        title=f"Sensitivity 10, ε = {EPSILON}: neither density passes the ceiling",
        x_label="released value",
        y_label="density",
        path="laplace_at_10_and_20.png",
    )
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
