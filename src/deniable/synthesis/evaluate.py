"""`dp.synthesis.evaluate`: how far a synthetic table is from the private one, for a price."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import combinations
from typing import cast

import numpy as np

from deniable.closed import exactly, read_text
from deniable.errors import ParameterError, ParameterTypeError
from deniable.ledger.amounts import read_amount
from deniable.privacy.exact import Number, whole
from deniable.privacy.guarantees import Guarantee
from deniable.release import Door
from deniable.session import Session
from deniable.shield import shielded
from deniable.synthesis.columns import frozen
from deniable.synthesis.domain import Clique, Domain, Floats
from deniable.synthesis.measure import Draws
from deniable.synthesis.model.base import Model
from deniable.synthesis.model.conditioned import Conditioned
from deniable.synthesis.model.dense import DenseModel
from deniable.synthesis.model.graphical import GraphicalModel
from deniable.synthesis.rare import Unmerged
from deniable.synthesis.run import SynthesisRun
from deniable.synthesis.scores import WrongMarginal, plain
from deniable.synthesis.synthetic import SyntheticTable
from deniable.tables import PrivateTable

_MOST_CELLS = 1 << 25


@shielded
def evaluate(
    session: Session,
    table: str,
    synthetic: SyntheticTable,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    guarantee: Guarantee | None = None,
    max_rows: int | None = None,
) -> dict[int, float]:
    """The mean total variation of all 1-, 2- and 3-way marginals from the private ones, noisy.

    This is private evaluation: it costs its price, a third for each number of columns, reserved
    before anything is read; the same again is free. One unit moves the sum of all distances by what
    it moves each of them.
    """
    if not isinstance(synthetic, SyntheticTable):
        raise ParameterTypeError(
            "synthetic", type(synthetic).__name__, "must be what dp.synthesize makes"
        )
    parts = session.parts
    private_table(session, table)
    amount = read_amount(parts.budget, epsilon=epsilon, rho=rho, guarantee=guarantee).on_grid()
    model, coded = _own_model(synthetic.model), tuple(map(frozen, synthetic.codings))
    limit = None if max_rows is None else whole(max_rows, "max_rows")
    domain = model.domain
    ways = [list(combinations(domain.columns, way)) for way in range(1, min(3, len(domain)) + 1)]
    _check_cells(domain, ways)
    run = SynthesisRun.of(parts, table.lower(), coded, amount, limit)
    if (domain.columns, domain.sizes) != (run.domain.columns, run.domain.sizes):
        raise ParameterError("synthetic", "a table", "has a model of other columns than its own")
    run.check()
    models = [[plain(model.marginal(clique)) for clique in way] for way in ways]
    total = max(1.0, float(model.total))
    with run.snapshot() as snapshot:
        data = run.data(snapshot)

        def measured(door: Door) -> dict[str, float]:
            draws, found = Draws(door, data, amount), {}
            for way, cliques in enumerate(ways):
                flat = [1] * len(cliques)
                wrong = WrongMarginal(cliques, models[way], flat, [0.0] * len(cliques))
                error = draws.error_of(wrong, amount.value / len(ways))
                found[str(way + 1)] = float(np.clip(error / total / 2, 0.0, 1.0))
            return found

        answer = run.gate.answer(
            amount.loss, _question(run, models), measured, purpose="synthesis: private evaluation"
        )
    assert isinstance(answer.value, dict)
    return {int(way): float(far) for way, far in answer.value.items()}


def _own_model(model: object) -> Model:
    """A model of the library's, which computes by the library's code."""
    if type(model) is Conditioned:
        raise ParameterError(
            "synthetic", "a conditioned table", "speaks of some rows; evaluate the whole one"
        )
    inner = model.inner if type(model) is Unmerged else model
    if type(inner) not in (DenseModel, GraphicalModel):
        raise ParameterTypeError(
            "synthetic", type(inner).__name__, "must have a model that dp.synthesize fits"
        )
    return cast("Model", model)


def _question(run: SynthesisRun, models: Sequence[Sequence[Floats]]) -> dict[str, object]:
    """All that the answer depends on, but the data and the price."""
    seen = hashlib.sha256()
    for each in models:
        for model in each:
            seen.update(np.ascontiguousarray(model).tobytes())
    return {
        "evaluation": seen.hexdigest(),
        "columns": [each.sql() for each in run.coded],
        "max_rows": run.max_rows,
        "tables": {run.table: run.owner.describe()},
    }


def _check_cells(domain: Domain, ways: Sequence[Sequence[Clique]]) -> None:
    cells = sum(domain.size(clique) for way in ways for clique in way)
    if cells > _MOST_CELLS:
        raise ParameterError(
            "synthetic",
            f"{cells:,} cells",
            f"are in all its 1-, 2- and 3-way marginals, above {_MOST_CELLS:,}; nothing was spent. "
            "Synthesise with fewer columns or bins to evaluate",
        )


def private_table(session: Session, table: str) -> PrivateTable:
    """A private table of a session."""
    exactly(session, (Session,), "session", "must be a dp.Session")
    private = session.parts.catalogue.private
    owner = private.get(read_text(table, "table").lower())
    if owner is None:
        raise ParameterError(
            "table", table, f"the private tables of the session are {', '.join(private)}"
        )
    return owner
