"""The keys of an issuer: RSA with the exponent 65537, kept as PEM.

A private key is a PKCS #8 file that only its owner may read; a public key is a
SubjectPublicKeyInfo in PEM, which browsers read too. **One key per survey, and for nothing else**:
the signer does not see what it signs, so the key alone says what a token is good for.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from deniable.errors import ParameterError, TokenError
from deniable.secret_file import write_secret

EXPONENT = 65537
LEAST_BITS, MOST_BITS = 2048, 8192


@dataclass(frozen=True)
class PublicKey:
    """What blinds, removes a blinding, and verifies."""

    rsa: rsa.RSAPublicKey = field(repr=False)

    def __post_init__(self) -> None:
        numbers = self.rsa.public_numbers()
        if numbers.e != EXPONENT or not LEAST_BITS <= self.rsa.key_size <= MOST_BITS:
            raise TokenError(
                f"keys of tokens have {LEAST_BITS} to {MOST_BITS} bits and the exponent {EXPONENT}"
            )

    @property
    def modulus(self) -> int:
        """n."""
        return self.rsa.public_numbers().n

    @property
    def length(self) -> int:
        """How many bytes blinded messages and signatures have."""
        return (self.rsa.key_size + 7) // 8

    @property
    def pem(self) -> str:
        """The key as text, to be published."""
        return self.rsa.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ).decode("ascii")

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the DER form: respondents compare it, so that all have the same key."""
        der = self.rsa.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return hashlib.sha256(der).hexdigest()


@dataclass(frozen=True)
class IssuerKey:
    """What signs. Its text is never shown by `repr`, and leaves only through `save`."""

    rsa: rsa.RSAPrivateKey = field(repr=False)

    def __post_init__(self) -> None:
        PublicKey(self.rsa.public_key())

    @property
    def public(self) -> PublicKey:
        """The public half."""
        return PublicKey(self.rsa.public_key())

    @classmethod
    def generate(cls, bits: int = 3072) -> IssuerKey:
        """A fresh key. Its primes are drawn by OpenSSL from its own generator."""
        if type(bits) is not int or not LEAST_BITS <= bits <= MOST_BITS:
            raise ParameterError("bits", bits, f"must be from {LEAST_BITS} to {MOST_BITS}")
        return cls(rsa.generate_private_key(public_exponent=EXPONENT, key_size=bits))

    def save(self, path: str | Path) -> None:
        """Write it to a new file that only its owner may read; no file is ever replaced."""
        file = Path(path)
        text = self.rsa.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        try:
            write_secret(file, text)
        except FileExistsError:
            raise TokenError(f"{file} exists; a survey keeps its key to its end") from None
        except OSError as cause:
            raise TokenError(f"the key cannot be written: {cause.strerror}: {file}") from None

    @classmethod
    def load(cls, path: str | Path) -> IssuerKey:
        """The key that `save` wrote."""
        file = Path(path)
        try:
            if file.stat().st_mode & 0o077:
                raise TokenError(f"{file} may be read by others; run: chmod 600 {file}")
            text = file.read_bytes()
        except OSError as cause:
            raise TokenError(f"the key cannot be read: {cause.strerror}: {file}") from None
        try:
            found = serialization.load_pem_private_key(text, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise TokenError(f"{file} holds no private key in PEM without a password") from None
        if not isinstance(found, rsa.RSAPrivateKey):
            raise TokenError(f"{file} holds a key of another kind; tokens are signed with RSA")
        return cls(found)
