"""A token is taken: it is checked, and then spent."""

from __future__ import annotations

from deniable.errors import TokenError
from deniable.service.tokens.checks import require_bytes
from deniable.service.tokens.keys import PublicKey
from deniable.service.tokens.spent import SpentTokens
from deniable.service.tokens.token import Token
from deniable.service.tokens.variants import PSS_RANDOMIZED
from deniable.service.tokens.verifying import verify


def redeem(public: PublicKey, token: Token, spent: SpentTokens, *, message: bytes) -> None:
    """Take a token: valid, for this message, and never spent before; else an error.

    `message` is the same for all respondents of a survey, such as the id of its question. When
    this returns, the token is spent for good. What goes with it is stored afterwards: a crash in
    between loses a report, and never counts one twice.
    """
    prefix = PSS_RANDOMIZED.prefix_length
    if len(token.prepared) < prefix or token.prepared[prefix:] != require_bytes("message", message):
        raise TokenError("the token was made for another survey")
    verify(public, token.prepared, token.signature)
    spent.spend(token.digest(public))
