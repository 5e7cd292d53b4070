import json
import math
from fractions import Fraction

import pytest

from deniable.errors import ParameterError
from deniable.service.document import read_document
from service.surveys import ASKED, CHOICE, NUMBER, SCALE, SPELT, YES_NO, survey, written


def test_a_document_reads_back_as_itself():
    document = survey()
    assert read_document(document.text) == document
    assert read_document(json.dumps(json.loads(document.text), indent=3)).id == document.id
    assert [item.kind for item in document.items] == ["yes/no", "choice", "scale", "number"]
    assert [item.reports for item in document.items] == [2, 3, 5, 2]


@pytest.mark.parametrize(
    "changes",
    [{"name": "village"}, {"wave": 2}, {"consent": {"en": "Other."}}, {"title": {"en": "Other"}}],
)
def test_any_change_makes_another_survey(changes):
    assert survey(**changes).id != survey().id


def test_epsilon_is_that_of_the_rounded_law_and_adds_up():
    document = survey()
    for item, asked in zip(document.items, (math.log(3), 1.5, 1, 2), strict=True):
        assert item.design.epsilon == pytest.approx(asked, abs=1e-12)
        assert item.loss_epsilon <= item.asked + Fraction(1, 10**39)
        assert item.design.channel.epsilon() <= item.epsilon
    total = sum(item.loss_epsilon for item in document.items)
    assert document.epsilon == total
    assert float(total) == pytest.approx(math.log(3) + 4.5)


def test_ln_3_is_two_fair_coins_exactly():
    item = survey([YES_NO]).items[0]
    assert (item.truth, item.told) == (Fraction(3, 4), Fraction(1, 2))
    near = survey([{**YES_NO, "epsilon": math.log(3)}]).items[0]
    assert near.truth != Fraction(3, 4)


HOSTILE = {
    "another format": written(format="survey"),
    "another version": written(version=2),
    "version as text": written(version="1"),
    "an unknown field": written(extra=1),
    "no questions": written([]),
    "too many questions": written(
        [{**YES_NO, "id": f"q{i}", "text": {"en": str(i)}} for i in range(21)]
    ),
    "twice the same id": written([YES_NO, YES_NO]),
    "a name with a path": written(name="../x"),
    "a language without text": written(languages=["en", "de"]),
    "no language": written(languages=[]),
    "twice a language": written(languages=["en", "en"]),
    "another admission": written(admission="open"),
    "wave 0": written(wave=0),
    "wave true": written(wave=True),
    "empty consent": written(consent={"en": " "}),
    "a control sign": written(title={"en": "a\u0000b"}),
    "an unknown kind": written([{**YES_NO, "kind": "essay"}]),
    "a kind that is a list": written([{**YES_NO, "kind": []}]),
    "epsilon 0": written([{**YES_NO, "epsilon": 0}]),
    "epsilon below 0": written([{**YES_NO, "epsilon": -1}]),
    "epsilon above 8": written([{**YES_NO, "epsilon": 8.001}]),
    "ln 3000": written([{**YES_NO, "epsilon": "ln 3000"}]),
    "epsilon of 1000": written([{**YES_NO, "epsilon": 1000}]),
    "epsilon true": written([{**YES_NO, "epsilon": True}]),
    "epsilon as text": written([{**YES_NO, "epsilon": "1"}]),
    "ln 1": written([{**YES_NO, "epsilon": "ln 1"}]),
    "ln 1/2": written([{**YES_NO, "epsilon": "ln 1/2"}]),
    "one option": written([{**CHOICE, "options": [{"en": "a"}]}]),
    "options alike": written([{**CHOICE, "options": [{"en": "a"}, {"en": "a"}]}]),
    "33 options": written([{**CHOICE, "options": [{"en": str(i)} for i in range(33)]}]),
    "a scale of one": written([{**SCALE, "high": 1}]),
    "a falling scale": written([{**SCALE, "high": -5}]),
    "a scale with floats": written([{**SCALE, "high": 5.0}]),
    "falling bounds": written([{**NUMBER, "low": 12, "high": 0}]),
    "a bound as text": written([{**NUMBER, "low": "0"}]),
    "options of a yes/no": written([{**YES_NO, "options": []}]),
    "a question that is text": written(["Drugs?"]),
    "a list": [],
    "limit 0": written(limit=0),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_not_exactly_right_is_refused(data):
    with pytest.raises(ParameterError):
        read_document(json.dumps(data))


@pytest.mark.parametrize("text", SPELT.values(), ids=SPELT.keys())
def test_two_questions_in_the_same_words_are_refused(text):
    twin = {**YES_NO, "id": "twin", "text": {"en": "Else?", "de": text}}
    first = {**YES_NO, "text": {"en": "Drugs?", "de": ASKED}}
    both = {"en": "A", "de": "B"}
    with pytest.raises(ParameterError, match=r"texts \(de\).*words of their own"):
        survey([first, twin], languages=["en", "de"], title=both, consent=both)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 100_000, '{"format":1,"format":2}', '{"wave":NaN}', " " * 200_001],
    ids=["nothing", "half", "deep", "twice a field", "nan", "long"],
)
def test_what_is_not_json_is_refused(text):
    with pytest.raises(ParameterError):
        read_document(text)
