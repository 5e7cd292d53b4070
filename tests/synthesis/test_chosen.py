"""The method of a synthesis: a name, or an object that is copied."""

from fractions import Fraction

import numpy as np
import pytest

import deniable as dp
from deniable.synthesis.chosen import METHODS
from synthesis.test_synthesize import session

NAMES = {"ward": 3, "sex": 2, "urgent": 2}  # of a workload only the names of columns matter
PAIRS = dp.Workload.all_of(dp.Domain(NAMES), 2)
OBJECTS = {
    "aim": lambda **own: dp.AIM(**{"workload": PAIRS, **own}),
    "mst": dp.MST,
    "mwem": lambda **own: dp.MWEM(**{"workload": PAIRS, **own}),
    "fixed": lambda **own: dp.FixedMarginals(**{"workload": PAIRS, **own}),
    "independent": dp.Independent,
}


def made(opened, method, **more):
    return dp.synthesize(opened, "visits", epsilon=1, method=method, columns=[*NAMES], **more)


def releases(opened):
    return opened.remaining["clinic/patient"].releases


def test_every_method_is_tried_here():
    assert OBJECTS.keys() == METHODS.keys()


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_the_synthesis_of_its_name(name):
    """One record: what was bought by name is found by the object, for free."""
    with session() as opened:
        named = made(opened, name)
        before = releases(opened)
        given = made(opened, OBJECTS[name]())
        assert releases(opened) == before
        assert given.method == named.method == name
        assert np.array_equal(given.marginal(["ward"]).values, named.marginal(["ward"]).values)
        made(opened, OBJECTS[name](**{"rounds" if name == "mwem" else "iterations": 7}))
        assert releases(opened) == before + 1


def test_the_workload_of_an_object_is_the_one_that_is_measured():
    one = dp.Workload(dp.Domain(NAMES), {("ward", "sex"): 3})
    with session() as opened:
        wanted = {
            each.clique for each in made(opened, dp.FixedMarginals(workload=one)).measurements
        }
    assert wanted == {dp.Domain(NAMES).clique(("ward", "sex"))}


def test_an_object_is_copied_before_anything_is_decided():
    """What changes it during the run changes nothing."""
    method = dp.MST(iterations=5)

    def spoil(_part):
        object.__setattr__(method, "iterations", 10**9)
        object.__setattr__(method, "max_megabytes", Fraction(1, 10**9))

    with session() as opened:
        first = made(opened, method, progress=spoil)
        assert method.iterations == 10**9
        before = releases(opened)
        again = made(opened, dp.MST(iterations=np.int64(5)))
        assert releases(opened) == before
    assert np.array_equal(first.marginal(["ward"]).values, again.marginal(["ward"]).values)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("weights", (1,)),
        ("weights", (0, 1, 1)),
        ("weights", (1, 1, 0.5)),
        ("cliques", ("ward",) * 3),
    ],
    ids=str,
)
def test_workloads_that_were_changed_are_looked_at_again(field, value):
    changed = dp.Workload.all_of(dp.Domain(NAMES), 2)
    object.__setattr__(changed, field, value)
    with session() as opened:
        with pytest.raises((dp.ParameterError, dp.ParameterTypeError)):
            made(opened, dp.FixedMarginals(workload=changed))
        assert releases(opened) == 0


@pytest.mark.parametrize(
    ("method", "more", "said"),
    [
        ("AIM", {}, "aim, mst, mwem, fixed, independent, or an object"),
        (dp.MST, {}, r"dp\.MST\(\)"),
        (dp.AIM(workload=PAIRS), {"workload": 2}, "say it there alone"),
        (dp.MWEM(workload=PAIRS), {"workload": [["ward"]]}, "say it there alone"),
        (dp.MST(), {"max_megabytes": 1}, "say it there alone"),
        (dp.MST(max_megabytes=0), {}, "max_megabytes"),
        (dp.MST(max_megabytes=1e-6), {}, "max_megabytes"),
        (dp.MST(iterations=0), {}, "iterations"),
        (dp.MWEM(workload=PAIRS, rounds=1.5), {}, "rounds"),
        (dp.AIM(workload=2), {}, "Workload"),
        (dp.AIM(workload=dp.Workload(dp.Domain({"cost": 2}), [["cost"]])), {}, "cost"),
    ],
    ids=str,
)
def test_wrong_methods_are_refused_before_anything_is_spent(method, more, said):
    with session() as opened:
        with pytest.raises((dp.ParameterError, dp.ParameterTypeError), match=said):
            made(opened, method, **more)
        assert releases(opened) == 0
