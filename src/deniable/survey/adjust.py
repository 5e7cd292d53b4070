"""Shares made to look like shares. None of this is unbiased; each result names what was done.

Nothing here costs privacy: it works on what was already estimated from reports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.privacy.exact import whole
from deniable.survey.hadamard import HadamardResponse
from deniable.survey.kary import KaryResponse
from deniable.survey.lasting import LastingResponse
from deniable.survey.shares import ShareEstimate, Tally

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AdjustedShares:
    """Shares after an adjustment, which is named; they are biased and have no standard error."""

    shares: Floats
    method: str
    n: int


def clipped(estimate: ShareEstimate) -> AdjustedShares:
    """Each share held within 0 and 1; the sum is whatever it is."""
    return AdjustedShares(np.clip(estimate.shares, 0.0, 1.0), "clipped to 0 and 1", estimate.n)


def norm_sub(estimate: ShareEstimate) -> AdjustedShares:
    """Negative shares set to 0 and the rest lowered alike, again and again, until the sum is 1.

    (Wang et al. 2020, "Locally differentially private frequency estimation with consistency".)
    Where that ends is the point of the simplex nearest to the estimate.
    """
    return replace(on_simplex(estimate), method="norm-sub")


def on_simplex(estimate: ShareEstimate) -> AdjustedShares:
    """The nearest point, in squared distance, whose shares are not negative and sum to 1."""
    if estimate.candidates is not None:
        raise ParameterError(
            "estimate", "of candidates", "shares of some categories do not sum to 1; clip them"
        )
    ordered = np.sort(estimate.shares)[::-1]
    above = (np.cumsum(ordered) - 1) / np.arange(1, ordered.size + 1)
    level = above[np.flatnonzero(ordered > above)[-1]]
    return AdjustedShares(
        np.maximum(estimate.shares - level, 0.0), "projected onto the simplex", estimate.n
    )


def iterative_bayes(tally: Tally, *, iterations: int = 1000) -> AdjustedShares:
    """The most likely shares, by iterative Bayes, where reports are counted one by one."""
    protocol = tally.protocol
    if not isinstance(protocol, HadamardResponse | KaryResponse | LastingResponse):
        raise ParameterError(
            "tally", protocol.kind, "iterative Bayes needs counts of every possible report"
        )
    laws = np.array([[float(p) for p in row] for row in protocol.channel().rows]).T
    return iterate_bayes(laws, tally.counts, iterations=iterations)


def iterate_bayes(
    laws: Floats, counts: npt.NDArray[np.int64], *, iterations: int
) -> AdjustedShares:
    """Expectation maximisation from equal shares; laws[y, x] = P(y | x).

    (Agrawal & Aggarwal 2001; ElSalamouny & Palamidessi 2020.) Stops early where a step moves the
    shares by less than 1e-9 together.
    """
    steps = whole(iterations, "iterations")
    n = int(counts.sum())
    shares = np.full(laws.shape[1], 1 / laws.shape[1])
    seen = counts / n
    for _ in range(steps):
        new = shares * (laws.T @ (seen / (laws @ shares)))
        moved = float(np.abs(new - shares).sum())
        shares = new
        if moved < 1e-9:
            break
    return AdjustedShares(shares, "iterative Bayes", n)
