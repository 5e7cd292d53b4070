"""What becomes of a submission."""

from __future__ import annotations

from enum import Enum


class Outcome(Enum):
    """What became of a submission."""

    STORED = "stored"
    ALREADY = "already stored"
    SPENT = "the token was used for another submission"
