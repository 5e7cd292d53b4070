"""A token as text: a prepared message and its signature, as scripts write it."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field

from deniable.errors import ParameterTypeError, TokenError
from deniable.service.tokens import require_bytes

_FORM = re.compile(r"([A-Za-z0-9_-]{1,4096})\.([A-Za-z0-9_-]{1,2048})")


@dataclass(frozen=True)
class Token:
    """Who has it may spend it, once; so `repr` does not show it."""

    prepared: bytes = field(repr=False)
    signature: bytes = field(repr=False)

    def __post_init__(self) -> None:
        require_bytes("prepared", self.prepared)
        require_bytes("signature", self.signature)

    @property
    def text(self) -> str:
        """Both parts in base64url, with a dot between them."""
        return ".".join(
            base64.urlsafe_b64encode(part).rstrip(b"=").decode("ascii")
            for part in (self.prepared, self.signature)
        )

    @classmethod
    def from_text(cls, text: str) -> Token:
        """The token that `text` wrote; one text per token."""
        given: object = text
        if not isinstance(given, str):
            raise ParameterTypeError("text", type(given).__name__, "must be text")
        try:
            if (found := _FORM.fullmatch(given)) is None:
                raise ValueError
            parts = (
                base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in found.groups()
            )
            token = cls(*parts)
        except (ValueError, binascii.Error):
            raise TokenError(
                "this is no token: two parts in base64url, a dot between them"
            ) from None
        if token.text != given:  # spare bits that are not zero
            raise TokenError("this is no token: it is not written in the one way it can be")
        return token
