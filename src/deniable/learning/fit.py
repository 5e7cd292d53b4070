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
from deniable.held import frameless
from deniable.learning.bayes import GaussianNB
from deniable.learning.classifier import LinearClassifier
from deniable.learning.clustering import KMeans
from deniable.learning.linear import LinearRegression, Ridge
from deniable.learning.logistic import LogisticRegression
from deniable.learning.noise import Mechanism
from deniable.learning.pca import PCA
from deniable.learning.perturbed import PerturbedLogisticRegression
from deniable.learning.pushed import LearningSource
from deniable.learning.rows import Ranges, Rows
from deniable.learning.scaling import StandardScaler
from deniable.learning.scikit import PrivateEstimator, SumsEstimator, read_classes, read_pair
from deniable.learning.sgd import SGDClassifier
from deniable.learning.sums import Integers, Sums
from deniable.ledger.amounts import read_amount
from deniable.ledger.filters import Budget
from deniable.privacy.guarantees import PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.units import Relation
from deniable.query.plan.digest import facts_of
from deniable.query.price.room import check_room
from deniable.query.read.columns import BOUGHT, Column
from deniable.query.read.compile import Selected, compile_rows, table_rows
from deniable.query.read.resolve import parse
from deniable.release import Door, Gate
from deniable.session import Parts, Session
from deniable.shield import shielded
from deniable.tables import NUMERIC, ColumnType, check_keys, nearest

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
    x: Sequence[str] | None = None,
    y: str | None = None,
) -> Estimator:
    """A fitted clone of an estimator, learned from private rows.

    `table` is the name of a private table, or a SELECT of rows: WHERE, expressions, joins and GROUP
    BY the unit are those of questions. `x` are the columns to learn from, all but `y` and the unit
    unless said.

    The whole price is reserved in the ledger before anything is read. Estimators that read sums
    have them computed by the engine where the rows are; others are given rows, one of each unit.
    Bounds, classes and the relation are the estimator's own, or those of the columns where it has
    None. A unit with at most `max_rows` rows counts in full; a larger one is scaled down to what
    so many rows can add, as in questions. `epsilon=` and `rho=` of the estimator mean what they
    mean for a question of the session; a guarantee means itself. The same fit again, its price said
    in whatever words, is answered from the ledger, for free.
    """
    selected = _selected(session, table)
    columns = _columns(selected, x, y)
    parts = session.parts
    tables = {name: parts.catalogue.private[name] for name in selected.relation.tables}
    model = _completed(estimator, parts.catalogue.neighbours(tuple(tables)), columns)
    _resolve(model, parts.budget)
    source = _source(model, selected, columns)
    whole = _Whole(type(model).__name__, tuple(model.get_params().items()), source.ranges)
    if model.get_params().get("allow_real_arithmetic") and not parts.allow_real_arithmetic:
        raise ParameterError(
            "allow_real_arithmetic",
            True,
            "is for the owner to say: dp.Session(..., allow_real_arithmetic=True); or take "
            "method='output', which is exact",
        )
    steps = _steps(model, source, parts)
    parts.engine.check(steps)
    question: dict[str, object] = {
        "learn": type(model).__name__,
        "parameters": _parameters(model),
        "x": [selected.names[each] for each in columns.x],
        "y": None if columns.y is None else selected.names[columns.y],
        "tables": {name: each.describe() for name, each in tables.items()},
    }
    if selected.text:
        question |= {"sql": selected.text, **facts_of(parts.catalogue)}
    counts = parts.counts.about(steps)

    def drawn(door: Door) -> object:
        with LazySnapshot(
            parts.engine, [*counts, *steps], {*tables, *parts.catalogue.public}
        ) as snapshot:
            parts.counts.confirm(counts, snapshot)
            if not isinstance(model, SumsEstimator):
                return door.draw(whole, partial(_pull, source, snapshot))
            reader = _DoorReader(door, snapshot, source)
            with np.errstate(all="ignore"):  # noise may take released numbers beyond doubles
                model._learn(reader, source.ranges)
            return {"drawn": reader.drawn}

    gate = Gate(parts.ledger, next(iter(tables.values())).population, parts.who)
    purpose = f"learn: {type(model).__name__}"
    found = gate.answer(whole.loss, question, drawn, purpose=purpose)
    _recall(model, found.value, source.ranges)
    return model


def _steps(model: PrivateEstimator, source: LearningSource, parts: Parts) -> list[Step]:
    """Every kind of statement that the fit will run; refused where the engine has no room."""
    if isinstance(model, SumsEstimator):
        each = [source.pushed(sums) for sums in model._drawn(len(source.x))]
        plans, steps = [one.plan for one in each], [one.step for one in each]
    else:
        plans, steps = [source.rows_plan()], [source.rows_step()]
    for plan in plans:
        check_room(plan, parts.catalogue, parts.engine, steps)
    return steps


@dataclass(frozen=True)
class _Columns:
    """The columns that are learned from, in small letters, and what is known of them."""

    x: tuple[str, ...]
    y: str | None
    known: Mapping[str, Column]

    def kind(self, name: str) -> ColumnType | None:
        return self.known[name].kind


class _DoorReader:
    """Sums of a table, drawn through a door, and kept for the record."""

    def __init__(self, door: Door, snapshot: LazySnapshot, source: LearningSource) -> None:
        self._door, self._snapshot, self._source = door, snapshot, source
        self.drawn: list[list[int]] = []

    def draw(self, mechanism: Mechanism, sums: Sums) -> Integers:
        noisy = np.asarray(self._door.draw(mechanism, partial(self._totals, sums)), np.int64)
        self.drawn.append(noisy.tolist())
        return noisy

    def _totals(self, sums: Sums) -> Integers:
        statement = self._source.pushed(sums)
        return statement.totals(self._snapshot.run(statement.step))


class _Recorded:
    """Sums that were drawn before, in order."""

    def __init__(self, drawn: list[list[int]]) -> None:
        self._drawn = iter(drawn)

    def draw(self, _mechanism: Mechanism, _sums: Sums) -> Integers:
        return np.array(next(self._drawn), np.int64)


@dataclass(frozen=True, eq=False)
class _Whole:
    """A fit as one release: its price and its noise are those of one list of plain parameters."""

    kind: str
    parameters: tuple[tuple[str, Any], ...]
    ranges: Ranges

    @property
    def loss(self) -> Loss:
        return self._model()._charged()

    @frameless
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


def _pull(source: LearningSource, snapshot: LazySnapshot) -> Rows:
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


def _selected(session: Session, table: str) -> Selected:
    exactly(session, (Session,), "session", "must be a dp.Session")
    catalogue, text = session.parts.catalogue, read_text(table, "table")
    name = text.strip().lower()
    if name in catalogue.private:
        return table_rows(name, catalogue)
    if name.isidentifier():
        listed = ", ".join(catalogue.private)
        raise ParameterError("table", table, f"private tables are {listed}; or give a SELECT")
    return compile_rows(parse(text), catalogue)


def _columns(selected: Selected, x: Sequence[str] | None, y: str | None) -> _Columns:
    known = selected.relation.columns
    target = None if y is None else _find(selected, read_text(y, "y"))
    if x is None:
        found = [each for each in known if each != target and not known[each].is_unit]
    else:
        found = [_find(selected, each) for each in read_names(x, "x")]
    if not found:
        raise ParameterTypeError("x", x, "must be a list of columns")
    for each in found:
        kind = known[each].kind
        if kind not in NUMERIC and kind != ColumnType.BOOLEAN:
            shown = selected.names[each]
            raise ParameterError("x", shown, f"holds {kind}; learn from numbers and booleans")
    if len(set(found)) != len(found) or target in found:
        raise ParameterError("x", found, "must be different columns, and not the target")
    for argument, names in (("x", found), ("y", [] if target is None else [target])):
        for each in names:
            if known[each].is_unit:
                raise ParameterError(argument, each, "is the unit: nothing is learned about names")
    return _Columns(tuple(found), target, known)


def _find(selected: Selected, name: str) -> str:
    """The column of this name, whatever its case."""
    if name.lower() not in selected.names:
        raise ParameterError(
            "column", name, f"is unknown; {nearest(name, selected.names.values())}"
        )
    return name.lower()


def _completed(estimator: Estimator, relation: Relation, columns: _Columns) -> Estimator:
    """One of our own, made anew of plain parameters, and of what is declared for None."""
    kind = type(exactly(estimator, ESTIMATORS.values(), "estimator", _WANTED))
    own = kind.get_params(estimator, deep=False)
    model = kind(**{name: frozen(value, name) for name, value in own.items()})
    given, y = model.get_params(), columns.y
    declared: dict[str, Any] = {"relation": str(relation)}
    if given["bounds"] is None:
        ends = [_bounds_of(columns, each) for each in columns.x]
        declared["bounds"] = ([low for low, _ in ends], [high for _, high in ends])
    wants_y = "y_bounds" in given or "classes" in given
    if wants_y != (y is not None):
        raise ParameterError("y", y, "is needed" if wants_y else "is not learned from")
    if y is not None and "y_bounds" in given:
        if columns.kind(y) not in NUMERIC:
            raise ParameterError("y", y, f"holds {columns.kind(y)}, not numbers")
        if given["y_bounds"] is None:
            declared["y_bounds"] = _bounds_of(columns, y)
    if y is not None and "classes" in given:
        if given["classes"] is None:
            keys = columns.known[y].keys
            if keys is None:
                raise ParameterError(
                    "classes",
                    y,
                    "declare the labels: as keys of the table, or classes= of the estimator",
                )
            declared["classes"] = list(keys)
        labels = read_classes(declared.get("classes", given["classes"]))
        _check_labels(y, labels, columns.kind(y))
    model.set_params(**declared)
    return model


def _check_labels(column: str, labels: tuple[Any, ...], kind: ColumnType | None) -> None:
    """Refuse labels that the column cannot hold, or that become one in its type."""
    check_keys(column, labels, kind, "classes")
    if kind == ColumnType.NUMBER and len({float(label) for label in labels}) < len(labels):
        raise ParameterError("classes", len(labels), f"{column} holds {kind}; some are one double")


def _bounds_of(columns: _Columns, name: str) -> tuple[float, float]:
    if columns.kind(name) == ColumnType.BOOLEAN:
        return 0.0, 1.0
    bounds = columns.known[name].bounds
    if bounds is None:
        raise ParameterError(
            "bounds", name, "declare them: of the table, or bounds= of the estimator"
        )
    low, high = bounds
    return float(low), float(high)


def _source(model: PrivateEstimator, selected: Selected, columns: _Columns) -> LearningSource:
    rows = selected.relation.rows
    if rows == BOUGHT:
        raise ParameterError("max_rows", None, "declare how many rows of one unit count")
    if isinstance(model, SumsEstimator):
        model.set_params(rows_per_unit=rows)
    elif rows > 1:
        raise ParameterError(
            "max_rows",
            rows,
            f"{type(model).__name__} learns from units of 1 row; SELECT ... GROUP BY the unit",
        )
    else:
        selected = selected.one_row()
    given = model.get_params()
    width = len(columns.x)
    ranges = model._ready(width)
    model.n_features_in_ = width
    return LearningSource(
        selected=selected,
        x=columns.x,
        y=columns.y,
        ranges=ranges,
        classes=read_classes(given["classes"]) if "classes" in given else (),
        y_ends=read_pair(given["y_bounds"], "y_bounds") if "y_bounds" in given else None,
        l2=not isinstance(given["guarantee"], PureDP),
    )


def _plain(value: Any) -> Any:
    """A parameter as the ledger's record has it, every digit."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | type(None)) else repr(value)
