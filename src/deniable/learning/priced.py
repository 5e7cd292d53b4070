"""What a fit may cost, in the words of a question, and what it does cost."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, cast

from sklearn.base import BaseEstimator

from deniable.ledger.amounts import read_alone
from deniable.ledger.filters import Budget
from deniable.privacy.guarantees import ApproxDP, Guarantee, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.price import Price


@dataclass(kw_only=True, eq=False, repr=False)
class PricedEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator whose fit has a price that is known before data are read.

    By itself a fit is ε-DP, ρ-zCDP, or keeps the guarantee. In `dp.fit`, `epsilon=` is what it is
    for a question of that session.

    Args of every one:
        epsilon: what a fit may cost; or `rho`, or `guarantee`.
        rho: the same in ρ.
        guarantee: the same as a guarantee, `dp.ApproxDP(1.0, 1e-6)` for instance.
        relation: "add_remove" or "replace".
    """

    epsilon: Any = None
    rho: Any = None
    guarantee: Any = None
    relation: Any = "add_remove"
    # The budget that `dp.fit` paid from. Without an annotation it is no parameter.
    _payer = cast("Budget | None", None)

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What one fit tells, whatever the data are."""

    def cost(self) -> Price:
        """What one fit costs, whatever the data are; `asked` is the ε that was typed, if any."""
        price = self._charged().price
        if self._payer is not None:
            return self._payer.named(price)
        kept = self._kept()
        asked = float(kept.epsilon) if isinstance(kept, PureDP | ApproxDP) else None
        return replace(price, asked=asked)

    def _charged(self) -> Loss:
        """The loss as a ledger adds it up."""
        return self.loss

    def _kept(self) -> Guarantee:
        """The guarantee that a fit keeps."""
        return read_alone(epsilon=self.epsilon, rho=self.rho, guarantee=self.guarantee)
