"""The four named variants of RFC 9474, section 5; surveys use the first, the script knows all."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Variant:
    """How long the salt of the PSS encoding is, and the random prefix of the message, in bytes."""

    name: str
    salt_length: int
    prefix_length: int


PSS_RANDOMIZED = Variant("RSABSSA-SHA384-PSS-Randomized", 48, 32)
PSSZERO_RANDOMIZED = Variant("RSABSSA-SHA384-PSSZERO-Randomized", 0, 32)
PSS_DETERMINISTIC = Variant("RSABSSA-SHA384-PSS-Deterministic", 48, 0)
PSSZERO_DETERMINISTIC = Variant("RSABSSA-SHA384-PSSZERO-Deterministic", 0, 0)
