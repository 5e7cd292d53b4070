from fractions import Fraction

import mpmath
import numpy as np
import pytest

from chance import plausible_share
from deniable.randomness.bernoulli import bernoulli, exp_minus_floats, uniform_below
from deniable.randomness.source import SECURE


def test_the_float_exponential_is_within_its_stated_error():
    x = np.concatenate([np.linspace(0, 3, 997), np.linspace(3, 70, 997), [1e3, 1e300, np.inf]])
    with mpmath.workprec(200):
        true = [mpmath.exp(-mpmath.mpf(float(v))) for v in x]
        errors = [
            abs(mpmath.mpf(float(f)) - t) for f, t in zip(exp_minus_floats(x), true, strict=True)
        ]
    assert max(errors) < 2.0**-44


@pytest.mark.parametrize("p", ["1/3", "1/1000", "999/1000", "1/2"])
def test_rational_coins(p):
    hits = int(bernoulli(Fraction(p), 400_000, SECURE).sum())
    assert plausible_share(hits, 400_000, float(Fraction(p)))
    assert not plausible_share(hits, 400_000, min(1.0, float(Fraction(p)) + 0.01))


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 1000, 2**63])
def test_uniform_integers(bound):
    draws = uniform_below(bound, 200_000, SECURE)
    assert draws.min() >= 0
    assert int(draws.max()) < bound
    if bound <= 1000:
        counts = np.bincount(draws, minlength=bound)
        assert all(plausible_share(c, 200_000, 1 / bound) for c in counts)
    else:
        assert plausible_share((draws >= 2**62).sum(), 200_000, 0.5)


def test_words_past_the_last_multiple_are_drawn_again():
    from sources import ScriptedSource

    assert uniform_below(3, 1, ScriptedSource(b"\xff" * 8 + bytes(8)))[0] == 0
