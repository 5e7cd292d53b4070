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
"""

from __future__ import annotations

from deniable.service.tokens.keys import IssuerKey, PublicKey
from deniable.service.tokens.signing import blind_sign
from deniable.service.tokens.variants import (
    PSS_DETERMINISTIC,
    PSS_RANDOMIZED,
    PSSZERO_DETERMINISTIC,
    PSSZERO_RANDOMIZED,
    Variant,
)
from deniable.service.tokens.verifying import verify

__all__ = [
    "PSSZERO_DETERMINISTIC",
    "PSSZERO_RANDOMIZED",
    "PSS_DETERMINISTIC",
    "PSS_RANDOMIZED",
    "IssuerKey",
    "PublicKey",
    "Variant",
    "blind_sign",
    "verify",
]
