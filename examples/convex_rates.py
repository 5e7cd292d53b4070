"""How fast does private optimisation improve, with rows, dimensions and ε?

Linear losses <z, w> with |z| <= 1 on the unit ball. Three ways to a private minimiser: the
exponential mechanism (ε-DP), one noisy gradient, and the regularised exponential mechanism (both
(ε, 1e-6)-DP). The excess risk is that of the worst length of the mean of z, for each size of
problem anew; problems whose risk is above a quarter of the diameter are left out. Theory says
MDd/nε for the first and MD sqrt(d ln 1/δ)/nε for the others: slopes of -1 in n and ε, and of 1 or
1/2 in d. (All draws are in floats: an experiment, not a release.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable import plots
from deniable.learning.exponential import BallExponential
from deniable.learning.reals import normals
from deniable.privacy.accountants import gdp
from deniable.privacy.units import Relation

Values = npt.NDArray[Any]
Problem = Callable[[Any], tuple[int, int, float]]

DELTA, DRAWS = 1e-6, 40
LENGTHS = np.geomspace(0.5, 8, 4)  # of the mean, in units of the noise
MOVED = Relation.ADD_REMOVE.changed
ROWS = np.geomspace(1e4, 1e6, 5).astype(int)
DIMENSIONS = np.geomspace(4, 400, 5).astype(int)
EPSILONS = np.geomspace(0.02, 2, 5)


def exponential(mean: float, n: int, d: int, epsilon: float) -> float:
    """Excess risk of one draw from exp(-k Σ<z, w>)."""
    total = np.zeros(d)
    total[0] = n * mean
    drawn = BallExponential(epsilon, 1.0).draw(total)
    return mean * (1 + float(drawn[0]))


def noisy_gradient(mean: float, n: int, d: int, epsilon: float) -> float:
    """Excess risk of the minimiser of a noisy linear function."""
    slope = normals(d) * MOVED / (n * gdp.largest_mu(epsilon, DELTA))
    slope[0] += mean
    return mean * (1 - float(slope[0]) / float(np.linalg.norm(slope)))


def regularised(mean: float, n: int, d: int, epsilon: float) -> float:
    """Excess risk of exp(-a Σ<z, w> - Λ/2|w|²), a normal law, brought back to the ball."""
    curvature = 2.0 * d
    weight = gdp.largest_mu(epsilon, DELTA) * math.sqrt(curvature) / MOVED
    point = normals(d) / math.sqrt(curvature)
    point[0] -= weight * n * mean / curvature
    return mean * (1 + float(point[0]) / max(float(np.linalg.norm(point)), 1.0))


Risk = Callable[[float, int, int, float], float]
Unit = Callable[[int, int, float], float]

ROUTES: dict[str, tuple[Risk, Unit, float]] = {
    "exponential": (exponential, lambda n, d, e: 2 * d / (n * e), 1.0),
    "noisy gradient": (
        noisy_gradient,
        lambda n, d, e: math.sqrt(d) / n / gdp.largest_mu(e, DELTA),
        0.5,
    ),
    "regularised": (regularised, lambda n, d, e: math.sqrt(d) / n / gdp.largest_mu(e, DELTA), 0.5),
}


def worst(name: str, n: int, d: int, epsilon: float) -> float:
    """The mean excess risk at the worst length of the mean."""
    risk, unit, _ = ROUTES[name]
    lengths = [min(1.0, float(c) * unit(n, d, epsilon)) for c in LENGTHS]
    return max(float(np.mean([risk(m, n, d, epsilon) for _ in range(DRAWS)])) for m in lengths)


def slope(x: Values, y: Values) -> float:
    """The slope on a log-log plot."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def main() -> None:
    """Vary one quantity at a time, and fit."""
    sweeps: dict[str, tuple[Values, Problem, float | None]] = {
        "n": (ROWS, lambda v: (int(v), 10, 1.0), -1.0),
        "d": (DIMENSIONS, lambda v: (100_000, int(v), 1.0), None),
        "ε": (EPSILONS, lambda v: (100_000, 10, float(v)), -1.0),
    }
    for name, (_, _, in_d) in ROUTES.items():
        for letter, (values, problem, theory) in sweeps.items():
            risks = np.array([worst(name, *problem(v)) for v in values])
            kept = risks < 0.5
            found = slope(values[kept], risks[kept])
            wanted = in_d if theory is None else theory
            print(f"{name:>15} in {letter}: slope {found:+.2f}, theory {wanted:+.2f}")
    curves = {name: [worst(name, int(n), 10, 1.0) for n in ROWS] for name in ROUTES}
    picture = plots.lines(
        ROWS,
        curves,
        log_x=True,
        log_y=True,
        title="Excess risk of private minimisers, d = 10, ε = 1",
        x_label="rows",
        y_label="excess risk",
        path="convex_rates.png",
    )
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
