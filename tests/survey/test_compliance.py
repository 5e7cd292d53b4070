import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM
from deniable.survey import designs
from deniable.survey.compliance import (
    adjusted_share,
    expected_share,
    noncompliance,
    safe_report,
)

COINS = designs.two_coins()


def test_known_answer_thirty_per_cent_are_seen_as_twenty_two():
    found = expected_share(COINS, 0.3, cheaters=0.1)
    assert found == pytest.approx(0.21999999999999997, abs=1e-12)
    assert expected_share(COINS, 0.3, cheaters=0) == pytest.approx(0.3, abs=1e-12)
    assert expected_share(COINS, 0.3, cheaters=0.1, behaviour="random") == pytest.approx(0.32)


def test_the_safe_report_speaks_least_for_the_answer():
    assert safe_report(COINS) is False
    assert safe_report(designs.crosswise(prevalence=0.2)) == "same"
    assert safe_report(designs.crosswise(prevalence=0.8)) == "different"
    assert safe_report(designs.triangular(prevalence=0.2, not_private=True)) == "neither"


def survey(seed, n, *, cheaters, behaviour, same):
    """Reports on a sensitive item (30 %) and on a control (60 %), some people not playing."""
    rng = np.random.default_rng(seed)
    astray = rng.random(n) < cheaters
    also = astray if same else rng.random(n) < cheaters
    sent = []
    for share, off in ((0.3, astray), (0.6, also)):
        told = COINS.randomize(rng.random(n) < share)
        lie = np.zeros(n, dtype=bool) if behaviour == "safe" else rng.random(n) < 0.5
        sent.append(np.where(off, lie, told))
    return sent


@pytest.mark.parametrize("behaviour", ["safe", "random"])
@pytest.mark.parametrize("same", [True, False])
def test_cheaters_are_counted_and_the_share_corrected(behaviour, same):
    """400 surveys, 20 % cheaters: both intervals cover (held to 93.5 %, 1e-9)."""
    found_c = found_share = missed = 0
    for seed in range(400):
        main, control = survey(seed, 3_000, cheaters=0.2, behaviour=behaviour, same=same)
        seen = adjusted_share(
            COINS, main, control, prevalence=0.6, same_people=same, behaviour=behaviour
        )
        found_c += seen.noncompliance.low <= 0.2 <= seen.noncompliance.high
        found_share += seen.low <= 0.3 <= seen.high
        naive = 1.5 * main.mean() - 0.5 * (1 - main.mean())
        missed += abs(naive - 0.3) < 0.02
    assert stats.binom.cdf(found_c, 400, 0.935) > FALSE_ALARM
    assert stats.binom.cdf(found_share, 400, 0.935) > FALSE_ALARM
    if behaviour == "safe":
        assert missed < 200  # uncorrected, the share is 14 % on average


def test_honest_people_are_not_accused():
    control = survey(1, 50_000, cheaters=0, behaviour="safe", same=True)[1]
    found = noncompliance(COINS, control, prevalence=0.6)
    assert abs(found.share) < 6.5 * found.standard_error
    cheats = noncompliance(
        COINS, survey(1, 50_000, cheaters=0.3, behaviour="safe", same=True)[1], prevalence=0.6
    )
    assert cheats.detected
    assert cheats.share == pytest.approx(0.3, abs=6.5 * cheats.standard_error)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda: expected_share(COINS, 1.2, cheaters=0.1), "between 0 and 1"),
        (lambda: expected_share(COINS, 0.2, cheaters=-0.1), "between 0 and 1"),
        (lambda: expected_share(COINS, 0.2, cheaters=0.1, behaviour="odd"), "safe"),
        (lambda: noncompliance(COINS, [], prevalence=0.5), "one or more"),
        (
            lambda: noncompliance(COINS, [True], prevalence=0.5, behaviour="random"),
            "another item",
        ),
        (
            lambda: adjusted_share(COINS, [True], [False] * 9, prevalence=0.5, same_people=False),
            "nobody",
        ),
        (
            lambda: adjusted_share(
                COINS, [True] * 3, [False, True], prevalence=0.5, same_people=True
            ),
            "one for each report",
        ),
        (
            lambda: expected_share(
                designs.randomized_response(epsilon=1, categories="abc"),
                0.2,
                cheaters=0,
                answer="a",
            ),
            "two true answers",
        ),
    ],
)
def test_bad_arguments_are_refused(run, said):
    with pytest.raises(dp.ParameterError, match=said):
        run()
