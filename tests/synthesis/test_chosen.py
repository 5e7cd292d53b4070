"""The method of a synthesis: a name, or an object that is copied."""

from fractions import Fraction

import numpy as np
import pytest

import deniable as dp
from deniable.synthesis.chosen import METHODS
from synthesis.test_synthesize import session

NAMES = {"ward": 3, "sex": 2, "urgent": 2}  # of a workload only the names of columns matter
PAIRS = dp.synthesis.Workload.all_of(dp.synthesis.Domain(NAMES), 2)
OBJECTS = {
    "aim": lambda **own: dp.synthesis.AIM(**{"workload": PAIRS, **own}),
    "mst": dp.synthesis.MST,
    "mwem": lambda **own: dp.synthesis.MWEM(**{"workload": PAIRS, **own}),
    "fixed": lambda **own: dp.synthesis.FixedMarginals(**{"workload": PAIRS, **own}),
    "independent": dp.synthesis.Independent,
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
    one = dp.synthesis.Workload(dp.synthesis.Domain(NAMES), {("ward", "sex"): 3})
    with session() as opened:
        wanted = {
            each.clique
            for each in made(opened, dp.synthesis.FixedMarginals(workload=one)).measurements
        }
    assert wanted == {dp.synthesis.Domain(NAMES).clique(("ward", "sex"))}


def test_an_object_is_copied_before_anything_is_decided():
    """What changes it during the run changes nothing."""
    method = dp.synthesis.MST(iterations=5)

    def spoil(_part):
        object.__setattr__(method, "iterations", 10**9)
        object.__setattr__(method, "max_megabytes", Fraction(1, 10**9))

    with session() as opened:
        first = made(opened, method, progress=spoil)
        assert method.iterations == 10**9
        before = releases(opened)
        again = made(opened, dp.synthesis.MST(iterations=np.int64(5)))
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
    changed = dp.synthesis.Workload.all_of(dp.synthesis.Domain(NAMES), 2)
    object.__setattr__(changed, field, value)
    with session() as opened:
        with pytest.raises((dp.ParameterError, dp.errors.ParameterTypeError)):
            made(opened, dp.synthesis.FixedMarginals(workload=changed))
        assert releases(opened) == 0


@pytest.mark.parametrize(
    ("method", "more", "said"),
    [
        ("AIM", {}, "aim, mst, mwem, fixed, independent, or an object"),
        (dp.synthesis.MST, {}, r"dp\.synthesis\.MST\(\)"),
        (dp.synthesis.AIM(workload=PAIRS), {"workload": 2}, "say it there alone"),
        (dp.synthesis.MWEM(workload=PAIRS), {"workload": [["ward"]]}, "say it there alone"),
        (dp.synthesis.MST(), {"max_megabytes": 1}, "say it there alone"),
        (dp.synthesis.MST(max_megabytes=0), {}, "max_megabytes"),
        (dp.synthesis.MST(max_megabytes=1e-6), {}, "max_megabytes"),
        (dp.synthesis.MST(iterations=0), {}, "iterations"),
        (dp.synthesis.MWEM(workload=PAIRS, rounds=1.5), {}, "rounds"),
        (dp.synthesis.AIM(workload=2), {}, "Workload"),
        (
            dp.synthesis.AIM(
                workload=dp.synthesis.Workload(dp.synthesis.Domain({"cost": 2}), [["cost"]])
            ),
            {},
            "cost",
        ),
    ],
    ids=str,
)
def test_wrong_methods_are_refused_before_anything_is_spent(method, more, said):
    with session() as opened:
        with pytest.raises((dp.ParameterError, dp.errors.ParameterTypeError), match=said):
            made(opened, method, **more)
        assert releases(opened) == 0
