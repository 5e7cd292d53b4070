from fractions import Fraction

import pytest

import deniable as dp
from deniable.privacy.semantics import posterior
from deniable.survey import designs, estimate_counts, sentences

F = Fraction
COINS = designs.two_coins()


def test_a_yes_raises_ten_per_cent_to_twenty_five():
    no, yes = sentences.deniability(COINS)
    assert yes == (
        "If you say YES, anyone who thought there was a 10% chance it applied to you can think at "
        "most 25%."
    )
    assert no == (
        "If you say NO, anyone who thought there was a 10% chance it applied to you can think as "
        "little as 3.5%."
    )


def test_suspicions_are_bayes_rule():
    die = designs.forced_response(truth=F(3, 4), yes=F(1, 6), no=F(1, 12))
    for report in die.reports:
        after = posterior({False: F(9, 10), True: F(1, 10)}, die.channel, report)[True]
        assert sentences.suspicion(die, report) == after


def test_suspicions_of_many_categories_hold_for_every_other_belief():
    three = designs.from_matrix([[0.7, 0.2, 0.1], [0.15, 0.8, 0.05], [0.2, 0.25, 0.55]], "abc")
    worst = sentences.suspicion(three, "a", answer="a", prior=F(1, 10))
    for rest in range(10):
        belief = {"a": F(1, 10), "b": F(rest, 10), "c": F(9 - rest, 10)}
        assert posterior(belief, three.channel, "a")["a"] <= worst
    assert posterior({"a": F(1, 10), "b": F(9, 10)}, three.channel, "a")["a"] == worst
    assert "'a' is true of you can think at most 34.2%" in sentences.deniability(three)[0]


def test_percentages_are_rounded_against_the_design():
    design = designs.randomized_response(epsilon=4)  # 85.85 %
    assert "at most 85.9%" in sentences.deniability(design)[1]


def test_designs_that_prove_say_so():
    triangular = designs.triangular(prevalence=F(1, 4), not_private=True)
    assert sentences.deniability(triangular)[0] == (
        "If you answer 'neither', it is certain that it does not apply to you."
    )
    assert "ε is infinite" in sentences.promise(triangular)
    plain = designs.open_question(not_private=True)
    assert sentences.deniability(plain)[1] == (
        "If you say YES, it is certain that it applies to you."
    )


def test_the_promise_names_the_worse_side():
    die = designs.forced_response(truth=F(3, 4), yes=F(1, 6), no=F(1, 12))
    assert sentences.promise(die) == (
        "Whatever is sent, no answer of yours makes it more than 10 times as likely as another "
        "(ε = 2.3026)."
    )
    assert "more than 3 times" in sentences.promise(COINS)


def test_honesty_is_not_promised():
    assert "did not reduce false answers" in sentences.HONESTY
    assert "not from lying" in sentences.HONESTY


def test_findings_say_when_they_were_cut():
    usual = sentences.finding(estimate_counts(COINS, {True: 400, False: 600}))
    assert usual == (
        "30.0% (95% interval 23.9% to 36.2%), estimated from 1,000 randomised reports."
    )
    cut = sentences.finding(estimate_counts(COINS, {True: 10, False: 90}))
    assert cut.startswith("0.0%")
    assert "cut for display" in cut


def test_bad_arguments_are_refused():
    with pytest.raises(dp.ParameterError, match="strictly between"):
        sentences.deniability(COINS, prior=0)
    with pytest.raises(dp.ParameterError, match="outputs"):
        sentences.suspicion(COINS, "maybe")
    never = designs.from_matrix([[0.7, 0.3, 0], [0.2, 0.8, 0]], (False, True), "xyz")
    with pytest.raises(dp.ParameterError, match="never"):
        sentences.suspicion(never, "z")
