"""Asked again and again: what is kept, and that nothing averages it away."""

import json

import numpy as np
import pytest

import deniable as dp
from chance import plausible_share
from deniable import survey

QUESTIONS = {
    "drug": survey.KaryResponse(k=3, epsilon=1),
    "site": survey.LocalHashing(k=10_000, epsilon=1),
    "browser": survey.Rappor(k=20, epsilon=1, permanent=2),
    "age": survey.OneBitMean(epsilon=1, bounds=(0, 100)),
    "town": survey.LastingResponse(k=4, epsilon=1, permanent=2),
}


@pytest.mark.parametrize("question", ["drug", "site", "age"])
def test_a_repeated_question_gets_the_same_report_even_if_the_truth_changes(question):
    client = survey.Client(QUESTIONS)
    first = client.report(question, 1)
    assert [client.report(question, value) for value in (1, 2, 0, 1) * 20] == [first] * 80


def test_without_memory_repeated_reports_would_give_the_answer_away():
    """The attack that memory is for: the most frequent of many fresh reports is the truth."""
    protocol = QUESTIONS["drug"]
    fresh = np.bincount(protocol.randomize(np.full(4000, 2)), minlength=3)
    assert fresh.argmax() == 2
    right = 0
    for _ in range(300):
        client = survey.Client(QUESTIONS)
        kept = np.bincount([client.report("drug", 2) for _ in range(20)], minlength=3)
        right += int(kept.argmax() == 2)
    assert plausible_share(right, 300, float(protocol.law.truth))
    assert not plausible_share(right, 300, 0.99)


@pytest.mark.parametrize("question", ["browser", "town"])
def test_averaging_all_reports_of_two_levels_finds_the_permanent_answer_and_no_more(question):
    protocol = QUESTIONS[question]
    client = survey.Client(QUESTIONS)
    client.report(question, 3)
    kept = client.kept[question]
    reports = protocol.from_wire([client.report(question, 3) for _ in range(4000)])
    tally = protocol.aggregate(reports).counts
    again = protocol.levels[1]
    if question == "town":
        assert tally.argmax() == kept
        assert plausible_share(tally[kept], 4000, float(again))
    else:
        bits = np.unpackbits(protocol.from_wire([kept]), axis=1, count=20)[0]
        for bit, ones in zip(bits, tally, strict=True):
            assert plausible_share(ones, 4000, float(again if bit else 1 - again))
    assert client.kept[question] == kept


def test_the_permanent_answer_is_kept_by_question_never_by_truth():
    """Had it been kept by truth, a change of the truth would show as a new permanent answer."""
    for _ in range(50):
        client = survey.Client(QUESTIONS)
        client.report("browser", 3)
        kept = client.kept["browser"]
        client.report("browser", 7)
        assert client.kept["browser"] == kept


def test_permanent_answers_follow_their_own_channel():
    protocol = QUESTIONS["town"]
    kept = protocol.remember(np.full(20_000, 1))
    first = float(protocol.levels[0])
    assert plausible_share((kept == 1).sum(), 20_000, first)
    assert not plausible_share((kept == 1).sum(), 20_000, float(protocol.law.truth))
    rows = QUESTIONS["browser"].remember(np.full(20_000, 1))
    ones = np.unpackbits(rows, axis=1, count=20).sum(axis=0)
    level = float(QUESTIONS["browser"].levels[0])
    assert plausible_share(ones[1], 20_000, level)
    assert plausible_share(ones[0], 20_000, 1 - level)
    assert not plausible_share(ones[0], 20_000, 1 - float(QUESTIONS["browser"].law.on))


def test_a_device_stores_randomised_answers_only_and_goes_on_after_a_restart():
    client = survey.Client(QUESTIONS)
    first = {name: client.report(name, 1) for name in QUESTIONS}
    stored = json.loads(client.state)
    assert stored.keys() == {"version", "kept"}
    assert stored["kept"].keys() == QUESTIONS.keys()
    woken = survey.Client.from_state(QUESTIONS, client.state)
    assert woken.kept == client.kept
    assert woken.report("drug", 0) == first["drug"]
    assert woken.report("site", 0) == first["site"]


def stored(name, answer):
    kept = {"question": survey.Item(name, QUESTIONS[name]).id, "answer": answer}
    return json.dumps({"version": 2, "kept": {name: kept}})


@pytest.mark.parametrize(
    "state",
    [
        "",
        "[]",
        None,
        5,
        b"\xff\xff",
        "1" * 5000,
        '{"version": 3, "kept": {}}',
        '{"version": true, "kept": {}}',
        '{"version": 2}',
        '{"version": 2, "kept": {}, "kept": {}}',
        '{"version": 2, "kept": {"drug": 1}}',
        '{"version": 2, "kept": {"drug": {"question": "0", "answer": 1}}}',
        stored("drug", 3),
        stored("drug", "1"),
        stored("browser", "ffffff"),
    ],
)
def test_a_damaged_store_is_refused(state):
    with pytest.raises(dp.errors.ReportError):
        survey.Client.from_state(QUESTIONS, state)


def test_a_sound_store_is_taken():
    assert survey.Client.from_state(QUESTIONS, stored("drug", 1)).kept == {"drug": 1}


def test_questions_and_answers_that_do_not_fit_leave_nothing_behind():
    client = survey.Client(QUESTIONS)
    with pytest.raises(dp.ParameterError, match="question"):
        client.report("income", 1)
    with pytest.raises(dp.errors.PrivateValueError):
        client.report("drug", 77)
    assert client.kept == {}


@pytest.mark.parametrize("make", [survey.Rappor, survey.LastingResponse])
def test_one_report_tells_less_than_all(make):
    with pytest.raises(dp.ParameterError, match="less than"):
        make(k=4, epsilon=2, permanent=2)
    with pytest.raises(dp.ParameterError, match="permanent"):
        make(k=4, epsilon=2, permanent=1e9)
