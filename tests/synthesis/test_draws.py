"""The door of a synthesis: prices, noise, and who sees data."""

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from amounts import rho
from chance import FALSE_ALARM
from deniable.errors import BudgetError, DoorError, ParameterError, ParameterTypeError
from deniable.privacy.amount import on_grid_below
from deniable.synthesis.data import CodedRows
from deniable.synthesis.journal import Journal
from deniable.synthesis.measure import Draws
from deniable.synthesis.scores import BoostedQuery, ClosestDatabase, WrongMarginal, in_steps
from synthesis.doors import KEY, opened, related

SIZES = {"a": 3, "b": 4, "c": 2}
ROWS = related(2000, SIZES)


@pytest.fixture
def ledger():
    with dp.Ledger(key=KEY) as made:
        yield made


@pytest.mark.parametrize("price", [{"rho": 0.5}, {"epsilon": 0.7}])
def test_what_is_charged_is_what_was_reserved_to_the_last_digit(ledger, price):
    draws = opened(ROWS, SIZES, ledger=ledger, **price)
    amount = Fraction(str(next(iter(price.values()))))
    for column in SIZES:
        draws.measure((column,), amount / 7)
    draws.measure(("a", "b"), draws.left)
    draws.close([])
    (balance,) = [ledger.balance("people")]
    (totals,) = balance.totals
    charged = totals.epsilon if "epsilon" in price else totals.rho
    assert Fraction(charged, 10**18) == amount
    assert draws.spent <= draws.whole == amount


def test_draws_beyond_the_reserved_price_are_refused(ledger):
    draws = opened(ROWS, SIZES, ledger=ledger, rho=0.5)
    draws.measure(("a",), Fraction(1, 2))
    assert draws.left < Fraction(1, 10**15)
    with pytest.raises(BudgetError):
        draws.measure(("a",), Fraction(1, 100))


@pytest.mark.parametrize(("price", "deviation"), [({"rho": 0.02}, 5.0), ({"epsilon": 0.2}, 7.07)])
def test_noise_has_the_stated_deviation_and_no_bias(ledger, price, deviation):
    draws = opened(ROWS, SIZES, ledger=ledger, **price)
    assert np.isclose(draws.deviation(draws.whole), deviation, rtol=0.01)
    many = opened(ROWS, {"a": 3, "b": 4, "c": 2000}, ledger=ledger, **price)
    noisy = many.measure(("c",), many.whole)
    noise = (noisy.values - CodedRows(ROWS, {"a": 3, "b": 4, "c": 2000}).exact(("c",))) / deviation
    spread = stats.norm.ppf(1 - FALSE_ALARM / 4) * np.sqrt(5 / noise.size)  # kurtosis 6 at most
    assert abs(noise.mean()) < spread
    assert abs(noise.var() - 1) < 1.1 * spread
    assert abs((1.5 * noise).var() - 1) > 1.1 * spread  # the check has power


def test_a_row_moves_one_cell_and_replaced_rows_pay_for_two(ledger):
    plain = opened(ROWS, SIZES, ledger=ledger, rho=0.5)
    assert plain.unit == 1
    with dp.Ledger(key=KEY) as other:
        replaced = opened(ROWS, SIZES, ledger=other, rho=0.5, relation="replace")
        assert replaced.unit == 2
        ratio = replaced.deviation(Fraction(1, 9)) / plain.deviation(Fraction(1, 9))
        assert np.isclose(ratio, np.sqrt(2))


def test_rows_outside_of_the_domain_are_counted_nowhere():
    rows = np.array([[0, 0, 0], [9, 0, 0], [0, -1, 0], [1, 1, 1]])
    data = CodedRows(rows, SIZES)
    assert data.exact(()).sum() == data.exact(("b",)).sum() == 2


def test_the_domain_is_declared_not_found():
    with pytest.raises(ParameterError, match="2 columns"):
        CodedRows(ROWS, {"a": 3, "b": 4})
    with pytest.raises(ParameterTypeError):
        CodedRows(ROWS.astype(float), SIZES)
    with pytest.raises(ParameterError, match="group them"):
        dp.synthesis.Domain({"a": 2_000_000})


def question():
    return WrongMarginal([("a",), ("b",)], [np.full(3, 600.0), np.full(4, 500.0)], [2, 5], [1.5, 0])


def test_scores_are_whole_numbers_that_move_by_what_is_charged():
    data, more = CodedRows(ROWS, SIZES), CodedRows(np.vstack([ROWS, [[2, 3, 1]]]), SIZES)
    queries = [
        dp.synthesis.Counting(data.domain, {"a": 1}),
        dp.synthesis.Counting(data.domain, {"b": [0, 3]}),
    ]
    answers = np.array([300.4, 900.2])
    asked = [
        question(),
        ClosestDatabase(queries, 1, 1000.0),
        BoostedQuery(queries, [answers, answers * 1.1], 5.0, 700.0),
    ]
    for given in asked:
        each = given.frozen(given, data.domain)
        before, after = each.scores(data.exact, 1), each.scores(more.exact, 1)
        assert len(before) == each.count
        assert all(isinstance(int(score), int) and score == int(score) for score in before)
        moved = np.abs(np.array(after) - np.array(before)).max()
        assert 0 < moved <= each.sensitivity(1)


def test_absurd_models_cannot_make_scores_wrap_around():
    huge = np.array([np.inf, -np.inf, np.nan] * 1000)
    steps = in_steps(huge, 1 << 16)
    assert abs(sum(map(abs, steps.tolist()))) < 1 << 62


def test_no_code_of_a_caller_may_score(ledger):
    class Peeks:
        count = 1

        def sensitivity(self, moved):
            return moved

        def scores(self, *_):
            raise AssertionError("it saw exact counts")

    draws = opened(ROWS, SIZES, ledger=ledger, rho=1)
    with pytest.raises(ParameterTypeError, match="the library scores"):
        draws.choose(Peeks(), Fraction(1, 2))
    assert draws.spent == 0


def test_a_choice_follows_the_exponential_mechanism(ledger):
    epsilon, picks = 0.01, []
    scores = np.array(question().scores(CodedRows(ROWS, SIZES).exact, 1), dtype=float)
    law = np.exp(epsilon * (scores - scores.max()) / 2 / 5)
    for _ in range(1500):
        draws = opened(ROWS, SIZES, ledger=ledger, epsilon=epsilon)
        picks.append(draws.choose(question(), draws.whole))
    hits = sum(pick == 0 for pick in picks)
    assert stats.binomtest(hits, 1500, law[0] / law.sum()).pvalue > FALSE_ALARM


def test_merged_values_are_measured_as_sums(ledger):
    draws = opened(ROWS, SIZES, ledger=ledger, rho=900)
    draws.merge({"b": np.array([0, 1, 1, 1])})
    assert draws.domain.shape(("a", "b")) == (3, 2)
    noisy = draws.measure(("a", "b"), draws.whole).values
    exact = CodedRows(ROWS, SIZES).exact(("a", "b"))
    assert np.abs(noisy - np.stack([exact[:, 0], exact[:, 1:].sum(axis=1)], axis=1)).max() < 1


def resumable(ledger, path, number=None):
    ledger.open("people", dp.Budget(dp.ZCDP(10)), who="owner")
    gate, data = dp.Gate(ledger, "people", "owner"), CodedRows(ROWS, SIZES)
    loss = rho(1).loss
    door = (
        gate.open(loss, purpose="a test", resumable=True) if number is None else gate.resume(number)
    )
    return Draws(door, data, rho(1), journal=Journal(path)), door.number


def test_an_interrupted_run_goes_on_from_its_measurements(ledger, tmp_path):
    path = tmp_path / "drawn.jsonl"
    first, number = resumable(ledger, path)
    seen = first.measure(("a",), Fraction(1, 4))
    first.choose(question(), Fraction(1, 4))
    again, _ = resumable(ledger, path, number)
    assert (again.measure(("a",), Fraction(1, 4)).values == seen.values).all()
    again.choose(question(), Fraction(1, 4))
    again.measure(("b",), again.left)
    assert ledger.balance("people").totals[0].rho == 10**18
    with pytest.raises(BudgetError):
        again.measure(("b",), Fraction(1, 100))


def test_a_draw_that_was_lost_stays_spent_and_the_rest_shrinks(ledger, tmp_path):
    path = tmp_path / "drawn.jsonl"
    first, number = resumable(ledger, path)
    first.measure(("a",), Fraction(1, 4))
    first.measure(("b",), Fraction(1, 4))
    lines = path.read_text().splitlines()
    path.write_text(lines[0] + "\n" + lines[1][:20])  # the second line was cut off
    again, _ = resumable(ledger, path, number)
    again.measure(("a",), Fraction(1, 4))
    for column in ("b", "c", "a"):
        again.measure((column,), Fraction(1, 4))
    with pytest.raises(BudgetError):
        again.measure(("c",), Fraction(1, 4))


def test_a_journal_of_another_run_is_refused(ledger, tmp_path):
    path = tmp_path / "drawn.jsonl"
    first, number = resumable(ledger, path)
    first.measure(("a",), Fraction(1, 4))
    again, _ = resumable(ledger, path, number)
    with pytest.raises(ParameterError, match="another synthesis"):
        again.measure(("b",), Fraction(1, 4))
    path.write_text(json.dumps({"draw": ["measure", ["a"]], "price": "1/2"}) + "\n")
    with pytest.raises(ParameterError, match="never made"):
        resumable(ledger, path, number)
    path.write_text("no journal\n")
    with pytest.raises(ParameterError, match="no journal"):
        Journal(path)


def test_without_a_door_nothing_is_drawn():
    draws = Draws(None, CodedRows(ROWS, SIZES), rho(1))
    with pytest.raises(DoorError):
        draws.measure(("a",), Fraction(1, 2))


def test_shares_are_rounded_down_to_the_grid_of_prices():
    assert on_grid_below(Fraction(1, 3)) == Fraction(10**18 // 3, 10**18)
