"""The calculator of five results: how their errors grow."""

import math

import pytest

import deniable as dp

CASE = {"rows": 10**9, "queries": 10**6, "universe": 10**4, "epsilon": 1}


def test_errors_grow_as_the_theorems_say():
    one, more = (
        dp.synthesis.errors_in_theory(**CASE),
        dp.synthesis.errors_in_theory(**{**CASE, "rows": 8 * 10**9}),
    )
    for name, power in {
        "BLR08": 2 / 3,
        "HLM12": 2 / 3,
        "DNRRV09": 1 / 2,
        "DRV10": 1 / 2,
        "HR10": 1 / 2,
    }.items():
        assert math.isclose(more[name] / one[name], 8**power)


def test_multiplicative_weights_grow_with_the_root_of_the_logarithm_of_queries():
    one, more = (
        dp.synthesis.errors_in_theory(**CASE),
        dp.synthesis.errors_in_theory(**{**CASE, "queries": 10**12}),
    )
    assert math.isclose(more["HR10"] / one["HR10"], math.sqrt(2))
    assert math.isclose(more["HLM12"] / one["HLM12"], 2 ** (1 / 3))
    assert math.isclose(more["DRV10"] / one["DRV10"], 2**1.5)


def test_no_error_is_above_the_number_of_rows():
    small = dp.synthesis.errors_in_theory(rows=10, queries=100, universe=100, epsilon=0.01)
    assert set(small.values()) == {10.0}


def test_the_picture_shows_what_was_achieved_beside_theory(tmp_path):
    path = dp.synthesis.plot_history(
        [10**3, 10**4, 10**5],
        queries=1000,
        universe=7560,
        epsilon=1,
        achieved={"MWEM, as measured": [50.0, 80.0, 150.0]},
        path=tmp_path / "history.svg",
    )
    assert path.stat().st_size > 10_000
    with pytest.raises(dp.ParameterError, match="one value for each n"):
        dp.synthesis.plot_history(
            [10, 20], queries=9, universe=9, epsilon=1, achieved={"x": [1.0]}, path=path
        )


@pytest.mark.parametrize("wrong", [{"queries": 1}, {"universe": 1}, {"epsilon": 0}, {"rows": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(dp.ParameterError):
        dp.synthesis.errors_in_theory(**{**CASE, **wrong})
