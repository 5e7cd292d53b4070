import csv
import io
import json
from fractions import Fraction

import numpy as np
import pytest

import deniable as dp
from deniable.survey import designs, estimate, estimate_counts
from deniable.survey.codebook import codebook, read_codebook
from deniable.survey.designs import joint

F = Fraction
DIE = designs.forced_response(truth=F(3, 4), yes=F(1, 6), no=F(1, 12))
ALL = [
    DIE,
    designs.two_coins(),
    designs.randomized_response(epsilon=1, categories=("red", "green", "blue")),
    designs.crosswise(prevalence=0.25),
    designs.mangat(truth=0.7, not_private=True),
    designs.from_matrix([[0.7, 0.3, 0], [0.2, 0.8, 0]], (1, 2), "xyz"),
]


@pytest.mark.parametrize("design", ALL, ids=lambda d: d.method)
def test_a_codebook_comes_back_as_it_was(design):
    counts = {report: 10 * (i + 1) for i, report in enumerate(design.reports)}
    book = codebook(design, question="Did you?", estimate=estimate_counts(design, counts))
    again = read_codebook(book.to_json())
    assert again == book
    assert again.design == design
    assert np.array_equal(again.estimate().shares, book.estimate().shares)


def test_fractions_are_exact_and_the_worse_side_is_stated():
    book = codebook(DIE, question="Did you?").as_dict()
    assert book["channel"] == [["5/6", "1/6"], ["1/12", "11/12"]]
    assert book["parameters"] == {"truth": "3/4", "yes": "1/6", "no": "1/12"}
    assert book["epsilon"] == max(book["epsilon_by_report"]) == pytest.approx(2.302585092994046)
    assert codebook(ALL[4], question="?").as_dict()["epsilon"] is None


def test_a_stranger_redoes_the_estimate_from_the_csv_alone():
    found = estimate_counts(DIE, {True: 350, False: 850})
    text = codebook(DIE, question='Did you, "ever"?', estimate=found).to_csv()
    lines = [line for line in csv.DictReader(io.StringIO(text)) if line["answer"] == "True"]
    n = sum(int(line["count"]) for line in lines)
    share = sum(F(line["weight"]) * int(line["count"]) for line in lines) / n
    assert share == F(1, 6)
    assert float(share) == pytest.approx(found.share(), abs=1e-15)
    assert {line["probability"] for line in lines} == {"1/12", "11/12"}
    assert lines[0]["question"] == 'Did you, "ever"?'


def changed(**entries):
    book = codebook(DIE, question="Did you?").as_dict()
    return json.dumps(book | entries)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        "[" * 100_000,
        changed(version=2),
        changed(format="other"),
        changed(epsilon=0.1),
        changed(epsilon_by_report=[1, 1]),
        changed(channel=[["1/2", "1/2"], ["1/2", "1/2"]]),
        changed(channel=[["3/4", "1/4"], ["1/4", "3/4"]]),
        changed(channel=[["5/6", "1/0"], ["1/12", "11/12"]]),
        changed(channel=[["5/6", 0.1], ["1/12", "11/12"]]),
        changed(weights=[["1", "0"], ["0", "1"]]),
        changed(extra=1),
        changed(counts=[1]),
        changed(counts=[1, -1]),
        changed(counts=[1, 1.5]),
        changed(answers=[True, True]),
        changed(not_private=True, channel=[["1", "0"], ["1/2", "1/2"]]),
    ],
)
def test_what_is_no_codebook_or_contradicts_itself_is_refused(text):
    with pytest.raises(dp.ParameterError):
        read_codebook(text)


def test_other_refusals():
    with pytest.raises(dp.errors.ParameterTypeError):
        read_codebook(None)
    with pytest.raises(dp.errors.ParameterTypeError, match="labels"):
        codebook(joint(DIE, DIE), question="?")
    coins = designs.two_coins()
    with pytest.raises(dp.ParameterError, match="this design"):
        codebook(DIE, question="?", estimate=estimate(coins, [True]))
    with pytest.raises(dp.ParameterError, match="without weights"):
        codebook(coins, question="?", estimate=estimate(coins, [True, False], weights=[1, 2]))
    with pytest.raises(dp.ParameterError, match="no counts"):
        codebook(DIE, question="?").estimate()
