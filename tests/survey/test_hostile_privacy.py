"""What would cost more than ε if it were let through: races, exchanged protocols, odd inputs."""

import json
import sys
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import deniable as dp
from deniable import survey


def test_threads_that_ask_at_once_get_one_report():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            device = survey.Client({"site": survey.LocalHashing(k=10, epsilon=1)})
            sent, together = [], threading.Barrier(4)

            def ask(device=device, sent=sent, together=together):
                together.wait()
                sent.append(json.dumps(device.report("site", 3)))

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(set(sent)) == 1
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize(
    "changed",
    [
        survey.LastingResponse(k=2, epsilon=0.5, permanent=1),
        survey.LastingResponse(k=2, epsilon=1, permanent=5),
        survey.KaryResponse(k=2, epsilon=1),
    ],
)
def test_a_permanent_answer_of_one_protocol_is_never_reported_under_another(changed):
    loud = survey.LastingResponse(k=2, epsilon=1, permanent=10)
    device = survey.Client({"drug": loud})
    device.report("drug", 1)
    with pytest.raises(dp.errors.ReportError, match="other parameters"):
        survey.Client.from_state({"drug": changed}, device.state)
    again = survey.Client.from_state({"drug": loud}, device.state)
    assert again.kept == device.kept


def test_protocols_cannot_be_exchanged_behind_what_was_kept():
    questions = {"drug": survey.LastingResponse(k=2, epsilon=1, permanent=10)}
    device = survey.Client(questions)
    device.report("drug", 1)
    questions["drug"] = survey.LastingResponse(k=2, epsilon=0.5, permanent=1)
    assert float(device.questions["drug"].lasting_loss.pure) > 9
    with pytest.raises(TypeError):
        device.questions["drug"] = questions["drug"]


@pytest.mark.parametrize("places", [[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 0]]])
def test_places_reported_twice_are_refused(places):
    protocol = survey.BitFlip(k=4, epsilon=1, bits=3)
    with pytest.raises(dp.ParameterError, match="places"):
        protocol.report([0], np.array(places))
    assert protocol.report([0], np.array([[0, 1, 3]])).shape == (1, 3)


@pytest.mark.parametrize(
    "values",
    [
        [["secret street 5", 2.0]],
        [["1.5", "2"]],
        [[1.0, 2.0], [3.0]],
        [[1 + 2j, 2.0]],
        np.ma.masked_array([[1.0, 2.0]], [[True, False]]),
        [[[1.0, 2.0]]],
        None,
        [[True, False]],
    ],
)
def test_a_place_that_is_none_is_refused_and_not_quoted(values):
    with pytest.raises(dp.errors.PrivateValueError) as caught:
        survey.Places(epsilon=1, within=200).randomize(values)
    assert "secret" not in str(caught.value)


def test_one_place_or_many():
    protocol = survey.Places(epsilon=1, within=200)
    assert protocol.randomize((3, 4.5)).shape == (1, 2)
    assert protocol.randomize([(3, 4), (1, 2)]).shape == (2, 2)


MEAN = survey.OneBitMean(epsilon=1, bounds=(0, 100))
SEVERAL = survey.SampleOne((MEAN, survey.KaryResponse(k=3, epsilon=1)))


@pytest.mark.parametrize(
    "column",
    [
        [5, 2**70],
        [Fraction(1, 2), Decimal("0.5")],
        [5, float("inf")],
        [-float("inf"), Decimal("1e500")],
        [Decimal("-Infinity"), Decimal("1e-5000")],
        np.array([np.inf, -np.inf]),
    ],
)
def test_an_answer_is_never_refused_for_its_size(column):
    assert MEAN.randomize(column).size == 2
    sent = SEVERAL.randomize([column, [0, 1]])
    assert sum(len(part) for part in sent) == 2


def test_numbers_beyond_the_bounds_count_as_the_bounds():
    far = survey.OneBitMean(epsilon=60, bounds=(0, 100))
    for high in (float("inf"), Decimal("1e500"), 2**70, Decimal("Infinity")):
        assert far.randomize([high] * 50).tolist() == [1] * 50
        assert far.randomize([-high] * 50).tolist() == [0] * 50
    for nothing in ([float("nan")], [Decimal("nan")], np.array([np.nan])):
        with pytest.raises(dp.errors.PrivateValueError):
            far.randomize(nothing)


def test_masked_and_wrong_answers_are_refused_whoever_draws_them():
    masked = np.ma.masked_array([1, 2], [True, True])
    for _ in range(20):  # whether one is refused must not hang on the part that is drawn
        for columns in ([masked, [0, 1]], [[1, 2], masked], [[1, 2], [0, 7]], [["a", "b"], [0, 1]]):
            with pytest.raises(dp.errors.PrivateValueError):
                SEVERAL.randomize(columns)


@pytest.mark.parametrize("make", [survey.OneBitMean, survey.PiecewiseMean, survey.HybridMean])
@pytest.mark.parametrize(
    "bounds",
    [
        (1_700_000_000_000_000_000, 1_700_000_000_000_000_100),
        (-(10**299), 10**300),
        (Fraction(1, 10**299), Fraction(2, 10**299)),
    ],
)
def test_bounds_that_floats_cannot_tell_apart(make, bounds):
    low, high = bounds
    protocol = make(epsilon=60, bounds=bounds)
    for values, mean in (([low] * 20, low), ([high] * 20, high), ([float(low)] * 20, float(low))):
        found = protocol.aggregate(protocol.randomize(values)).estimate()
        held = min(max(Fraction(mean), Fraction(low)), Fraction(high))
        assert abs(Fraction(found.mean) - held) <= (Fraction(high) - low) / 10 + abs(held) / 2**50
