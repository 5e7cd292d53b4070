import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable.errors import ParameterError
from deniable.randomness.lattice import Lattice, floor_log2, lattice_for

finite = st.floats(allow_nan=False, allow_infinity=False)
exponents = st.integers(-1022, 900)


def on_lattice(value: float, lattice: Lattice) -> bool:
    return (Fraction(value) / lattice.step).denominator == 1


@given(finite, exponents)
def test_rounding_is_exact_and_half_goes_up(value, exponent):
    lattice = Lattice(exponent)
    twin = lattice.nearest_exact(Fraction(value))
    if abs(twin) <= Fraction(sys.float_info.max):
        assert Fraction(lattice.nearest_float(value)) == twin
        assert Fraction(float(lattice.nearest(np.array([value]))[0])) == twin


@given(finite, finite, st.integers(-60, 60))
def test_two_values_move_apart_by_no_more_than_is_charged(a, b, exponent):
    lattice = Lattice(exponent)
    apart = abs(Fraction(lattice.nearest_float(a)) - Fraction(lattice.nearest_float(b)))
    assert apart / lattice.step <= math.ceil(abs(Fraction(a) - Fraction(b)) / lattice.step)


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(-1e-3, 1e-3)), min_size=2, max_size=9))
def test_the_charge_covers_rounded_vectors(pairs):
    lattice = Lattice(-8)
    x = np.array([a for a, _ in pairs])
    y = x + np.array([d for _, d in pairs])
    real = [abs(Fraction(float(b)) - Fraction(float(a))) for a, b in zip(x, y, strict=True)]
    steps = np.abs(lattice.nearest(x) - lattice.nearest(y)) * 2**8
    assert steps.sum() <= lattice.l1_steps(max(sum(real), Fraction(1, 10**9)), len(pairs))
    l2 = math.sqrt(float(sum(r * r for r in real)))
    assert math.sqrt((steps**2).sum()) <= lattice.l2_steps(Fraction(l2 + 1e-9), len(pairs))


def test_the_charge_is_needed():
    """Two coordinates that each cross a rounding boundary move further than the real vector."""
    lattice = Lattice(0)
    x, y = np.full(9, 0.499), np.full(9, 0.501)
    assert np.abs(lattice.nearest(x) - lattice.nearest(y)).sum() == 9 > math.ceil(9 * 0.002)


@given(finite, st.integers(-(2**62), 2**62), exponents)
def test_sums_are_the_doubles_nearest_to_exact_lattice_points(value, noise, exponent):
    lattice = Lattice(exponent)
    point = lattice.nearest(np.array([value]))
    exact = Fraction(float(point[0])) + noise * lattice.step
    total = float(lattice.add(point, np.array([noise]))[0])
    assert total == lattice.to_float(exact)
    assert on_lattice(total, lattice)
    if abs(noise) < 2**53:
        assert lattice.add_float(float(point[0]), noise) == total


def test_the_largest_double_is_the_end():
    lattice = Lattice(900)
    top = np.array([sys.float_info.max, -sys.float_info.max])
    assert (lattice.add(top, np.array([2**50, -(2**50)])) == top).all()
    assert lattice.to_float(Fraction(10**400)) == sys.float_info.max
    assert lattice.to_float(-Fraction(10**400)) == -sys.float_info.max


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_floor_log2(value):
    k = floor_log2(value)
    assert Fraction(2) ** k <= value < Fraction(2) ** (k + 1)


@given(st.floats(1e-12, 1e12).map(Fraction), st.floats(1e-12, 1e12).map(Fraction))
def test_lattices_are_fine_and_fit_64_bits(sensitivity, scale):
    lattice = lattice_for(sensitivity=sensitivity, scale=scale)
    assert 2**30 <= scale / lattice.step <= 2**55


@pytest.mark.parametrize("scale", [Fraction(1, 10**320), Fraction(10**300)])
def test_scales_beyond_doubles_are_refused(scale):
    with pytest.raises(ParameterError, match="change their unit"):
        lattice_for(sensitivity=scale, scale=scale)
