"""The steps of who holds a token (RFC 9474, 4.1, 4.2 and 4.4). `static/blind.js` does the same.

If `finalize` fails, throw everything away and start again from `prepare`: a second try with the
same message could tell a malicious signer something about it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from deniable.errors import TokenError
from deniable.randomness.source import SECURE
from deniable.service.token_keys import EXPONENT, PublicKey
from deniable.service.tokens import read_number, require_bytes, uniform_unit, verify
from service.tokens.pss import encode
from service.tokens.variants import PSS_RANDOMIZED, Variant


@dataclass(frozen=True)
class Blinding:
    """A blinded message, for the signer, and what removes the blinding, for nobody else."""

    blinded: bytes
    prepared: bytes = field(repr=False)
    inverse: int = field(repr=False)


def prepare(message: bytes, variant: Variant = PSS_RANDOMIZED) -> bytes:
    """The message behind a fresh random prefix, if the variant has one."""
    return SECURE.draw(variant.prefix_length).tobytes() + require_bytes("message", message)


def blind(public: PublicKey, prepared: bytes, variant: Variant = PSS_RANDOMIZED) -> Blinding:
    """Hide a prepared message from its signer.

    Formal guarantee. If r^e runs through all units modulo n as r does (so for every honest key),
    `blinded` is uniform on the units, and independent of `prepared`.
    """
    require_bytes("prepared", prepared)
    salt = SECURE.draw(variant.salt_length).tobytes()
    return _blind(public, prepared, salt, uniform_unit(public.modulus))


def _blind(public: PublicKey, prepared: bytes, salt: bytes, factor: int) -> Blinding:
    n = public.modulus
    number = int.from_bytes(encode(prepared, salt, n.bit_length() - 1), "big")
    if math.gcd(number, n) != 1:
        raise TokenError("this message has no place under this key; prepare another one")
    blinded = number * pow(factor, EXPONENT, n) % n
    return Blinding(blinded.to_bytes(public.length, "big"), prepared, pow(factor, -1, n))


def finalize(
    public: PublicKey, blinding: Blinding, blind_signature: bytes, variant: Variant = PSS_RANDOMIZED
) -> bytes:
    """The signature of the prepared message: remove the blinding, and verify."""
    n = public.modulus
    number = read_number("blind signature", blind_signature, public.length)
    signature = (number * blinding.inverse % n).to_bytes(public.length, "big")
    verify(public, blinding.prepared, signature, variant.salt_length)
    return signature
