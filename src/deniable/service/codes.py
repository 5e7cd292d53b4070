"""Invitation codes: random, in letters that are not misread, kept as hashes."""

from __future__ import annotations

import hashlib
import secrets

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # no I, L, O, U: they are misread
_LENGTH = 16  # 80 random bits


def new_code() -> str:
    """A fresh code of 80 bits, in letters that are not misread."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


def code_mark(code: str) -> str:
    """What is stored of a code: its SHA-256, so that a stolen store holds no usable code."""
    return hashlib.sha256(b"code\0" + code.encode()).hexdigest()


def is_code(text: str) -> bool:
    """Whether it is spelt as codes are: there is one spelling only."""
    return len(text) == _LENGTH and set(text) <= set(_ALPHABET)
