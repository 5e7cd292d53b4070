"""Parallel composition: what releases on disjoint parts of the data did together."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from deniable.errors import ParameterError, RelationError
from deniable.privacy.accountants.law import DominatingPair
from deniable.privacy.composition import Composed, checked_losses
from deniable.privacy.exact import whole
from deniable.privacy.losses.base import Concentrated, Loss, law_of_profile
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.parameters import parameters
from deniable.privacy.units import Relation


@parameters
class Parallel(Loss):
    """Several losses of which a unit meets only one. Made by `parallel`."""

    kind: ClassVar[str] = "parallel"
    losses: tuple[Loss, ...]

    def __post_init__(self) -> None:
        given: object = self.losses
        checked_losses(given if isinstance(given, tuple) else ())

    @property
    def pure(self) -> Fraction | None:
        """The largest, if every one is pure."""
        each = [loss.pure for loss in self.losses]
        known = [value for value in each if value is not None]
        return max(known) if len(known) == len(each) else None

    @property
    def concentrated(self) -> Concentrated:
        """The largest ρ beside the largest part of δ."""
        each = [loss.concentrated for loss in self.losses]
        return Concentrated(max(c.rho for c in each), max(c.delta for c in each))

    @property
    def mu(self) -> float:
        return max(loss.mu for loss in self.losses)

    def profile(self, epsilon: Fraction | float) -> float:
        return max(loss.profile(epsilon) for loss in self.losses)

    def law(self) -> DominatingPair:
        """The pair with the largest curve, both ways."""
        return law_of_profile(lambda e: max(_closed(loss, e) for loss in self.losses))

    def floor(self) -> DominatingPair:
        """That of the part with the largest ρ."""
        return max(self.losses, key=lambda loss: loss.concentrated.rho).floor()

    def divergence(self, order: float) -> float:
        return max(loss.divergence(order) for loss in self.losses)

    def type_two(self, alpha: float) -> float:
        return min(loss.type_two(alpha) for loss in self.losses)

    def group(self, size: int) -> Loss:
        """A group may spread over the parts: each member meets at most the worst loss."""
        if whole(size, "size") == 1:
            return self
        if self.pure is None:
            raise ParameterError("size", size, "groups over parts are known for pure losses only")
        return PureLoss(bound=size * self.pure, relation=self.relation)


def parallel(*losses: Loss) -> Loss:
    """The loss of releases on disjoint parts of the data, under add/remove: the worst of them.

    A unit lies in one part, so that only one release sees it (McSherry 2009, Thm 4). A replaced
    unit may leave one part and enter another: under "replace" compose the two worst instead.
    """
    worst = checked_losses(losses)
    if any(loss.relation != Relation.ADD_REMOVE for loss in worst):
        raise RelationError(
            "parts are disjoint for one unit added or removed, not for one replaced"
        )
    return (
        worst[0] if len(set(worst)) == 1 else Parallel(losses=tuple(sorted(set(worst), key=repr)))
    )


def _closed(loss: Loss, epsilon: Fraction | float) -> float:
    return loss.closed_profile(epsilon) if isinstance(loss, Composed) else loss.profile(epsilon)
