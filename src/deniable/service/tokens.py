"""One-time tokens that their issuer cannot recognise: RSA blind signatures (RFC 9474).

The respondent's device makes a random token and blinds it; the operator signs the blinded token
once per invited person; the device removes the blinding and later hands the token in with its
report. What is promised, each with a test:

* **Blindness.** The blinded message is uniform on the units modulo n, whatever the token is, and
  every pair of an issue and a token handed in fits with exactly one blinding factor. So what the
  operator saw when it signed says nothing about which token it signed, whatever its computing
  power (Chaum 1983). This is for an honest key and random factors; a key made to leak is met by
  the random prefix of the variant that surveys use (Lysyanskaya 2022; RFC 9474, section 7).
* **One token per signature.** Who got k signatures cannot make k + 1 tokens, if the one-more-RSA
  problem is hard, with SHA-384 as a random function (Bellare, Namprempre, Pointcheval and Semanko
  2003 for full-domain hashing; Lysyanskaya 2022 for these encodings). Tests can show no more than
  that obvious forgeries are refused.
* **Spent once.** The survey's store takes a token once (`deniable.service.deposits`).

What is not promised: times, network addresses and the order of arrival can link an issue to a
token, and so can an operator that gives each person a key of their own.

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

import math

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from deniable.errors import ParameterTypeError, TokenError
from deniable.randomness.source import SECURE, bits
from deniable.service.token_keys import EXPONENT, IssuerKey, PublicKey

# Of RSABSSA-SHA384-PSS-Randomized (RFC 9474, section 5), in bytes: the random prefix of a message
# keeps a token blind even to a key that was made to leak.
PREFIX, SALT = 32, 48
_EXPONENT_MASK_BITS = 64


def blind_sign(key: IssuerKey, blinded: bytes) -> bytes:
    """Sign one blinded message (RFC 9474, 4.3). The caller counts: each call makes a token.

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


def verify(public: PublicKey, prepared: bytes, signature: bytes, salt: int = SALT) -> None:
    """Return if it is a signature of the prepared message, else `TokenError` (RFC 9474, 4.5).

    RSASSA-PSS-VERIFY by OpenSSL (RFC 8017, 8.1.2), with a salt of exactly this length.
    """
    require_bytes("prepared", prepared)
    if not read_number("signature", signature, public.length) < public.modulus:
        raise TokenError("the signature is out of range: it must be below n")
    scheme = padding.PSS(padding.MGF1(hashes.SHA384()), salt)
    try:
        public.rsa.verify(signature, prepared, scheme, hashes.SHA384())
    except InvalidSignature:
        raise TokenError("the signature is not one of this message under this key") from None


def require_bytes(argument: str, value: object) -> bytes:
    """The bytes themselves. The message does not quote what was given."""
    if not isinstance(value, bytes):
        raise ParameterTypeError(argument, type(value).__name__, "must be bytes")
    return value


def read_number(what: str, value: object, length: int) -> int:
    """The number that exactly `length` bytes hold."""
    found = require_bytes(what, value)
    if len(found) != length:
        raise TokenError(
            f"the {what} has {len(found)} bytes, and this key works on {length}; "
            "make it with the public key of this survey"
        )
    return int.from_bytes(found, "big")


def uniform_unit(modulus: int) -> int:
    """Uniform on the numbers below `modulus` that have an inverse, by rejection."""
    while True:
        drawn = bits(SECURE, modulus.bit_length())
        if drawn < modulus and math.gcd(drawn, modulus) == 1:
            return drawn
