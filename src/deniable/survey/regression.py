"""Regression where the outcome or a predictor is a randomised answer.

Rows are independent people; the other columns are known without noise. Coins must not depend on
them, which is what a design's channel says.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.mechanisms.design import Design, read_design
from deniable.mechanisms.labels import Reports, read_answer, report_places
from deniable.privacy.exact import Number, exact
from deniable.survey.fit import Fit, read_columns
from deniable.survey.reading import read_column

Floats = npt.NDArray[np.float64]

_STEPS = 100
_SETTLED = 1e-10  # a hundred-thousandth of a standard error
_BEYOND = 100.0  # a standard error of 100 logits for a column's spread: there is no maximum


def logistic_regression(
    design: Design, reports: Reports, x: Mapping[str, Any], *, answer: Hashable = True
) -> Fit:
    """ln odds of the true answer as a linear function of x, by maximum likelihood.

    P(report | x) = P(report | other) + (P(report | answer) - P(report | other)) s(xβ), s being the
    logistic function (Maddala 1983, section 2.10; van den Hout, van der Heijden & Gilchrist 2007).
    Fisher scoring with halved steps; standard errors from the expected information.

    Raises:
        ParameterError: the likelihood has no finite maximum, for instance because all reports are
            alike or fewer say YES than coins alone would.
    """
    yes = read_answer(read_design(design).answers, answer)
    if len(design.answers) != 2:
        raise ParameterError("design", len(design.answers), "must have two true answers")
    places = report_places(design.reports, reports, "reports")
    names, matrix = read_columns(x, places.size)
    model = _Logistic(matrix, design.matrix[1 - yes], design.matrix[yes], places)
    beta, information = model.fit()
    return Fit(names, beta, np.linalg.inv(information).astype(np.float64), places.size)


class _Logistic:
    """The likelihood of reports; columns are scaled inside, so that units do not matter."""

    def __init__(
        self, matrix: Floats, other: Floats, answer: Floats, places: npt.NDArray[np.int64]
    ) -> None:
        self.scale = np.maximum(matrix.std(axis=0), 0.0)
        self.scale[0] = 1.0
        self.x = matrix / self.scale
        self.other, self.step = other, answer - other
        self.places = places

    def fit(self) -> tuple[Floats, Floats]:
        beta = np.zeros(self.x.shape[1])
        value = self._value(beta)
        for _ in range(_STEPS):
            slope, information = self._slope(beta)
            try:
                step = np.linalg.solve(information, slope)
            except np.linalg.LinAlgError:
                raise _no_maximum() from None
            if slope @ step < _SETTLED:
                return self._checked(beta, information)
            size, rounding = 1.0, 1e-12 * (1 + abs(value))
            while (tried := self._value(beta + size * step)) < value - rounding and size > 1e-10:
                size /= 2
            beta, value = beta + size * step, tried
        raise _no_maximum()

    def _value(self, beta: Floats) -> float:
        share = _logistic(self.x @ beta)
        chance = self.other[self.places] + self.step[self.places] * share
        return float(np.log(np.maximum(chance, 1e-300)).sum())

    def _slope(self, beta: Floats) -> tuple[Floats, Floats]:
        """The gradient, and the expected information Σ (s(1-s))² Σ_j d_j²/P_j xxᵀ."""
        share = _logistic(self.x @ beta)
        rise = share * (1 - share)
        chance = np.maximum(self.other + np.outer(share, self.step), 1e-300)
        pull = self.step[self.places] / chance[np.arange(share.size), self.places]
        weight = rise**2 * (self.step**2 / chance).sum(axis=1)
        return self.x.T @ (pull * rise), (self.x * weight[:, None]).T @ self.x

    def _checked(self, beta: Floats, information: Floats) -> tuple[Floats, Floats]:
        errors = np.sqrt(np.maximum(np.diag(np.linalg.inv(information)), 0))
        if not np.isfinite(errors).all() or errors.max() > _BEYOND:
            raise _no_maximum()
        return beta / self.scale, information * np.outer(self.scale, self.scale)


def _logistic(value: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(value, -700, 700)))


def _no_maximum() -> ParameterError:
    return ParameterError(
        "reports",
        "no finite fit",
        "the likelihood grows without end: reports are all alike, or x tells them apart, or they "
        "are fewer than the coins alone would give; ask more people or drop columns",
    )


def linear_regression(
    design: Design,
    reports: Reports,
    x: Mapping[str, Any],
    *,
    values: Mapping[Hashable, Number] | None = None,
) -> Fit:
    """Least squares for a randomised outcome; unbiased for what the true answers would give.

    `values` says what each answer counts (False is 0 and True is 1 unless said). Each report is
    replaced by its unbiased value through the inverse channel; the standard errors do not assume
    that noise is alike for all (White 1980, with n/(n - p)).
    """
    worth = _worth(read_design(design), values)
    places = report_places(design.reports, reports, "reports")
    names, matrix = read_columns(x, places.size)
    outcome = (worth @ design.decoder)[places]
    gram = matrix.T @ matrix
    beta = np.linalg.solve(gram, matrix.T @ outcome).astype(np.float64)
    return _sandwich(names, gram, beta, matrix * (outcome - matrix @ beta)[:, None])


def _worth(design: Design, values: Mapping[Hashable, Number] | None) -> Floats:
    given: Mapping[Hashable, Number] = {False: 0, True: 1} if values is None else values
    if set(given) != set(design.answers):
        raise ParameterError("values", len(given), f"must give each of {design.answers} a number")
    return np.array([float(exact(given[answer], "values")) for answer in design.answers])


def regression_on_reports(
    design: Design, reports: Reports, y: Any, x: Mapping[str, Any] | None = None
) -> Fit:
    """Least squares of y on a randomised predictor, and on x; consistent for the true one.

    One coefficient for each answer but the first, against the first, named after it. Using the
    reports as if they were answers would shrink them towards 0. Here every sum that least squares
    needs (answers, and their products with y and x) is replaced by its unbiased estimate through
    the inverse channel; standard errors by the sandwich of these estimating equations.
    """
    places = report_places(read_design(design).reports, reports, "reports")
    n, more = places.size, len(design.answers) - 1
    names, known = read_columns({} if x is None else x, n, more)
    labels = tuple(str(answer) for answer in design.answers[1:])
    if len({*names, *labels}) != len(names) + len(labels):
        raise ParameterError("x", names, f"must not be named like an answer or another: {labels}")
    outcome = read_column(y, "y", n)
    decoded = design.decoder[1:, places].T
    cross = known.T @ decoded
    gram = np.block([[known.T @ known, cross], [cross.T, np.diag(decoded.sum(axis=0))]])
    moment = np.concatenate([known.T @ outcome, decoded.T @ outcome])
    scale = np.sqrt(np.maximum(np.abs(np.diag(gram)), 1e-300))
    if np.linalg.cond(gram / np.outer(scale, scale)) > 1e10:
        raise ParameterError(
            "reports", "no fit", "an answer is too rare to tell its effect; ask more people"
        )
    beta = np.linalg.solve(gram, moment)
    rest = outcome - known @ beta[:-more]
    off = np.hstack(
        [known * (rest - decoded @ beta[-more:])[:, None], decoded * (rest[:, None] - beta[-more:])]
    )
    return _sandwich((*names, *labels), gram, beta, off)


def _sandwich(names: tuple[str, ...], gram: Floats, beta: Floats, off: Floats) -> Fit:
    """G^-1 (Σ ψψᵀ) G^-T n/(n - p), ψ being each person's part of the estimating equations."""
    n, p = off.shape
    back = np.linalg.inv(gram)
    return Fit(names, beta, back @ (off.T @ off) @ back.T * (n / (n - p)), n)
