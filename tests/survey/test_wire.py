"""The wire format: vectors that never change, and nothing read that is not exactly right."""

import json
from pathlib import Path

import numpy as np
import pytest

import deniable as dp
from deniable import survey
from deniable.survey.wire import KINDS

VECTORS = json.loads((Path(__file__).parent / "wire_vectors.json").read_text())

PROTOCOLS = {
    "k-ary response": survey.KaryResponse(k=5, epsilon=1),
    "unary encoding": survey.UnaryEncoding(k=11, epsilon=0.5),
    "unary, symmetric": survey.UnaryEncoding(k=8, epsilon=0.5, symmetric=True),
    "subset selection": survey.SubsetSelection(k=9, epsilon=1),
    "local hashing": survey.LocalHashing(k=1000, epsilon=1.5),
    "Hadamard response": survey.HadamardResponse(k=20, epsilon=3),
    "count mean sketch": survey.CountMeanSketch(k=99, epsilon=2, hashes=7, width=12, salt="v"),
    "Hadamard sketch": survey.HadamardSketch(k=99, epsilon=2, hashes=7, width=16, salt="v"),
    "bit flip": survey.BitFlip(k=30, epsilon=2, bits=4),
    "RAPPOR": survey.Rappor(k=11, epsilon=1, permanent=2),
    "lasting response": survey.LastingResponse(k=6, epsilon=1, permanent=2),
    "one-bit mean": survey.OneBitMean(epsilon=1, bounds=(0, 100)),
    "piecewise mean": survey.PiecewiseMean(epsilon=2, bounds=(-1.5, 1)),
    "hybrid mean": survey.HybridMean(epsilon=1, bounds=(0, 1)),
    "square wave": survey.SquareWave(epsilon=1, bounds=(0, 1), steps=64),
    "together": survey.Together(
        (survey.KaryResponse(k=3, epsilon=0.5), survey.OneBitMean(epsilon=0.5, bounds=(0, 9)))
    ),
    "sample one": survey.SampleOne(
        (survey.KaryResponse(k=3, epsilon=1), survey.UnaryEncoding(k=4, epsilon=1))
    ),
    "hierarchy": survey.Hierarchy(k=50, epsilon=1),
    "heavy hitters": survey.HeavyHitters(bits=12, epsilon=2),
    "places": survey.Places(epsilon=1, within=100),
}


def truth(protocol, n=60):
    if isinstance(protocol, survey.Together):
        return [np.arange(n) % 3, np.linspace(0, 9, n)]
    if isinstance(protocol, survey.SampleOne):
        return [np.arange(n) % 3, np.arange(n) % 4]
    if isinstance(protocol, survey.Places):
        return np.ones((n, 2))
    if hasattr(protocol, "bounds"):
        return np.linspace(0, 1, n)
    return np.arange(n) % getattr(protocol, "k", 4096)


def same(one, other):
    if isinstance(one, tuple):
        return all(same(a, b) for a, b in zip(one, other, strict=True))
    return np.array_equal(one, other)


def test_every_kind_is_tried():
    assert {type(protocol) for protocol in PROTOCOLS.values()} == set(KINDS.values())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_reports_and_questions_come_back_as_they_went(name):
    question = survey.Item("who?", PROTOCOLS[name])
    reports = question.protocol.randomize(truth(question.protocol))
    assert same(question.read(question.write(reports)), reports)
    assert survey.read_item(question.text) == question
    assert survey.read_item(question.text).id == question.id


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_vectors(name):
    """The same text, id, thresholds and payloads for ever: other languages rest on them."""
    vector, question = VECTORS[name], survey.Item("who?", PROTOCOLS[name])
    assert json.loads(question.text) == vector["question"]
    assert question.id == vector["id"]
    reports = question.read(json.dumps(vector["reports"]))
    assert json.loads(question.write(reports)) == vector["reports"]
    if "first shares" in vector:
        shares = question.protocol.aggregate(reports).estimate().shares
        assert shares[:5] == pytest.approx(vector["first shares"], rel=1e-12)


def test_most_vectors_hold_shares_too():
    assert sum("first shares" in vector for vector in VECTORS.values()) >= 10
    assert VECTORS.keys() == PROTOCOLS.keys()


def test_the_id_depends_on_every_parameter():
    ids = {survey.Item("who?", protocol).id for protocol in PROTOCOLS.values()}
    ids.add(survey.Item("whom?", PROTOCOLS["k-ary response"]).id)
    ids.add(survey.Item("who?", survey.KaryResponse(k=6, epsilon=1)).id)
    ids.add(survey.Item("who?", survey.KaryResponse(k=5, epsilon=1.0001)).id)
    assert len(ids) == len(PROTOCOLS) + 3


def test_a_client_of_another_language_needs_the_thresholds_only():
    """Comparing 64-bit words with the thresholds of the text gives the stated ε."""
    from fractions import Fraction

    from deniable.privacy.exact import log_up

    text = json.loads(survey.Item("who?", survey.KaryResponse(k=5, epsilon=1)).text)
    truth_told = Fraction(int(text["thresholds"]["truth"]), 2**64)
    assert log_up(truth_told / ((1 - truth_told) / 4)) <= 1


BAD_PAYLOADS = {
    "k-ary response": [5, -1, 1.0, "1", True, None, [1], 10**30],
    "unary encoding": ["fff", "FFE0", "ffff", "zzzz", 3, None, ["ffe0"], "ffe0 "],
    "subset selection": ["ff80", "0000", "ffff", 7],
    "local hashing": [["0" * 32, 99], ["0" * 31, 1], [1, 2, 3], "00", ["0" * 32, "1"], ["0" * 32]],
    "Hadamard response": [10**6, -1, "0"],
    "count mean sketch": [[7, "0000"], [0, "00"], [0, "000f"], [-1, "0000"], [True, "0000"], 3],
    "Hadamard sketch": [[7, 0, 0], [0, 16, 0], [0, 0, 2], [0, 0], [0, 0, -1], [0, 0, False]],
    "bit flip": [[0, 2, 4], [0, 1, 4, 6], [6, 4, 2, 0], [0, 2, 4, 60], [0, 2, 4, 6, 8]],
    "RAPPOR": ["ffff", "ff"],
    "lasting response": [6, -1],
    "one-bit mean": [2, -1, 0.5, True],
    "piecewise mean": [2**40, -1, 0.5],
    "hybrid mean": [[2, 0], [0, 2], [1, 2**40], [0], 3],
    "square wave": [10**6, -1],
    "together": [[0], [3, 0], [0, 2], [0, 0, 0], {"0": 0}],
    "sample one": [[2, 0], [0, 3], [1, "ff"], [0], ["0", 0], [True, 0]],
    "hierarchy": [[9, 0], [0, 99], [0, "a"]],
    "heavy hitters": [[9, ["0" * 32, 0]], [0, ["0" * 32, 99]], [0, 1]],
    "places": [[1.0], [1.0, "2"], [1.0, None], [1, 2, 3], [True, 1.0]],
}


@pytest.mark.parametrize("name", BAD_PAYLOADS)
def test_one_bad_report_spoils_the_batch_and_nothing_is_counted(name):
    question = survey.Item("who?", PROTOCOLS[name])
    reports = question.protocol.randomize(truth(question.protocol))
    good = json.loads(question.write(reports))
    for bad in BAD_PAYLOADS[name]:
        for place in (0, 30):
            spoiled = {**good, "reports": [*good["reports"][:place], bad, *good["reports"][place:]]}
            with pytest.raises(dp.errors.ReportError):
                question.read(json.dumps(spoiled))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": "1"},
        {"version": True},
        {"survey": "0" * 32},
        {"survey": None},
        {"reports": []},
        {"reports": {}},
        {"reports": None},
        {"more": 1},
    ],
)
def test_reports_of_another_survey_or_version_are_refused(change):
    question = survey.Item("who?", PROTOCOLS["k-ary response"])
    good = json.loads(question.write(question.protocol.randomize([1, 2])))
    with pytest.raises(dp.errors.ReportError):
        question.read(json.dumps({**good, **change}))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "[" * 100_000, '{"version":1,"version":1}', "NaN", b"\xff\xfe{"]
)
def test_what_is_not_json_is_refused(text):
    question = survey.Item("who?", PROTOCOLS["places"])
    with pytest.raises(dp.errors.ReportError):
        question.read(text)
    with pytest.raises(dp.errors.ReportError):
        survey.read_item(text)


def test_infinite_places_are_refused():
    question = survey.Item("who?", PROTOCOLS["places"])
    for number in ("Infinity", "NaN", "1e999"):
        text = f'{{"version":1,"survey":"{question.id}","reports":[[{number},1.0]]}}'
        with pytest.raises(dp.errors.ReportError):
            question.read(text)


@pytest.mark.parametrize(
    "change",
    [
        lambda q: q.update(kind="os.system"),
        lambda q: q.update(version=2),
        lambda q: q.update(name=""),
        lambda q: q.update(name=3),
        lambda q: q.pop("thresholds"),
        lambda q: q["thresholds"].update(truth="1"),
        lambda q: q["parameters"].update(k=1),
        lambda q: q["parameters"].update(k=True),
        lambda q: q["parameters"].update(k="5"),
        lambda q: q["parameters"].update(k=10**30),
        lambda q: q["parameters"].update(epsilon="1/0"),
        lambda q: q["parameters"].update(epsilon="-1"),
        lambda q: q["parameters"].update(epsilon=1.0),
        lambda q: q["parameters"].update(epsilon="9" * 5000),
        lambda q: q["parameters"].update(more=1),
        lambda q: q["parameters"].pop("k"),
    ],
)
def test_questions_that_were_changed_are_refused(change):
    text = json.loads(survey.Item("who?", PROTOCOLS["k-ary response"]).text)
    change(text)
    with pytest.raises(dp.errors.ReportError):
        survey.read_item(json.dumps(text))


def test_only_protocols_are_asked():
    with pytest.raises(dp.errors.ParameterTypeError):
        survey.Item("who?", 3)
    with pytest.raises(dp.ParameterError, match="name"):
        survey.Item("", PROTOCOLS["places"])
