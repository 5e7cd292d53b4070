"""Arguments of the protocol: bytes of a stated length, and numbers in range."""

from __future__ import annotations

import math

from deniable.errors import ParameterTypeError, TokenError
from deniable.randomness.source import SECURE, bits


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
