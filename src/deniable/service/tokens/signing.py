"""The signer's step (RFC 9474, 4.3).

**Time.** Integers in Python are not computed in constant time. So that times say nothing about
the number that is signed, it is multiplied by r^e first, for a fresh random unit r, and the result
by 1/r afterwards (Kocher 1996); random multiples of p - 1 and q - 1 are added to the exponents, so
that the same key never runs through the same exponent twice. That makes times useless to who
measures them over a network, as far as is known. It is not proof against somebody who watches the
processor's caches from the same machine: sign where nobody else runs programs.

**Faults.** The result is encrypted again and compared with what was asked, before it is handed
out. One wrong result by the Chinese remainders would give the factors of n away (Boneh, DeMillo
and Lipton 1997).
"""

from __future__ import annotations

from deniable.errors import TokenError
from deniable.randomness.source import SECURE, bits
from deniable.service.tokens.checks import read_number, uniform_unit
from deniable.service.tokens.keys import EXPONENT, IssuerKey

_EXPONENT_MASK_BITS = 64


def blind_sign(key: IssuerKey, blinded: bytes) -> bytes:
    """Sign one blinded message. The caller counts: each call makes one more token.

    0, 1 and n - 1 are refused besides what is out of range: they are their own signatures up to
    sign, and no device that blinds at random ever sends them.
    """
    public = key.public
    n = public.modulus
    number = read_number("blinded message", blinded, public.length)
    if not 1 < number < n - 1:
        raise TokenError(
            "the blinded message is out of range: between 1 and n - 1, both excluded; "
            "make it with the public key of this survey"
        )
    mask = uniform_unit(n)
    masked = number * pow(mask, EXPONENT, n) % n
    signature = _root(key, masked) * pow(mask, -1, n) % n
    if pow(signature, EXPONENT, n) != number:
        raise TokenError("signing went wrong, and nothing is handed out; check the machine")
    return signature.to_bytes(public.length, "big")


def _root(key: IssuerKey, number: int) -> int:
    """The e-th root of a number, by Chinese remainders."""
    numbers = key.rsa.private_numbers()
    p, q = numbers.p, numbers.q
    by_p = pow(number % p, numbers.dmp1 + bits(SECURE, _EXPONENT_MASK_BITS) * (p - 1), p)
    by_q = pow(number % q, numbers.dmq1 + bits(SECURE, _EXPONENT_MASK_BITS) * (q - 1), q)
    return by_q + q * ((by_p - by_q) * numbers.iqmp % p)
