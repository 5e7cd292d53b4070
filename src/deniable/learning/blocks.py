"""Subsample and aggregate for any estimator: fitted on blocks of the rows, its numbers averaged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from deniable.errors import ParameterError, ParameterTypeError
from deniable.held import frameless
from deniable.learning.noise import ALL, Mechanism, Neighbours, mechanism_for
from deniable.learning.priced import PricedEstimator
from deniable.learning.rows import GRID, Floats, plain_labels, read_features
from deniable.learning.scikit import read_classes, read_pair, read_positive
from deniable.learning.sums import Integers
from deniable.mechanisms.base import Plain
from deniable.mechanisms.children import bytes_in_child
from deniable.mechanisms.gaps import Gap, rows_apart
from deniable.privacy.exact import whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE
from deniable.trace import traced


@dataclass(frozen=True)
class BlockAnswers:
    """The answers of blocks, `numbers` whole numbers from 0 to GRID each, summed.

    One row, added, removed or exchanged, alters one block, and each of its numbers by GRID at most.
    """

    numbers: int

    def moved(self, relation: Relation) -> int:
        """GRID in each number."""
        del relation
        return math.isqrt(self.numbers * GRID**2 - 1) + 1

    def moved_l1(self, relation: Relation, width: int) -> int:
        del relation, width
        return self.numbers * GRID


@dataclass(frozen=True)
class BlockSum:
    """The sum of what a function says of random blocks of records, with noise.

    Formal guarantee (Nissim, Raskhodnikova & Smith 2007). For any function whatsoever, one release
    has the loss of `noise` for `BlockAnswers`: each record goes to one block, drawn without looking
    at it, and the function runs in a forked child of its own for each block. Whatever it does but
    return `numbers` finite numbers within `timeout` seconds (an exception, a wrong number of them,
    NaN) counts as half of GRID in each; what lies beyond 0 and 1 is clamped. Nothing but running
    time shows it. How many records there are does not matter: blocks may be empty.
    """

    noise: Mechanism
    blocks: int
    numbers: int
    timeout: float
    function: Callable[[list[Any]], Any] = field(repr=False)
    """The numbers of a block, of [0, 1] each."""

    @property
    def loss(self) -> Loss:
        return self.noise.loss

    @property
    def relation(self) -> Relation:
        return self.loss.relation

    @traced
    def release(self, value: Sequence[Any]) -> Integers:
        parts: list[list[Any]] = [[] for _ in range(self.blocks)]
        drawn = uniform_below(self.blocks, len(value), SECURE).tolist()
        for record, place in zip(value, drawn, strict=True):
            parts[place].append(record)
        total = sum((self._answer(part) for part in parts), np.zeros(self.numbers, int))
        return np.asarray(self.noise.release(total), np.int64)

    def _answer(self, block: list[Any]) -> Integers:
        def say() -> bytes:
            return np.asarray(self.function(block), np.float64).ravel().tobytes()

        said = bytes_in_child(say, 8 * self.numbers, self.timeout)
        found = np.full(self.numbers, math.nan) if said is None else np.frombuffer(said)
        if not np.isfinite(found).all():
            found = np.full(self.numbers, 0.5)
        return np.rint(np.clip(found, 0, 1) * GRID).astype(np.int64)

    def view(self, value: Sequence[Any], plain: Plain) -> list[Any]:
        return [plain(record) for record in value]

    def without_code(self) -> BlockSum:
        """With a function of Python's own in place of the caller's."""
        return replace(self, function=len)

    def gap(self, x: list[Any], y: list[Any]) -> Gap:
        return rows_apart(x, y, self.relation)

    def neighbours(self) -> None:
        """What records are is the caller's to say."""


@dataclass(kw_only=True, eq=False, repr=False)
class SubsampledEstimator(PricedEstimator):
    """Any scikit-learn estimator made private: fitted on blocks, what it learned averaged.

    Formal guarantee. For any two tables that differ in one row under `relation`, a fit keeps
    the guarantee that it is given and costs `loss`, whatever the estimator does: it is one release
    of `BlockSum`. Rows with anything that is no finite number count as nothing.

    Blocks cost accuracy of their own: each sees one row in `blocks`, and noise falls with `blocks`.
    Where one of the estimators that read sums will do, it does better.

    Args, beside those of every `PricedEstimator`:
        estimator: not private; it is cloned, and fitted in child processes alone.
        learned: attributes that are averaged, with their shapes: {"coef_": (3,), "intercept_": ()}.
        bounds: (low, high) of all numbers that are learned; beyond, they are clamped.
        blocks: how many.
        classes: all labels, for classifiers, in any order; what is learned is read as of sorted
            labels, as scikit-learn's classifiers have them.
        timeout: seconds for one block.

    Attributes:
        estimator_: a clone with the averages, ready to predict.
        standard_error_: the deviation of the noise on each of them.
    """

    estimator: Any = field(kw_only=False)
    learned: Any
    bounds: Any
    blocks: Any = 50
    classes: Any = None
    timeout: Any = 60

    @property
    def loss(self) -> Loss:
        return self._mechanism().loss

    @frameless
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from private rows. Unledgered: the caller keeps the budget."""
        mechanism = self._mechanism()
        shapes, (low, high) = self._shapes(), read_pair(self.bounds, "bounds")
        values = read_features(X)
        labelled = y is not None
        labels = plain_labels(y, len(values)) if labelled else [None] * len(values)
        records = [
            (row, label)
            for row, label in zip(values, labels, strict=True)
            if np.isfinite(row).all()
        ]

        def learned(block: list[tuple[Floats, Any]]) -> npt.NDArray[Any]:
            rows = np.array([row for row, _ in block])
            model = clone(self.estimator)
            model = model.fit(rows, [y for _, y in block]) if labelled else model.fit(rows)
            parts = [np.asarray(getattr(model, name), np.float64) for name in shapes]
            if [part.shape for part in parts] != list(shapes.values()):
                raise ValueError("other shapes than declared")
            return (np.concatenate([part.ravel() for part in parts]) - low) / (high - low)

        noisy = replace(mechanism, function=learned).release(records)
        share = noisy / (GRID * mechanism.blocks)
        self._keep(low + np.clip(share, 0, 1) * (high - low), shapes, values.shape[1])
        spread = mechanism.noise.deviation / (GRID * mechanism.blocks)
        self.standard_error_ = spread * (high - low)
        return self

    def predict(self, X: Any) -> Any:
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def _keep(self, flat: Floats, shapes: dict[str, tuple[int, ...]], width: int) -> None:
        model, start = clone(self.estimator), 0
        for name, shape in shapes.items():
            size = math.prod(shape)
            part = flat[start : start + size].reshape(shape)
            setattr(model, name, part if shape else float(part))
            start += size
        model.n_features_in_ = width
        if self.classes is not None:
            model.classes_ = self._classes()
        self.estimator_ = model

    def _mechanism(self) -> BlockSum:
        if isinstance(self.estimator, type) or not (
            hasattr(self.estimator, "fit") and hasattr(self.estimator, "get_params")
        ):
            raise ParameterTypeError(
                "estimator",
                type(self.estimator).__name__,
                "must be a scikit-learn estimator, made: Lasso(), not Lasso",
            )
        if self.classes is not None:
            self._classes()
        elif is_classifier(self.estimator):
            raise ParameterError("classes", None, "a classifier needs all labels: classes=[0, 1]")
        read_pair(self.bounds, "bounds")
        numbers = sum(math.prod(shape) for shape in self._shapes().values())
        noise = mechanism_for(BlockAnswers(numbers), numbers, ALL, self._kept(), self._neighbours())
        timeout = read_positive(self.timeout, "timeout")
        blocks = whole(self.blocks, "blocks")
        return BlockSum(noise, blocks, numbers, timeout, function=len)  # until a fit says which

    def _classes(self) -> npt.NDArray[Any]:
        """In the order that scikit-learn's own estimators learn them in: sorted."""
        return np.unique(np.asarray(read_classes(self.classes)))

    def _neighbours(self) -> Neighbours:
        return Neighbours(read_relation(self.relation))

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        if not isinstance(self.learned, Mapping) or not self.learned:
            raise ParameterTypeError(
                "learned", self.learned, "must name attributes and shapes: {'coef_': (3,)}"
            )
        return {str(name): _shape(shape) for name, shape in self.learned.items()}


def _shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple | list):
        raise ParameterTypeError("learned", shape, "shapes are tuples: (3,), or () for a number")
    return tuple(whole(each, "learned") for each in shape)
