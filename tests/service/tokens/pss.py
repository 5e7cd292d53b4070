"""EMSA-PSS encoding with SHA-384 and MGF1 (RFC 8017, 9.1.1 and B.2.1).

Only encoding is written here: signatures are checked by OpenSSL.
"""

from __future__ import annotations

import hashlib

HASH_LENGTH = 48


def encode(message: bytes, salt: bytes, bits: int) -> bytes:
    """The encoded message, of `bits` bits, for this salt."""
    length = (bits + 7) // 8
    message_hash = hashlib.sha384(message).digest()
    seal = hashlib.sha384(bytes(8) + message_hash + salt).digest()
    block = b"\x01" + salt
    block = bytes(length - HASH_LENGTH - 1 - len(block)) + block
    mask = mask_generation(seal, len(block))
    masked = bytearray(a ^ b for a, b in zip(block, mask, strict=True))
    masked[0] &= 0xFF >> (8 * length - bits)
    return bytes(masked) + seal + b"\xbc"


def mask_generation(seed: bytes, length: int) -> bytes:
    """MGF1."""
    blocks = (
        hashlib.sha384(seed + counter.to_bytes(4, "big")).digest()
        for counter in range(-(-length // HASH_LENGTH))
    )
    return b"".join(blocks)[:length]
