"""What a replay proves about a claim.

A replay judges a pipeline by what its own mechanisms charge. It is taken for a breach where what a
caller sees (an exception, the output, a warning, a print, a price) differs though every released
value is the same; and where what reaches a mechanism moves by more than is charged, unless the
claim is as weak as that: moved by k sensitivities, the whole run costs what a group of k does.
"""

from __future__ import annotations

import math

import numpy as np

from deniable.auditing.claims import Claim
from deniable.auditing.findings import Finding, Kind
from deniable.auditing.replay import Replay
from deniable.errors import DeniableError
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss

_SEEN = (Kind.EXCEPTION, Kind.OUTPUT, Kind.WARNING, Kind.PRINT, Kind.PRICE)
# Without these the two runs are not compared in full, or noise stands beside the mechanisms'.
_UNSURE = (
    Kind.DETERMINISM, Kind.TIME, Kind.CRASH, Kind.STARTED, Kind.UNKNOWN, Kind.NOISE,
)  # fmt: skip
_PLACES = np.linspace(0.01, 0.99, 25)
_LARGEST_GROUP = 1000


def decisive(seen: Replay, claim: Claim) -> Finding | None:
    """The finding that refutes the claim, if one does."""
    if not seen.releases or any(each.kind in _UNSURE for each in seen.findings):
        return None
    for each in seen.findings:
        if each.kind in _SEEN:
            return each
        if each.kind == Kind.SENSITIVITY and not _allowed(each, seen.losses, claim):
            return each
    return None


def _allowed(finding: Finding, losses: tuple[Loss, ...], claim: Claim) -> bool:
    """Whether the claim covers the run at the sensitivity that was met, or nobody can say."""
    if finding.moved is None or not finding.allowed or not math.isfinite(finding.moved):
        return False
    size = math.ceil(finding.moved / finding.allowed - 1e-9)
    if size > _LARGEST_GROUP or not losses:
        return not losses
    try:
        whole = compose(*(loss.group(size) for loss in losses))
        most = np.array([1 - whole.tradeoff(float(q)) for q in _PLACES])
    except DeniableError:
        return True
    return bool((most <= claim.allowed(_PLACES) + 1e-6).all())
