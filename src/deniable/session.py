"""A session: tables, a budget, a ledger, and questions that are answered through the gate."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from deniable.answer import Answer
from deniable.closed import read_mapping, read_text
from deniable.engines import faults
from deniable.engines.base import Engine, Served
from deniable.engines.duckdb import DuckDB
from deniable.engines.versions import check_version
from deniable.errors import EngineError, ParameterError, ParameterTypeError, PrivateValueError
from deniable.held import opened
from deniable.ledger.filters import Budget, read_budget
from deniable.ledger.ledger import Ledger
from deniable.ledger.reservation import Balance
from deniable.metadata import fitted
from deniable.privacy.exact import Number, whole
from deniable.privacy.guarantees import Guarantee
from deniable.privacy.losses.base import Loss
from deniable.query.plan.planner import Planner
from deniable.query.read.build import Question, Spend
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.fan import Counts
from deniable.query.read.resolve import parse
from deniable.query.run.answering import Answering
from deniable.query.run.changes import MESSAGE, Changes
from deniable.query.show.explain import Explanation
from deniable.shield import shielded
from deniable.tables import PrivateTable, PublicTable, read_column_bounds, read_keys, read_table

Table = PrivateTable | PublicTable
NEW = "new"  # keys are selected again


@dataclass(frozen=True)
class Parts:
    """What a session is made of, for what is built above it: everything still passes the gate."""

    catalogue: Catalogue
    engine: Engine
    ledger: Ledger
    budget: Budget
    who: str
    allow_real_arithmetic: bool
    counts: Counts
    """What was counted of public tables, to be confirmed where rows are read."""


class Session:
    """Private tables opened to questions, under one budget for each of their populations.

    Every question passes the gate: its price is reserved in the ledger first, then the engine
    counts, then noise is added; nothing else reads the tables. The same question again is answered
    from the ledger, for free. A version of DuckDB that was not tried on hostile rows is refused
    unless `untested_engine` is said. Fits whose noise is private in real arithmetic only are taken
    where the owner says `allow_real_arithmetic`: their last bits may tell more than is charged.
    """

    @shielded
    def __init__(
        self,
        tables: Mapping[str, Table],
        *,
        budget: Guarantee | Budget,
        ledger: Ledger | str | Path,
        who: str = "analyst",
        untested_engine: bool = False,
        allow_real_arithmetic: bool = False,
    ) -> None:
        self._budget = read_budget(budget, "must be a guarantee, such as dp.ApproxDP(3.0, 1e-6)")
        self._tables = _read_tables(tables)
        self._who = read_text(who, "who")
        self._allow_real_arithmetic = allow_real_arithmetic is True
        self._own_ledger = not isinstance(ledger, Ledger)
        self._is_closed = False
        private = {n: t for n, t in self._tables.items() if isinstance(t, PrivateTable)}
        if not private:
            raise ParameterError("tables", "none private", "a session needs a PrivateTable")
        for table in private.values():
            if table.relation != self._budget.relation:
                raise ParameterError(
                    "budget",
                    str(self._budget.relation),
                    f"a table is protected under '{table.relation}'; give "
                    f"dp.Budget(..., relation='{table.relation}')",
                )
        self._engine = _engine_of(self._tables.values(), untested=untested_engine)
        try:
            schemas = {
                n: self._engine.add(
                    n, opened(t.source), t.columns, _unit_of(t), row_by_row=t.row_by_row
                )
                for n, t in self._tables.items()
            }
            private = {name: fitted(table, schemas[name]) for name, table in private.items()}
            public = {n: t for n, t in self._tables.items() if isinstance(t, PublicTable)}
            self._counts = Counts(self._engine, frozenset(public))
            self._catalogue = Catalogue(schemas, private, self._counts, public)
            self._ledger = _read_ledger(ledger)
            sources = {name: table.source for name, table in self._tables.items()}
            self._changes = Changes(sources, self._ledger)
            for population in {table.population for table in private.values()}:
                self._ledger.open(population, self._budget, who=who)
        except BaseException:
            self._engine.close()
            raise

    def __repr__(self) -> str:
        listed = ", ".join(
            f"{name} ({'private' if isinstance(table, PrivateTable) else 'public'}, "
            f"{len(self._catalogue.schemas[name].columns)} columns)"
            for name, table in self._tables.items()
        )
        return f"Session({listed}, budget={self._budget!r})"

    def __reduce__(self) -> NoReturn:
        raise PrivateValueError("a session is not copied or pickled: open one where it is needed")

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the engine, and of the ledger if the session opened it; nothing is answered."""
        self._is_closed = True
        self._engine.close()
        if self._own_ledger:
            self._ledger.close()

    def sql(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        guarantee: Guarantee | None = None,
        error: Mapping[str, Number] | None = None,
        keys: Mapping[str, Any] | str | None = None,
        bounds: Mapping[str, tuple[Number, Number]] | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        profile: bool = False,
    ) -> Answer:
        """Answer a SELECT privately, for a price or for an error.

        `keys="new"` selects groups again; `profile=True` estimates what one person adds, whatever
        was declared, and with it where the truth lies.
        """
        options = _options(keys, bounds, max_rows, max_groups, profile=profile)
        return self._ask_tree(parse(question), options, Spend(epsilon, rho, guarantee, error))

    @shielded
    def unpaid(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        guarantee: Guarantee | None = None,
        keys: Mapping[str, Any] | None = None,
    ) -> tuple[Loss, ...]:
        """What a question would be charged; nothing where it was answered before at this price."""
        options = _options(keys, None, None, None)
        return self._answering.unpaid(parse(question), options, Spend(epsilon, rho, guarantee))

    @property
    def parts(self) -> Parts:
        """Catalogue, engine, ledger, budget and analyst, for synthesis and learning."""
        if self._is_closed:
            raise EngineError(faults.CLOSED)
        return Parts(
            self._catalogue,
            self._engine,
            self._ledger,
            self._budget,
            self._who,
            self._allow_real_arithmetic,
            self._counts,
        )

    def cancel(self) -> None:
        """End the question that another thread is asking. What was charged stays charged."""
        self._engine.cancel()

    def explain(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        guarantee: Guarantee | None = None,
        error: Mapping[str, Number] | None = None,
        keys: Mapping[str, Any] | str | None = None,
        bounds: Mapping[str, tuple[Number, Number]] | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        profile: bool = False,
    ) -> Explanation:
        """What a question would cost and how wrong it would be; reads nothing private."""
        options = _options(keys, bounds, max_rows, max_groups, profile=profile)
        return self._explain_tree(parse(question), options, Spend(epsilon, rho, guarantee, error))

    def table(self, name: str) -> Question:
        """Start a question step by step: `.group_by("ward").agg(n=dp.count()).release(...)`."""
        if read_text(name, "table").lower() not in self._tables:
            raise ParameterError("table", name, f"the session has {', '.join(self._tables)}")
        return Question(name, self._ask_tree, self._explain_tree)

    def _ask_tree(self, tree: Any, options: Options, spend: Spend) -> Answer:
        answer = self._answer(tree, options, spend)
        # Out here, where a warning that is made an error is told as what it is.
        for name in self._changes.told():
            warnings.warn(MESSAGE.format(name), stacklevel=3)
        return answer

    @shielded
    def _answer(self, tree: Any, options: Options, spend: Spend) -> Answer:
        return self._answering.answer(tree, options, spend)

    @shielded
    def _explain_tree(self, tree: Any, options: Options, spend: Spend) -> Explanation:
        return self._answering.explain(tree, options, spend)

    @property
    def _answering(self) -> Answering:
        parts = self.parts
        planner = Planner(parts.catalogue, parts.engine, parts.budget)
        return Answering(planner, parts.ledger, parts.who, parts.counts, self._changes)

    @property
    def remaining(self) -> dict[str, Balance]:
        """What is left, by population; with the largest ε that one more question may cost."""
        return {name: self._ledger.balance(name) for name in self._populations()}

    @property
    def spent(self) -> dict[str, float]:
        """The ε that was spent so far, by population."""
        return {name: self._ledger.balance(name).spent for name in self._populations()}

    @property
    def history(self) -> dict[str, list[Any]]:
        """The ledger's entries, by population."""
        return {name: list(self._ledger.history(name)) for name in self._populations()}

    def _populations(self) -> list[str]:
        return sorted({table.population for table in self._catalogue.private.values()})


def _unit_of(table: Table) -> str | None:
    """The column that says whose row it is, if one does."""
    return table.unit if isinstance(table, PrivateTable) and isinstance(table.unit, str) else None


def _engine_of(tables: Iterable[Table], *, untested: bool) -> Engine:
    """The engine where the tables are; DuckDB reads files and tables in memory."""
    served = [table.source for table in tables if isinstance(table.source, Served)]
    if served:
        return served[0].engine()
    if not untested:
        check_version()
    return DuckDB()


def _options(
    keys: Mapping[str, Any] | str | None,
    bounds: Mapping[str, tuple[Number, Number]] | None,
    max_rows: int | None,
    max_groups: int | None,
    *,
    profile: bool = False,
) -> Options:
    new_keys = type(keys) is str and keys == NEW
    known, ends = (
        read_mapping({} if given is None else given, argument, "must map columns to values")
        for argument, given in (("keys", None if new_keys else keys), ("bounds", bounds))
    )
    return Options(
        bounds={name.lower(): read_column_bounds(pair) for name, pair in ends.items()},
        keys={name.lower(): read_keys(values) for name, values in known.items()},
        max_rows=None if max_rows is None else whole(max_rows, "max_rows"),
        max_groups=None if max_groups is None else whole(max_groups, "max_groups"),
        new_keys=new_keys,
        profile=profile is True,
    )


def _read_tables(tables: Mapping[str, Table]) -> dict[str, Table]:
    given: object = tables
    if not (isinstance(given, Mapping) and given):
        raise ParameterTypeError("tables", type(tables).__name__, "must map names to tables")
    found: dict[str, Table] = {}
    for name, table in tables.items():
        named: object = name
        word = type(named) is str and name.isidentifier()
        if not word or name.lower().startswith("deniable_"):
            raise ParameterError("tables", name, "names of tables are words: letters, digits and _")
        found[name.lower()] = read_table(table, "must be dp.PrivateTable or dp.PublicTable")
    return found


def _read_ledger(ledger: Ledger | str | Path) -> Ledger:
    if type(ledger) is Ledger:
        return ledger
    if type(ledger) is str or isinstance(ledger, Path):
        return Ledger(ledger)
    raise ParameterTypeError(
        "ledger", type(ledger).__name__, "must be a path, a URL, or dp.Ledger(); none is no ledger"
    )
