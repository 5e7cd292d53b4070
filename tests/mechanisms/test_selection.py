import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, strategies as st

import deniable as dp
from chance import plausible_share
from deniable.mechanisms.selection import flip_probabilities

F = Fraction
SELECTORS = [
    dp.Exponential(epsilon=1, sensitivity=1),
    dp.Exponential(epsilon=1, sensitivity=2, monotone=True),
    dp.PermuteAndFlip(epsilon=1, sensitivity=1),
    dp.PermuteAndFlip(epsilon=1, sensitivity=1, monotone=True),
    dp.ReportNoisyMax(epsilon=1, sensitivity=1),
    dp.ReportNoisyMax(epsilon=1, sensitivity=1, monotone=True),
    dp.ReportNoisyMax(epsilon=1, sensitivity=1, noise="gumbel"),
]
every = pytest.mark.parametrize("selector", SELECTORS, ids=repr)


@every
@pytest.mark.parametrize("scores", [[0, 1, 2, 3], [0.5, 0.25, 3.0], [7, 7], [1, -40, 2]])
@pytest.mark.parametrize("n", [4_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_choices_follow_their_probabilities(selector, scores, n):
    """A tenth is 12.6 deviations of a share of 4,000: it is seen as surely as nothing is."""
    labels = list(range(len(scores)))
    counts = np.bincount([selector.choose(labels, scores) for _ in range(n)], minlength=len(scores))
    expected = [float(p) for p in selector.probabilities(scores)]
    assert sum(expected) == pytest.approx(1, abs=1e-9)
    assert all(plausible_share(c, n, p) for c, p in zip(counts, expected, strict=True))
    top = int(np.argmax(expected))
    assert not plausible_share(counts[top], n, expected[top] - 0.1)


def neighbours(scores, sensitivity, monotone):
    """All ways one unit can move the scores to the ends of their range."""
    steps = (0, 1) if monotone else (-1, 1)
    for moves in np.ndindex(*(len(steps),) * len(scores)):
        moved = [s + steps[m] * sensitivity for s, m in zip(scores, moves, strict=True)]
        yield moved
        if monotone:
            yield [s - steps[m] * sensitivity for s, m in zip(scores, moves, strict=True)]


@every
@pytest.mark.parametrize("scores", [[0, 1, 2], [5, 5, 5], [0, 10, 9]])
def test_every_neighbour_is_within_epsilon_exactly(selector, scores):
    here = selector.probabilities(scores)
    worst = 0.0
    for other in neighbours(scores, int(selector.sensitivity), selector.monotone):
        there = selector.probabilities([int(s) for s in other])
        worst = max(worst, *(abs(math.log(a / b)) for a, b in zip(here, there, strict=True)))
    assert worst <= 1 + 1e-9
    assert worst > 0.4


def test_the_exponential_mechanism_reaches_its_bounded_range_profile():
    loss = dp.Exponential(epsilon=1, sensitivity=1).loss
    assert loss == dp.losses.ExponentialLoss(bound=1)
    assert loss.rho == 1 / 8
    assert dp.PermuteAndFlip(epsilon=1, sensitivity=1).loss == dp.losses.PureLoss(bound=1)


def permute_and_flip_by_hand(weights):
    """Every order, every coin: the definition."""
    n, out = len(weights), [F(0)] * len(weights)
    orders = list(permutations(range(n)))
    for order in orders:
        reach = F(1, len(orders))
        for i in order:
            out[i] += reach * weights[i]
            reach *= 1 - weights[i]
    return out


@given(st.lists(st.fractions(F(1, 50), 1, max_denominator=50), min_size=1, max_size=5))
def test_permute_and_flip_is_its_definition(weights):
    weights[0] = F(1)
    assert flip_probabilities(weights) == permute_and_flip_by_hand(weights)


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism():
    generator = np.random.default_rng(2)
    for _ in range(200):
        scores = generator.integers(0, 8, size=5).tolist()
        flip, exponential = (
            sum(
                p * s
                for p, s in zip(
                    m(epsilon=1, sensitivity=1).probabilities(scores), scores, strict=True
                )
            )
            for m in (dp.PermuteAndFlip, dp.Exponential)
        )
        assert flip >= exponential - F(1, 10**30)


def test_permute_and_flip_is_noisy_max_with_exponential_noise():
    """For two candidates a deficit d apart: P(the lower wins) = e^-d/2."""
    d = dp.PermuteAndFlip(epsilon=2, sensitivity=1).probabilities([0, 3])
    assert float(d[0]) == pytest.approx(math.exp(-3) / 2, rel=1e-12)


@pytest.mark.parametrize("selector", SELECTORS[:4], ids=repr)
def test_probabilities_far_below_any_float_are_exact(selector):
    low = selector.probabilities([0, 2000])[0]
    assert low > 0
    assert float(low) == 0.0 or float(low) < 1e-300
    ratio = selector.probabilities([0, 2000])[0] / selector.probabilities([0, 2002])[0]
    assert float(ratio) == pytest.approx(math.exp(2 * selector.factor), rel=1e-12)


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_any_finite_scores_do(selector):
    assert selector.choose("abc", [1e308, -1e308, 0.0]) == "a"
    assert selector.choose("ab", np.array([-(2**63), 2**63 - 1])) == "b"
    assert selector.choose("ab", [F(1, 3), F(10**30)]) == "b"
    assert selector.choose("a", [5]) == "a"


def test_near_ties_at_the_last_bit_are_told_apart_by_their_exact_values():
    mechanism = dp.Exponential(epsilon=1, sensitivity=F(1, 2**51))
    close = [1.0, 1.0 + 2**-52]
    low, high = mechanism.probabilities(close)
    assert float(high / low) == pytest.approx(math.exp(mechanism.factor * F(1, 2**52)), rel=1e-12)
    n = 8_000
    wins = sum(mechanism.choose([0, 1], close) for _ in range(n))
    assert plausible_share(wins, n, float(high))


def test_the_utility_bound_holds():
    mechanism = dp.Exponential(epsilon=1, sensitivity=1)
    scores = list(range(50))
    bound = mechanism.utility_bound(candidates=50, beta=0.05)
    assert bound == pytest.approx(2 * (math.log(50) + math.log(20)))
    missed = sum(
        float(p)
        for p, s in zip(mechanism.probabilities(scores), scores, strict=True)
        if s < 49 - bound
    )
    assert missed <= 0.05


def test_top_k_peels():
    top = dp.TopK(dp.Exponential(epsilon=0.5, sensitivity=1), 3)
    assert top.loss == dp.repeat(dp.losses.ExponentialLoss(bound=0.5), 3)
    chosen = top.choose("abcdef", [0, 1000, 2000, 3000, 4000, 5000])
    assert chosen == ["f", "e", "d"]
    assert sorted(dp.TopK(SELECTORS[2], 4).choose("abcd", [F(1), F(2), F(3), F(4)])) == list("abcd")
    with pytest.raises(dp.ParameterError, match="candidates"):
        top.choose("ab", [1, 2])
    for bad in (0, -1, 1.5):
        with pytest.raises(dp.ParameterError, match="k"):
            dp.TopK(SELECTORS[0], bad)


@every
@pytest.mark.parametrize(
    "bad",
    [
        [],
        [math.nan, 1.0],
        [math.inf, 1.0],
        ["a", "b"],
        None,
        [[1, 2]],
        5,
        [None, 1],
        [True, "x"],
        np.array([1 + 1j, 2]),
        np.array([]),
    ],
)
def test_bad_scores_are_refused(selector, bad):
    with pytest.raises(dp.errors.PrivateValueError):
        selector.choose("ab", bad)


@every
def test_candidates_and_scores_must_match(selector):
    with pytest.raises(dp.ParameterError, match="candidates"):
        selector.choose("abc", [1, 2])
    with pytest.raises(dp.ParameterError, match="candidates"):
        selector.choose([], [1])


@pytest.mark.parametrize("kind", [dp.Exponential, dp.PermuteAndFlip, dp.ReportNoisyMax])
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", None, True])
def test_bad_parameters_are_refused(kind, bad):
    with pytest.raises(dp.ParameterError, match="epsilon"):
        kind(epsilon=bad, sensitivity=1)
    with pytest.raises(dp.ParameterError, match="sensitivity"):
        kind(epsilon=1, sensitivity=bad)


def test_other_bad_parameters():
    with pytest.raises(dp.ParameterError, match="monotone"):
        dp.Exponential(epsilon=1, sensitivity=1, monotone="yes")
    with pytest.raises(dp.ParameterError, match="noise"):
        dp.ReportNoisyMax(epsilon=1, sensitivity=1, noise="gauss")
    with pytest.raises(dp.ParameterError, match="beta"):
        dp.Exponential(epsilon=1, sensitivity=1).utility_bound(candidates=3, beta=0)
    with pytest.raises(dp.ParameterError, match="24"):
        dp.PermuteAndFlip(epsilon=1, sensitivity=1).probabilities([0] * 25)


def counts_of(data):
    return [data.count(c) for c in "abc"]


def mode_neighbours(relation):
    """Every pair of neighbouring lists over three letters, of up to four records."""
    for size in range(5):
        for data in product("abc", repeat=size):
            if relation == "add_remove":
                yield from ((data, (*data, w)) for w in "abc")
            else:
                for i, w in product(range(size), "abc"):
                    yield data, (*data[:i], w, *data[i + 1 :])


def exponential_law(weights):
    return [w / sum(weights) for w in weights]


@pytest.mark.parametrize("base", [F(3, 2), F(2), F(7)])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("law", [exponential_law, flip_probabilities])
def test_the_most_common_letter_is_private_exactly(base, relation, law):
    """Weights base^count, base standing for e^(ε/2Δ): the worst ratio is at most base² = e^ε.

    Counts are monotone under add/remove, so there base = e^(ε/Δ) would do: the ratio is at most
    the base itself. All in fractions, for every pair of neighbours.
    """

    def probabilities(data):
        counts = counts_of(data)
        return law([base ** (c - max(counts)) for c in counts])

    worst = F(1)
    for here, there in mode_neighbours(relation):
        for p, q in zip(probabilities(here), probabilities(there), strict=True):
            worst = max(worst, p / q, q / p)
    limit = base if relation == "add_remove" else base**2
    assert worst <= limit
    assert worst > limit ** F(1, 2) if law is flip_probabilities else worst > 1


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_scores_beyond_64_bits_are_read_alike_on_neighbours(selector):
    """Reading one score as a float or saturating another would tell neighbours apart."""
    here = selector.probabilities([2**63 + 40, 2**63])
    there = selector.probabilities([2**63 + 40, 2**63 - 1])
    loss = max(abs(math.log(a / b)) for a, b in zip(here, there, strict=True))
    assert loss <= 1 + 1e-9
    array = selector.probabilities(np.array([2**63 + 40, 2**63], dtype=np.uint64))
    assert [float(p) for p in array] == pytest.approx([float(p) for p in here], rel=1e-9)


def test_candidates_are_a_list():
    mechanism = dp.Exponential(epsilon=1, sensitivity=1)
    for bad in ({"a", "b"}, {"a": 1, "b": 2}, (c for c in "ab"), 5):
        with pytest.raises(dp.errors.ParameterTypeError, match="candidates"):
            mechanism.choose(bad, [1, 2])
    with pytest.raises(dp.errors.PrivateValueError):
        mechanism.choose("ab", [True, 2])
    with pytest.raises(dp.errors.ParameterTypeError, match="selector"):
        dp.TopK(dp.Laplace(epsilon=1, sensitivity=1), 1)
