import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import exact, log_up, positive, probability, sqrt_up, whole
from deniable.privacy.units import ROW, Relation, Unit, read_relation


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (0.1, Fraction(1, 10)),
        (1e-6, Fraction(1, 10**6)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.int8(7), Fraction(7)),
        (Decimal("0.30"), Fraction(3, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (1e-300, Fraction(1, 10**300)),
        (10**30, Fraction(10**30)),
    ],
)
def test_a_number_means_its_shortest_decimal(value, meaning):
    assert exact(value, "x") == meaning


@given(st.floats(1e-300, 1e300) | st.floats(-1e300, -1e-300) | st.just(0.0))
def test_floats_survive_the_way_there_and_back(value):
    assert float(exact(value, "x")) == value


@pytest.mark.parametrize(
    "value", [True, np.bool_(1), "1", None, 1j, [1.0], np.array([1.0]), object()]
)
def test_other_types_are_refused(value):
    with pytest.raises(ParameterTypeError, match=r"epsilon=.*must be a number"):
        exact(value, "epsilon")


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")]
)
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(ParameterError, match="finite"):
        exact(value, "epsilon")


@pytest.mark.parametrize(
    "value", [Decimal("1e999999"), Decimal("1e-999999"), 10**5000], ids=range(3)
)
def test_absurd_sizes_are_refused_quickly(value):
    with pytest.raises(ParameterError, match="1e-300 to 1e300"):
        exact(value, "epsilon")


@pytest.mark.parametrize("value", [0, -1, -0.0, -1e-300])
def test_positive_refuses(value):
    with pytest.raises(ParameterError, match="greater than 0"):
        positive(value, "epsilon")


@pytest.mark.parametrize("value", [0, 1, 1.5, -0.1])
def test_probability_refuses(value):
    with pytest.raises(ParameterError, match="strictly between 0 and 1"):
        probability(value, "delta")


def test_counts():
    assert whole(np.int64(3), "count") == 3
    for bad in (0, -1, 10**19):
        with pytest.raises(ParameterError, match="from 1 to 1e18"):
            whole(bad, "count")
    for bad in (True, 1.0, "1"):
        with pytest.raises(ParameterTypeError):
            whole(bad, "count")


@given(st.fractions(min_value=Fraction(1, 10**20), max_value=10**20))
def test_roots_and_logarithms_are_rounded_up_and_close(value):
    root = sqrt_up(value)
    assert value <= root**2 <= value * (1 + Fraction(1, 10**15))
    with mpmath.workdps(80):
        true = mpmath.log(mpmath.mpf(value.numerator) / value.denominator)
        given_up = log_up(value)
        assert (
            true
            <= mpmath.mpf(given_up.numerator) / given_up.denominator
            <= true + mpmath.mpf(10) ** -39
        )


def test_roots_of_squares_are_exact():
    assert sqrt_up(Fraction(9, 4)) == Fraction(3, 2)


def test_relations_and_units():
    assert read_relation("replace") is Relation.REPLACE
    with pytest.raises(ParameterError, match="'add_remove' or 'replace'"):
        read_relation("swap")
    assert str(ROW) == "row"
    assert str(Unit("patient_id")) == "unit of patient_id"
    for bad in ("", 3):
        with pytest.raises(ParameterTypeError):
            Unit(bad)
