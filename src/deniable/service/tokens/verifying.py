"""The verifier's step (RFC 9474, 4.5)."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from deniable.errors import TokenError
from deniable.service.tokens.checks import read_number, require_bytes
from deniable.service.tokens.keys import PublicKey
from deniable.service.tokens.variants import PSS_RANDOMIZED, Variant


def verify(
    public: PublicKey, prepared: bytes, signature: bytes, variant: Variant = PSS_RANDOMIZED
) -> None:
    """Return if it is a signature of the prepared message, else `TokenError`.

    RSASSA-PSS-VERIFY by OpenSSL (RFC 8017, 8.1.2), with the salt of exactly the variant's length.
    """
    require_bytes("prepared", prepared)
    if not read_number("signature", signature, public.length) < public.modulus:
        raise TokenError("the signature is out of range: it must be below n")
    scheme = padding.PSS(padding.MGF1(hashes.SHA384()), variant.salt_length)
    try:
        public.rsa.verify(signature, prepared, scheme, hashes.SHA384())
    except InvalidSignature:
        raise TokenError("the signature is not one of this message under this key") from None
