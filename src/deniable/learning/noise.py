"""From a guarantee to the noise on each sum of a fit, and the price of all, before any data.

A fit draws a fixed list of sums. A guarantee is shared out by what adds up: ε for `PureDP`, ρ for
`ZCDP`, μ² for `GDP` and `ApproxDP` (Dong, Roth & Su 2022, Cor. 3.3, through the smoothing of
`privacy/losses/gaussian.py`, which makes the discrete law a post-processing of the continuous one).
Parts of ε and ρ are rounded down to the grid of prices, or a ledger, which rounds each price up,
would charge more for the whole than was said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from deniable.errors import CalibrationError, ParameterError
from deniable.learning.sums import Bounded
from deniable.mechanisms.gaussian import DiscreteGaussian
from deniable.mechanisms.laplace import Geometric
from deniable.privacy.accountants import gdp
from deniable.privacy.amount import on_grid_below
from deniable.privacy.composition import compose
from deniable.privacy.exact import exact, sqrt_up
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.units import Relation

Mechanism = DiscreteGaussian | Geometric

_SMOOTHING = 25
_HAIR = Fraction(1, 10**9)


@dataclass(frozen=True)
class Neighbours:
    """What one unit may change: `rows` rows, under a relation."""

    relation: Relation
    rows: int = 1


@dataclass(frozen=True)
class Share:
    """A part of a budget, drawn `times` times over."""

    part: Fraction
    times: int = 1

    @property
    def each(self) -> Fraction:
        """What one draw is given."""
        return self.part / self.times


ALL = Share(Fraction(1))
"""All of a budget, in one draw."""


def mechanism_for(
    sums: Bounded, width: int, share: Share, guarantee: Guarantee, neighbours: Neighbours
) -> Mechanism:
    """The noise on one sum over rows of `width` columns, for its share of the guarantee."""
    relation, rows = neighbours.relation, neighbours.rows
    try:
        if isinstance(guarantee, PureDP):
            moved = rows * sums.moved_l1(relation, width)
            each = _each(guarantee, guarantee.epsilon, share)
            return Geometric(epsilon=each, sensitivity=moved, relation=relation)
        moved = rows * sums.moved(relation)
        sigma = _sigma(moved, share, guarantee)
        return DiscreteGaussian(sigma=sigma, sensitivity=moved, relation=relation)
    except ParameterError as error:
        if error.argument not in {"sigma", "scale", "epsilon"}:
            raise
        raise _beyond(guarantee) from None


def _each(guarantee: Guarantee, total: Fraction, share: Share) -> Fraction:
    """What one draw is given of an ε or a ρ, on the grid of prices."""
    found = on_grid_below(total * share.each)
    if not found:
        raise _beyond(guarantee)
    return found


def _beyond(guarantee: Guarantee) -> ParameterError:
    return ParameterError(
        "guarantee", str(guarantee), "is beyond what exact noise is drawn for; give more, or less"
    )


def _sigma(moved: int, share: Share, guarantee: Guarantee) -> Fraction:
    if isinstance(guarantee, ZCDP):
        return sqrt_up(moved**2 / (2 * _each(guarantee, guarantee.rho, share)), 30)
    return sqrt_up(moved**2 / (_mu_squared(guarantee) * share.each) + _SMOOTHING, 30)


def _mu_squared(guarantee: Guarantee) -> Fraction:
    """The μ² of the whole fit, a hair below what the guarantee allows."""
    if isinstance(guarantee, GDP):
        return guarantee.mu**2 * (1 - _HAIR)
    assert isinstance(guarantee, ApproxDP)
    mu = gdp.largest_mu(float(guarantee.epsilon), float(guarantee.delta))
    return exact(mu, "mu") ** 2 * (1 - _HAIR)


def price(
    parts: Sequence[tuple[Bounded, Share]], guarantee: Guarantee, neighbours: Neighbours
) -> Loss:
    """What all draws of a fit cost together; it does not depend on the width of the rows."""
    losses: list[Loss] = []
    for sums, share in parts:
        losses += [_loss(sums, share, guarantee, neighbours)] * share.times
    total = losses[0] if len(losses) == 1 else compose(*losses)
    if not total.satisfies(guarantee):
        raise CalibrationError(f"no noise reaches {guarantee}")
    return total


def _loss(sums: Bounded, share: Share, guarantee: Guarantee, neighbours: Neighbours) -> Loss:
    if isinstance(guarantee, PureDP):
        each = _each(guarantee, guarantee.epsilon, share)
        return PureLoss(bound=each, relation=neighbours.relation)
    return mechanism_for(sums, 1, share, guarantee, neighbours).loss
