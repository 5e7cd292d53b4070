"""Parameters, answers and reports that make no sense: clear errors, nothing counted or told."""

import math

import numpy as np
import pytest

import deniable as dp
from deniable import survey

MAKERS = {
    "k-ary": lambda k, e: survey.KaryResponse(k=k, epsilon=e),
    "unary": lambda k, e: survey.UnaryEncoding(k=k, epsilon=e),
    "subset": lambda k, e: survey.SubsetSelection(k=k, epsilon=e),
    "hashing": lambda k, e: survey.LocalHashing(k=k, epsilon=e),
    "Hadamard": lambda k, e: survey.HadamardResponse(k=k, epsilon=e),
    "CMS": lambda k, e: survey.CountMeanSketch(k=k, epsilon=e, hashes=4, width=16),
    "HCMS": lambda k, e: survey.HadamardSketch(k=k, epsilon=e, hashes=4, width=16),
    "flip": lambda k, e: survey.BitFlip(k=k, epsilon=e, bits=2),
    "RAPPOR": lambda k, e: survey.Rappor(k=k, epsilon=e, permanent=100),
    "lasting": lambda k, e: survey.LastingResponse(k=k, epsilon=e, permanent=100),
    "tree": lambda k, e: survey.Hierarchy(k=k, epsilon=e),
    "best": lambda k, e: dp.survey.best_protocol(k, e, 100),
}


@pytest.mark.parametrize("name", MAKERS)
def test_sizes(name):
    for k in (1, 0, -3, 10**17, 10**30):
        with pytest.raises(dp.ParameterError, match="k="):
            MAKERS[name](k, 1)
    with pytest.raises(dp.ParameterError, match="one category says nothing"):
        MAKERS[name](1, 1)
    for k in (2.5, "3", True, None):
        with pytest.raises(dp.errors.ParameterTypeError):
            MAKERS[name](k, 1)


@pytest.mark.parametrize("name", MAKERS)
def test_epsilons(name):
    for epsilon in (0, -1, math.nan, math.inf, 1e-9, 1e9):
        with pytest.raises(dp.ParameterError, match="epsilon"):
            MAKERS[name](4, epsilon)
    with pytest.raises(dp.errors.ParameterTypeError):
        MAKERS[name](4, "1")


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("tree", "best")])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 20, 50, 99])
def test_tiny_and_huge_epsilons_hold(name, epsilon):
    protocol = MAKERS[name](4, epsilon)
    assert 0 < protocol.loss.pure <= dp.PureDP(epsilon).epsilon
    if epsilon >= 20:
        assert float(protocol.loss.pure) > 19  # 64 bits end near 44; never above what was asked
    estimate = protocol.aggregate(protocol.randomize([0, 1, 2, 3] * 10)).estimate()
    assert np.isfinite(estimate.shares[~np.isnan(estimate.shares)]).all()
    assert (estimate.standard_errors > 0).all()


def test_a_huge_domain_is_hashed_and_only_candidates_are_counted():
    protocol = survey.LocalHashing(k=2**32, epsilon=4)
    reports = protocol.randomize(np.full(3000, 2**32 - 1))
    estimate = protocol.aggregate(reports, [5, 2**32 - 1, 0]).estimate()
    last = 2**32 - 1
    assert abs(estimate.share(last) - 1) < 7 * estimate.standard_error(last)
    assert abs(estimate.share(0)) < 7 * estimate.standard_error(0)
    with pytest.raises(dp.ParameterError, match="candidates="):
        protocol.aggregate(reports)
    for candidates in ([], [-1], [2**32], [0.5], [[1]]):
        with pytest.raises(dp.ParameterError, match="candidates"):
            protocol.aggregate(reports, candidates)
    sketch = survey.HadamardSketch(k=2**31 - 1, epsilon=4, hashes=64, width=256)
    tally = sketch.aggregate(sketch.randomize(np.full(3000, 12345)))
    found = sketch.estimate(tally, [12345, 7])
    assert abs(found.share(12345) - 1) < 7 * found.standard_error(12345)
    with pytest.raises(dp.ParameterError, match="candidates="):
        tally.estimate()


def test_tallies_of_different_candidates_do_not_add_up():
    protocol = survey.LocalHashing(k=500, epsilon=1)
    reports = protocol.randomize(np.arange(100))
    one, other = (protocol.aggregate(reports, names) for names in ([1, 2], [3, 4]))
    assert (one + one).n == 200
    with pytest.raises(dp.errors.ReportError, match="candidates"):
        _ = one + other


def test_consecutive_and_scattered_candidates_are_counted_alike():
    protocol = survey.LocalHashing(k=500, epsilon=1)
    reports = protocol.randomize(np.arange(20_000) % 500)
    whole = protocol.aggregate(reports).counts
    some = [3, 499, 17, 18, 0]
    assert protocol.aggregate(reports, some).counts.tolist() == whole[some].tolist()
    assert protocol.aggregate(reports, [17, 18, 19]).counts.tolist() == whole[17:20].tolist()


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "best"])
def test_answers_that_are_none_of_the_categories_are_refused_and_not_quoted(name):
    protocol = MAKERS[name](5, 1)
    for answers in ([5], [-1], [123456], [], [[1, 2]], [1.5], ["secret"], [None], 3, None, "ab"):
        with pytest.raises(dp.errors.PrivateValueError) as caught:
            protocol.randomize(answers)
        assert "123456" not in str(caught.value)
        assert "secret" not in str(caught.value)


BAD_ARRAYS = {
    "k-ary": [np.array([5]), np.array([-1]), np.array([0.5]), np.array([]), np.zeros((2, 2), int)],
    "unary": [
        np.zeros((3, 2), np.uint8),
        np.zeros(3, np.uint8),
        np.full((3, 1), 7, np.uint8),
        np.zeros((3, 1), int),
        np.zeros((0, 1), np.uint8),
    ],
    "subset": [np.zeros((3, 1), np.uint8), np.full((3, 1), 248, np.uint8)],
    "hashing": [
        np.zeros((3, 4), int),
        np.full((3, 4), 99, np.uint64),
        np.zeros((3, 3), np.uint64),
        np.array([[2**61 - 1, 0, 0, 0]], np.uint64),
    ],
    "Hadamard": [np.array([10**6]), np.array([-1])],
    "CMS": [np.zeros((3, 3), np.uint8), np.full((3, 6), 255, np.uint8)],
    "HCMS": [np.zeros((3, 2), int), np.full((3, 3), 5)],
    "flip": [np.zeros((3, 2), int), np.array([[0, 99]]), np.array([[4, 2]])],
    "RAPPOR": [np.full((3, 1), 7, np.uint8)],
    "lasting": [np.array([5])],
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_reports_that_no_client_sends_are_refused(name):
    protocol = MAKERS[name](5, 1)
    for reports in BAD_ARRAYS[name]:
        with pytest.raises(dp.errors.ReportError):
            protocol.aggregate(reports)


def test_channels_too_large_to_write_down_are_refused():
    for make in (
        lambda: survey.KaryResponse(k=10**6, epsilon=1).channel(),
        lambda: survey.UnaryEncoding(k=50, epsilon=1).channel(),
        lambda: survey.SubsetSelection(k=100, epsilon=1).channel(),
        lambda: survey.PiecewiseMean(epsilon=1, bounds=(0, 1)).channel([0, 1]),
        lambda: survey.Rappor(k=1000, epsilon=1, permanent=2).channel(),
    ):
        with pytest.raises(dp.ParameterError, match="written down"):
            make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: survey.SubsetSelection(k=5, epsilon=1, size=5),
        lambda: survey.SubsetSelection(k=5, epsilon=1, size=-1),
        lambda: survey.LocalHashing(k=5, epsilon=1, buckets=1),
        lambda: survey.LocalHashing(k=5, epsilon=1, buckets=10**9),
        lambda: survey.HadamardResponse(k=5, epsilon=1, blocks=3),
        lambda: survey.HadamardResponse(k=5, epsilon=1, blocks=8),
        lambda: survey.CountMeanSketch(k=5, epsilon=1, hashes=0, width=4),
        lambda: survey.CountMeanSketch(k=5, epsilon=1, hashes=10**9, width=4),
        lambda: survey.CountMeanSketch(k=5, epsilon=1, hashes=4, width=1),
        lambda: survey.CountMeanSketch(k=5, epsilon=1, hashes=4, width=4, salt=3),
        lambda: survey.HadamardSketch(k=5, epsilon=1, hashes=4, width=12),
        lambda: survey.BitFlip(k=5, epsilon=1, bits=6),
        lambda: survey.BitFlip(k=5, epsilon=1, bits=2).channel([1, 1]),
        lambda: survey.SquareWave(epsilon=1, bounds=(0, 1), steps=1),
        lambda: survey.OneBitMean(epsilon=1, bounds=(1, 0)),
        lambda: survey.PiecewiseMean(epsilon=1, bounds=(0, math.inf)),
        lambda: survey.Hierarchy(k=5, epsilon=1, branching=1),
        lambda: survey.HeavyHitters(bits=33, epsilon=1),
        lambda: survey.HeavyHitters(bits=8, epsilon=1, first=9),
        lambda: survey.Places(epsilon=1, within=0),
        lambda: dp.survey.best_protocol(5, 1, 0),
    ],
)
def test_other_parameters(make):
    with pytest.raises(dp.ParameterError):
        make()


def test_the_namespace_is_lazy_and_complete():
    import subprocess
    import sys

    code = (
        "import deniable, sys; deniable.survey; "
        "print([m for m in sys.modules if m.startswith('deniable.survey.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert set(survey.__all__) == set(dir(survey))
    for name in survey.__all__:
        assert getattr(survey, name).__doc__
    with pytest.raises(AttributeError, match="nothing"):
        _ = survey.nothing


@pytest.mark.parametrize(("old", "new"), [("Question", "Item"), ("read_question", "read_item")])
def test_names_that_moved_say_where_they_are(old, new):
    with pytest.raises(AttributeError, match=f"is deniable.survey.{new} now"):
        getattr(survey, old)
    assert old not in dir(survey)
