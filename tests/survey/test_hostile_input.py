"""Whatever comes in from outside is read or refused with an error of the library."""

import json
from fractions import Fraction

import numpy as np
import pytest

import deniable as dp
from deniable import survey
from deniable.survey import designs, estimate, estimate_counts
from deniable.survey.codebook import codebook, read_codebook

KARY = survey.KaryResponse(k=2, epsilon=1)
MEAN = survey.OneBitMean(epsilon=1, bounds=(0, 1))
PLACES = survey.Item("where?", survey.Places(epsilon=1, within=200))
QUESTION = survey.Item("who?", KARY)


def nested(depth):
    inner = '{"kind":"k-ary response","parameters":{"epsilon":"1","k":2},"thresholds":{}}'
    for _ in range(depth):
        inner = f'{{"kind":"sample one","parameters":{{"parts":[{inner}]}},"thresholds":{{}}}}'
    return inner[:-1] + ',"name":"x","version":1}'


def sketch(**more):
    return survey.CountMeanSketch(k=10, epsilon=1, hashes=2, width=8, **more)


CALLS = {
    "a huge number in a place": lambda: PLACES.protocol.from_wire([[10**400, 2]]),
    "a deep question": lambda: survey.read_item(nested(249)),
    "a question in a question": lambda: survey.read_item(nested(2)),
    "half a sign": lambda: sketch(salt="\ud800"),
    "no text": lambda: QUESTION.read(None),
    "no question": lambda: survey.read_item(None),
    "a question of version true": lambda: survey.read_item(
        QUESTION.text.replace('"version":1', '"version":true')
    ),
    "UTF-16": lambda: QUESTION.read(QUESTION.write(np.array([1, 0])).encode("utf-16")),
    "parts that are none": lambda: survey.Together((MEAN,)).aggregate((5,)),
    "no parts": lambda: survey.SampleOne((MEAN,)).aggregate(None),
    "no parts to find in": lambda: survey.HeavyHitters(bits=16, epsilon=1).find(None),
    "no levels": lambda: survey.Hierarchy(k=16, epsilon=1).aggregate(5),
    "a number for a column": lambda: survey.Together((MEAN,)).randomize([5]),
    "the same, one drawn": lambda: survey.SampleOne((MEAN,)).randomize([5]),
    "a tally and a number": lambda: KARY.aggregate(np.array([0])) + 5,
    "a mean and a number": lambda: MEAN.aggregate(np.array([0])) + 5,
    "two kinds of tallies": lambda: MEAN.aggregate(np.array([0])) + KARY.aggregate(np.array([0])),
    "a list for a name": lambda: survey.Client({"a": KARY}).report(["a"], 1),
    "a design on a device": lambda: survey.Client({"a": designs.two_coins()}),
    "parts on a device": lambda: survey.Client({"a": survey.Together((KARY,))}),
    "no questions": lambda: survey.Client(None),
    "a function beyond the last": lambda: sketch().channel(5),
    "a column beyond the last": lambda: survey.HadamardSketch(
        k=10, epsilon=1, hashes=2, width=8
    ).channel(1, 8),
    "a function beyond 64 bits": lambda: survey.LocalHashing(k=10, epsilon=1).channel(
        (2**70, 1, 1)
    ),
    "half a function": lambda: survey.LocalHashing(k=10, epsilon=1).channel((2, 1)),
    "a huge probability": lambda: designs.from_matrix([[Fraction(10) ** 400, 0], [0, 1]], "ab"),
    "very many bins": lambda: survey.SquareWave(
        epsilon=1, bounds=(0, 1), steps=1 << 16
    ).reconstruct(np.array([5]), bins=1 << 15),
    "a set of reports": lambda: estimate(designs.two_coins(), {True, False}),
    "booleans for numbers": lambda: estimate(
        designs.randomized_response(epsilon=1, categories=[0, 1, 2]), [True, False, 2]
    ),
    "booleans for numbers, counted": lambda: estimate_counts(
        designs.randomized_response(epsilon=1, categories=[0, 1, 2]), {True: 3}
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_makes_no_sense_is_refused(name):
    with pytest.raises(dp.DeniableError):
        CALLS[name]()


def test_reports_in_bytes_are_read():
    assert QUESTION.read(QUESTION.write(np.array([1, 0])).encode()).tolist() == [1, 0]


def test_a_question_with_a_long_fraction_can_be_read_back():
    question = survey.Item("x", survey.KaryResponse(k=2, epsilon=Fraction(10**450 + 1, 10**450)))
    assert survey.read_item(question.text) == question


def test_a_fine_square_wave_is_reconstructed_without_a_table_of_all_starts():
    wave = survey.SquareWave(epsilon=1, bounds=(0, 1), steps=1 << 15)
    found = wave.reconstruct(wave.randomize([0.5] * 10), bins=4, iterations=1)
    assert found.shares.sum() == pytest.approx(1)
    small = survey.SquareWave(epsilon=1, bounds=(0, 1), steps=40)
    rows = np.array(small.channel().rows, dtype=float)
    member = np.minimum(np.arange(41) * 7 // 40, 6)
    means = [rows[member == number].mean(axis=0) for number in range(7)]
    assert np.allclose(small._laws(7).T, means, rtol=1e-12)


WARNER = codebook(designs.warner(truth=Fraction(3, 4)), question="q").to_json()
CHANGES = {
    "another parameter": ('"truth": "3/4"', '"truth": "99/100"'),
    "another method": ('"method": "warner"', '"method": "mangat"'),
    "a parameter too many": ('"truth": "3/4"', '"truth": "3/4", "yes": "1/2"'),
    "a field twice": ('"format"', '"epsilon": 0.001, "format"'),
    "version true": ('"version": 1', '"version": true'),
    "not private": ('"not_private": false', '"not_private": true'),
    "a huge parameter": ('"truth": "3/4"', '"truth": "1e5000"'),
    "a tiny parameter": ('"truth": "3/4"', '"truth": "1e-10000000"'),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_codebook_that_contradicts_itself_is_refused(name):
    old, new = CHANGES[name]
    assert old in WARNER
    with pytest.raises(dp.ParameterError):
        read_codebook(WARNER.replace(old, new))


@pytest.mark.parametrize("entry", ["1e400", "1e-10000000", "9" * 450])
def test_a_codebook_with_a_channel_of_no_probabilities_is_refused(entry):
    written = json.loads(WARNER)
    written["channel"][0][0] = entry
    with pytest.raises(dp.ParameterError):
        read_codebook(json.dumps(written))


@pytest.mark.parametrize(
    "design",
    [
        designs.warner(truth=0.7),
        designs.two_coins(),
        designs.randomized_response(epsilon=1, categories=["a", "b", "c"]),
        designs.forced_response(truth=Fraction(3, 4), yes=Fraction(1, 6), no=Fraction(1, 12)),
        designs.unrelated_question(asked=0.7, prevalence=0.2),
        designs.crosswise(prevalence=0.2),
        designs.triangular(prevalence=0.25, not_private=True),
        designs.mangat(truth=0.7, not_private=True),
        designs.open_question("abc", not_private=True),
        designs.from_matrix([[0.8, 0.2], [0.1, 0.9]], ["x", "y"], method="of our own"),
    ],
)
def test_every_design_is_read_back(design):
    assert read_codebook(codebook(design, question="q").to_json()).design == design
