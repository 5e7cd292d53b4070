"""A session: tables, a budget, a ledger, and questions that are answered through the gate."""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from deniable.answer import Answer
from deniable.closed import read_mapping, read_text
from deniable.engines import faults
from deniable.engines.base import Engine, LazySnapshot, Served, Step
from deniable.engines.duckdb import DuckDB
from deniable.engines.versions import check_version
from deniable.errors import (
    EngineError,
    ParameterError,
    ParameterTypeError,
    PrivateValueError,
    QueryError,
)
from deniable.held import opened
from deniable.ledger.filters import Budget, read_budget
from deniable.ledger.ledger import Ledger
from deniable.ledger.reservation import Balance
from deniable.privacy.exact import Number, whole
from deniable.privacy.guarantees import ApproxDP, Guarantee
from deniable.privacy.losses.base import Loss
from deniable.query.build import Question, Spend
from deniable.query.catalogue import Catalogue, Options
from deniable.query.columns import UnboundedError
from deniable.query.compile import compile_tree
from deniable.query.drawing import draw
from deniable.query.explain import Explanation, Unknown, explain
from deniable.query.expressions import SUPPOSED
from deniable.query.fan import Counts
from deniable.query.moments import Centres
from deniable.query.plan import Plan
from deniable.query.price import amount_for_error, amount_of, epsilon_of, price
from deniable.query.profile import Asked, Purchase, bounded, buy, placeholder, purchase, rank_of
from deniable.query.ranges import (
    Offered,
    label,
    lacking_bounds,
    price_of_end,
    seen_cells,
    with_bounds,
)
from deniable.query.resolve import parse
from deniable.query.room import check_room
from deniable.query.shape import check_shape
from deniable.query.shown import shown
from deniable.release import Answer as Recorded
from deniable.release import Gate, shielded
from deniable.tables import (
    PrivateTable,
    PublicTable,
    check_metadata,
    label_of,
    read_column_bounds,
    read_keys,
    read_table,
)

Table = PrivateTable | PublicTable


@dataclass(frozen=True)
class Parts:
    """What a session is made of, for what is built above it: everything still passes the gate."""

    catalogue: Catalogue
    engine: Engine
    ledger: Ledger
    budget: Budget
    who: str
    allow_real_arithmetic: bool


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
            for name, table in private.items():
                check_metadata(table, schemas[name])
            public = frozenset(self._tables) - frozenset(private)
            self._counts = Counts(self._engine, public)
            self._catalogue = Catalogue(schemas, private, self._counts)
            self._ledger = _read_ledger(ledger)
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
        error: Mapping[str, Number] | None = None,
        keys: Mapping[str, Any] | None = None,
        bounds: Mapping[str, tuple[Number, Number]] | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
    ) -> Answer:
        """Answer a SELECT privately, for a price or for an error."""
        options = _options(keys, bounds, max_rows, max_groups)
        return self._ask_tree(parse(question), options, Spend(epsilon, rho, error))

    @shielded
    def unpaid(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        keys: Mapping[str, Any] | None = None,
    ) -> tuple[Loss, ...]:
        """What a question would be charged; nothing where it was answered before at this price."""
        options = _options(keys, None, None, None)
        asked = self._asked(parse(question), options, Spend(epsilon, rho, None))
        plan, bought = asked.plan, asked.bought
        if bought is not None:
            found = self._ledger.recorded(plan.population, bought.loss, self._profile(bought))
            if found is None:
                return bought.loss, price(placeholder(plan), self._budget, asked.amount).loss
            assert isinstance(found.value, dict)
            asked = replace(asked, plan=bounded(asked, found.value))
        if self._known(asked) is not None:
            return ()
        return (price(asked.plan, self._budget, asked.amount).loss,)

    @property
    def parts(self) -> Parts:
        """Catalogue, engine, ledger, budget and analyst, for synthesis and learning."""
        self._refuse_if_closed()
        return Parts(
            self._catalogue,
            self._engine,
            self._ledger,
            self._budget,
            self._who,
            self._allow_real_arithmetic,
        )

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise EngineError(faults.CLOSED)

    def cancel(self) -> None:
        """End the question that another thread is asking. What was charged stays charged."""
        self._engine.cancel()

    def explain(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        error: Mapping[str, Number] | None = None,
        keys: Mapping[str, Any] | None = None,
        bounds: Mapping[str, tuple[Number, Number]] | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
    ) -> Explanation:
        """What a question would cost and how wrong it would be; reads nothing private."""
        options = _options(keys, bounds, max_rows, max_groups)
        return self._explain_tree(parse(question), options, Spend(epsilon, rho, error))

    def table(self, name: str) -> Question:
        """Start a question step by step: `.group_by("ward").agg(n=dp.count()).release(...)`."""
        if read_text(name, "table").lower() not in self._tables:
            raise ParameterError("table", name, f"the session has {', '.join(self._tables)}")
        return Question(name, self._ask_tree, self._explain_tree)

    @shielded
    def _ask_tree(self, tree: Any, options: Options, spend: Spend) -> Answer:
        try:
            return self._answer(self._asked(tree, options, spend))
        except UnboundedError:
            offered = self._offered(tree, options, spend)
        known = {each: [*map(self._known, ends)] for each, ends in offered.ends.items()}
        unknown = offered.unknown(known, self._budget)
        if unknown is not None:
            self._afford(offered.main, unknown.loss)
        answers = {each: [self._answer(end) for end in ends] for each, ends in offered.ends.items()}
        ends = [end for each in answers.values() for end in each]
        bounds = {each: each.bounds([*map(seen_cells, found)]) for each, found in answers.items()}
        asked = self._asked(tree, with_bounds(options, bounds), offered.rest)
        answer = self._answer(asked)
        paid = sum((end.cost for end in ends if not end.repeated), answer.cost)
        return replace(
            answer,
            cost=paid,
            repeated=answer.repeated and all(end.repeated for end in ends),
            labels=(label(bounds), *answer.labels),
        )

    @shielded
    def _explain_tree(self, tree: Any, options: Options, spend: Spend) -> Explanation:
        try:
            return self._explanation(self._asked(tree, options, spend))
        except UnboundedError:
            offered = self._offered(tree, options, spend)
        known = {each: [*map(self._known, ends)] for each, ends in offered.ends.items()}
        unknown = offered.unknown(known, self._budget)
        if unknown is not None:
            return self._explanation(offered.main, unknown)
        bounds = {
            each: each.bounds([seen_cells(end) for end in found if end is not None])
            for each, found in known.items()
        }
        return self._explanation(self._asked(tree, with_bounds(options, bounds), offered.rest))

    def _offered(self, tree: Any, options: Options, spend: Spend) -> Offered:
        """A question whose columns lack bounds, and the questions that find those, with prices.

        What is wrong with any of them is found before anything is spent.
        """
        ranges = lacking_bounds(tree, self._catalogue, options)
        if spend.error is not None:
            listed = ", ".join(each.column for each in ranges)
            raise ParameterError("error", "given", f"needs the bounds of {listed}")
        amount = amount_of(self._budget, epsilon=spend.epsilon, rho=spend.rho)
        each = price_of_end(ranges, amount)
        ends = {
            one: [self._asked(question, keys, each) for question, keys in one.questions()]
            for one in ranges
        }
        rest = amount - each * sum(map(len, ends.values()))
        supposed = with_bounds(options, dict.fromkeys(ranges, SUPPOSED))
        return Offered(ends, rest, self._asked(tree, supposed, rest))

    def _known(self, asked: Asked) -> Answer | None:
        """The answer to a question that was asked before, if it was."""
        priced = price(asked.plan, self._budget, asked.amount)
        population, question = asked.plan.population, self._question(asked.plan)
        found = self._ledger.recorded(population, priced.loss, question)
        if found is None:
            return None
        again = Recorded(found.value, priced.loss.price, found.number, found.head, repeated=True)
        return shown(priced, again)

    def _explanation(self, asked: Asked, ranges: Unknown | None = None) -> Explanation:
        size = self._catalogue.private[asked.plan.tables[0]].size
        plan, bought = asked.plan, asked.bought
        unknown = [] if ranges is None else [ranges]
        if bought is not None:
            found = self._ledger.recorded(plan.population, bought.loss, self._profile(bought))
            if found is not None and ranges is None:
                assert isinstance(found.value, dict)
                plan = bounded(asked, found.value)
            else:
                plan = placeholder(plan)
                unknown.append(Unknown(bought.parts, bought.loss))
        priced = price(plan, self._budget, asked.amount)
        return explain(priced, self._budget, self._engine.write, size=size, unknown=unknown)

    def _amount(self, plan: Plan, spend: Spend) -> Fraction:
        error = spend.error
        if error is None:
            return amount_of(self._budget, epsilon=spend.epsilon, rho=spend.rho)
        if spend.epsilon is not None or spend.rho is not None:
            raise ParameterError("error", dict(error), "goes without epsilon= and rho=")
        if plan.buys_rows or plan.buys_groups:
            raise ParameterError(
                "error", dict(error), "needs max_rows=, and max_groups= where groups are selected"
            )
        return amount_for_error(plan, self._budget, error)

    def _asked(self, tree: Any, options: Options, spend: Spend | Fraction) -> Asked:
        """A question with its price; what is wrong with it is found before anything is spent."""
        self._refuse_if_closed()
        plan = compile_tree(tree, self._catalogue, options)
        self._catalogue.neighbours(plan.tables)
        check_shape(plan)
        if all(self._catalogue.private[name].most_rows is not None for name in plan.tables):
            check_room(plan, self._catalogue.private, self._engine.room())
        amount = spend if isinstance(spend, Fraction) else self._amount(plan, spend)
        bought = purchase(plan, self._budget, amount)
        rest = amount if bought is None else amount - bought.noise.amount * len(bought.parts)
        checked = price(placeholder(plan), self._budget, rest)
        steps = tuple(checked.steps("").values())
        self._engine.check(steps if bought is None else [*steps, *bought.steps()])

        def centred(centres: Centres) -> Plan:
            try:
                return compile_tree(tree, self._catalogue, replace(options, centres=centres))
            except QueryError:
                return plan  # too wide, once centred elsewhere

        return Asked(plan, centred, bought, rest, rank_of(plan, self._budget, rest), steps)

    def _answer(self, asked: Asked) -> Answer:
        counts = self._counts.about(asked.steps)
        with LazySnapshot(self._engine, [*counts, *self._reads(asked)]) as snapshot:
            plan, paid = self._bounded(asked, snapshot)
            priced = price(plan, self._budget, asked.amount)
            question = self._question(plan)
            gate = Gate(self._ledger, plan.population, self._who)
            door = gate.open(priced.loss, purpose=_purpose(plan), question=question)
            if isinstance(door, Recorded):
                return shown(priced, door, paid)
            with door:
                self._counts.confirm(counts, snapshot)
                stored = draw(priced, snapshot, door, self._secret(question))
                return shown(priced, door.close(stored), paid)

    def _reads(self, asked: Asked) -> list[Step]:
        """The steps that an answer takes; those of its bounds only if they are not bought yet."""
        if asked.bought is None or self._is_bought(asked.plan, asked.bought):
            return list(asked.steps)
        return [*asked.bought.steps(), *asked.steps]

    def _is_bought(self, plan: Plan, bought: Purchase) -> bool:
        found = self._ledger.recorded(plan.population, bought.loss, self._profile(bought))
        return found is not None

    def _bounded(self, asked: Asked, snapshot: LazySnapshot) -> tuple[Plan, Loss | None]:
        """The plan with all of its bounds, and what those cost now."""
        bought = asked.bought
        if bought is None:
            return asked.plan, None
        if not self._is_bought(asked.plan, bought):
            self._afford(asked)
        gate = Gate(self._ledger, asked.plan.population, self._who)
        door = gate.open(
            bought.loss, purpose="sql: contribution bounds", question=self._profile(bought)
        )
        if isinstance(door, Recorded):
            assert isinstance(door.value, dict)
            return bounded(asked, door.value), None
        with door:
            stored = buy(asked, door, snapshot)
            door.close(stored)
        return bounded(asked, stored), bought.loss

    def _afford(self, asked: Asked, *first: Loss) -> None:
        """Refuse a question whose bounds could be paid, but not the rest."""
        losses = [*first, price(placeholder(asked.plan), self._budget, asked.amount).loss]
        if asked.bought is not None:
            losses.append(asked.bought.loss)
        self._ledger.afford(asked.plan.population, losses, who=self._who)

    def _profile(self, bought: Purchase) -> dict[str, object]:
        """What the bounds of a plan depend on."""
        plan = bought.plan
        return {
            **self._question(plan),
            "sql": plan.source.sql("duckdb"),
            "bought": list(bought.parts),
            "groups": [group.sql.sql("duckdb") for group in plan.groups],
        }

    def _question(self, plan: Plan) -> dict[str, object]:
        """What an answer depends on, beside its price."""
        return {
            "sql": plan.text,
            "rows": [plan.rows, plan.floor, plan.norm, plan.top],
            "max_groups": plan.max_groups,
            **({"left_out": list(plan.left_out)} if plan.left_out else {}),
            "keys": [[repr(key) for key in group.keys or ()] for group in plan.groups],
            "statistics": [s.sql.sql("duckdb") for s in plan.statistics],
            "weights": list(plan.weights) if plan.statistics else [],
            "distinct": [each.sql("duckdb") for each in plan.distinct],
            "ranks": [
                [plan.grids[rank.grid].sql.sql("duckdb"), str(rank.share)] for rank in plan.ranks
            ],
            "tables": {name: self._catalogue.private[name].describe() for name in plan.tables},
            "public": {
                name: [label_of(table.source), table.version]
                for name, table in self._tables.items()
                if isinstance(table, PublicTable)
            },
            "types": {
                name: {column: str(kind) for column, kind in schema.columns.items()}
                for name, schema in self._catalogue.schemas.items()
            },
        }

    def _secret(self, question: Mapping[str, object]) -> str:
        """The key of the hash by which groups of heavy units are kept: secret, and lasting."""
        return hmac.new(self._ledger.key, repr(question).encode(), hashlib.sha256).hexdigest()[:32]

    @property
    def remaining(self) -> dict[str, Balance]:
        """What is left, by population; with the largest ε that one more question may cost."""
        return {name: self._balance(name) for name in self._populations()}

    def _balance(self, name: str) -> Balance:
        """Under an ApproxDP budget questions are priced in ρ: that is where their ε comes from."""
        balance = self._ledger.balance(name)
        left = balance.remaining.get("rho")
        if not isinstance(self._budget.guarantee, ApproxDP) or left is None:
            return balance
        largest = epsilon_of(left, self._budget) if left > 0 else 0.0
        return replace(balance, largest_epsilon=largest)

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


def _purpose(plan: Plan) -> str:
    listed = ", ".join(output.name for output in plan.outputs)
    plain = unicodedata.normalize("NFC", listed)
    return ("sql: " + "".join(char for char in plain if char.isprintable())[:140]).strip()


def _options(
    keys: Mapping[str, Any] | None,
    bounds: Mapping[str, tuple[Number, Number]] | None,
    max_rows: int | None,
    max_groups: int | None,
) -> Options:
    known, ends = (
        read_mapping({} if given is None else given, argument, "must map columns to values")
        for argument, given in (("keys", keys), ("bounds", bounds))
    )
    return Options(
        bounds={name.lower(): read_column_bounds(pair) for name, pair in ends.items()},
        keys={name.lower(): read_keys(values) for name, values in known.items()},
        max_rows=None if max_rows is None else whole(max_rows, "max_rows"),
        max_groups=None if max_groups is None else whole(max_groups, "max_groups"),
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
