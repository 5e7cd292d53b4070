"""The worst pair of neighbours, by enumeration and by search."""

import math

import pytest

import deniable as dp


def mean(data):
    return sum(data) / len(data)


@pytest.mark.parametrize(
    ("query", "relation", "moved"),
    [
        (sum, "add_remove", 5),
        (sum, "replace", 6),
        (len, "add_remove", 1),
        (len, "replace", 0),
        (lambda d: max(d, default=-1), "add_remove", 6),
        (lambda d: [d.count(-1), d.count(5)], "replace", 2),
    ],
)
def test_enumeration_finds_the_sensitivity(query, relation, moved):
    found = dp.auditing.sensitivity_search(query, [-1, 0, 5], size=3, relation=relation)
    assert (found.moved, found.exhaustive) == (moved, True)
    assert abs(len(found.data) - len(found.neighbour)) == (relation == "add_remove")


def test_vectors_are_measured_in_either_norm():
    def histogram(data):
        return [data.count(0), data.count(1)]

    taxi = dp.auditing.sensitivity_search(histogram, [0, 1], size=3, relation="replace")
    crow = dp.auditing.sensitivity_search(histogram, [0, 1], size=3, relation="replace", norm=2)
    assert taxi.moved == 2
    assert crow.moved == pytest.approx(math.sqrt(2))
    assert crow.moved >= math.sqrt(2)


def test_the_pair_that_is_given_moves_as_far_as_is_said():
    found = dp.auditing.sensitivity_search(math.prod, [1, 2, 3], size=5)
    assert abs(math.prod(found.data) - math.prod(found.neighbour)) == found.moved == 3**5 - 3**4


def test_search_climbs_to_the_worst_pair_of_a_large_domain():
    found = dp.auditing.sensitivity_search(
        lambda d: math.prod(1 + x for x in d), list(range(6)), size=8, budget=8_000
    )
    assert not found.exhaustive
    assert found.moved == 6**8 - 6**7


def test_a_query_that_fails_on_one_side_moves_infinitely():
    found = dp.auditing.sensitivity_search(mean, (0, 10), size=4)
    assert (found.moved, found.exhaustive) == (math.inf, False)
    assert [] in (found.data, found.neighbour)
    nan = dp.auditing.sensitivity_search(lambda d: math.nan if 3 in d else 0.0, [1, 3], size=2)
    assert nan.moved == math.inf


def test_bounds_are_tried_at_their_ends():
    found = dp.auditing.sensitivity_search(
        lambda d: sum(d) / max(len(d), 3), (0, 9), size=4, relation="replace"
    )
    assert found.moved == 3


def test_bad_input_is_refused():
    for arguments, says in [
        ((7, [1, 2]), "query"),
        ((sum, []), "domain"),
        ((sum, "abc"), "domain"),
        ((sum, (2, 1)), "bounds"),
        ((lambda d: "text", [1, 2]), "no data set"),
    ]:
        with pytest.raises(dp.ParameterError, match=says):
            dp.auditing.sensitivity_search(*arguments, size=2)
    for options in ({"size": 0}, {"size": 10**6}, {"size": 2, "norm": 3}, {"size": 2, "budget": 0}):
        with pytest.raises(dp.ParameterError):
            dp.auditing.sensitivity_search(sum, [1, 2], **options)
    with pytest.raises(dp.ParameterError, match="give two"):
        dp.auditing.sensitivity_search(sum, [7], size=3, relation="replace")


def test_a_query_that_alters_its_records_gets_fresh_ones():
    found = dp.auditing.sensitivity_search(
        lambda d: sum(r.pop("a") for r in d), [{"a": 1}, {"a": 4}], size=2
    )
    assert found.moved == 4
