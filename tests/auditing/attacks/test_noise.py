"""Last bit, seed, sparse vector: noise and mechanisms that are made wrong."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import deniable as dp
from auditing.attacks.margins import at_most, near
from chance import FALSE_ALARM, plausible_share
from deniable.auditing.attacks.last_bit import float_laplace, lowest_bit


@pytest.fixture(scope="module")
def bits():
    return dp.auditing.attacks.LastBit().run()


def share_of_fine() -> float:
    """Noise in [2^-(j+2), 2^-(j+1)) has a last bit j below 2^-53, which is set but for 2^-j."""
    ends = [math.exp(-(2.0 ** -(j + 1))) for j in range(60)]
    return sum((1 - 2.0**-j) * (ends[j] - ends[j - 1]) for j in range(1, 60))


def test_float_noise_names_its_input(bits):
    assert near(bits.naive_tell, share_of_fine(), 400 * 166, model=0.005)
    assert bits.naive_mistakes == 0


def test_some_eighty_samples_refute_the_claim(bits):
    attack = dp.auditing.attacks.LastBit()
    needed = next(hits for hits in range(84) if attack._certified(hits, 0, 83) > 1)
    power = float(stats.binom.sf(needed - 1, 83, share_of_fine()))
    assert power >= 0.9
    assert plausible_share(round(400 * bits.power), 400, power)
    enough = [n for n, each in zip(bits.grid, bits.powers, strict=True) if each >= 0.9]
    assert 60 <= enough[0] <= 105
    assert bits.powers[0] == 0  # two samples prove nothing


def test_the_lattice_shows_nothing(bits):
    assert bits.private_tell == bits.private_mistakes == 0
    assert bits.private_epsilon < 0.5


def test_the_search_over_levels_has_power():
    attack = dp.auditing.attacks.LastBit()
    zero, one = (lowest_bit(value + float_laplace(5_000, 1.0)) for value in (0.0, 1.0))
    assert attack._best(zero, one) > 3


def test_lowest_bits():
    values = np.array([1.0, 3.0, 0.5, 0.75, -6.0, 2.0**-1022, 0.0, 1 + 2.0**-52])
    assert lowest_bit(values).tolist() == [0, 0, -1, -2, 1, -1022, 1024, -52]


def test_certified_epsilon_is_sound():
    """On equal laws ε above 0 is certified in 5 % of cases at most."""
    made_up = np.random.default_rng()
    attack = dp.auditing.attacks.LastBit()
    draws = made_up.binomial(83, 0.3, (2_000, 2))
    wrong = sum(attack._certified(int(a), int(b), 83) > 0 for a, b in draws)
    assert stats.binom.sf(wrong - 1, 2_000, 0.05) > FALSE_ALARM


def test_a_seed_is_found_and_none_fits_deniable():
    found = dp.auditing.attacks.Seeded(seeds=1 << 16, rounds=25).run()
    assert found.naive_found == 1
    assert found.naive_exact == 1
    assert found.private_matches == 0
    assert found.expected_exact == pytest.approx(1 - math.exp(-0.5))
    assert plausible_share(round(200 * found.private_exact), 200, found.expected_exact)
    assert not plausible_share(200, 200, found.expected_exact)


def test_a_seed_that_was_not_tried_is_not_found():
    """The attack needs the seed among those it tries; it does not find what is not there."""
    attack = dp.auditing.attacks.Seeded(seeds=1 << 10)
    everything = attack._noise(np.arange(1 << 10, dtype=np.uint64), 1)[:, 0]
    far = attack._noise(np.array([1 << 40], dtype=np.uint64), 8)[0]
    assert attack._fitting(100 + far, everything).size == 0
    near_by = attack._noise(np.array([77], dtype=np.uint64), 8)[0]
    assert attack._fitting(100 + near_by, everything).tolist() == [77]


@pytest.fixture(scope="module")
def streamed():
    return dp.auditing.attacks.BrokenSparseVector().run()


def test_broken_sparse_vectors_are_flagged(streamed):
    assert len(streamed.broken) == 4
    assert all(each.exact_epsilon > 3 for each in streamed.broken)
    assert streamed.broken[2].exact_epsilon == math.inf
    # Lyu, Su & Li 2017: variant 4 is (1 + 6c)/4·ε-DP; variant 6 gives m·ε/2 and more.
    assert streamed.broken[1].exact_epsilon <= 25 / 4
    assert streamed.broken[3].exact_epsilon >= 2


def test_ours_is_not_flagged(streamed):
    assert streamed.ours.exact_epsilon <= 1
    assert at_most(streamed.ours.guessed, streamed.limit, streamed.ours.games)


def test_a_bit_is_read_from_the_broken_ones(streamed):
    assert streamed.broken[0].guessed is None
    for each in streamed.broken[1:]:
        hits = round(each.guessed * each.games)
        beyond = stats.binomtest(hits, each.games, streamed.limit, alternative="greater")
        assert beyond.pvalue < FALSE_ALARM


def test_what_a_shown_value_gives_away():
    """Variant 3, integrated: m negatives at 0 or at 1, then the value 0 shown; scales 2 and 2."""

    def density(value: float, negatives: int) -> float:
        def inner(z: float) -> float:
            return math.exp(-abs(z) / 2) / 4 * stats.laplace.cdf(z - value, scale=2) ** negatives

        return float(integrate.quad(inner, -200, 0, limit=400)[0])

    found = math.log(density(0, 8) / density(1, 8))
    (third, *_) = dp.auditing.attacks.BrokenSparseVector(games=1, private_games=1).run().broken
    assert found == pytest.approx(third.exact_epsilon, rel=1e-6)
