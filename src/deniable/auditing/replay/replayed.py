"""What a replay proves about a claim.

A replay judges a pipeline by what its own mechanisms charge. It is taken for a breach where the
price differs though every released value is the same; and where what reaches a mechanism moves by
more than is charged, and by so much that no loss of the run, for a group of as many people, is
within the claim. What else a caller sees (an exception, the output, a warning, a print) is told,
and left to sampling: noise that was made by hand differs, too.
"""

from __future__ import annotations

import math

import numpy as np

from deniable.auditing.replay.findings import Finding, FindingKind
from deniable.auditing.replay.replays import Replay
from deniable.auditing.sampled.claims import Claim
from deniable.errors import DeniableError
from deniable.privacy.losses.base import Loss

# Without these the two runs are not compared in full, or noise stands beside the mechanisms'.
_UNSURE = (
    FindingKind.DETERMINISM, FindingKind.TIME, FindingKind.CRASH,
    FindingKind.STARTED, FindingKind.UNKNOWN, FindingKind.NOISE,
)  # fmt: skip
_PLACES = np.linspace(0.01, 0.99, 25)
_LARGEST_GROUP = 1000


def decisive(seen: Replay, claim: Claim) -> Finding | None:
    """The finding that refutes the claim, if one does."""
    if not seen.releases or any(each.kind in _UNSURE for each in seen.findings):
        return None
    for each in seen.findings:
        if each.kind == FindingKind.PRICE:
            return each
        if each.kind == FindingKind.SENSITIVITY and not _allowed(each, seen.losses, claim):
            return each
    return None


def _allowed(finding: Finding, losses: tuple[Loss, ...], claim: Claim) -> bool:
    """Whether the claim covers one loss at the sensitivity that was met, or nobody can say.

    Which of the losses it was is not known, and what is between two sizes of groups is rounded
    down: what is called a breach is one whichever it was.
    """
    if finding.moved is None or not finding.allowed or not losses:
        return True
    times = finding.moved / finding.allowed
    size = _LARGEST_GROUP if times > _LARGEST_GROUP else math.floor(times + 1e-9)
    return size < 1 or any(_covers(claim, loss, size) for loss in losses)


def _covers(claim: Claim, loss: Loss, size: int) -> bool:
    try:
        group = loss.group(size)
        most = np.array([1 - group.tradeoff(float(q)) for q in _PLACES])
    except DeniableError:
        return True
    return bool((most <= claim.allowed(_PLACES) + 1e-6).all())
