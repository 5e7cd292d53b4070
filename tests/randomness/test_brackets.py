from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, strategies as st

from deniable.randomness.brackets import exp_minus

rationals = st.builds(Fraction, st.integers(0, 10**12), st.integers(1, 10**12)) | st.fractions(
    min_value=0, max_value=300
)


@given(rationals, st.integers(1, 400))
def test_brackets_hold_and_are_narrow(x, precision):
    low, high = exp_minus(x, precision)
    with mpmath.workprec(precision + 200):
        true = mpmath.ldexp(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), precision)
        assert low <= true <= high
    assert high - low <= 4


@pytest.mark.parametrize("x", [Fraction(0), Fraction(10**9), Fraction(10**30), Fraction(1, 10**40)])
def test_extremes(x):
    low, high = exp_minus(x, 64)
    assert 0 <= low <= high <= 1 << 64
    if x == 0:
        assert low == high == 1 << 64
    if x > 100:
        assert (low, high) == (0, 1)
