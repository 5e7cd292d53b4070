"""The range of the noise is finite, and what lies beyond has less than e^-1000."""

import math
from fractions import Fraction

import numpy as np
import pytest

import deniable as dp
from deniable.errors import RandomnessError
from deniable.randomness.brackets import _alternating_series, exp_minus
from deniable.randomness.laplace import LaplaceSampler, check_width
from deniable.randomness.noise import GaussianLaw, GeometricLaw, LaplaceLaw

LARGEST = Fraction(1 << 52)
BITS = 62
TABLE = 1 << 15


def largest_scale(law):
    """The largest power of two that a law accepts."""
    power = 0
    while True:
        try:
            law(Fraction(2 ** (power + 1))).check()
        except dp.ParameterError:
            return power
        power += 1


@pytest.mark.parametrize("law", [LaplaceLaw, GeometricLaw])
def test_a_draw_beyond_the_range_is_rarer_than_e_to_minus_1000(law):
    assert 2.0**BITS / 2.0 ** largest_scale(law) >= 1000
    with pytest.raises(dp.ParameterError, match=r"2\^52"):
        law(LARGEST + 1).check()


def test_gaussian_draws_beyond_the_range_are_rarer_still():
    power = largest_scale(lambda sigma: GaussianLaw(sigma**2))
    assert (2.0**BITS / 2.0**power) ** 2 / 2 - math.log(2) >= 1000


@pytest.mark.parametrize("scale", ["1/1000", "1", "15.9", "16", "16.1", "1e6", str(1 << 52)])
@pytest.mark.parametrize("one_sided", [True, False])
def test_the_top_digit_leaves_its_table_more_rarely_too(scale, one_sided):
    sampler = LaplaceSampler(Fraction(scale), one_sided=one_sided)
    top_scale = Fraction(scale) / 2**sampler._low_bits
    assert top_scale <= 16
    highest = TABLE if one_sided else TABLE // 2
    assert highest / top_scale >= 1000


def test_whatever_lies_beyond_is_an_error_at_the_largest_scale():
    low_bits = LaplaceSampler(LARGEST)._low_bits
    check_width(np.array([2 ** (BITS - low_bits) - 1], np.int16), low_bits)
    with pytest.raises(RandomnessError, match="62 bits"):
        check_width(np.array([2 ** (BITS - low_bits)], np.int16), low_bits)


@pytest.mark.parametrize("precision", range(5))
def test_lower_ends_are_not_negative(precision):
    low, high = _alternating_series(1, 200, precision)
    assert 0 <= low <= high
    for x in (Fraction(1, 1000), Fraction(1, 3), Fraction(5)):
        bracket = exp_minus(x, precision)
        assert 0 <= bracket.low <= math.exp(-x) * 2**precision <= bracket.high
