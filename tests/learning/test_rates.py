"""The experiment on linear losses over a ball: slopes as theory has them, ranges stated there."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "convex_rates.py"


@pytest.fixture(scope="module")
def rates():
    specification = importlib.util.spec_from_file_location("convex_rates", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    module.DRAWS = 60
    return module


def test_two_decades_of_rows_and_of_dimensions(rates):
    assert rates.ROWS[-1] / rates.ROWS[0] >= 100
    assert rates.DIMENSIONS[-1] / rates.DIMENSIONS[0] >= 100


@pytest.mark.parametrize("route", ["exponential", "noisy gradient", "regularised"])
@pytest.mark.parametrize("letter", ["n", "d"])
def test_slopes_are_those_of_theory(rates, route, letter):
    in_rows = letter == "n"
    values = rates.ROWS if in_rows else rates.DIMENSIONS
    risks = np.array(
        [rates.worst(route, *((int(v), 10) if in_rows else (100_000, int(v))), 1.0) for v in values]
    )
    assert (risks < 0.5).all(), "below a quarter of the diameter"
    wanted = -1.0 if in_rows else rates.ROUTES[route][2]
    found = rates.slope(values, risks)
    assert abs(found - wanted) < 0.15
    other = -0.5 if in_rows else 1.5 - wanted
    assert abs(found - other) > 0.15, "half the rate, or the other route's, would be noticed"
