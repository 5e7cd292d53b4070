"""The paths that chance takes once in 2^60 draws, forced."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from chance import plausible_share
from deniable.errors import RandomnessError
from deniable.randomness.bernoulli import SLACK, below_exp, bernoulli, settle
from deniable.randomness.brackets import Bracket, exp_minus
from deniable.randomness.gaussian import CellSampler, GaussianSampler
from deniable.randomness.inversion import locate
from deniable.randomness.laplace import LaplaceSampler, _Geometric, check_width
from deniable.randomness.source import bits, words
from sources import InsecureSource, ScriptedSource


def bernoulli_exp(numerators, denominator, source):
    """One coin per numerator a >= 0, True with probability exactly exp(-a/denominator)."""
    return below_exp(
        words(source, numerators.size),
        numerators.astype(np.float64) / float(denominator),
        lambda at, precision: exp_minus(Fraction(int(numerators[at])) / denominator, precision),
        source,
    )


def coin_exp(x, source):
    """One coin that is True with probability exactly exp(-x), x >= 0 of any size."""
    return settle(partial(exp_minus, x), bits(source, 64), source)


def _table(kind: str):
    if kind == "laplace":
        return LaplaceSampler(Fraction(3))._top
    if kind == "digit":
        return LaplaceSampler(Fraction(5000))._digits[0]
    return CellSampler(Fraction(9), 32)._cells


def _unsigned(table, value: int) -> int:
    return (2 * value if value >= 0 else -2 * value - 1) if table._signed else value


@pytest.mark.parametrize("kind", ["laplace", "digit", "gaussian"])
def test_a_tie_ends_on_one_of_the_two_sides_and_splits_as_it_should(kind):
    table = _table(kind)
    index = 3
    threshold = int(table._thresholds[index])
    said = (threshold >> 48).to_bytes(2, "little") + ((threshold & ((1 << 48) - 1)) << 16).to_bytes(
        8, "little"
    )
    trials = 1000
    outcomes = [
        _unsigned(table, int(table.draw(1, ScriptedSource(said, seed))[0]))
        for seed in range(trials)
    ]
    assert set(outcomes) == {index, index + 1}
    # P(below | tie) is the fraction of the unit that lies below the true threshold.
    bracket = table._cumulative.brackets(index + 1, 128)[index]
    share = (bracket.low - (threshold << 64)) / 2**64
    assert 0 < share < 1
    below = outcomes.count(index)
    assert plausible_share(below, trials, share)
    assert not plausible_share(
        below, trials, min(share + 0.2, 0.999) if share < 0.5 else share - 0.2
    )


def test_the_all_ones_word_reaches_the_tail():
    sampler = LaplaceSampler(Fraction(10))
    tails = [abs(int(sampler.sample(1, ScriptedSource(b"\xff" * 10, s))[0])) for s in range(50)]
    # 64 ones leave P(|X| > x) < 2^-63: beyond 10 * ln(2^63) or so.
    assert min(tails) >= 430
    assert max(tails) < 600


def test_all_zeros_is_the_first_value():
    assert LaplaceSampler(Fraction(10)).sample(1, ScriptedSource(bytes(10)))[0] == 0
    assert GaussianSampler(Fraction(4)).sample(1, ScriptedSource(bytes(10)))[0] == 0


class _EndlessTail:
    """A law whose mass lies beyond every index one looks at."""

    def brackets(self, count, precision):  # noqa: ARG002
        return [Bracket(0, 0)] * count


def test_an_index_beyond_the_table_is_refused_not_wrapped():
    table = LaplaceSampler(Fraction(10))._top
    table._cumulative = _EndlessTail()
    with pytest.raises(RandomnessError, match="beyond the range"):
        table.draw(1, ScriptedSource(b"\xff" * 10))


def test_a_gaussian_cell_beyond_62_bits_is_refused_not_wrapped():
    with pytest.raises(RandomnessError, match="62 bits"):
        check_width(np.array([3, -9000], dtype=np.int16), 50)


def test_a_draw_beyond_62_bits_is_refused_not_wrapped():
    sampler = LaplaceSampler(Fraction(2**56))
    with pytest.raises(RandomnessError, match="62 bits"):
        sampler.sample(1, ScriptedSource(b"\xff" * 22))


def test_locate_is_exact_deep_in_the_tail():
    law = _Geometric(Fraction(1, 2))
    # U begins with 192 ones, so that 1 - U < 2^-192, and is random from there on.
    index = locate(law, (1 << 64) - 1, ScriptedSource(b"\xff" * 16, 1))
    assert 2 * 192 * np.log(2) - 1 <= index <= 2 * 192 * np.log(2) + 20


def test_bernoulli_follows_the_digits_of_its_probability():
    p = Fraction(1, 3)
    digits = ((1 << 64) // 3).to_bytes(8, "little")
    assert not bernoulli(p, 1, ScriptedSource(digits * 5 + b"\xff" * 8))[0]
    assert bernoulli(p, 1, ScriptedSource(digits * 5 + bytes(8)))[0]
    half = (1 << 63).to_bytes(8, "little")
    assert not bernoulli(Fraction(1, 2), 1, ScriptedSource(half))[0]
    assert bernoulli(Fraction(1, 2), 1, ScriptedSource(((1 << 63) - 1).to_bytes(8, "little")))[0]


def test_coins_of_probability_zero_and_one():
    source = InsecureSource(1)
    assert not bernoulli(Fraction(0), 100, source).any()
    assert bernoulli(Fraction(1), 100, source).all()
    assert bernoulli_exp(np.zeros(100, dtype=np.int64), Fraction(1), source).all()
    assert not coin_exp(Fraction(10**30), source)


@pytest.mark.parametrize("x", [Fraction(1, 7), Fraction(1), Fraction(50), Fraction(3000, 7)])
def test_settling_agrees_with_the_bracket_on_both_sides(x):
    exact = exp_minus(x, 64)
    if exact.low > 0:
        assert settle(partial(exp_minus, x), exact.low - 1, InsecureSource(0))
    assert not settle(partial(exp_minus, x), exact.high + 1, InsecureSource(0))


def test_words_within_the_slack_are_settled_exactly():
    numerator, denominator = np.array([2], dtype=np.int64), Fraction(7)
    true = exp_minus(Fraction(2, 7), 64)
    nearby = int(SLACK * 2**64 / 4)
    below = (true.low - nearby).to_bytes(8, "little")
    above = (true.high + nearby).to_bytes(8, "little")
    assert bernoulli_exp(numerator, denominator, ScriptedSource(below))[0]
    assert not bernoulli_exp(numerator, denominator, ScriptedSource(above))[0]


@pytest.mark.parametrize("x", ["1/9", "1", "5/2"])
def test_exponential_coins_have_their_probability(x):
    value = Fraction(x)
    numerators = np.full(400_000, value.numerator, dtype=np.int64)
    hits = int(bernoulli_exp(numerators, Fraction(value.denominator), InsecureSource(3)).sum())
    assert plausible_share(hits, 400_000, float(np.exp(-float(value))))
    assert not plausible_share(hits, 400_000, float(np.exp(-float(value))) * 1.1)
