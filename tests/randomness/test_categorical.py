from fractions import Fraction

import mpmath
import numpy as np
import pytest

from chance import plausible_share
from deniable.randomness.brackets import exp_minus
from deniable.randomness.categorical import CategoricalSampler
from deniable.randomness.source import SECURE
from sources import InsecureSource, ScriptedSource

N = 300_000


def law(scores, factor) -> np.ndarray:
    with mpmath.workprec(300):
        exact = [mpmath.mpf(s.numerator) / s.denominator for s in map(Fraction, scores)]
        scaled = [mpmath.mpf(factor.numerator) / factor.denominator * s for s in exact]
        weights = [mpmath.exp(s - max(scaled)) for s in scaled]
        return np.array([float(w / mpmath.fsum(weights)) for w in weights])


@pytest.mark.parametrize(
    ("scores", "factor"),
    [
        (np.array([0.0, 1.0, 2.0, 3.0]), Fraction(1)),
        (np.array([5, 5, 4, -100], dtype=np.int64), Fraction(1, 3)),
        (np.array([1e308, -1e308, 1e308]), Fraction(1, 10**308)),
        (np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max]), Fraction(1, 2**63)),
        ([Fraction(1, 3), Fraction(1, 7), Fraction(10**40, 10**40 + 1)], Fraction(2)),
        (np.array([5e-324, 0.0]), Fraction(10**323)),
        (np.array([2.5, 2.5 + 2**-51]), Fraction(2**50)),
    ],
)
def test_candidates_are_chosen_by_their_weights(scores, factor):
    values = scores.tolist() if isinstance(scores, np.ndarray) else scores
    expected = law(values, factor)
    counts = np.bincount(
        CategoricalSampler(scores, factor).sample(N, SECURE), minlength=len(values)
    )
    assert all(plausible_share(c, N, p) for c, p in zip(counts, expected, strict=True))
    wrong = np.roll(expected, 1)
    if not np.allclose(wrong, expected):
        assert not all(plausible_share(c, N, p) for c, p in zip(counts, wrong, strict=True))


def test_levels_never_exceed_the_true_deficit():
    generator = np.random.default_rng(5)
    scores = generator.normal(size=2000) * 10.0 ** generator.integers(-300, 300, 2000)
    for factor in (Fraction(1), Fraction(1, 10**290), Fraction(10**20, 3)):
        sampler = CategoricalSampler(scores, factor)
        for index in range(0, 2000, 37):
            true = sampler._deficits.exact(index)
            assert Fraction(min(sampler._deficits.floats[index], 1e300)) <= true


def test_a_candidate_of_negligible_weight_is_reached_and_almost_never_kept():
    sampler = CategoricalSampler(np.array([0.0, -1000.0]), Fraction(1))
    # The first bucket is found below F(0); a word of all ones leads to the far one.
    slot = sampler._table.draw(1, ScriptedSource(b"\xff" * 60))
    assert slot[0] == 1
    assert sampler.sample(1, ScriptedSource(b"\xff" * 60))[0] == 0


def test_a_million_candidates():
    scores = np.arange(1_000_000) % 1000
    chosen = CategoricalSampler(scores, Fraction(1, 10)).sample(20_000, InsecureSource(2))
    top = int((scores[chosen] == 999).sum())
    assert plausible_share(top, 20_000, float(1 - np.exp(-0.1)))


def test_a_choice_of_probability_below_1e_minus_300_is_decided_by_integers():
    """Deficit 1000: level 127, then a coin of probability e^-873, which is below 1e-379.

    The coin's first 1408 bits are scripted to lie just below and just above it.
    """
    sampler = CategoricalSampler(np.array([0.0, -1000.0]), Fraction(1))
    # 192 ones lead to the far level (2 + 8 + 16 bytes), eight more bytes pick its only member.
    to_the_far_one = b"\xff" * 26 + bytes(8)

    def choice(coin: int) -> int:
        words = [(coin >> shift) % 2**64 for shift in range(1408 - 64, -1, -64)]
        script = to_the_far_one + b"".join(word.to_bytes(8, "little") for word in words)
        return int(sampler.sample(1, ScriptedSource(script))[0])

    low, high = exp_minus(Fraction(873), 1408)
    assert 0 < low < high < 1 << 200
    assert choice(low - 1) == 1
    assert choice(high + 1) == 0
    assert choice(0) == 1
