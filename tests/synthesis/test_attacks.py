"""Callers that try to get more out of the door than they pay for."""

import numpy as np
import pytest

import deniable as dp
from deniable.synthesis.scores import BoostedQuery, ClosestOffer, WrongMarginal
from synthesis.doors import KEY, opened, related

SIZES = {"a": 3, "b": 4}
ROWS = related(300, SIZES)
DOMAIN = dp.Domain(SIZES)


@pytest.fixture
def draws():
    with dp.Ledger(key=KEY) as ledger:
        yield opened(ROWS, SIZES, ledger=ledger, rho=1)


def refused(draws, question):
    with pytest.raises((dp.ParameterError, dp.ParameterTypeError)):
        draws.choose(question, draws.whole / 2)
    assert draws.spent == 0


def test_a_subclass_of_a_question_does_not_score(draws):
    class Peeks(WrongMarginal):
        def scores(self, *_):
            raise AssertionError("it saw exact counts")

    refused(draws, Peeks([("a",)], [np.zeros(3)], [1], [0.0]))


class Loud(dp.Counting):
    """A query whose answer moves by a million with one row."""

    def of_exact(self, marginal):
        return 10**6 * super().of_exact(marginal)

    def check(self, domain):
        """Never refuses itself."""


@pytest.mark.parametrize(
    "question",
    [
        lambda query: ClosestOffer([query], 1, lambda: [np.zeros((1, 1))]),
        lambda query: BoostedQuery([query], [np.zeros(1)], 1.0, 2.0),
    ],
)
def test_a_query_that_counts_by_code_of_its_own_is_refused(draws, question):
    refused(draws, question(Loud(DOMAIN, {"a": 1})))
    assert draws.choose(question(dp.Counting(DOMAIN, {"a": 1})), draws.whole / 9) == 0


def test_online_and_single_counts_refuse_such_queries_too(draws):
    with pytest.raises(dp.ParameterError, match="Counting"):
        draws.count(Loud(DOMAIN, {"a": 1}), draws.whole / 2)
    online = dp.PrivateMultiplicativeWeights(draws, queries=10, updates=2)
    before = draws.spent
    for query in (Loud(DOMAIN, {"a": 1}), dp.Counting(dp.Domain({"a": 9, "b": 4}), {"a": 8})):
        with pytest.raises(dp.ParameterError):
            online.answer(query)
    with pytest.raises(dp.ParameterTypeError):
        online.answer("a = 1")
    assert draws.spent == before


@pytest.mark.parametrize(
    ("clique", "model", "weight"),
    [
        ((), np.zeros(100), 1),  # the number of rows, counted a hundred times
        (("a",), np.zeros(1), 1),
        (("b", "a"), np.zeros((4, 3)), 1),
        (("a", "a"), np.zeros((3, 3)), 1),
        (("a",), np.zeros(3), -5),  # moves by 5, where the largest weight is 1
        (("a",), np.zeros(3), 0.5),
    ],
    ids=str,
)
def test_candidates_whose_scores_would_move_further_than_charged_are_refused(
    draws, clique, model, weight
):
    question = WrongMarginal([("b",), clique], [np.zeros(4), model], [1, weight], [0.0, 0.0])
    refused(draws, question)
    with pytest.raises((dp.ParameterError, dp.ParameterTypeError)):
        draws.error_of(question, draws.whole / 2)


@pytest.mark.parametrize(("right", "width"), [(2.0**62, 1.0), (1.0, 2.0**62), (-1.0, 1.0)])
def test_votes_that_would_wrap_around_are_refused(draws, right, width):
    query = dp.Counting(DOMAIN, {"a": 1})
    refused(draws, BoostedQuery([query], [np.zeros(1)], right, width))


def test_online_answers_end_with_their_door(draws):
    online = dp.PrivateMultiplicativeWeights(draws, queries=10, updates=2)
    query = dp.Counting(DOMAIN, {"a": 1})
    online.answer(query)
    draws.close([])
    with pytest.raises(dp.DoorError, match="closed"):
        online.answer(query)


def test_a_failed_read_says_nothing_about_the_data(draws):
    class Breaks:
        bound, steps, relation, domain = 1, 1, dp.Relation.ADD_REMOVE, DOMAIN

        def exact(self, clique):
            if clique:
                raise ValueError("Ann has 7 visits")
            return np.array(3)

    draws._data = Breaks()
    online = dp.PrivateMultiplicativeWeights(draws, queries=10, updates=2)
    for ask in (
        lambda: draws.measure(("a",), draws.left),
        lambda: online.answer(dp.Counting(DOMAIN, {"a": 1})),
    ):
        with pytest.raises(dp.ReleaseFailedError) as failed:
            ask()
        assert "Ann" not in str(failed.value)
        assert failed.value.__context__ is None
