"""The audit as its users meet it: verdicts, claims, hostile callables, reports."""

import json
import math
import os
import time
import warnings
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from chance import FALSE_ALARM
from deniable.auditing.sampled.outcomes import Several

ONE = dp.PureDP(1)
LAPLACE = dp.Laplace(epsilon=1, sensitivity=1)
GEOMETRIC = dp.Geometric(epsilon=1, sensitivity=1)
SURE = 1 - FALSE_ALARM
PAIR = [(0, 1)]


def audit(mechanism, claim=ONE, pairs=PAIR, n=2_000, **more):
    return dp.audit(mechanism, claim, pairs, n, more.pop("confidence", SURE), **more)


def test_a_violation_comes_with_a_witness():
    report = dp.audit(dp.Geometric(epsilon=3, sensitivity=1), ONE, n=4_000)
    assert report.verdict == "violated"
    assert report.violated
    witness = report.witness
    (more, calls), (less, others) = witness.counts
    assert 0 < calls <= 2_400  # fewer, where the machine is slow
    assert 0 < others <= 2_400
    assert more / calls > 3 * less / others
    assert witness.pair == "pair 1"
    assert 1 < report.lower < 3
    assert report.lower < report.ceiling


def test_no_violation_is_never_called_private():
    text = str(dp.audit(GEOMETRIC, ONE, n=1_000, confidence=SURE))
    assert "no violation found at this n; this proves nothing" in text
    assert "can certify at most" in text


@pytest.mark.parametrize(
    "claim",
    [
        dp.PureDP(1),
        dp.ApproxDP(1, 1e-3),
        dp.GDP(1),
        dp.ZCDP(0.5),
        GEOMETRIC.loss,
        dp.compose(GEOMETRIC.loss, dp.Gaussian(rho=0.01, sensitivity=1).loss),
        dp.RandomizedResponse(epsilon=1).channel([True, False]),
    ],
    ids=lambda claim: type(claim).__name__,
)
def test_every_kind_of_claim_is_kept_and_broken(claim):
    kept = dp.RandomizedResponse(epsilon=0.5)
    assert not dp.audit(kept, claim, n=4_000, confidence=SURE).violated
    loud = dp.audit(lambda x: bool(x) if LAPLACE.release(0) < 3 else not x, claim, PAIR, n=4_000)
    assert loud.violated


def test_the_ceilings_are_those_of_the_binomial_law():
    """N perfect calls certify ε 3.28 (100), 5.60 (1e3), 7.90 (1e4), 10.21 (1e5) at 95 %."""
    from deniable.auditing.sampled.bounds import perfect

    found = [math.log(p / q) for p, q in (perfect(n, 0.05) for n in (100, 10**3, 10**4, 10**5))]
    assert found == pytest.approx([3.28, 5.60, 7.90, 10.21], abs=0.005)


def test_what_cannot_be_read_is_refused():
    for wrong in (
        lambda: dp.audit(LAPLACE, 1.0),
        lambda: dp.audit(LAPLACE, None),
        lambda: dp.audit(5, ONE),
        lambda: dp.audit(LAPLACE, ONE, pairs="ab"),
        lambda: dp.audit(LAPLACE, ONE, pairs=[1, 2]),
        lambda: dp.audit(LAPLACE, ONE, attempt=1.5),
        lambda: dp.audit(lambda s: s, ONE, PAIR, factory=3),
    ):
        with pytest.raises(dp.errors.ParameterTypeError):
            wrong()
    for wrong in (
        lambda: dp.audit(lambda x: x, ONE),
        lambda: dp.audit(LAPLACE, ONE, pairs=[]),
        lambda: dp.audit(LAPLACE, ONE, n=10),
        lambda: dp.audit(LAPLACE, ONE, confidence=1),
        lambda: dp.audit(LAPLACE, ONE, attempt=-1),
        lambda: dp.audit(LAPLACE, ONE, time_limit=0),
    ):
        with pytest.raises(dp.ParameterError):
            wrong()
    with pytest.raises(dp.ParameterError, match="pairs="):
        dp.audit(lambda x: x, ONE)


def test_attempts_spend_ever_less():
    spent = [dp.audit(GEOMETRIC, ONE, n=400, confidence=0.95, attempt=k).alpha for k in range(4)]
    assert spent == pytest.approx([0.05, 0.025, 0.0125, 0.00625])
    assert sum(spent[1:]) < 0.05


def test_alpha_is_never_overspent():
    report = audit(GEOMETRIC, dp.ZCDP(0.5), None, confidence=0.95)
    assert 0 < report.alpha_spent <= report.alpha == pytest.approx(0.05)
    assert report.alpha_spent == sum(test.level for test in report.tests)


# Strategies


def test_a_replayed_breach_needs_one_pair_of_runs():
    """At ε = 0.001 no number of calls in a suite would show a sensitivity off by two."""
    shy = dp.Laplace(epsilon=0.001, sensitivity=1)
    report = audit(shy, dp.PureDP(0.001), [(0, 2)], n=40)
    assert report.violated
    assert report.witness.strategy == "replay"
    assert report.alpha_spent == 0


def test_a_claim_for_two_is_not_refuted_by_a_sensitivity_of_two():
    report = audit(LAPLACE, dp.PureDP(2), [(0, 2)])
    assert not report.violated
    assert any("sensitivity" in finding for finding in report.findings)


def test_noise_by_hand_is_not_refuted_by_a_replay():
    """Its output moves though all released values are the same, and it is private."""
    from deniable.randomness.noise import LaplaceLaw, noise

    def by_hand(value):
        return value + noise(LaplaceLaw(Fraction(1))).one()

    assert not audit(by_hand).violated


def test_an_exact_channel_needs_no_calls():
    report = audit(dp.RandomizedResponse(epsilon=1.1), ONE, None)
    assert report.violated
    assert report.witness.strategy == "exact channel"
    assert report.lower == pytest.approx(1.1)


def test_a_bare_channel_can_be_audited():
    channel = dp.Channel((0, 1), ("a", "b"), ((Fraction(3, 4), Fraction(1, 4)),) * 2)
    assert not dp.audit(channel, dp.PureDP(0.1)).violated
    torn = dp.Channel((0, 1), ("a", "b"), ((1, 0), (Fraction(1, 2), Fraction(1, 2))))
    report = dp.audit(torn, dp.PureDP(100))
    assert report.violated
    assert report.lower == math.inf


@pytest.mark.parametrize("claim", [ONE, dp.ApproxDP(1, 1e-6), dp.GDP(1), dp.ZCDP(0.5)], ids=str)
def test_an_exact_channel_is_held_to_every_claim(claim):
    wide, narrow = (
        dp.TruncatedGeometric(epsilon=e, sensitivity=1, lower=0, upper=5).channel(range(6))
        for e in (4, 0.5)
    )
    assert dp.audit(wide, claim).violated
    assert not dp.audit(narrow, claim).violated


def test_half_lines_are_always_tested_and_levels_sum_to_alpha():
    """Whatever else looks better: an event that fits only by chance displaces no half-line."""
    report = dp.audit(dp.Geometric(scale=10, sensitivity=10), ONE, [(1000, 1010)], n=2_000)
    if not report.violated:  # with probability 0.95 at least
        assert {test.witness.strategy for test in report.tests} == {
            "battery",
            "half-line",
            "learned",
        }
        assert sum(test.level for test in report.tests) == pytest.approx(0.05)


def test_the_best_of_many_is_chosen_again_on_other_calls():
    """Of three hundred features of pure chance and one that tells little, the one is chosen."""
    from deniable.auditing.sampled.claims import read_claim
    from deniable.auditing.sampled.events import Coming, Feature, best, best_again
    from deniable.auditing.sampled.outcomes import Outcomes, Sides

    rng = np.random.default_rng(11)

    def side(chance):
        rows = rng.random((8_000, 301)) < [0.01] * 300 + [chance]
        return Outcomes([("array", row.tolist(), "", "", 0.0) for row in rows.astype(float)])

    def reader(place):
        return lambda outcomes: outcomes.column(place)

    features = [Feature(str(place), reader(place), yes_or_no=True) for place in range(301)]
    parts = [Sides(side(0.57), side(0.5)).halves() for _ in range(5)]
    coming = Coming(read_claim(dp.PureDP(0.0001)), 0.01, 12_000)
    again = [best_again(features, first, second, coming) for first, second in parts]
    assert [each.event.feature.name for each in again] == ["300"] * 5
    assert all(best(features, first, coming) for first, _ in parts)


def test_copied_noise_is_found_in_forked_children():
    generator = np.random.default_rng()

    def rounded(value):  # no low bits to be seen
        return value + int(generator.geometric(0.5)) - int(generator.geometric(0.5))

    report = audit(rounded, n=400, confidence=0.95)
    assert report.violated
    assert report.witness.strategy == "forked children"


def test_noise_of_every_process_its_own_is_not_found_so():
    """Power and silence of the same event: what repeats by chance is no breach."""
    report = audit(GEOMETRIC, ONE, None, n=400)
    assert "forked children" not in {test.witness.strategy for test in report.tests}


def leaky(kind):
    def call(value):
        released = LAPLACE.release(0.0)
        show = value == 1 and released < 1
        return {
            "nan": math.nan if show else released,
            "infinity": math.inf if show else released,
            "none": None if show else released,
            "type": int(released) if show else released,
            "shape": np.zeros(3 if show else 2),
            "row set": {"a": 1, "b": 2} if show else {"a": 1},
            "order": ["b", "a"] if show else ["a", "b"],
            "text": f"{value}" if show else "-",
        }[kind]

    return call


@pytest.mark.parametrize(
    "kind", ["nan", "infinity", "none", "type", "shape", "row set", "order", "text"]
)
def test_the_battery_sees_it(kind):
    report = audit(leaky(kind))
    assert report.violated


def test_a_vector_is_read_as_a_whole():
    """No coordinate tells alone; all together do."""
    noisy = dp.Laplace(epsilon=1, sensitivity=1)

    def call(value):
        return [noisy.release(100 + 0.25 * value) for _ in range(30)]  # 30 releases of ε = 1/4

    report = audit(call, dp.PureDP(1), PAIR, n=8_000, confidence=0.95)
    assert report.violated
    assert report.witness.event.startswith("the learned score")


def test_many_pairs_are_searched_and_one_is_tested():
    pairs = [(0, 0)] * 5 + [(0, 8)]
    report = audit(bare, ONE, pairs, n=6_000)
    assert report.violated
    assert report.witness.pair == "pair 6"
    assert report.pairs == 6


def bare(value):
    from deniable.randomness.noise import LaplaceLaw, noise

    return value + noise(LaplaceLaw(Fraction(1))).one()


def test_pairs_of_nasty_neighbours_are_taken_as_they_are():
    def total(rows):
        good = [min(max(r["x"], 0), 5) for r in rows if isinstance(r["x"], float)]
        return dp.Laplace(epsilon=1, sensitivity=5).release(sum(good))

    pairs = list(dp.auditing.nasty_neighbours(bounds={"x": (0, 5)}))[:12]
    report = audit(total, ONE, pairs, n=400)
    assert report.pairs == 12
    assert report.violated  # NaN passes the clamp
    assert "NaN" in report.witness.pair


def test_independent_releases_may_come_several_at_a_time():
    def several(value):
        return Several([bare(value) for _ in range(50)])

    assert not audit(several).violated
    report = audit(several, ONE, [(0, 8)])
    assert report.violated
    assert report.witness.counts[0][1] == 1_200


# Callables that misbehave


def test_an_exception_on_one_side_is_found():
    def call(value):
        if value:
            raise KeyError("x")
        return bare(value)

    assert audit(call).violated


def test_a_process_that_ends_on_one_side_is_found():
    def call(value):
        if value and LAPLACE.release(0.0) > 0:
            os._exit(1)
        return 1

    report = audit(call, n=300, confidence=0.95)
    assert report.violated
    assert any("end their process" in finding for finding in report.findings)


def test_a_call_that_hangs_is_a_finding_and_not_judged():
    def call(value):
        if value:
            time.sleep(60)
        return bare(value)

    report = audit(call, time_limit=0.1)
    assert not report.violated
    assert "did not end in 0.1 s" in report.findings[0]
    assert "neighbour" in report.findings[0]


def test_a_call_that_hangs_later_is_a_finding_too():
    def call(value):
        if value and abs(LAPLACE.release(0.0)) > 5:
            time.sleep(60)
        return value * 0

    report = audit(call, n=6_000, time_limit=0.2)
    assert not report.violated
    assert "did not end" in report.findings[-1]


def test_prints_and_warnings_are_outputs():
    def prints(value):
        print("seen", value)
        return bare(0)

    def warns(value):
        if value:
            warnings.warn("unusual", stacklevel=1)
        return bare(0)

    assert audit(prints).violated
    assert audit(warns).violated


def test_prints_that_depend_on_nothing_are_no_breach():
    def call(value):
        print("hello")
        return bare(value)

    assert not audit(call).violated


def test_calls_that_fork_end_where_they_should(tmp_path):
    """Their children make no further calls: there would be twice as many with each."""
    count = tmp_path / "count"

    def call(value):
        os.fork()
        with count.open("ab") as file:
            file.write(b".")
        return bare(value)

    report = audit(call, n=60)
    assert 0 < count.stat().st_size < 2_000
    assert not report.violated
    assert any("start threads or processes" in finding for finding in report.findings)


def test_calls_that_fail_on_both_sides_are_pointed_out():
    report = audit(lambda value: value.no_such_thing, n=100)
    assert not report.violated
    assert "every call raises AttributeError" in report.findings[0]


def test_changing_types_and_strange_objects_are_taken():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    def call(value):
        kinds = [None, "a", 1, 2.5, [1, "a"], {"a": [1]}, np.zeros((2, 2)), Odd(), b"x", {1, 2}]
        kinds += [10**400, -(10**400), pa.table({"a": [1]}), float("nan"), lambda: 1, 1j]
        return kinds[bare(0) % len(kinds)]

    assert not audit(call, n=400).violated


def test_what_a_call_does_to_its_input_is_undone():
    def call(rows):
        rows.append(1)
        return len(rows)

    report = audit(call, ONE, [([], [])], n=100)
    assert not report.violated


def test_exits_and_interrupts_are_outcomes():
    def call(value):
        if value:
            raise SystemExit(3)
        raise KeyboardInterrupt

    assert audit(call, n=300).violated


# Sessions


def world(data, ledger):
    table = dp.PrivateTable(
        pa.table({"x": pa.array(data, pa.float64())}),
        unit=dp.ROW,
        population="p",
        bounds={"x": (0, 10)},
    )
    return dp.Session({"t": table}, budget=dp.PureDP(1), ledger=ledger)


def test_a_session_is_audited_through_a_factory():
    """Each call has a ledger of its own: the budget of one question is enough for all of them."""

    def ask(session):
        with session:
            return session.sql("SELECT SUM(x) AS y FROM t", epsilon=1)["y"]

    pairs = [([5.0], [5.0, math.nan])]
    report = audit(ask, ONE, pairs, n=40, factory=world, time_limit=30)
    assert not report.violated
    assert not report.findings

    def length(data, _ledger):
        return len(data)

    assert audit(lambda made: made, ONE, pairs, n=240, factory=length, time_limit=30).violated


# Reports


def test_reports_say_the_same_everywhere(tmp_path):
    report = dp.audit(dp.Geometric(epsilon=3, sensitivity=1), ONE, n=2_000)
    read = json.loads(report.to_json())
    assert read["verdict"] == "violated"
    assert read["lower"] == report.lower
    assert read["witness"]["counts"] == [list(side) for side in report.witness.counts]
    page = report.save(tmp_path / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "violated" in page
    assert "µs" in page
    assert report.save(tmp_path / "report.json").read_text() == report.to_json()
    assert report.save(tmp_path / "report.txt").read_text() == str(report)


def test_an_infinite_bound_is_valid_json():
    torn = dp.Channel((0, 1), ("a", "b"), ((1, 0), (0, 1)))
    assert json.loads(dp.audit(torn, ONE).to_json())["lower"] == "inf"


def test_progress_is_told():
    told = []
    audit(GEOMETRIC, ONE, None, n=400, progress=lambda stage, share: told.append((stage, share)))
    stages = {stage.split(" on")[0].split(",")[0] for stage, _ in told}
    assert {"replay", "forked children", "choosing", "testing"} <= stages
    assert all(0 <= share <= 1 for _, share in told)


def test_every_mechanism_suggests_neighbours():
    from deniable.auditing.sampled.targets import default_pairs
    from deniable.auditing.self_audit import mechanism_subjects

    for subject in mechanism_subjects():
        assert subject.pairs or default_pairs(subject.mechanism), subject.name
    post = dp.post_process(LAPLACE, round)
    assert default_pairs(post) == [(0.0, 1.0)]
