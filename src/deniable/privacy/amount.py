"""An amount of privacy: what may be spent, exactly, and in whose words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from deniable.privacy.exact import show
from deniable.privacy.guarantees import ZCDP, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import ConcentratedLoss, PureLoss
from deniable.privacy.price import GRID
from deniable.privacy.units import Relation

_ROOT_DIGITS = 24


class Kind(StrEnum):
    """What adds up: ε of pure releases, or ρ of concentrated ones."""

    EPSILON = "epsilon"
    RHO = "rho"


@dataclass(frozen=True)
class Amount:
    """How much may be spent on releases, for neighbours of one relation.

    Amounts of one kind add up: releases that are paid with the parts of an amount cost no more than
    the amount (Dwork & Roth 2014, Thm 3.16, for ε; Bun & Steinke 2016, Lemma 1.7, for ρ).
    """

    kind: Kind
    value: Fraction
    """The ε or the ρ."""
    relation: Relation
    asked: Fraction | None = None
    """The ε that a person typed for the whole; parts have none."""
    is_stated: bool = False
    """Whether it was said as a guarantee, which the release must have by itself."""

    def __str__(self) -> str:
        """As a person would say it."""
        if self.asked is not None:
            return f"ε = {show(self.asked)}"
        return f"{'ε' if self.pure else 'ρ'} = {float(self.value):.6g}"

    @property
    def pure(self) -> bool:
        """Whether it buys pure releases."""
        return self.kind == Kind.EPSILON

    @property
    def epsilon(self) -> Fraction | None:
        """The ε, if it is one: what mechanisms take as `epsilon=`."""
        return self.value if self.pure else None

    @property
    def rho(self) -> Fraction | None:
        """The ρ, if it is one: what mechanisms take as `rho=`."""
        return None if self.pure else self.value

    @property
    def loss(self) -> Loss:
        """What it costs to spend all of it, whatever it is spent on."""
        if self.pure:
            return PureLoss(bound=self.value, relation=self.relation)
        return ConcentratedLoss(bound=self.value, relation=self.relation)

    @property
    def guarantee(self) -> PureDP | ZCDP:
        """What releases that are paid with it keep together."""
        return PureDP(self.value) if self.pure else ZCDP(self.value)

    def of(self, value: Fraction) -> Amount:
        """Another amount of the same kind."""
        return replace(self, value=value, asked=None)

    def part(self, share: Fraction) -> Amount:
        return self.of(self.value * share)

    def less(self, spent: Fraction) -> Amount:
        return self.of(self.value - spent)

    def split(self, *shares: Fraction) -> tuple[Amount, ...]:
        """Parts of these shares of it, which are all of it; of one alone, the amount itself.

        Each is on the ledger's grid, and the last takes what rounding leaves: the prices of the
        parts add up to the whole, exactly if that is on the grid.
        """
        *first, _ = shares
        if not first:
            return (self,)
        parts = [max(on_grid_below(self.value * share), GRID) for share in first]
        return tuple(self.of(part) for part in (*parts, on_grid_below(self.value - sum(parts))))

    def on_grid(self) -> Amount:
        """Rounded down to the ledger's grid, so that rounded shares never add up to more."""
        return replace(self, value=on_grid_below(self.value))

    @property
    def choice_epsilon(self) -> Fraction:
        """The ε₀ of an exponential mechanism that it pays for.

        One of ε₀ has a range of ε₀, and is ε₀²/8-zCDP (Cesar & Rogers 2021, Lemma 3.4).
        """
        return self.value if self.pure else root_below(8 * self.value)

    @property
    def pure_epsilon(self) -> Fraction:
        """The ε₀ of any pure mechanism that it pays for, which is ε₀²/2-zCDP.

        (Bun & Steinke 2016, Prop. 1.4.)
        """
        return self.value if self.pure else root_below(2 * self.value)

    @property
    def deviation(self) -> float:
        """The standard deviation of noise on one count that a unit moves by one, nearly."""
        wide = float(self.value)
        return math.sqrt(2) / wide if self.pure else 1 / math.sqrt(2 * wide)

    def price_of(self, loss: Loss) -> Fraction:
        """What a release costs in this kind."""
        price = loss.price.epsilon if self.pure else loss.price.rho
        assert price is not None
        return price


def on_grid_below(value: Fraction) -> Fraction:
    """The largest multiple of the ledger's grid that is no larger."""
    return math.floor(value / GRID) * GRID


def root_below(value: Fraction) -> Fraction:
    """A rational at or below the square root, within 1e-24 of it."""
    scale = 10**_ROOT_DIGITS
    return Fraction(math.isqrt(math.floor(value * scale**2)), scale)
