"""Binary logistic regression whose minimum is released at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.errors import ParameterError
from deniable.learning.classifier import LinearClassifier
from deniable.learning.minimum import PrivateMinimum, Way
from deniable.learning.outlook import Outlook
from deniable.learning.rows import Ranges, Rows
from deniable.learning.scikit import read_positive
from deniable.privacy.exact import whole
from deniable.privacy.guarantees import ApproxDP, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.parameters import one_of

_LONG = 10.0  # weights of rows of length 1 that tell classes apart
_LEAST_PENALTY = 1e-6  # below, floats cannot solve what is nearly flat


@dataclass(kw_only=True, eq=False, repr=False)
class PerturbedLogisticRegression(LinearClassifier):
    """Penalised logistic regression for two classes, by one perturbation.

    Formal guarantee: that of `learning.minimum.PrivateMinimum` for `method`: "output" adds exact
    lattice noise to a minimum that is certified by its gradient; "objective" and "approximate" are
    proved in real arithmetic, and need `allow_real_arithmetic=True`. Every coordinate is penalised,
    the constant too. Rows are bounded as in `LogisticRegression`.

    Args, beside those of every `PrivateEstimator`:
        epsilon: what a fit may cost, pure; or `guarantee`.
        rho: stored, and refused: no perturbation has a ρ alone.
        guarantee: `dp.PureDP` or `dp.ApproxDP`.
        classes: the two labels.
        method: "output", "objective" or "approximate".
        penalty: Λ, on the sum of the losses of all rows.
        allow_real_arithmetic: whether noise in floats is accepted.

    Attributes:
        classes_, coef_, intercept_: the model, in the units of the data.
        coef_standard_errors_: deviations of `coef_` through noise, at most.
        label_: what the guarantee rests on.
    """

    penalty: Any
    method: str = "output"
    norm: Any = None
    allow_real_arithmetic: bool = False

    def _mechanism(self) -> PrivateMinimum:
        if self._directions() != 1:
            raise ParameterError(
                "classes", self.classes, "must be two; see dp.learning.LogisticRegression"
            )
        kept = self._kept()
        if not isinstance(kept, PureDP | ApproxDP):
            raise ParameterError(
                "guarantee", str(kept), "say guarantee=dp.PureDP(1.0), or dp.ApproxDP(1.0, 1e-6)"
            )
        way = one_of(Way)(self.method, "method")
        if way != Way.OUTPUT and not self.allow_real_arithmetic:
            raise ParameterError(
                "method",
                self.method,
                "is private in real arithmetic only; say allow_real_arithmetic=True, or 'output'",
            )
        penalty = read_positive(self.penalty, "penalty")
        if penalty < _LEAST_PENALTY:
            raise ParameterError("penalty", self.penalty, f"must be {_LEAST_PENALTY} or more")
        mechanism = PrivateMinimum(way, kept, penalty, self._relation())
        if way != Way.OUTPUT:
            mechanism.scale()
        return mechanism

    @property
    def loss(self) -> Loss:
        return self._mechanism().loss

    def outlook(self, *, size: int, features: int) -> Outlook:
        """Whether the budget can support the model on so many rows; nothing is read or spent.

        Rows of typical length that agree give weights of size/4Λ, or of about 10 where Λ is small.
        """
        mechanism, rows = self._mechanism(), whole(size, "size")
        width = whole(features, "features") + 1
        signal = min(rows / (4 * mechanism.penalty), _LONG)
        return Outlook(mechanism.deviation(width) * width**0.5 / signal, rows)

    def _train(self, rows: Rows, ranges: Ranges) -> None:
        mechanism = self._mechanism()
        weights = mechanism.release(rows)
        self._keep(weights[None, :] / 2**0.5, ranges)
        error = mechanism.deviation(len(weights)) / 2**0.5
        self.coef_standard_errors_ = np.full_like(self.coef_, error) / ranges.scale

    def _recall(self) -> None:
        super()._recall()
        self.label_ = self._mechanism().label
