"""Intervals about the truth where nothing is declared: laws of rows, groups, sums, small tables."""

import contextlib
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import deniable as dp
from chance import FALSE_ALARM
from deniable.privacy.wire import loss_from_json
from deniable.query.plan.levels import LEVELS, Norms
from deniable.query.plan.tail import Profile, Tail

LAWS = {
    "one row": lambda rng, n: np.ones(n),
    "seven rows": lambda rng, n: np.full(n, 7.0),
    "uniform": lambda rng, n: rng.integers(1, 41, n),
    "geometric": lambda rng, n: rng.geometric(0.1, n),
    "lognormal": lambda rng, n: np.ceil(rng.lognormal(1.5, 1, n)),
    "Pareto": lambda rng, n: np.floor(2 * (rng.pareto(1.6, n) + 1)) - 1,
}
WARDS = ["a", "b", "c"]


def table(rng, rows):
    who = np.repeat(np.arange(len(rows)), np.asarray(rows, dtype=int))
    x = rng.gamma(2, 10, len(who)).clip(0, 200)
    return pa.table({"who": who, "g": rng.choice(WARDS, len(who), p=[0.5, 0.3, 0.2]), "x": x})


def opened(data, budget=None, **declared):
    given = {"keys": {"g": WARDS}, "bounds": {"x": (0, 200)}, **declared}
    held = dp.PrivateTable(data, unit="who", population="p", **given)
    budget = dp.ApproxDP(1e6, 1e-6) if budget is None else budget
    return dp.Session({"t": held}, budget=budget, ledger=dp.Ledger())


def held(law, units, runs, *, budget=None, epsilon=1.0):
    """How many intervals of totals and of groups hold the truth, of how many."""
    rng, hits, asked, refused = np.random.default_rng(7), 0, 0, 0
    for _ in range(runs):
        data = table(rng, LAWS[law](rng, units))
        groups = np.array(data["g"].to_pylist())
        with opened(data, budget) as session:
            try:
                total = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=epsilon)
                parts = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=epsilon)
            except dp.NotAnsweredError:
                refused += 1
                continue
        exact = [len(data), *(int((groups == ward).sum()) for ward in WARDS)]
        rows = [*total.intervals().to_pylist(), *parts.intervals().to_pylist()]
        for row, truth in zip(rows, exact, strict=True):
            hits += row["n_low"] <= truth <= row["n_high"]
            asked += 1
    assert refused <= runs // 2  # one in fifty: more have a chance below 1e-7 of a run
    return hits, asked


def too_few(hits, asked, bar=0.85):
    """Whether so few hits have a chance below the false-alarm rate, if the bar is met.

    Intervals of one run lean on one profile: a run counts as two draws.
    """
    return binom.cdf(hits // 2, asked // 2, bar) < FALSE_ALARM


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("budget", [None, dp.PureDP(1e6)], ids=["rho", "pure"])
def test_intervals_hold_the_truth(law, budget):
    hits, asked = held(law, 2_000, 10, budget=budget)
    assert not too_few(hits, asked), (hits, asked)


def test_intervals_that_forget_what_is_lost_are_found(monkeypatch):
    """Power: the same test fails where what lies beyond is taken for nothing."""
    right = Tail.beyond

    def planted(tail, bound, cap=math.inf):
        found = right(tail, bound, cap)
        return type(found)(found.bound, 0 * found.most, 0 * found.least, found.beyond)

    monkeypatch.setattr(Tail, "beyond", planted)
    assert too_few(*held("Pareto", 2_000, 10))


def test_few_people_with_one_row_each_in_three_wards():
    """500 of them: every interval holds, and they are narrow: not 9 ± 0.65 for 167."""
    rng = np.random.default_rng(3)
    for declared in ({}, {"keys": {}}):
        data = table(rng, np.ones(500))
        groups = np.array(data["g"].to_pylist())
        with opened(data, **declared) as session:
            answer = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=1)
        for row in answer.intervals(0.999999).to_pylist():
            assert row["n_low"] <= (groups == row["g"]).sum() <= row["n_high"]
        widths = [row["n_high"] - row["n_low"] for row in answer.intervals().to_pylist()]
        assert min(widths) < 90 or any(each.startswith("at least") for each in answer.labels)


def test_a_sum_between_wide_bounds():
    """800 people with two rows each, bounds to 100,000: not 0 ± 0."""
    rng = np.random.default_rng(4)
    data = pa.table({"who": np.arange(1600) // 2, "x": rng.uniform(0, 58_000, 1600)})
    with opened(data, keys={}, bounds={"x": (0, 100_000)}) as session:
        answer = session.sql("SELECT SUM(x) AS s, AVG(x) AS m, VARIANCE(x) AS v FROM t", epsilon=1)
    x = data["x"].to_numpy()
    (row,) = answer.intervals(0.999999).to_pylist()
    for name, truth in {"s": x.sum(), "m": x.mean(), "v": x.var(ddof=1)}.items():
        assert row[f"{name}_low"] <= truth <= row[f"{name}_high"], name
    (row,) = answer.intervals().to_pylist()
    assert row["s_high"] - row["s_low"] < 0.6 * x.sum()


def test_variance_is_not_blown_up_by_heavy_people():
    rng = np.random.default_rng(5)
    data = table(rng, LAWS["Pareto"](rng, 20_000))
    with opened(data) as session:
        answer = session.sql("SELECT VARIANCE(x) AS v FROM t", epsilon=10)
    truth = np.var(data["x"].to_numpy())
    assert answer["v"][0] < 3 * truth
    (row,) = answer.intervals(0.999999).to_pylist()
    assert row["v_low"] <= truth <= row["v_high"]


def test_labels_say_the_bound_and_what_upper_ends_rest_on():
    rng = np.random.default_rng(6)
    data = table(rng, LAWS["Pareto"](rng, 5_000))
    with opened(data) as session:
        answer = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        counted = session.sql("SELECT COUNT(DISTINCT who) AS n FROM t", epsilon=1)
    bound, rests = answer.labels
    assert "rows (estimated privately)" in bound
    assert "have more" in bound
    assert "x^-1.2" in rests or rests.startswith("at least")  # by chance, one in a thousand
    assert not counted.labels  # everybody counts once: nothing was estimated


RUNS, STANDS_OUT = 12, 0.03
"""Noise alone, or with a dozen people, stands out in no more than this share of runs."""


@pytest.mark.parametrize("budget", [None, dp.PureDP(1e6)], ids=["rho", "pure"])
def test_where_nobody_is_seen_nothing_is_answered_and_a_quarter_was_charged(budget):
    for rows in ([], [1], [3] * 12):
        data, refusals = table(np.random.default_rng(1), np.array(rows, dtype=int)), 0
        for _ in range(RUNS):
            with opened(data, budget) as session:
                whole = session.explain("SELECT COUNT(*) AS n FROM t", epsilon=0.5).cost
                try:
                    session.sql("SELECT COUNT(*) AS n FROM t", epsilon=0.5)
                except dp.NotAnsweredError as refused:
                    told = str(refused)
                else:
                    continue
                entries = [e.data["loss"] for e in session.history["p"] if "loss" in e.data]
            assert "fewer than about" in told
            assert "max_rows=" in told
            (charged,) = [loss_from_json(loss).price for loss in entries]
            part = charged.rho / whole.rho if budget is None else charged.epsilon / whole.epsilon
            assert 0.1 < part <= 0.25
            refusals += 1
        assert binom.sf(RUNS - refusals - 1, RUNS, STANDS_OUT) >= FALSE_ALARM


def test_a_few_people_have_lower_ends_alone():
    data = table(np.random.default_rng(2), np.full(150, 4))
    at_least = 0
    for _ in range(10):
        with opened(data) as session:
            try:
                answer = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
            except dp.NotAnsweredError:
                continue
        (row,) = answer.intervals(0.999999).to_pylist()
        assert row["n_low"] <= 600
        assert row["n_high"] == math.inf
        assert "≥" in str(answer)
        assert any(label.startswith("at least") for label in answer.labels)
        at_least += 1
    assert at_least >= 5


def test_of_few_people_means_and_arithmetic_promise_nothing_that_heavy_people_could_undo():
    """Who has many rows is unlike the others: a mean of kept rows is far from that of all."""
    rng, answered = np.random.default_rng(11), 0
    for _ in range(8):
        rows = np.ceil(rng.lognormal(1, 1.5, 200)).astype(int)
        who = np.repeat(np.arange(200), rows)
        x = np.where(rows[who] > np.quantile(rows, 0.9), 190.0, 10.0)
        with opened(pa.table({"who": who, "x": x}), keys={}) as session:
            try:
                mean = session.sql("SELECT AVG(x) AS m, VARIANCE(x) AS v FROM t", epsilon=1)
                share = session.sql("SELECT 1e6 / COUNT(*) AS s FROM t", epsilon=1)
            except dp.NotAnsweredError:
                continue
        (row,) = [*mean.intervals().to_pylist()]
        assert row["m_low"] <= x.mean() <= row["m_high"]
        assert row["v_low"] <= x.var(ddof=1) <= row["v_high"]
        assert share.intervals()["s_low"].to_pylist() == [-math.inf]
        assert any(label.startswith("an interval needs max_rows=") for label in mean.labels)
        answered += 1
    assert answered >= 2


def test_people_beyond_the_last_level_open_the_upper_end():
    """A fiftieth of them have a thousand rows, the others one: no two-sided interval is right."""
    bins = (5_000, *[0] * 12, 100)
    profile = Profile(Norms.WHOLE, 0, 0, bins, 5.0, 1, 1)
    assert profile.open_above
    assert not Profile(Norms.WHOLE, 0, 0, (*bins[:-1], 3), 5.0, 1, 1).open_above


def test_a_hump_far_out_is_seen_in_its_own_bins():
    """Six times the noise of one bin, and less than three of all bins from there on."""
    bins = (1800, 750, 270, 70, 3, -2, -1, 29, 65, -13, -7, -15, -29, -25)
    without = (*bins[:7], 0, 0, *bins[9:])
    hump, none = (Profile(Norms.WHOLE, 0, 0, each, 10.8, 1, 1) for each in (bins, without))
    assert none.tail.seen < LEVELS[6]
    assert hump.tail.seen > LEVELS[8] - 1
    assert np.quantile(hump.tail.beyond(6.0).most, 0.975) > 65 * (LEVELS[8] - 6)
    assert np.quantile(none.tail.beyond(6.0).most, 0.975) < 65 * (LEVELS[8] - 6)


def test_the_same_release_gives_the_same_interval():
    profile = Profile(
        Norms.WHOLE, 0, 0, (900, 400, 200, 90, 40, 20, 3, 4, -5, 0, 2, 1, 0, -3), 5.0, 1, 1
    )
    one, two = (Tail.beyond(each.tail, 12.0) for each in (profile, Profile(**vars(profile))))
    assert np.array_equal(one.most, two.most)
    assert (one.least <= one.most).all()
    assert np.all(np.diff([profile.tail.beyond(b).most.mean() for b in (4.0, 8.0, 16.0, 64.0)]) < 0)


def test_people_below_all_bins_are_seen():
    """A place far too high, which chance may choose, makes an answer noisy, and is no refusal."""
    empty = (3, -2, 1, 0, 4, -5, 2, 0, -1, 3, 0, 1, -2, 0)
    assert Profile(Norms.WHOLE, 20, 5_000, empty, 5.0, 1, 1).anybody
    assert not Profile(Norms.WHOLE, 20, 5_000, empty, 5.0, 1, 1).few
    assert not Profile(Norms.WHOLE, 20, 8, empty, 5.0, 1, 1).anybody


def test_levels_are_whole_and_grow_by_half_octaves():
    assert LEVELS[:8] == (1, 2, 3, 4, 6, 8, 12, 16)
    assert LEVELS[-1] == 3 << 32


def test_keys_are_selected_once_for_all_that_is_asked_of_them():
    rng = np.random.default_rng(8)
    data = table(rng, np.full(2_000, 3))
    with opened(data, keys={}) as session:
        first = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=1)
        second = session.sql("SELECT g, AVG(x) AS m FROM t GROUP BY g", epsilon=1)
    assert first["g"] == second["g"] == WARDS
    assert first.cost.delta > 0
    assert second.cost.delta == 0
    assert second.cost.rho < first.cost.rho


def test_a_sum_of_values_of_both_signs_promises_neither_end_without_support():
    """Heavy people far below the others: all intervals hold, whatever their sign."""
    rng, missed, asked = np.random.default_rng(9), 0, 0
    for _ in range(12):
        rows = np.ceil(rng.lognormal(1, 1.5, 1_000)).astype(int)
        who = np.repeat(np.arange(1_000), rows)
        y = np.clip(5 - 0.3 * rows[who] + rng.normal(0, 1, len(who)), -10, 10)
        data = pa.table({"who": who, "y": y})
        with opened(data, keys={}, bounds={"y": (-10, 10)}) as session:
            answer = session.sql("SELECT SUM(y) AS s FROM t", epsilon=1)
        (row,) = answer.intervals().to_pylist()
        missed += not row["s_low"] <= y.sum() <= row["s_high"]
        asked += 1
    assert not too_few(2 * (asked - missed), 2 * asked, 0.9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_wide_sum_is_answered_or_refused_before_it_is_charged(epsilon):
    """Norms for which no noise can be drawn at this price are never chosen."""
    rng = np.random.default_rng(10)
    who = np.arange(40_000) // 20
    data = pa.table({"who": who, "x": rng.uniform(0, 1e7, len(who)).round(2)})
    table = {"keys": {}, "bounds": {"x": (0, 10_000_000)}, "grid": {"x": 0.01}}
    for budget in (None, dp.PureDP(1e6)):
        with opened(data, budget, **table) as session:
            before = len(session.history.get("p", ()))
            try:
                answer = session.sql("SELECT SUM(x) AS s, COUNT(*) AS n FROM t", epsilon=epsilon)
            except dp.NotAnsweredError:
                pass  # too few people for this price
            except dp.QueryError:
                assert len(session.history.get("p", ())) == before
            else:
                (row,) = answer.intervals(0.999999).to_pylist()
                assert row["s_low"] <= data["x"].to_numpy().sum() <= row["s_high"]


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("HAVING COUNT(*) > 5", True),
        ("ORDER BY n DESC LIMIT 2", True),
        ("ORDER BY COUNT(*) LIMIT 1 OFFSET 1", True),
        ("ORDER BY n DESC", False),
        ("ORDER BY g LIMIT 2", False),
        ("HAVING g <> 'b'", False),
    ],
)
def test_rows_that_noise_picks_are_said_to_be_picked(end, said):
    data = pa.table({"who": range(300), "g": list("abc") * 100})
    table = dp.PrivateTable(data, unit="who", population="p", keys={"g": list("abc")}, cap_rows=1)
    with dp.Session({"t": table}, budget=dp.ApproxDP(100, 1e-6), ledger=dp.Ledger()) as session:
        answer = session.sql(f"SELECT g, COUNT(*) AS n FROM t GROUP BY g {end}", epsilon=1)
    assert any("decide which rows" in label for label in answer.labels) == said


def test_a_rollup_has_a_profile_of_its_own():
    """What was estimated for groups is not what their total needs."""
    rng = np.random.default_rng(11)
    who = np.repeat(np.arange(3_000), 8)
    data = pa.table(
        {"who": who, "g": rng.choice(WARDS, len(who)), "h": rng.choice([1, 2], len(who))}
    )
    with opened(data, keys={"g": WARDS, "h": [1, 2]}, bounds={}) as session:
        session.sql("SELECT g, h, COUNT(*) AS n FROM t GROUP BY g, h", epsilon=1)
        whole = session.sql("SELECT g, h, COUNT(*) AS n FROM t GROUP BY ROLLUP (g, h)", epsilon=1)
    (total,) = [row["n"] for row in whole if row["g"] is None and row["h"] is None]
    assert total == pytest.approx(24_000, rel=0.1)


def test_what_ended_before_is_told_again_for_nothing():
    """After nobody was seen, and after no group was shown."""
    data = table(np.random.default_rng(1), np.full(12, 3))
    with opened(data, keys={}) as session:
        for question in (
            "SELECT COUNT(*) AS n, MEDIAN(x) AS m FROM t",
            "SELECT g, COUNT(DISTINCT x) AS n FROM t GROUP BY g",
        ):
            for _ in range(2):
                try:
                    answer = session.sql(question, epsilon=0.5)
                except dp.NotAnsweredError:
                    with pytest.raises(dp.NotAnsweredError):
                        session.explain(question, epsilon=0.5)
                else:
                    assert len(answer) == 0
                    session.explain(question, epsilon=0.5)
            spent = session.remaining["p"].spent
            with contextlib.suppress(dp.NotAnsweredError):
                session.sql(question, epsilon=0.5)
            assert session.remaining["p"].spent == spent
