"""Leaks that hide from a plain comparison of numbers, and sound mechanisms that look suspicious."""

import decimal
import math
import os
import secrets
from fractions import Fraction

import numpy as np
import pytest

import deniable as dp
from chance import FALSE_ALARM

ONE = dp.PureDP(1)
SURE = 1 - FALSE_ALARM
TRUE_BIT = math.e / (1 + math.e)


def audit(mechanism, claim=ONE, pairs=((0, 1),), n=600):
    return dp.audit(mechanism, claim, list(pairs), n, SURE)


# What must be found, whatever hides it


def raises_with_cause(value):
    try:
        raise KeyError(value)
    except KeyError as error:
        raise ValueError("bad") from error


def raises_with_attribute(value):
    error = ValueError("bad")
    error.rows = value
    raise error


def raises_with_note(value):
    error = ValueError("bad")
    error.add_note(str(value))
    raise error


def cycle(value):
    found = [value]
    found.append(found)
    return found


LEAKS = {
    "a letter behind a random text": lambda x: secrets.token_hex(8) + "ab"[x],
    "the length of a random text": lambda x: secrets.token_hex(8 + 4 * x),
    "a word in print": lambda x: print(secrets.token_hex(8), ["ill", "well"][x]),
    "a letter in an array of texts": lambda x: np.array([secrets.token_hex(4), "xy"[x]]),
    "a byte behind random ones": lambda x: secrets.token_bytes(8) + bytes([x]),
    "a null at the end": lambda x: "a" + "\0" * x,
    "an exception's cause": raises_with_cause,
    "an exception's attribute": raises_with_attribute,
    "an exception's note": raises_with_note,
    "what is written below sys.stdout": lambda x: os.write(1, b"." * (1 + x)) * 0,
    "the order of keys": lambda x: {"a": 1, "b": 2} if x else {"b": 2, "a": 1},
    "the sign of zero": lambda x: -0.0 if x else 0.0,
    "a NaN's bits": lambda x: np.array([0x7FF8000000000000 + x], dtype=np.uint64).view(np.float64),
    "a large int": lambda x: 2**60 + x,
    "a very large int": lambda x: 10**400 + x,
    "a large int in an array": lambda x: np.array([2**60 + x]),
    "a large numpy int": lambda x: np.uint64(2**60 + x),
    "the last bits of a long double": lambda x: np.longdouble(1) + np.longdouble(2) ** -60 * x,
    "digits of a decimal": lambda x: decimal.Decimal("1.0" + "0" * x),
    "the sign of a decimal that is none": lambda x: decimal.Decimal("-NaN" if x else "NaN"),
    "the last digit of a long fraction": lambda x: Fraction(10**40 + x, 10**40 + 2),
    "a cycle": cycle,
}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_a_hidden_leak_is_found(leak):
    report = audit(leak)
    assert report.violated
    # What comes out the same in every call is not noise that was copied.
    assert report.witness.strategy in {"battery", "learned"}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_the_same_without_a_leak_is_not_accused(leak):
    assert not audit(lambda _: leak(0)).violated


def test_output_nested_too_deeply_ends_no_audit():
    def call(value):
        found = value * 0
        for _ in range(3000):
            found = [found]
        return found

    report = audit(call, n=60)
    assert not report.violated
    assert not report.findings


# What must not be accused


def test_calls_of_a_generator_that_children_inherit_are_not_counted_twice():
    """A learned event would remember what it was learned on, which must not come once more."""
    kept = np.random.default_rng()

    def response(value):
        place, true = int(kept.integers(150)), kept.random() < TRUE_BIT
        return f"{place}/{value if true else 1 - value}"

    report = audit(response, dp.PureDP(1.01), n=4_000)
    # Forked children do repeat such noise: that alone may be said of it.
    assert report.witness is None or report.witness.strategy == "forked children"


@pytest.mark.parametrize(
    ("moved", "epsilon", "claim"),
    [
        (2, 1, dp.PureDP(2)),
        (Fraction(3, 2), 1, dp.PureDP(Fraction(3, 2))),
        (1500, Fraction(1, 1000), dp.PureDP(2)),
        (2, 1, dp.Laplace(epsilon=2, sensitivity=1).loss),
    ],
)
def test_a_claim_above_what_is_charged_may_cover_a_larger_move(moved, epsilon, claim):
    charged = dp.Laplace(epsilon=epsilon, sensitivity=1)
    report = audit(charged.release, claim, [(0.0, float(moved))])
    assert not report.violated
    assert "moves by" in report.findings[0]


def test_a_claim_that_does_not_cover_the_move_is_refuted_by_replay():
    charged = dp.Laplace(epsilon=1, sensitivity=1)
    report = audit(charged.release, dp.PureDP(Fraction(3, 2)), [(0.0, 3.0)])
    assert report.violated
    assert report.witness.strategy == "replay"


def test_several_mechanisms_may_share_what_is_claimed_unevenly():
    charged = dp.Laplace(epsilon=1, sensitivity=1)

    def pair(value):
        return charged.release(2 * value), charged.release(0.0)

    assert not audit(pair, dp.PureDP(2), [(0.0, 1.0)]).violated


def test_noise_made_by_hand_beside_a_mechanism_is_not_taken_for_a_leak():
    beside = dp.Laplace(epsilon=1, sensitivity=1)

    def response(value):
        true = secrets.randbelow(10**6) < 10**6 * TRUE_BIT
        return (value if true else 1 - value), beside.release(0.0)

    for _ in range(6):
        assert not audit(response, dp.PureDP(Fraction(6, 5)), n=200).violated


def test_exact_channels_are_compared_exactly():
    tiny = Fraction(1, 10**324)
    rows = ((5 * tiny, 1 - 5 * tiny), (2 * tiny, 1 - 2 * tiny))
    channel = dp.Channel((0, 1), ("a", "b"), rows)
    assert not dp.audit(channel, ONE).violated
    assert dp.audit(channel, dp.PureDP(Fraction(9, 10))).violated
    wide = dp.TruncatedGeometric(epsilon=1, sensitivity=1, lower=0, upper=740)
    assert not dp.audit(wide, ONE, n=400).violated


# What is asked for


def test_pairs_of_a_channel_are_its_inputs():
    channel = dp.RandomizedResponse(epsilon=1).channel()
    with pytest.raises(dp.ParameterError, match="two inputs of the channel"):
        dp.audit(channel, ONE, [("no", "such")])


def test_arguments_are_checked_before_anything_is_called():
    with pytest.raises(dp.errors.ParameterTypeError, match="progress"):
        dp.audit(lambda x: x, ONE, [(0, 1)], progress="x")
    assert not dp.audit(lambda _: 0, ONE, [(0, 1)], n=60, attempt=np.int64(2)).violated
    assert not dp.audit(lambda _: 0, ONE, [(0, 1)], n=60, time_limit=10**6).violated


def test_a_report_that_cannot_be_written_says_why(tmp_path):
    report = dp.audit(lambda _: 0, ONE, [(0, 1)], n=60)
    with pytest.raises(dp.ParameterError, match="No such file"):
        report.save(tmp_path / "none" / "report.html")
    with pytest.raises(dp.errors.ParameterTypeError, match="must be a path"):
        report.save(5)
