"""The audit of a whole training in one run: canaries that coins put in, and who guesses the coins.

m made-up units are each put in by a fair coin. The run gives a score for each; the units with the
highest scores are guessed to be in, as many with the lowest to be out, g guesses in all, a number
that is fixed beforehand. How many may be right?

Theorem (Mahloujifar, Melis & Chaudhuri 2024, Auditing f-DP in one run; the proof is ours). Let
P(E) <= B(Q(E)) for all events and neighbours, B concave, and b(x) the least y with B(y) >= x. Let C
be the number of right guesses, and P(C >= c) >= α. Start with r = αc/m, h = α(g-c)/m. For i = c-1
down to 0 let h' = max(h, b(r)), r' = r + i (h'-h)/(g-i). Then r + h <= g/m at every step.

Proof. Let D be the right guesses about others than unit j. Given the others' coins, D and the guess
about j depend on the output alone, so that P(D >= i, j right) <= B(P(D >= i, j wrong)): for each of
both guesses by the claim, then by concavity, also over the others' coins. If j is right, D >= i
means C > i; if j is wrong, C >= i. With q_k = P(C = k) the mean over j says, by concavity again,

    h_i := Σ_{k >= i} (g-k) q_k / m  >=  b(r_i),    r_i := Σ_{k > i} k q_k / m.

Let G_i = Σ_{k >= i} q_k, so that r_i + h_{i+1} = g G_{i+1} / m. The recursion takes the least q_i
that keeps this, from q_c = α on. No other choice has a smaller G: let G*, h* be another's sums down
to i+1. It holds that G* >= G, and h* - h <= (g-i)(G*-G)/m, since each unit of mass above i adds at
most (g-i)/m to h. So r* - r = g(G*-G)/m - (h*-h) >= 0, and h*' >= b(r*) >= b(r). Where h' = h, G
does not grow; where h' = b(r), G*' - G' = G* - G + m (h*' - h' - h* + h)/(g-i) >= 0. And the
inequality for h goes on, since what is added at i adds exactly (g-i)/m. But G is at most 1.  ∎

So where r + h exceeds g/m, what was seen has probability below α. The least α is not looked for: a
parameter is refuted at the α that is given, and since b falls as the parameter grows, so are all
below it. Of pure ε this comes within a hundredth of the binomial law of Steinke, Nasr & Jagielski
(2023, Theorem 5.2), and for (ε, δ) it is closer, the more so the larger δ is.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from deniable.auditing.report import Report
from deniable.auditing.sampled.claims import (
    ApproxClaim,
    Claim,
    ConcentratedClaim,
    CurveClaim,
    GaussianClaim,
    PureClaim,
    read_claim,
)
from deniable.auditing.sampled.verdict import NOTHING, VIOLATED
from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.units import Relation

Floats = npt.NDArray[np.float64]
Least = Callable[[float], float]  # the least Q(E) that is allowed with this P(E)
Train = Callable[[list[bool]], Sequence[float] | Floats]

_FEWEST, _MOST = 40, 100_000
# Of the canaries, a quarter is guessed. On ideal ones, m = 1,000: 0.41, 0.59 and 0.63 of μ = 0.3, 1
# and 2; a tenth gives 0.35, 0.62 and 0.57, a half 0.39, 0.50 and 0.55.
_GUESSED = 4
_SLACK = 1 + 1e-9  # doubles are rounded many times
_HALVINGS, _LARGEST = 40, 64.0


@dataclass(frozen=True)
class OneRunReport:
    """What the guesses of one run say.

    Formal guarantee. If the claim holds, the verdict is "violated" with probability `alpha` at
    most; and `lower` exceeds the true parameter with probability `alpha` at most. No score can make
    it more than `ceiling`, which all guesses being right would give.
    """

    verdict: str
    claim: Claim
    lower: float
    ceiling: float
    canaries: int
    guesses: int
    right: int
    confidence: float
    alpha: float

    @property
    def violated(self) -> bool:
        """Whether the claim was refuted."""
        return self.verdict == VIOLATED

    @property
    def report(self) -> Report:
        """The outcome, to be shown, as text, JSON or HTML."""
        sign = self.claim.sign
        return Report(
            "Audit in one run",
            not self.violated,
            self.verdict if self.violated else f"{self.verdict} in this run; this proves nothing",
            {
                "claim": self.claim.text,
                f"{sign} is at least": f"{self.lower:.4g}, with confidence {self.confidence:g}",
                f"{sign} that so many guesses can certify at most": f"{self.ceiling:.4g}",
                "canaries": f"{self.canaries:,}, each put in by a fair coin",
                "right guesses": f"{self.right:,} of {self.guesses:,}",
                "α": f"{self.alpha:.4g}",
            },
        )

    def __str__(self) -> str:
        return self.report.text()


def one_run_audit(
    train: Train, claimed: Any, canaries: int, confidence: float, alpha: float
) -> OneRunReport:
    """Throw the coins, train once, guess, and count."""
    if isinstance(claimed, Loss) and claimed.relation is not Relation.ADD_REMOVE:
        raise ParameterTypeError(
            "claim", type(claimed).__name__, "coins add a unit or do not: give the loss of that"
        )
    claim = read_claim(claimed)
    family, judged = _family(claim)
    count = _canaries(canaries)
    guesses = count // (2 * _GUESSED) * 2
    coins = secrets.randbits(count)
    included = [bool(coins >> place & 1) for place in range(count)]
    right = _right(_scores(train, included), np.array(included), guesses)
    violated = _refuted(judged, count, guesses, right, alpha)
    return OneRunReport(
        VIOLATED if violated else NOTHING,
        claim,
        _lower(family, count, guesses, right, alpha),
        _lower(family, count, guesses, guesses, alpha),
        count,
        guesses,
        right,
        confidence,
        alpha,
    )


def _canaries(count: int) -> int:
    if not _FEWEST <= whole(count, "canaries") <= _MOST:
        raise ParameterError("canaries", count, f"must be {_FEWEST} to {_MOST:,}")
    return int(count)


def _scores(train: Train, included: list[bool]) -> Floats:
    """One number a canary; whatever is none counts as the middle."""
    scores = np.asarray(train(list(included)))
    if scores.shape != (len(included),) or scores.dtype.kind not in "fiub":
        raise ParameterTypeError(
            "mechanism",
            f"gave {scores.dtype} of shape {scores.shape}",
            f"must give a score for each of {len(included):,} canaries",
        )
    scores = scores.astype(np.float64)
    known = scores[~np.isnan(scores)]
    return np.where(np.isnan(scores), np.median(known) if known.size else 0.0, scores)


def _right(scores: Floats, included: npt.NDArray[np.bool_], guesses: int) -> int:
    order = np.argsort(scores, kind="stable")
    lowest, highest = order[: guesses // 2], order[len(order) - guesses // 2 :]
    return int(included[highest].sum() + (~included[lowest]).sum())


def _family(claim: Claim) -> tuple[Callable[[float], Least], Least]:
    """b for every value of the claim's parameter, and for the claim itself."""
    match claim:
        case PureClaim():
            return _pointed(0.0), _pointed(0.0)(claim.epsilon)
        case ApproxClaim():
            return _pointed(claim.delta), _pointed(claim.delta)(claim.epsilon)
        case GaussianClaim():
            return _gaussian, _gaussian(claim.mu)
        case CurveClaim():
            return (_pointed(0.0) if claim.pure else _gaussian), _curved(claim)
        case ConcentratedClaim():
            pass
    raise ParameterTypeError(
        "claim", claim.text, "one run judges PureDP, ApproxDP, GDP, a loss or a channel"
    )


def _pointed(delta: float) -> Callable[[float], Least]:
    """From P <= e^ε Q + δ, and the same of the complements with sides changed."""

    def at(epsilon: float) -> Least:
        grown = math.exp(epsilon)
        return lambda x: max(0.0, (x - delta) / grown, 1 - delta - grown * (1 - x))

    return at


def _gaussian(mu: float) -> Least:
    return lambda x: float(ndtr(ndtri(x) - mu))


def _curved(claim: CurveClaim) -> Least:
    """Sides may be changed and events complemented: Q >= 1 - B(1 - P)."""
    return lambda x: max(0.0, 1 - float(claim.allowed(np.array([1 - x]))[0]))


def _refuted(least: Least, canaries: int, guesses: int, right: int, alpha: float) -> bool:
    """Whether so many right guesses have probability below α; by the theorem above."""
    r, h = alpha * right / canaries, alpha * (guesses - right) / canaries
    full = guesses / canaries * _SLACK
    for i in range(right - 1, -1, -1):
        more = max(h, least(r))
        r, h = r + i / (guesses - i) * (more - h), more
        if r + h > full:
            return True
    return False


def _lower(
    family: Callable[[float], Least], canaries: int, guesses: int, right: int, alpha: float
) -> float:
    """The largest parameter that is refuted, and with it all below; 0 where none is."""
    low, high = 0.0, _LARGEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _refuted(family(middle), canaries, guesses, right, alpha):
            low = middle
        else:
            high = middle
    return low
