"""`dp.fit`: an estimator learns from a private table, through the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from deniable.closed import exactly, frozen, read_names, read_text
from deniable.engines.base import LazySnapshot, Step
from deniable.errors import ParameterError, ParameterTypeError
from deniable.learning.bayes import GaussianNB
from deniable.learning.clustering import KMeans
from deniable.learning.linear import LinearRegression, Ridge
from deniable.learning.linear_classifier import LinearClassifier
from deniable.learning.logistic import LogisticRegression
from deniable.learning.noise import Mechanism
from deniable.learning.pca import PCA
from deniable.learning.perturbed import PerturbedLogisticRegression
from deniable.learning.pushed import Source, pushed
from deniable.learning.rows import Ranges, Rows
from deniable.learning.scaling import StandardScaler
from deniable.learning.scikit import (
    PrivateEstimator,
    SumsEstimator,
    read_classes,
    read_y_bounds,
)
from deniable.learning.sgd import SGDClassifier
from deniable.learning.sums import Integers, Sums
from deniable.ledger.amounts import read_amount
from deniable.ledger.filters import Budget
from deniable.privacy.losses.base import Loss
from deniable.release import Door, Gate, shielded
from deniable.session import Session
from deniable.tables import NUMERIC, ColumnType, PrivateTable, check_keys

Estimator = TypeVar("Estimator", bound=PrivateEstimator)

ESTIMATORS: Mapping[str, type[PrivateEstimator]] = {
    each.__name__: each
    for each in (
        GaussianNB,
        KMeans,
        LinearRegression,
        LogisticRegression,
        PCA,
        PerturbedLogisticRegression,
        Ridge,
        SGDClassifier,
        StandardScaler,
    )
}
"""What is fitted through the gate: these, and nothing made of them."""

_WANTED = f"must be one of {', '.join(ESTIMATORS)}, and no subclass"
_LEARNED = ("coef_", "intercept_", "coef_standard_errors_")


@shielded
def fit(
    session: Session,
    estimator: Estimator,
    table: str,
    *,
    x: Sequence[str],
    y: str | None = None,
) -> Estimator:
    """A fitted clone of an estimator, learned from columns of a private table.

    The whole price is reserved in the ledger before anything is read. Estimators that read sums
    have them computed by the engine where the table is; others are given rows. Bounds, classes and
    the relation are the estimator's own, or those that the table declares where it has None. Of one
    unit at most `max_rows` rows count. `epsilon=` and `rho=` of the estimator mean what they mean
    for a question of the session; a guarantee means itself. The same fit again, its price said in
    whatever words, is answered from the ledger, for free.
    """
    name, private = _table(session, table)
    columns = _columns(session, name, x, y)
    model = _completed(estimator, private, columns)
    _resolve(model, session.parts.budget)
    source = _source(model, private, name, columns)
    whole = _Whole(type(model).__name__, tuple(model.get_params().items()), source.ranges)
    parts = session.parts
    if model.get_params().get("allow_real_arithmetic") and not parts.allow_real_arithmetic:
        raise ParameterError(
            "allow_real_arithmetic",
            True,
            "is for the owner to say: dp.Session(..., allow_real_arithmetic=True); or take "
            "method='output', which is exact",
        )
    gate = Gate(parts.ledger, private.population, parts.who)
    steps = _steps(model, source)
    parts.engine.check(steps)
    question = {
        "learn": type(model).__name__,
        "parameters": _parameters(model),
        "x": list(columns.x),
        "y": columns.y,
        "tables": {name: private.describe()},
    }

    def drawn(door: Door) -> object:
        with LazySnapshot(parts.engine, steps) as snapshot:
            if not isinstance(model, SumsEstimator):
                return door.draw(whole, partial(_pull, source, snapshot))
            reader = _DoorReader(door, snapshot, source)
            with np.errstate(all="ignore"):  # noise may take released numbers beyond doubles
                model._learn(reader, source.ranges)
            return {"drawn": reader.drawn}

    purpose = f"learn: {type(model).__name__}"
    found = gate.answer(whole.loss, question, drawn, purpose=purpose)
    _recall(model, found.value, source.ranges)
    return model


def _steps(model: PrivateEstimator, source: Source) -> list[Step]:
    """Every kind of statement that the fit will run."""
    if not isinstance(model, SumsEstimator):
        return [source.rows_step()]
    return [pushed(sums, source).step for sums in model._drawn(len(source.x))]


@dataclass(frozen=True)
class _Columns:
    every: tuple[str, ...]
    x: tuple[str, ...]
    kinds: tuple[ColumnType, ...]
    y: str | None
    y_kind: ColumnType | None


class _DoorReader:
    """Sums of a table, drawn through a door, and kept for the record."""

    def __init__(self, door: Door, snapshot: LazySnapshot, source: Source) -> None:
        self._door, self._snapshot, self._source = door, snapshot, source
        self.drawn: list[list[int]] = []

    def draw(self, mechanism: Mechanism, sums: Sums) -> Integers:
        """Sum in the engine, and release."""
        noisy = np.asarray(self._door.draw(mechanism, partial(self._totals, sums)), np.int64)
        self.drawn.append(noisy.tolist())
        return noisy

    def _totals(self, sums: Sums) -> Integers:
        statement = pushed(sums, self._source)
        return statement.totals(self._snapshot.run(statement.step))


class _Recorded:
    """Sums that were drawn before, in order."""

    def __init__(self, drawn: list[list[int]]) -> None:
        self._drawn = iter(drawn)

    def draw(self, _mechanism: Mechanism, _sums: Sums) -> Integers:
        """The next one."""
        return np.array(next(self._drawn), np.int64)


@dataclass(frozen=True, eq=False)
class _Whole:
    """A fit as one release: its price and its noise are those of one list of plain parameters."""

    kind: str
    parameters: tuple[tuple[str, Any], ...]
    ranges: Ranges

    @property
    def loss(self) -> Loss:
        """What the fit costs."""
        return self._model()._charged()

    def release(self, value: Rows) -> dict[str, Any]:
        """Fit, and tell what was learned: for estimators that need rows."""
        model = self._model()
        model._train(value, self.ranges)
        return {name: getattr(model, name).tolist() for name in _LEARNED}

    def _model(self) -> PrivateEstimator:
        return ESTIMATORS[self.kind](**dict(self.parameters))


def _recall(model: PrivateEstimator, stored: object, ranges: Ranges) -> None:
    """The model that was learned before."""
    assert isinstance(stored, Mapping)
    if isinstance(model, SumsEstimator):
        with np.errstate(all="ignore"):
            model._learn(_Recorded(stored["drawn"]), ranges)
        return
    for name in _LEARNED:
        setattr(model, name, np.array(stored[name]))
    assert isinstance(model, LinearClassifier)
    model._recall()


def _pull(source: Source, snapshot: LazySnapshot) -> Rows:
    """Bounded rows out of the engine."""
    found = snapshot.run(source.rows_step())
    width = len(source.x)
    table = np.array(found, dtype=np.float64).reshape(len(found), width + (source.y is not None))
    present = np.ones(len(table), np.bool_)
    if source.classes:
        return Rows(table[:, :width], None, table[:, width].astype(np.int64), present)
    return Rows(table[:, :width], table[:, width] if source.y else None, None, present)


def _resolve(model: PrivateEstimator, budget: Budget) -> None:
    """Say the price as the guarantee that it is under a budget: one price has one record."""
    if model.guarantee is not None:
        guarantee = model._kept()
    else:
        guarantee = read_amount(budget, epsilon=model.epsilon, rho=model.rho).guarantee
    model.set_params(epsilon=None, rho=None, guarantee=guarantee)
    model._payer = budget


def _parameters(model: PrivateEstimator) -> dict[str, Any]:
    """What the record of a fit is found by; the guarantee has the name that old records have."""
    given = model.get_params()
    del given["epsilon"], given["rho"]
    given["budget"] = given.pop("guarantee")
    return {name: _plain(value) for name, value in given.items()}


def _table(session: Session, table: str) -> tuple[str, PrivateTable]:
    exactly(session, (Session,), "session", "must be a dp.Session")
    name = read_text(table, "table").lower()
    private = session.parts.catalogue.private
    if name not in private:
        raise ParameterError("table", table, f"private tables are {', '.join(private)}")
    return name, private[name]


def _columns(session: Session, name: str, x: Sequence[str], y: str | None) -> _Columns:
    schema = session.parts.catalogue.schemas[name]
    found = [schema.find(each) for each in read_names(x, "x")]
    if not found:
        raise ParameterTypeError("x", x, "must be a list of columns")
    kinds = tuple(schema.columns[each] for each in found)
    for each, kind in zip(found, kinds, strict=True):
        if kind not in NUMERIC and kind != ColumnType.BOOLEAN:
            raise ParameterError("x", each, f"holds {kind}; learn from numbers and booleans")
    target = None if y is None else schema.find(read_text(y, "y"))
    listed = [each.lower() for each in found]
    if len(set(listed)) != len(listed) or (target is not None and target.lower() in listed):
        raise ParameterError("x", listed, "must be different columns, and not the target")
    y_kind = None if target is None else schema.columns[target]
    return _Columns(tuple(schema.columns), tuple(found), kinds, target, y_kind)


def _completed(estimator: Estimator, table: PrivateTable, columns: _Columns) -> Estimator:
    """One of our own, made anew of plain parameters, and of what the table declares for None."""
    kind = type(exactly(estimator, ESTIMATORS.values(), "estimator", _WANTED))
    own = kind.get_params(estimator, deep=False)
    model = kind(**{name: frozen(value, name) for name, value in own.items()})
    given = model.get_params()
    declared: dict[str, Any] = {"relation": str(table.relation)}
    if given["bounds"] is None:
        ends = [
            _bounds_of(table, each, kind)
            for each, kind in zip(columns.x, columns.kinds, strict=True)
        ]
        declared["bounds"] = ([low for low, _ in ends], [high for _, high in ends])
    wants_y = "y_bounds" in given or "classes" in given
    if wants_y != (columns.y is not None):
        raise ParameterError("y", columns.y, "is needed" if wants_y else "is not learned from")
    if columns.y is not None and "y_bounds" in given:
        if columns.y_kind not in NUMERIC:
            raise ParameterError("y", columns.y, f"holds {columns.y_kind}, not numbers")
        if given["y_bounds"] is None:
            declared["y_bounds"] = _bounds_of(table, columns.y, ColumnType.NUMBER)
    if columns.y is not None and "classes" in given:
        if given["classes"] is None:
            if columns.y not in table.keys:
                raise ParameterError(
                    "classes",
                    columns.y,
                    "declare the labels: as keys of the table, or classes= of the estimator",
                )
            declared["classes"] = list(table.keys[columns.y])
        labels = read_classes(declared.get("classes", given["classes"]))
        _check_labels(columns.y, labels, columns.y_kind)
    model.set_params(**declared)
    return model


def _check_labels(column: str, labels: tuple[Any, ...], kind: ColumnType | None) -> None:
    """Refuse labels that the column cannot hold, or that become one in its type."""
    check_keys(column, labels, kind, "classes")
    if kind == ColumnType.NUMBER and len({float(label) for label in labels}) < len(labels):
        raise ParameterError("classes", len(labels), f"{column} holds {kind}; some are one double")


def _bounds_of(table: PrivateTable, column: str, kind: ColumnType) -> tuple[float, float]:
    if kind == ColumnType.BOOLEAN:
        return 0.0, 1.0
    if column not in table.bounds:
        raise ParameterError(
            "bounds", column, "declare them: of the table, or bounds= of the estimator"
        )
    low, high = table.bounds[column]
    return float(low), float(high)


def _source(model: PrivateEstimator, table: PrivateTable, name: str, columns: _Columns) -> Source:
    rows = table.max_rows
    unit = table.unit.lower() if isinstance(table.unit, str) else None
    if rows is None:
        raise ParameterError("max_rows", None, "declare how many rows of one unit count")
    if rows > 1 and not isinstance(model, SumsEstimator):
        raise ParameterError("max_rows", rows, f"{type(model).__name__} learns from units of 1 row")
    given = model.get_params()
    if isinstance(model, SumsEstimator):
        model.set_params(rows_per_unit=rows)
    width = len(columns.x)
    ranges = model._ready(width)
    model.n_features_in_ = width
    return Source(
        table=name,
        columns=tuple(each.lower() for each in columns.every),
        x=tuple(each.lower() for each in columns.x),
        kinds=columns.kinds,
        y=None if columns.y is None else columns.y.lower(),
        y_kind=columns.y_kind,
        unit=unit,
        rows=rows,
        ranges=ranges,
        classes=read_classes(given["classes"]) if "classes" in given else (),
        y_ends=read_y_bounds(given["y_bounds"]) if "y_bounds" in given else None,
    )


def _plain(value: Any) -> Any:
    """A parameter as the ledger's record has it, every digit."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | type(None)) else repr(value)
