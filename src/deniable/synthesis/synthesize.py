"""`dp.synthesize`: a synthetic table of a session's private one; `dp.evaluate`: how good it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from deniable.engines.base import LazySnapshot
from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import Number, positive, whole
from deniable.privacy.guarantees import PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.price import Price
from deniable.privacy.wire import loss_to_json
from deniable.query.price import amount_of
from deniable.release import Answer, Door, Gate
from deniable.session import Parts, Session
from deniable.synthesis.aim import AIM
from deniable.synthesis.columns import Bins, Coding, codings
from deniable.synthesis.domain import Clique, Domain
from deniable.synthesis.fixed import FixedMarginals, Independent
from deniable.synthesis.journal import Entry, Journal
from deniable.synthesis.measure import Draws, on_grid_below, reserved_loss
from deniable.synthesis.method import Method, Progress, silent
from deniable.synthesis.mst import MST
from deniable.synthesis.mwem import MWEM
from deniable.synthesis.scores import WrongMarginal
from deniable.synthesis.synthetic import SyntheticTable
from deniable.synthesis.table_data import TableMarginals
from deniable.synthesis.workload import Workload
from deniable.tables import PrivateTable, read_keys

METHODS = ("aim", "mst", "mwem", "fixed", "independent")
_FOUND = Fraction(1, 20)


def synthesize(
    session: Session,
    table: str,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    method: str = "aim",
    columns: Sequence[str] | None = None,
    bins: Mapping[str, Bins] | None = None,
    keys: Mapping[str, Sequence[Any]] | None = None,
    missing: Sequence[str] = (),
    discover: Sequence[str] = (),
    workload: int | Iterable[Sequence[str]] = 2,
    max_megabytes: Number = 1,
    max_rows: int | None = None,
    journal: str | Path | None = None,
    progress: Progress = silent,
) -> SyntheticTable:
    """A synthetic table with about the marginals of a private one.

    Formal guarantee. The whole synthesis costs its `epsilon` or `rho`, as a question in SQL would,
    reserved before anything is read; it is private for the units of the table, with all their rows
    (`Draws`). Domain, bins and workload are declared; the number of rows is estimated, not read.
    The same synthesis again is free: it is made of the measurements in the ledger.

    Args:
        session: where the table and its budget are.
        table: its name.
        epsilon: the price; or `rho`.
        rho: the price under a budget without δ.
        method: "aim", "mst", "mwem" (all records must fit into memory), "fixed" (measures the
            workload) or "independent".
        columns: which columns; all but the unit unless said.
        bins: a number of bins for numeric columns (16 unless said), or edges, also of dates.
        keys: declared values of columns, beside those of the table; None means missing.
        missing: columns in which missing is a value of its own. Rows without a value in another
            column, or with one that is not declared, are counted nowhere.
        discover: text columns whose values are found privately, each for a twentieth of the price.
        workload: the number of columns of marginals that matter, or a list of them.
        max_megabytes: how large a model may become.
        max_rows: how many rows of one unit count, where the table does not say.
        journal: a file that keeps what was drawn; an interrupted run goes on from it.
        progress: told the part that is done.
    """
    parts = session.parts
    owner = _private(parts, table)
    amount = amount_of(parts.budget, epsilon=epsilon, rho=rho)
    if discover and journal is not None:
        raise ParameterError("journal", str(journal), "goes without discover=; declare keys=")
    declared = {name: read_keys(values) for name, values in (keys or {}).items()}
    given: _Declared = {"columns": columns, "bins": bins or {}, "missing": missing}
    schema = parts.catalogue.schemas[table.lower()]
    # What is wrong with the other columns is told before values are bought.
    codings(owner, schema, keys=declared | dict.fromkeys(discover, ("?",)), **given)
    receipt: list[tuple[str, Price]] = []
    share = on_grid_below(amount * _FOUND)
    for name in discover:
        declared[name], paid = _found(session, table, name, share)
        receipt.append((f"values of {name}", paid))
        amount -= share
    coded = codings(owner, schema, keys=declared, **given)
    domain = Domain({each.name: each.size for each in coded})
    wanted = _workload(domain, workload)
    chosen = _method(method, wanted, max_megabytes)
    run = _Run(parts, table.lower(), owner, coded, domain, on_grid_below(amount), max_rows)
    chosen.check(domain)
    run.check(wanted)
    made = run.synthesized(chosen, method, wanted, journal, progress)
    return replace(made, receipt=(*receipt, *made.receipt))


class _Declared(TypedDict):
    columns: Sequence[str] | None
    bins: Mapping[str, Bins]
    missing: Sequence[str]


@dataclass(frozen=True)
class _Run:
    """One synthesis: its table, its domain and its price."""

    parts: Parts
    table: str
    owner: PrivateTable
    coded: tuple[Coding, ...]
    domain: Domain
    amount: Fraction
    max_rows: int | None

    @property
    def pure(self) -> bool:
        return isinstance(self.parts.budget.guarantee, PureDP)

    def data(self, snapshot: LazySnapshot) -> TableMarginals:
        return TableMarginals(
            self.parts.catalogue, snapshot, self.table, self.coded, self.max_rows, self.domain
        )

    def check(self, wanted: Workload) -> None:
        """Refuse, before anything is spent, what could only fail or teach nothing."""
        with LazySnapshot(self.parts.engine) as snapshot:  # none is taken: nothing is run
            data = self.data(snapshot)
            data.check(self.parts.engine, [(), wanted.cliques[0]])
            size = self.owner.size
            if size is None:
                return
            each = self.amount / len(self.domain)
            noise = Draws(None, data, self.amount, pure=self.pure).deviation(each)
        if 3 * noise > size:
            raise ParameterError(
                "epsilon",
                float(self.amount),
                f"is too small: the noise on one count, ±{3 * noise:,.0f}, is above the declared "
                f"size of {size:,}; pay more, or take fewer columns. Nothing was spent",
            )

    def synthesized(
        self,
        method: Method,
        name: str,
        wanted: Workload,
        path: str | Path | None,
        progress: Progress,
    ) -> SyntheticTable:
        with LazySnapshot(self.parts.engine) as snapshot:
            data = self.data(snapshot)
            loss = reserved_loss(self.amount, pure=self.pure, relation=data.relation)
            gate = Gate(self.parts.ledger, self.owner.population, self.parts.who)
            question = self._question(repr(method), wanted)
            door, kept = _door(gate, loss, question, path)
            draws = Draws(door, data, self.amount, pure=self.pure, journal=kept)
            if door is None:
                model = method.run(draws, progress)
            elif path is None:
                with door:
                    model = method.run(draws, progress)
                    draws.close({"drawn": list(draws.journal.entries)})
            else:
                model = method.run(draws, progress)
                draws.close({"drawn": list(draws.journal.entries)})
        progress(1.0)
        return SyntheticTable(
            self.coded, model, tuple(draws.measurements), name, (("marginals", loss.price),)
        )

    def _question(self, method: str, wanted: Workload) -> dict[str, object]:
        """All that the answer depends on, but the data and the price."""
        return {
            "synthesis": method,
            "workload": [[list(clique) for clique in wanted.cliques], list(wanted.weights)],
            "columns": [each.sql() for each in self.coded],
            "max_rows": self.max_rows,
            "table": self.table,
            "tables": {self.table: self.owner.describe()},
        }


def _door(
    gate: Gate, loss: Loss, question: Mapping[str, object], path: str | Path | None
) -> tuple[Door | None, Journal]:
    """A door and what was drawn from it: newly opened, resumed, or only the recorded answer."""
    if path is not None and Path(path).exists() and (entries := Journal(path).entries):
        begun = list(entries[0]["draw"])
        if begun[0] != "open" or begun[2:] != [_digest(loss, question)]:
            raise ParameterError(
                "journal", str(path), "was begun with another synthesis, price or version"
            )
        return gate.resume(int(begun[1])), _Tail(path)
    opened = gate.open(loss, purpose="synthesis", question=question, resumable=path is not None)
    if isinstance(opened, Answer):
        assert isinstance(opened.value, dict)
        return None, _Known(opened.value["drawn"])
    if path is None:
        return opened, Journal()
    begun = ["open", opened.number, _digest(loss, question)]
    Journal(path).append({"draw": begun, "price": "0"})
    return opened, _Tail(path)


def _digest(loss: Loss, question: Mapping[str, object]) -> str:
    text = json.dumps([loss_to_json(loss), question], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class _Tail(Journal):
    """A journal in a file, without the line that says which door it belongs to."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was drawn."""
        return super().entries[1:]


class _Known(Journal):
    """A recorded answer."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__()
        self._entries = list(entries)


def evaluate(
    session: Session,
    table: str,
    synthetic: SyntheticTable,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    max_rows: int | None = None,
) -> dict[int, float]:
    """The mean total variation of all 1-, 2- and 3-way marginals from the private ones, noisy.

    This is private evaluation: it costs its price, a third for each number of columns.
    """
    parts = session.parts
    owner = _private(parts, table)
    amount = on_grid_below(amount_of(parts.budget, epsilon=epsilon, rho=rho))
    domain = synthetic.model.domain
    run = _Run(parts, table.lower(), owner, synthetic.codings, domain, amount, max_rows)
    found = {}
    with LazySnapshot(parts.engine) as snapshot:
        data = run.data(snapshot)
        loss = reserved_loss(amount, pure=run.pure, relation=data.relation)
        door = Gate(parts.ledger, owner.population, parts.who).open(
            loss, purpose="synthesis: private evaluation"
        )
        assert isinstance(door, Door)
        with door:
            draws = Draws(door, data, amount, pure=run.pure)
            ways = range(1, min(3, len(domain)) + 1)
            for way in ways:
                cliques: list[Clique] = list(combinations(domain.columns, way))
                wrong = WrongMarginal(
                    cliques,
                    [synthetic.model.marginal(clique) for clique in cliques],
                    [1] * len(cliques),
                    [0.0] * len(cliques),
                )
                error = draws.error_of(wrong, amount / len(ways))
                rows = max(1.0, synthetic.model.total)
                found[way] = float(np.clip(error / rows / 2, 0.0, 1.0))
            draws.close({str(way): value for way, value in found.items()})
    return found


def _private(parts: Parts, table: str) -> PrivateTable:
    owner = parts.catalogue.private.get(str(table).lower())
    if owner is None:
        listed = ", ".join(parts.catalogue.private)
        raise ParameterError("table", table, f"the private tables of the session are {listed}")
    return owner


def _found(
    session: Session, table: str, name: str, share: Fraction
) -> tuple[tuple[Any, ...], Price]:
    """The values of a column that many units have, chosen privately by a question of its own."""
    schema = session.parts.catalogue.schemas[table.lower()]
    column = schema.find(name)
    quoted = '"' + column.replace('"', '""') + '"'
    text = f'SELECT {quoted} AS value, COUNT(*) AS n FROM "{table}" GROUP BY {quoted}'  # noqa: S608
    answer = session.sql(text, rho=share)
    values = [value for value in answer.to_arrow().column("value").to_pylist() if value is not None]
    if not values:
        raise ParameterError("discover", name, "no value was found that enough units share")
    return read_keys(values), answer.cost


def _workload(domain: Domain, given: int | Iterable[Sequence[str]]) -> Workload:
    if isinstance(given, int):
        return Workload.all_of(domain, whole(given, "workload"))
    return Workload(domain, given)


def _method(name: str, workload: Workload, max_megabytes: Number) -> Method:
    size = positive(max_megabytes, "max_megabytes")
    match name:
        case "aim":
            return AIM(workload=workload, max_megabytes=size)
        case "mst":
            return MST()
        case "mwem":
            return MWEM(workload=workload)
        case "fixed":
            return FixedMarginals(workload=workload, max_megabytes=size)
        case "independent":
            return Independent()
    if not isinstance(name, str):
        raise ParameterTypeError("method", type(name).__name__, "must be text")
    raise ParameterError("method", name, f"must be one of {', '.join(METHODS)}")
