"""Callers that try to get more out of the door than they pay for."""

from typing import ClassVar

import numpy as np
import pytest

import deniable as dp
from deniable.synthesis.scores import BoostedQuery, ClosestDatabase, WrongMarginal
from synthesis.doors import KEY, opened, related

SIZES = {"a": 3, "b": 4}
ROWS = related(300, SIZES)
DOMAIN = dp.synthesis.Domain(SIZES)


@pytest.fixture
def draws():
    with dp.Ledger(key=KEY) as ledger:
        yield opened(ROWS, SIZES, ledger=ledger, rho=1)


def refused(draws, question):
    with pytest.raises((dp.ParameterError, dp.errors.ParameterTypeError)):
        draws.choose(question, draws.whole / 2)
    assert draws.spent == 0


def test_a_subclass_of_a_question_does_not_score(draws):
    class Peeks(WrongMarginal):
        def scores(self, *_):
            raise AssertionError("it saw exact counts")

    refused(draws, Peeks([("a",)], [np.zeros(3)], [1], [0.0]))


class Loud(dp.synthesis.Counting):
    """A query whose answer moves by a million with one row."""

    def of_exact(self, marginal):
        return 10**6 * super().of_exact(marginal)

    def check(self, domain):
        """Never refuses itself."""


@pytest.mark.parametrize(
    "question",
    [
        lambda query: ClosestDatabase([query], 1, 10.0),
        lambda query: BoostedQuery([query], [np.zeros(1)], 1.0, 2.0),
    ],
)
def test_a_query_that_counts_by_code_of_its_own_is_refused(draws, question):
    refused(draws, question(Loud(DOMAIN, {"a": 1})))
    assert draws.choose(question(dp.synthesis.Counting(DOMAIN, {"a": 1})), draws.whole / 9) >= 0


def test_online_and_single_counts_refuse_such_queries_too(draws):
    with pytest.raises(dp.ParameterError, match="Counting"):
        draws.count(Loud(DOMAIN, {"a": 1}), draws.whole / 2)
    online = dp.synthesis.PrivateMultiplicativeWeights(draws, queries=10, updates=2)
    before = draws.spent
    for query in (
        Loud(DOMAIN, {"a": 1}),
        dp.synthesis.Counting(dp.synthesis.Domain({"a": 9, "b": 4}), {"a": 8}),
    ):
        with pytest.raises(dp.ParameterError):
            online.answer(query)
    with pytest.raises(dp.errors.ParameterTypeError):
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
    with pytest.raises((dp.ParameterError, dp.errors.ParameterTypeError)):
        draws.error_of(question, draws.whole / 2)


@pytest.mark.parametrize(("right", "width"), [(2.0**62, 1.0), (1.0, 2.0**62), (-1.0, 1.0)])
def test_votes_that_would_wrap_around_are_refused(draws, right, width):
    query = dp.synthesis.Counting(DOMAIN, {"a": 1})
    refused(draws, BoostedQuery([query], [np.zeros(1)], right, width))


def test_online_answers_end_with_their_door(draws):
    online = dp.synthesis.PrivateMultiplicativeWeights(draws, queries=10, updates=2)
    query = dp.synthesis.Counting(DOMAIN, {"a": 1})
    online.answer(query)
    draws.close([])
    with pytest.raises(dp.errors.DoorError, match="closed"):
        online.answer(query)


def test_a_failed_read_says_nothing_about_the_data(draws):
    class Breaks:
        bound, steps, relation, domain = 1, 1, dp.Relation.ADD_REMOVE, DOMAIN

        def exact(self, clique):
            if clique:
                raise ValueError("Ann has 7 visits")
            return np.array(3)

    draws._data = Breaks()
    online = dp.synthesis.PrivateMultiplicativeWeights(draws, queries=10, updates=2)
    for ask in (
        lambda: draws.measure(("a",), draws.left),
        lambda: online.answer(dp.synthesis.Counting(DOMAIN, {"a": 1})),
    ):
        with pytest.raises(dp.ReleaseFailedError) as failed:
            ask()
        assert "Ann" not in str(failed.value)
        assert failed.value.__context__ is None


class Spy(np.ndarray):
    """An array whose own code sees what it is computed with."""

    seen: ClassVar[list[object]] = []

    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        Spy.seen.append(ufunc)
        named.pop("out", None)
        plain = [each.view(np.ndarray) if isinstance(each, Spy) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **named)


class Weight(int):
    """A number whose own code sees what it is multiplied with."""

    seen: ClassVar[list[object]] = []

    def __mul__(self, other):
        Weight.seen.append(other)
        return int(self) * other


def test_no_code_of_a_caller_runs_beside_exact_counts(draws):
    Spy.seen.clear()
    zeros = np.zeros(3).view(Spy)
    draws.choose(WrongMarginal([("a",)], [zeros], [1], [0.0]), draws.whole / 9)
    for ask in (draws.choose, draws.error_of):
        with pytest.raises(dp.errors.ParameterTypeError, match="weights"):
            ask(WrongMarginal([("a",)], [zeros], [Weight(1)], [0.0]), draws.whole / 9)
    query = dp.synthesis.Counting(DOMAIN, {"a": 1})
    draws.choose(BoostedQuery([query], [np.zeros(1).view(Spy)], 1.0, 2.0), draws.whole / 9)
    object.__setattr__(query, "of_exact", Spy.seen.append)
    draws.choose(BoostedQuery([query], [], 1.0, 2.0), draws.whole / 9)
    draws.count(query, draws.whole / 9)
    assert Spy.seen == Weight.seen == []


class Lies(list):
    """A list that shows something else the second time it is looked at."""

    looks = 0

    def __iter__(self):
        self.looks += 1
        return super().__iter__() if self.looks > 1 else iter([1] * len(self))

    def __len__(self):
        return 1


def test_what_is_checked_and_charged_is_what_scores():
    given = WrongMarginal([("a",)], [np.zeros(3)], Lies([10**6]), [0.0])
    asked = given.frozen(given, DOMAIN)
    assert asked.sensitivity(1) == 1
    assert asked.scores(dp.synthesis.CodedRows(ROWS, SIZES).exact, 1) == [len(ROWS)]
    query = dp.synthesis.Counting(DOMAIN, {"a": 1})
    synopses = Lies([np.zeros(1)] * 3)
    synopses.looks = 1
    votes = BoostedQuery([query], synopses, 1.0, 2.0)
    assert votes.frozen(votes, DOMAIN).sensitivity(1) == 6


@pytest.mark.filterwarnings("error")
def test_numbers_of_numpy_do_not_wrap_around(draws):
    models = [np.zeros(3), np.zeros(4)]
    huge = [np.int64(10**18), np.int64(10**18)]
    given = WrongMarginal([("a",), ("b",)], models, huge, [0.0, 0.0])
    asked = given.frozen(given, DOMAIN)
    assert asked.sensitivity(2**20) == 10**18 * 2**20
    assert asked.scores(dp.synthesis.CodedRows(ROWS, SIZES).exact, 1) == [len(ROWS) * 10**18] * 2
    assert draws.choose(given, draws.whole / 9) in {0, 1}


def test_synopses_whose_votes_would_wrap_in_sum_are_refused(draws):
    query = dp.synthesis.Counting(DOMAIN, {"a": 1})
    refused(draws, BoostedQuery([query], [np.zeros(1)] * 3000, 1.0, 2.0**39))
    refused(draws, BoostedQuery([query], [np.zeros(2)], 1.0, 2.0))


@pytest.mark.parametrize("codes", [[0, 1], [0, -1, 1], [0, 0, 3], [[0], [1], [2]]])
def test_merges_that_are_no_new_codes_are_refused(draws, codes):
    with pytest.raises(dp.ParameterError, match="new code"):
        draws.merge({"a": np.array(codes)})
    draws.merge({"a": np.array([0, 0, 1]).view(Spy)})
    Spy.seen.clear()
    draws.measure(("a",), draws.left)
    assert Spy.seen == []
