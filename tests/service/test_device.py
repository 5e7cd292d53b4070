"""The Python twin of the respondent's script: its exact law, and the vectors both are held to."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from chance import FALSE_ALARM
from deniable.errors import ParameterError
from deniable.service.brief import brief
from deniable.survey.thresholds import WORD
from service.device import respond
from service.surveys import survey

VECTORS = json.loads((Path(__file__).parent / "channel_vectors.json").read_text())
DOCUMENT = survey()


def test_vectors_are_of_the_laws_that_the_library_states():
    shown = brief(DOCUMENT, "en")["items"]
    assert [item["law"] for item in VECTORS["items"]] == [item["law"] for item in shown]


def test_python_gives_the_vectors():
    assert len(VECTORS["vectors"]) > 500
    for vector in VECTORS["vectors"]:
        item, words = DOCUMENT.items[vector["item"]], iter(vector["words"])
        thrown = respond(item, Fraction(str(vector["answer"])), words.__next__)
        assert (thrown.report, thrown.told) == (vector["report"], vector["told"])


@pytest.mark.parametrize(("at", "answer"), [(0, 2), (0, -1), (1, 3), (2, 5), (2, 1.5), (0, 7)])
def test_an_answer_that_is_none_is_not_thrown_for(at, answer):
    """A scale from 1 to 5 has places 0 to 4; the error does not quote the answer."""
    with pytest.raises(ParameterError, match="whole number from 0") as error:
        respond(DOCUMENT.items[at], answer)
    assert f"'{answer}'" not in str(error.value)
    assert f"={answer}" not in str(error.value)


def test_vectors_touch_both_sides_of_every_threshold():
    """The word below decides for the answer, the threshold itself for chance."""
    for at, item in enumerate(DOCUMENT.items):
        told = {
            (vector["words"][skip] << 32) | vector["words"][skip + 1]: vector["told"]
            for vector in VECTORS["vectors"]
            if vector["item"] == at
            for skip in [int(item.kind == "number")]
        }
        edge = int(item.told * WORD) if item.reports == 2 else int(item.truth * WORD)
        assert (told[edge - 1], told[edge]) == (True, False)


@pytest.mark.parametrize("item", DOCUMENT.items[:3], ids=lambda item: item.id)
def test_the_law_is_exactly_the_channel(item):
    """P(told) and the uniform rest, from the decisions at the edges, give the design's rows."""
    k = item.reports
    edge = Fraction(int((item.told if k == 2 else item.truth) * WORD), WORD)
    for answer in range(k):
        law = [Fraction(0)] * k
        law[answer] += edge
        rest = 2 if k == 2 else k - 1  # a fair coin's sides, or a die of all others
        for word in range(rest):
            stream = iter([2**32 - 1, 2**32 - 1, word])
            law[respond(item, answer, stream.__next__).report] += (1 - edge) / rest
        assert tuple(law) == item.design.channel.rows[answer]


def test_words_beyond_the_last_full_round_are_drawn_again():
    item = DOCUMENT.items[2]  # a die of four others: 2^32 is a multiple of 4, nothing is redrawn
    three = survey([{"id": "a", "kind": "scale", "text": {"en": "?"}, "epsilon": 1, "low": 0,
                     "high": 3}]).items[0]  # fmt: skip
    stream = iter([2**32 - 1, 2**32 - 1, 2**32 - 1, 4])
    assert respond(three, 0, stream.__next__).report == 2
    assert next(stream, None) is None
    stream = iter([2**32 - 1, 2**32 - 1, 2**32 - 1])
    assert respond(item, 0, stream.__next__).report == 4


def test_fresh_words_follow_the_channel():
    item, answer, n = DOCUMENT.items[1], 2, 20_000
    seen = np.bincount([respond(item, answer).report for _ in range(n)], minlength=3)
    right = np.array([float(p) for p in item.design.channel.rows[answer]])
    wrong = np.array([float(p) for p in item.design.channel.rows[0]])
    assert stats.chisquare(seen, right * n).pvalue > FALSE_ALARM
    assert stats.chisquare(seen, wrong * n).pvalue < FALSE_ALARM  # the check has power


def test_a_number_is_moved_to_an_end_in_proportion():
    item, n = DOCUMENT.items[3], 20_000
    high = sum(respond(item, Fraction(3)).report for _ in range(n))
    share = float(item.truth / 4 + (1 - item.truth) * 3 / 4)
    assert stats.binomtest(high, n, share).pvalue > FALSE_ALARM
    assert stats.binomtest(high, n, 1 - share).pvalue < FALSE_ALARM
