import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

import deniable as dp

sizes = st.floats(0.01, 8).map(lambda x: round(x, 3))
deltas = st.floats(1e-9, 0.2)
guarantees = st.one_of(
    st.builds(dp.PureDP, sizes),
    st.builds(dp.ApproxDP, sizes, deltas),
    st.builds(dp.ZCDP, sizes),
    st.builds(dp.GDP, sizes),
)


@given(guarantees)
def test_the_order_is_reflexive(a):
    same = type(a)(*vars(a).values())
    assert a <= same
    assert a >= same
    assert not a < same


@given(guarantees, guarantees)
def test_the_order_is_antisymmetric(a, b):
    if a <= b <= a:
        assert a == b
    assert (a < b) == (a <= b and a != b)
    assert (a <= b) == (b >= a)


@given(guarantees, guarantees, guarantees)
def test_the_order_is_transitive(a, b, c):
    """Up to the margin of cross-kind conversions: c is widened by far more than that."""
    wider = {
        dp.PureDP: lambda g: dp.PureDP(g.epsilon * Fraction(1001, 1000)),
        dp.ApproxDP: lambda g: dp.ApproxDP(g.epsilon, min(g.delta * 2, Fraction(999, 1000))),
        dp.ZCDP: lambda g: dp.ZCDP(g.rho * Fraction(1001, 1000)),
        dp.GDP: lambda g: dp.GDP(g.mu * Fraction(1001, 1000)),
    }
    if a <= b <= c:
        assert a <= wider[type(c)](c)


def test_the_order_is_transitive_where_zcdp_meets_large_deltas():
    middle, last = dp.ApproxDP(0.2, 0.496522824), dp.ApproxDP(0.01, 0.54442554)
    assert dp.ZCDP(0.5) <= middle
    assert middle <= last
    assert dp.ZCDP(0.5) <= last


def test_what_implies_what():
    assert dp.PureDP(1) <= dp.ApproxDP(1, 1e-9)
    assert dp.PureDP(1) <= dp.ApproxDP(0.5, 0.3)
    assert not dp.PureDP(1) <= dp.ApproxDP(0.5, 0.28)
    assert dp.PureDP(1) <= dp.ZCDP(0.5)
    assert dp.PureDP(1) <= dp.ZCDP(math.tanh(0.5) + 1e-12)
    assert not dp.PureDP(1) <= dp.ZCDP(0.46)
    assert dp.PureDP(1) <= dp.GDP(1.3)
    assert not dp.PureDP(1) <= dp.GDP(1.2)
    assert dp.GDP(1) <= dp.ZCDP(0.5)
    assert not dp.ZCDP(0.5) <= dp.GDP(1)
    assert dp.ZCDP(0.1) <= dp.ApproxDP(2, 4.4e-6)
    assert not dp.ZCDP(0.1) <= dp.ApproxDP(2, 4.3e-6)
    assert not dp.ApproxDP(0.1, 1e-30) <= dp.PureDP(100)
    assert not dp.GDP(0.01) <= dp.PureDP(100)
    assert dp.ApproxDP(1, 1e-6) <= dp.ApproxDP(1, 1e-6)
    assert dp.ApproxDP(1, 1e-6) <= dp.ApproxDP(0.5, 0.3)


def test_parameters_are_exact():
    assert dp.PureDP(0.1).epsilon == Fraction(1, 10)
    assert sum(dp.PureDP(0.1).epsilon for _ in range(10)) == 1
    assert dp.ApproxDP(3, 1e-6) == dp.ApproxDP(3.0, Fraction(1, 10**6))
    assert str(dp.ApproxDP(3, 1e-6)) == "(3, 1e-06)-DP"
    assert [str(g) for g in (dp.PureDP(0.1), dp.ZCDP(0.5), dp.GDP(2))] == [
        "0.1-DP",
        "0.5-zCDP",
        "2-GDP",
    ]


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", None, True, 1j])
def test_bad_parameters_are_refused(bad):
    for make in (
        dp.PureDP,
        dp.ZCDP,
        dp.GDP,
        lambda v: dp.ApproxDP(v, 0.1),
        lambda v: dp.ApproxDP(1, v),
    ):
        with pytest.raises(dp.ParameterError):
            make(bad)


def test_a_delta_of_one_is_refused():
    with pytest.raises(dp.ParameterError, match="strictly between"):
        dp.ApproxDP(1, 1)


def test_guarantees_compare_only_with_each_other():
    for guarantee, other in itertools.product([dp.PureDP(1), dp.GDP(1)], [1.0, "x", None]):
        with pytest.raises(TypeError):
            _ = guarantee <= other
        assert guarantee != other


def test_guarantees_are_frozen():
    with pytest.raises(AttributeError):
        dp.PureDP(1).epsilon = Fraction(2)
