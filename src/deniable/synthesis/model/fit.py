"""Fitting a graphical model to measurements: scaling and mirror descent with exact inference.

Minimises Σ ‖marginal - measured‖² / 2σ² over all distributions that factor over the junction tree
of the measured cliques (McKenna, Sheldon & Miklau 2019, Alg. 1 and 2). Among those that fit equally
well the one of largest entropy is approached, for parameters start at zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.errors import ParameterError
from deniable.synthesis.domain import Clique, Domain, Floats, project, widen
from deniable.synthesis.measurement import Measurement
from deniable.synthesis.model.dense import scaling
from deniable.synthesis.model.graphical import GraphicalModel
from deniable.synthesis.model.junction import JunctionTree, junction_tree

_ENOUGH = 1e-5
_MOST_HALVINGS = 40
_PAYS = 0.95


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, the parameters that make it, and how far each step went: a start for the next."""

    model: GraphicalModel
    parameters: Mapping[Clique, Floats]
    step: float
    loss: float


@dataclass(frozen=True, eq=False)
class _Target:
    """All measurements of one clique as one, and where its sums are taken from."""

    clique: Clique
    values: Floats
    weight: Floats
    source: Clique | int
    within: Clique


def total_of(measurements: Iterable[Measurement]) -> float:
    """The number of rows, estimated from measurements alone: never read from the data.

    Each sum of a marginal has the variance cells·σ²; sums are weighted by its inverse.
    """
    weights, sums = 0.0, 0.0
    for each in measurements:
        weight = 1 / each.variance_of_sum
        weights, sums = weights + weight, sums + weight * float(each.values.sum())
    return max(1.0, sums / weights) if weights else 1.0


def fit(
    domain: Domain,
    measurements: Sequence[Measurement],
    *,
    start: Fitted | None = None,
    iterations: int = 300,
    zeros: Mapping[Clique, Floats] | None = None,
    total: float | None = None,
) -> Fitted:
    """Fit a model to measurements; `zeros` holds 0 in cells that cannot be, 1 elsewhere."""
    if not measurements:
        raise ParameterError("measurements", "none", "a model is fitted to one or more")
    forbidden = {domain.clique(clique): table for clique, table in (zeros or {}).items()}
    tree = junction_tree(domain, [*(each.clique for each in measurements), *forbidden])
    rows = total_of(measurements) if total is None else total
    problem = _Problem(tree, rows, _targets(tree, measurements), _floors(tree, forbidden))
    before = {} if start is None else start.parameters
    theta = {t.clique: before.get(t.clique, np.zeros_like(t.values)) for t in problem.targets}
    return problem.solve(theta, iterations, None if start is None else start.step)


def _targets(tree: JunctionTree, measurements: Sequence[Measurement]) -> list[_Target]:
    """One target for each clique, large ones first; sums are taken from the smallest that holds."""
    weights: dict[Clique, Floats] = {}
    sums: dict[Clique, Floats] = {}
    for each in measurements:
        weight = 1 / np.asarray(each.deviation) ** 2
        zero = np.zeros_like(each.values)
        weights[each.clique] = weights.get(each.clique, np.zeros(())) + weight
        sums[each.clique] = sums.get(each.clique, zero) + weight * each.values
    size = tree.domain.size
    ordered = sorted(weights, key=lambda c: (-len(c), -size(c), c))
    made = []
    for place, clique in enumerate(ordered):
        holders = [c for c in ordered[:place] if set(clique) < set(c)]
        holder = tree.holder(clique)
        assert holder is not None
        source: Clique | int = min(holders, key=size) if holders else holder
        within = source if isinstance(source, tuple) else tree.cliques[source]
        weight = weights[clique]
        made.append(_Target(clique, sums[clique] / weight, weight, source, within))
    return made


def _floors(tree: JunctionTree, zeros: Mapping[Clique, Floats]) -> list[Floats | None]:
    """Log-potentials of -inf where structural zeros lie."""
    floors: list[Floats | None] = [None] * len(tree.cliques)
    for clique, table in zeros.items():
        holder = tree.holder(clique)
        assert holder is not None
        with np.errstate(divide="ignore"):
            logs = np.where(np.asarray(table) > 0, 0.0, -np.inf)
        wide = widen(logs, clique, tree.cliques[holder])
        old = floors[holder]
        shape = tree.domain.shape(tree.cliques[holder])
        floors[holder] = np.broadcast_to(wide, shape) + (0.0 if old is None else old)
    return floors


@dataclass(frozen=True, eq=False)
class _Point:
    """Parameters, the model that they make, and how it misses what was measured."""

    theta: dict[Clique, Floats]
    tables: list[Floats]
    conditionals: list[Floats]
    loss: float
    slopes: dict[Clique, Floats]
    marginals: dict[Clique, Floats]


@dataclass(frozen=True, eq=False)
class _Problem:
    tree: JunctionTree
    total: float
    targets: list[_Target]
    floors: list[Floats | None]
    _axes: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for clique, separator in zip(self.tree.cliques, self.tree.separators, strict=True):
            self._axes.append(
                tuple(axis for axis, column in enumerate(clique) if column not in separator)
            )

    def solve(self, theta: dict[Clique, Floats], iterations: int, step: float | None) -> Fitted:
        """Mirror descent with backtracking, and steps of scaling between.

        Mirror descent alone hardly moves cells that hold few of many rows; scaling, as in iterative
        proportional fitting, moves each cell by its own ratio. A step is kept if the misfit falls.
        """
        whole = self.total**2 * sum(float(target.weight.max()) for target in self.targets)
        at, used = self._swept(self._at(theta), iterations)
        size, scale, quiet = 1 / whole if step is None else step * 2, 1.0, 0
        for _ in range(max(iterations - used, 1)):
            last = at
            at, size = self._descended(at, size)
            at, scale = self._scaled(at, scale)
            if not at.loss < last.loss:
                break
            quiet = quiet + 1 if last.loss - at.loss < _ENOUGH * last.loss else 0
            if quiet >= 5:
                break
        model = GraphicalModel(self.tree, self.total, tuple(at.tables), tuple(at.conditionals))
        return Fitted(model, at.theta, size / 2, at.loss)

    def _descended(self, at: _Point, size: float) -> tuple[_Point, float]:
        """One step of mirror descent, and how far the next should go."""
        for _ in range(_MOST_HALVINGS):
            new = self._at({c: table - size * at.slopes[c] for c, table in at.theta.items()})
            gain = sum(
                float(np.vdot(at.slopes[c], at.marginals[c] - new.marginals[c])) for c in at.slopes
            )
            if at.loss - new.loss >= 0.5 * gain or not np.isfinite(gain):
                break
            size /= 2
        return (new if new.loss < at.loss else at), size * 1.5

    def _scaled(self, at: _Point, scale: float) -> tuple[_Point, float]:
        """One step in which all marginals are scaled at once, and how far the next should go."""
        new = self._at({target.clique: self._moved(at, target, scale) for target in self.targets})
        return (new, min(1.0, scale * 1.5)) if new.loss < at.loss else (at, scale / 2)

    def _swept(self, at: _Point, most: int) -> tuple[_Point, int]:
        """Scale one marginal after another, those further off than noise, while that pays.

        Iterative proportional fitting: of a tree one round is enough. Says how often it inferred.
        """
        used = 0
        while used < most:
            new = at
            for target in self.targets:
                if self._wrong(new, target) > 1:
                    theta = {**new.theta, target.clique: self._moved(new, target, 1.0)}
                    new, used = self._at(theta), used + 1
            if not new.loss < _PAYS * at.loss:
                return (new if new.loss < at.loss else at), used
            at = new
        return at, used

    def _wrong(self, at: _Point, target: _Target) -> float:
        """χ² for each cell: 1 where a marginal is as far off as its noise."""
        off = self.total * at.marginals[target.clique] - target.values
        return float(np.vdot(off, target.weight * off)) / off.size

    def _moved(self, at: _Point, target: _Target, scale: float) -> Floats:
        """Parameters of one marginal after a step of scaling."""
        expected, noise = self.total * at.marginals[target.clique], 1 / np.sqrt(target.weight)
        return at.theta[target.clique] + scale * scaling(target.values, expected, noise)

    def _at(self, theta: dict[Clique, Floats]) -> _Point:
        tables, conditionals = self.infer(theta)
        return _Point(theta, tables, conditionals, *self.loss(tables))

    def loss(
        self, tables: list[Floats]
    ) -> tuple[float, dict[Clique, Floats], dict[Clique, Floats]]:
        """The misfit, its slope in each marginal, and the marginals, as probabilities."""
        marginals: dict[Clique, Floats] = {}
        slopes: dict[Clique, Floats] = {}
        loss = 0.0
        for target in self.targets:
            source = target.source
            held = marginals[source] if isinstance(source, tuple) else tables[source]
            found = project(held, target.within, target.clique)
            wrong = self.total * found - target.values
            marginals[target.clique] = found
            slopes[target.clique] = (self.total * target.weight) * wrong
            loss += 0.5 * float(np.vdot(wrong, target.weight * wrong))
        return loss, slopes, marginals

    def infer(self, theta: Mapping[Clique, Floats]) -> tuple[list[Floats], list[Floats]]:
        """Exact marginals and conditionals of all cliques: once up the tree, once down."""
        tree = self.tree
        summed = dict(theta)
        logs: list[Floats] = [
            np.zeros(tree.domain.shape(clique)) if floor is None else floor.copy()
            for clique, floor in zip(tree.cliques, self.floors, strict=True)
        ]
        for target in reversed(self.targets):
            wide = widen(summed[target.clique], target.clique, target.within)
            if isinstance(target.source, tuple):
                summed[target.source] = summed[target.source] + wide
            else:
                logs[target.source] += wide
        return propagate(tree, logs, self._axes)


def propagate(
    tree: JunctionTree, logs: list[Floats], axes: Sequence[tuple[int, ...]]
) -> tuple[list[Floats], list[Floats]]:
    """Marginals and conditionals of exp(Σ logs), normalised. `logs` is used up.

    On the way up each clique is normalised given its separator, and hands the logarithm of the
    normaliser to its parent: no number under- or overflows unless its probability does.
    """
    conditionals: list[Floats] = list(logs)
    for place in range(len(logs) - 1, -1, -1):
        table = logs[place]
        top = table.max(axis=axes[place], keepdims=True)
        top[~np.isfinite(top)] = 0.0
        table -= top
        np.exp(table, out=table)
        sums = table.sum(axis=axes[place], keepdims=True)
        table /= np.where(sums > 0, sums, 1.0)
        conditionals[place] = table
        parent = tree.parents[place]
        if parent >= 0:
            with np.errstate(divide="ignore"):
                message = (top + np.log(sums)).squeeze(axis=axes[place])
            logs[parent] += widen(message, tree.separators[place], tree.cliques[parent])
    tables = [conditionals[0]]
    for place in range(1, len(logs)):
        separator, parent = tree.separators[place], tree.parents[place]
        above = project(tables[parent], tree.cliques[parent], separator)
        tables.append(conditionals[place] * widen(above, separator, tree.cliques[place]))
    return tables, conditionals
