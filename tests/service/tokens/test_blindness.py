"""What the issuer sees says nothing about the token: by algebra, and by counting."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from chance import FALSE_ALARM
from deniable.service import tokens
from deniable.service.tokens import uniform_unit
from service.tokens import holder, variants
from service.tokens.holder import _blind
from service.tokens.issuing import issuer, one_in_node
from service.tokens.pss import encode
from service.tokens.token import Token

KEY = issuer()
PUBLIC, N = KEY.public, KEY.public.modulus
CELLS = 64


def looks_uniform(blinded):
    """Leading parts, last bits, and leading parts of successive pairs, by chi-square."""
    numbers = [int.from_bytes(each, "big") for each in blinded]
    leading = np.array([CELLS * number // N for number in numbers])
    last = np.array([number % CELLS for number in numbers])
    pairs = leading[::2] // 8 * 8 + leading[1::2] // 8
    found = [stats.chisquare(np.bincount(part, minlength=CELLS)) for part in (leading, last, pairs)]
    return min(each.pvalue for each in found) > FALSE_ALARM / 3


@pytest.mark.parametrize("message", [b"a", b"the other person's message"])
def test_blinded_messages_are_uniform_whatever_the_message(message):
    prepared = holder.prepare(message)
    assert looks_uniform([holder.blind(PUBLIC, prepared).blinded for _ in range(2000)])


def test_blinded_messages_of_a_variant_without_randomness_are_uniform():
    variant = variants.PSSZERO_DETERMINISTIC
    assert looks_uniform([holder.blind(PUBLIC, b"one", variant).blinded for _ in range(2000)])


def test_blinded_messages_from_javascript_are_uniform():
    found = one_in_node(do="blindOften", pem=PUBLIC.pem, prepared="00ff", count=2000)
    assert looks_uniform([bytes.fromhex(each) for each in found["all"]])


def test_the_check_sees_factors_that_repeat():
    factors = [uniform_unit(N) for _ in range(100)]
    assert not looks_uniform(
        _blind(PUBLIC, b"one", b"", factors[i % 100]).blinded for i in range(2000)
    )


def test_the_check_sees_messages_that_are_not_blinded():
    """The encoding of a message has one bit less than n."""
    bits = N.bit_length() - 1
    bare = [encode(holder.prepare(b"one"), bytes(48), bits) for _ in range(2000)]
    assert not looks_uniform(bare)


@pytest.mark.parametrize("modulus", [15, 35, 64, 97])
def test_factors_are_uniform_on_the_units(modulus):
    units = [x for x in range(modulus) if math.gcd(x, modulus) == 1]
    drawn = np.bincount([uniform_unit(modulus) for _ in range(5000)], minlength=modulus)
    assert drawn.sum() == drawn[units].sum()
    assert stats.chisquare(drawn[units]).pvalue > FALSE_ALARM
    shifted = np.array(drawn[units])
    shifted[0] += 1000  # one unit too often
    assert stats.chisquare(shifted).pvalue < FALSE_ALARM


def test_javascript_rejects_factors_that_are_too_large_or_have_no_inverse():
    p = KEY.rsa.private_numbers().p
    good = uniform_unit(N)
    draws = [256**PUBLIC.length - 1, N, 0, p, good]
    salt = bytes(range(48))
    script = salt + b"".join(number.to_bytes(PUBLIC.length, "big") for number in draws)
    found = one_in_node(
        do="blind", pem=PUBLIC.pem, prepared="abcd", variant="PSS_RANDOMIZED", random=script.hex()
    )
    wanted = _blind(PUBLIC, bytes.fromhex("abcd"), salt, good)
    assert found["blinded"] == wanted.blinded.hex()
    assert int(found["inverse"], 16) == wanted.inverse


def test_every_issue_fits_every_token():
    """For each pair there is one factor that would have led from the one to the other.

    So all ways to match issues with tokens are equally likely, to an issuer of any power.
    """
    issues, finished = [], []
    for _ in range(5):
        blinding = holder.blind(PUBLIC, holder.prepare(b"survey"))
        signed = tokens.blind_sign(KEY, blinding.blinded)
        issues.append((blinding.blinded, signed))
        finished.append(Token(blinding.prepared, holder.finalize(PUBLIC, blinding, signed)))
    for (blinded, signed), token in itertools.product(issues, finished):
        signature = int.from_bytes(token.signature, "big")
        encoded = pow(signature, 65537, N)
        factor = int.from_bytes(signed, "big") * pow(signature, -1, N) % N
        assert math.gcd(factor, N) == 1
        assert encoded * pow(factor, 65537, N) % N == int.from_bytes(blinded, "big")
        again = holder.Blinding(blinded, token.prepared, pow(factor, -1, N))
        assert holder.finalize(PUBLIC, again, signed) == token.signature
