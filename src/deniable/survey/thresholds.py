"""Probabilities as whole thresholds out of 2^64: a client compares one random word with them.

A client in any language can keep the law exactly: draw 64 bits, compare. What is asked for as ε is
rounded to such a threshold so that ε is never exceeded; the loss is that of the rounded law.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from deniable.errors import ParameterError
from deniable.privacy.exact import Number, decimal, high_precision, log_up, positive, show

WORD = 1 << 64
_LEAST, _MOST = Fraction(1, 10**6), Fraction(100)


def read_epsilon(value: Number, argument: str = "epsilon") -> Fraction:
    """Read the ε of a client; 64-bit thresholds serve 1e-6 to 100."""
    epsilon = positive(value, argument)
    if not _LEAST <= epsilon <= _MOST:
        raise ParameterError(argument, value, "local answers take 0.000001 to 100")
    return epsilon


def keep(epsilon: Fraction, weight: Fraction = Fraction(1), root: int = 1) -> Fraction:
    """The largest p = t/2^64 with (p/(1 - p)/weight)^root <= e^ε: the probability of the truth.

    `weight` is the number of true outcomes over that of the others, so that the ratio compares
    one outcome with another; `root` is how many independent coins differ between two answers.
    """
    with localcontext(high_precision(epsilon)):
        odds = decimal(weight) * (decimal(epsilon) / root).exp()
        top = min(WORD - 1, int(odds / (1 + odds) * WORD))
    while top > 0 and root * log_up(odds_of(Fraction(top, WORD)) / weight) > epsilon:
        top -= 1
    kept = Fraction(top, WORD)
    if top == 0 or odds_of(kept) <= weight:
        raise ParameterError(
            "epsilon", show(epsilon), "is too small for so many outcomes: 64 bits tell none apart"
        )
    return kept


def rounded_down(probability: Fraction | Decimal) -> Fraction:
    """The largest threshold at or below a probability."""
    return Fraction(int(Fraction(probability) * WORD), WORD)


def odds_of(probability: Fraction) -> Fraction:
    """p/(1 - p)."""
    return probability / (1 - probability)


def exp_decimal(epsilon: Fraction) -> Fraction:
    """e^ε to sixty digits, for formulas that are rounded afterwards."""
    with localcontext(high_precision(epsilon)):
        return Fraction(decimal(epsilon).exp())
