"""scikit-learn's contract for private estimators: parameters, checks, and where data come in."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from deniable.errors import ParameterError, ParameterTypeError
from deniable.held import frameless
from deniable.learning.noise import Mechanism, Neighbours, Share, mechanism_for, price
from deniable.learning.outlook import Outlook, foreseen
from deniable.learning.priced import PricedEstimator
from deniable.learning.rows import Floats, Ranges, Rows, read_ends, read_features, read_ranges
from deniable.learning.sums import Integers, Sums
from deniable.privacy.exact import whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.units import Relation, read_relation


class NoisySums(Protocol):
    """The only way to private rows: sums, with noise."""

    def draw(self, mechanism: Mechanism, sums: Sums) -> Integers:
        """The noisy sums."""


class ArrayReader:
    """Sums of arrays. Unledgered: the caller keeps the budget."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def draw(self, mechanism: Mechanism, sums: Sums) -> Integers:
        with np.errstate(all="ignore"):  # a warning would tell of rows
            totals = sums.totals(self._rows)
        return np.asarray(mechanism.release(totals), dtype=np.int64)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(PricedEstimator):
    """What private estimators share: a price that is known before data are read, and sums.

    Formal guarantee of every one. For any two tables that differ in one row under `relation`:

    * a fit keeps its guarantee and costs `loss`: that of the releases that its class names;
    * values beyond `bounds` are clamped and rows longer than `norm` are shortened, silently; a row
      with anything that is no finite number, or with a label that is not in `classes`, counts as
      nothing;
    * everything else is computed from released numbers.

    Parameters are public and stored as they are given; they are read, and refused if they are
    wrong, by `loss`, `cost` and `fit`, before any row is. Noise belongs to the fit: a clone has
    none.

    Each `fit` costs its price again: in a search or a cross-validation that is once for every
    candidate and fold. `score` of private rows, and with it `GridSearchCV`, `cross_val_score` and
    their like, tell exact numbers of those rows, which no budget covers: choose parameters on
    public rows, and score on public rows.

    Args of every one, beside those of `PricedEstimator`:
        bounds: (low, high) of the columns, numbers or lists with one number for each column.
        norm: of those that have it, the longest row that counts in full, columns being centred and
            divided by half their span; None: no further clipping.
        rows_per_unit: of those that read sums, how many rows of one unit there may be; `dp.fit`
            sets it from the table.
    """

    bounds: Any

    @abstractmethod
    def _train(self, rows: Rows, ranges: Ranges) -> None:
        """Learn from bounded rows, through mechanisms alone."""

    @frameless
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from private rows. Unledgered: the caller keeps the budget; see `dp.fit`."""
        self.cost()
        values = read_features(X)
        validate_data(self, X, skip_check_array=True)
        ranges = self._ready(values.shape[1])
        with np.errstate(all="ignore"):  # a warning would tell of rows
            rows = self._rows(values, y, ranges)
        self._train(rows, ranges)
        return self

    def _rows(self, values: Floats, y: Any, ranges: Ranges) -> Rows:
        del y
        units, present = ranges.units(values)
        return Rows(units, None, None, present)

    def _ready(self, width: int) -> Ranges:
        """Read what depends on the number of columns, and build every mechanism: before rows."""
        return self._ranges(width)

    def _ranges(self, width: int) -> Ranges:
        return read_ranges(self.bounds, getattr(self, "norm", None), width)

    def _relation(self) -> Relation:
        return read_relation(self.relation)

    def _known(self, X: Any) -> Floats:
        """Rows to predict for: the caller's own, checked as scikit-learn does."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64), np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class SumsEstimator(PrivateEstimator):
    """An estimator that reads rows through sums alone: they may be summed where the data are."""

    rows_per_unit: Any = 1

    @abstractmethod
    def _parts(self) -> Sequence[tuple[Sums, Share]]:
        """The sums that a fit draws, in their kinds, with their shares of the budget."""

    def _drawn(self, width: int) -> Sequence[Sums]:
        """The sums that a fit draws of rows with so many columns: one of each kind."""
        del width
        return [sums for sums, _ in self._parts()]

    @abstractmethod
    def _learn(self, reader: NoisySums, ranges: Ranges) -> None:
        """Draw the sums, and set what is learned."""

    @property
    def loss(self) -> Loss:
        return price(self._parts(), self._kept(), self._neighbours())

    def outlook(self, *, size: int, features: int) -> Outlook:
        """Whether the budget can support the model on so many rows; nothing is read or spent."""
        rows, width = whole(size, "size"), whole(features, "features")
        parts = [
            (sums, self._noise(sums, share, width), share.times) for sums, share in self._parts()
        ]
        return foreseen(parts, rows, width)

    def _ready(self, width: int) -> Ranges:
        ranges = super()._ready(width)
        for sums, share in self._parts():
            self._noise(sums, share, width)
        return ranges

    def _train(self, rows: Rows, ranges: Ranges) -> None:
        self._learn(ArrayReader(rows), ranges)

    def _heard(
        self, reader: NoisySums, sums: Sums, share: Share, width: int
    ) -> tuple[Integers, float]:
        """Noisy sums for their share, and the deviation of their noise."""
        mechanism = self._noise(sums, share, width)
        return reader.draw(mechanism, sums), mechanism.deviation

    def _noise(self, sums: Sums, share: Share, width: int) -> Mechanism:
        return mechanism_for(sums, width, share, self._kept(), self._neighbours())

    def _neighbours(self) -> Neighbours:
        return Neighbours(self._relation(), whole(self.rows_per_unit, "rows_per_unit"))


def read_classes(classes: Any) -> tuple[Any, ...]:
    """Read the declared labels."""
    if isinstance(classes, str | bytes) or not hasattr(classes, "__len__"):
        raise ParameterTypeError("classes", classes, "must be public: a list of labels")
    if isinstance(classes, Set):
        raise ParameterTypeError("classes", "a set", "must be in an order: a list of labels")
    listed = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    labels = tuple(each.item() if isinstance(each, np.generic) else each for each in listed)
    if len({_kind_of(each) for each in labels}) > 1:
        raise ParameterTypeError("classes", "mixed types", "must be all numbers or all text")
    if any(isinstance(each, float) and not math.isfinite(each) for each in labels):
        raise ParameterError("classes", "NaN or infinite", "must be finite numbers")
    try:
        different = len(set(labels)) == len(labels)
    except TypeError:
        raise ParameterTypeError("classes", "unhashable", "must be plain labels") from None
    if len(labels) < 2 or not different:
        raise ParameterError("classes", len(labels), "must be two or more different labels")
    return labels


def _kind_of(label: Any) -> str:
    number = isinstance(label, int | float) and not isinstance(label, bool)
    return "number" if number else type(label).__name__


def read_pair(bounds: Any, argument: str) -> tuple[float, float]:
    """Read public bounds that are two numbers."""
    low, high = read_ends(bounds, argument)
    if low.size != 1 or high.size != 1:
        raise ParameterError(argument, bounds, "must be a pair of numbers")
    return float(low[0]), float(high[0])


def read_positive(value: Any, argument: str) -> float:
    """Read a number above zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ParameterTypeError(argument, value, "must be a number")
    if not 0 < value < 1e12:
        raise ParameterError(argument, value, "must be greater than 0, and below 1e12")
    return float(value)
