"""Membership, k-anonymity, linkage, name and shame: people in tables."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from auditing.attacks.margins import at_most, near
from chance import FALSE_ALARM, plausible_share
from deniable.auditing.attacks.k_anonymity import lecture
from deniable.auditing.attacks.name_and_shame import exact_delta

ROUNDS = 20
PAIRS = 12 * ROUNDS * 100 / (1 + 100 / 500) / 4  # trials of a coin with the spread of such an AUC
AUC = {10: 0.534, 100: 0.692, 1_000: 0.937, 5_000: 0.999}


@pytest.fixture(scope="module")
def traced():
    found = dp.auditing.attacks.Membership(rounds=ROUNDS).run()
    return {(each.attributes, each.release): each for each in found.traced}


def expected_auc(attributes: int) -> float:
    """Scores of members lie √(attributes/2n) deviations above those of outsiders."""
    return float(stats.norm.cdf(math.sqrt(attributes / 200) / math.sqrt(2)))


@pytest.mark.parametrize("attributes", AUC)
def test_exact_means_tell_members(traced, attributes):
    found = traced[attributes, "exact means"].auc
    assert abs(expected_auc(attributes) - AUC[attributes]) < 0.03
    assert near(found, expected_auc(attributes), PAIRS, model=0.01)
    if attributes >= 1_000:
        assert not near(found, expected_auc(100), PAIRS, model=0.01)


def test_exact_means_find_members_at_few_false_alarms(traced):
    assert abs(traced[1_000, "exact means"].tpr_at_1_percent - 0.44) < 0.15
    assert traced[5_000, "exact means"].tpr_at_1_percent > 0.9


@pytest.mark.parametrize("attributes", AUC)
@pytest.mark.parametrize(("epsilon", "figure"), [(0.5, 0.51), (1.0, 0.53), (5.0, 0.597)])
def test_private_means_keep_members(traced, attributes, epsilon, figure):
    """However many attributes there are; the figures are averages over them."""
    found = traced[attributes, f"Deniable, ε = {epsilon:g}"]
    assert near(found.auc, figure, PAIRS, model=0.03)
    assert at_most(found.auc, found.auc_limit, PAIRS)
    assert at_most(found.tpr_at_1_percent, found.tpr_limit, 100 * ROUNDS)
    assert found.auc_limit <= math.exp(epsilon) / (1 + math.exp(epsilon)) + 1e-6
    assert found.tpr_limit <= 0.01 * math.exp(epsilon) + 1e-6


def test_curves_rise_and_their_areas_are_right():
    from deniable.auditing.attacks.membership import _curve

    made_up = np.random.default_rng()
    inside, outside = made_up.normal(1, 1, 300), made_up.normal(0, 1, 200).round(1)
    auc, rates = _curve(inside, outside)
    twin = np.mean((inside[:, None] > outside) + 0.5 * (inside[:, None] == outside))
    assert auc == pytest.approx(twin)
    assert (np.diff(rates) >= 0).all()
    assert rates[0] == 0
    assert rates[-1] == 1


PINNED = {
    (3, 10): (0.002, 0.379),
    (3, 50): (0.0, 0.674),
    (3, 200): (0.0, 0.760),
    (5, 10): (0.0, 0.060),
    (5, 50): (0.0, 0.335),
    (5, 200): (0.0, 0.521),
    (10, 10): (0.0, 0.001),
    (10, 50): (0.0, 0.025),
    (10, 200): (0.0, 0.170),
}


@pytest.fixture(scope="module")
def intersected():
    found = dp.auditing.attacks.KAnonymity(rounds=3).run()
    return {(each.k, each.values): each for each in found.intersected}


@pytest.mark.parametrize("cell", PINNED)
def test_two_releases_pin_what_one_hides(intersected, cell):
    one, both = PINNED[cell]
    found = intersected[cell]
    assert near(found.by_one, one, 3_000, model=0.01)
    assert near(found.by_both, both, 3_000, model=0.04)
    if cell[0] == 3:
        assert not near(found.by_both, PINNED[5, cell[1]][1], 3_000, model=0.04)


@pytest.mark.parametrize("cell", PINNED)
def test_private_histograms_keep_the_limit(intersected, cell):
    found = intersected[cell]
    grown = math.exp(2 * 0.5)
    assert found.guess_limit == pytest.approx(grown / (grown + cell[1] - 1))
    assert at_most(found.guessed_private, found.guess_limit, 3_000)
    if cell == (3, 50):
        assert not at_most(found.by_both, found.guess_limit, 3_000)  # the check has power


def test_the_two_tables_of_the_lecture():
    found = lecture(0.5)
    assert (found.city_k, found.valley_k) == (4, 6)
    assert len(found.by_city) == 3
    assert len(found.by_valley) == 4
    assert found.by_both == ("AIDS",)
    assert found.homogeneous == ("cancer",)
    assert found.with_background == ("angina",)
    assert len(found.private_counts) == 3


@pytest.fixture(scope="module")
def linked():
    return dp.auditing.attacks.Linkage().run()


def test_quasi_identifiers_single_people_out(linked):
    cells = 2 * int(70 * 365.2425) * 100
    assert near(linked.unique_by_birth_date, (1 - 1 / cells) ** 99_999, 100_000)
    assert near(linked.unique_by_birth_date, 0.980, 100_000)
    assert near(linked.unique_by_birth_year, 0.0009, 100_000)
    assert not near(linked.unique_by_birth_year, 0.980, 100_000)
    # Of those who are not alone nearly all are two, of whom half have the same bit.
    alone = linked.unique_by_birth_date
    assert near(linked.told_naive, alone + (1 - alone) / 2, 100_000)


RATINGS = {2: (0.02, 0.61), 3: (0.17, 0.99), 4: (0.41, 1.0), 8: (0.98, 1.0)}


def test_ratings_single_users_out(linked):
    for each in linked.ratings:
        items, dates = RATINGS[each.items]
        assert near(each.unique, items, 500, model=0.03)
        assert near(each.unique_with_dates, dates, 500, model=0.03)
    assert not near(linked.ratings[0].unique_with_dates, RATINGS[2][0], 500, model=0.03)


def test_a_session_shows_no_rows_and_counts_tell_no_more_than_they_may(linked):
    assert linked.rows_refused
    assert linked.limit == pytest.approx(0.731, abs=1e-3)
    # Geometric noise reaches the limit: no other mechanism tells a bit better at this ε.
    assert plausible_share(round(100_000 * linked.told_private), 100_000, linked.limit)
    assert not plausible_share(round(100_000 * linked.told_private), 100_000, 0.7)


def test_one_whole_record_has_a_delta_of_one_over_n():
    for people in (2, 12, 40):
        assert exact_delta(people) == Fraction(1, people)


def test_name_and_shame():
    # At δ = 1e-15 somebody is shown in 500 releases of 500 people with a chance of 2.5e-10.
    found = dp.auditing.attacks.NameAndShame(delta=1e-15).run()
    last = found.shamed[-1]
    # A release changes the number of people exposed by one at most (McDiarmid).
    assert abs(last.naive - last.expected_naive) < math.sqrt(500 * math.log(2 / FALSE_ALARM) / 2)
    assert [each.private for each in found.shamed] == [0, 0, 0, 0]
    assert found.verified_delta == Fraction(1, 12)
    # A cell of one shows with a chance from δ/e to δ, each person's for itself.
    least, most = (1 - (1 - chance) ** 500 for chance in (1 / 500 / math.e, 1 / 500))
    assert stats.binom.cdf(last.large_delta, 500, least) > FALSE_ALARM
    assert stats.binom.sf(last.large_delta - 1, 500, most) > FALSE_ALARM
    assert last.large_delta > 0
