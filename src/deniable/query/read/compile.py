"""From a question to its plan: clauses are checked one by one, the rest is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlglot import exp

from deniable.engines.leaves import MOST_BYTES
from deniable.engines.trees import named
from deniable.errors import DeniableError, ParameterError, QueryError
from deniable.query.plan.moments import Centres
from deniable.query.plan.outer import plan_of, text_of
from deniable.query.plan.plan import Plan
from deniable.query.plan.reach import Reaches
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.columns import UNIT, Column, Kept, Resolve, RowSet, no_unit, resolver
from deniable.query.read.excluded import narrowed
from deniable.query.read.expressions import find_bounds, known_values, places_of
from deniable.query.read.fan import first_rows
from deniable.query.read.grouping import Set, grouped_by
from deniable.query.read.per_unit import UnitRows, placed, places_in, public_aggregate, window
from deniable.query.read.released import bare, check_public, over_released
from deniable.query.read.resolve import TOO_DEEP, Resolved, parse, resolved
from deniable.query.read.sources import Named, Released, Sources, read_sources, union
from deniable.query.read.values.operators import (
    condition,
    constants_of,
    is_veiled,
    read_column,
)
from deniable.query.read.values.value import finished
from deniable.tables import nearest

_REFUSED = {
    "qualify": "QUALIFY is not answered; filter in an outer SELECT",
    "windows": "WINDOW is not answered; write the window in place",
    "laterals": "LATERAL is not answered; join a table instead",
    "sample": "USING SAMPLE is not answered: sampling of people is not a public fact",
    "pivots": "PIVOT is not answered; group by the column instead",
    "into": "SELECT INTO is not answered",
    "locks": "locks are not answered",
    "connect": "CONNECT BY is not answered",
    "match": "MATCH_RECOGNIZE is not answered",
}
_MOST_NODES = 20_000
_MOST_PLANS = 64  # kept in a session


@dataclass(frozen=True)
class Selected:
    """Private rows that were asked for, every name resolved."""

    relation: RowSet
    """The rows, and whose they are."""
    names: Mapping[str, str]
    """Its columns in small letters, and as they were typed or declared."""
    text: str = ""
    """The SELECT with all names resolved; empty for all rows of one table."""
    constants: tuple[Any, ...] = ()
    """The public values in it, to be tried."""
    veiled: bool = False
    """Whether an engine must not choose functions by statistics of columns."""

    def one_row(self) -> Selected:
        """Of each unit its first row, in the order of all columns."""
        if self.relation.single:
            return self
        return replace(self, relation=_one_row(first_rows(self.relation, 1)))


def compile_sql(text: str, catalogue: Catalogue, options: Options) -> Plan:
    """The plan of a question in SQL."""
    return compile_resolved(resolved(parse(text), catalogue), catalogue, options)


def compile_resolved(asked: Resolved, catalogue: Catalogue, options: Options) -> Plan:
    """The plan of a question; made once where no public table can grow in between."""
    public = catalogue.private.keys() != catalogue.schemas.keys()
    plans = {} if public else catalogue.plans
    known_by = (asked.text, asked.typed, repr(options))
    plan = plans.get(known_by)
    if plan is None:
        if len(plans) >= _MOST_PLANS:
            plans.clear()
        plan = plans[known_by] = _planned(asked, catalogue, options)
    assert isinstance(plan, Plan)
    return plan


def _planned(asked: Resolved, catalogue: Catalogue, options: Options) -> Plan:
    named = asked.tree.copy()
    found = _compiled(named, catalogue, options)
    if isinstance(found, RowSet):
        if not found.private:
            raise QueryError("the question names no private table; ask the public one directly")
        if named.args.get("group"):
            raise QueryError(
                "rows of private tables are not shown, and each of these groups would be of one "
                "person; ask for aggregates of them: SELECT AVG(n) AS mean FROM (SELECT ..., "
                "COUNT(*) AS n ... GROUP BY ...) AS each"
            )
        raise QueryError(
            "rows of private tables are not shown; ask for aggregates: COUNT, SUM, AVG ... with "
            "GROUP BY"
        )
    assert isinstance(found.plan, Plan)
    _check_options(named, catalogue, options)
    shown, tables = found.plan.shown, found.plan.tables
    outputs = zip(shown.outputs, asked.typed, strict=True)
    plan = replace(
        found.plan,
        text=asked.text,
        shown=replace(
            shown,
            outputs=tuple(replace(output, name=name) for output, name in outputs),
            notes=(*shown.notes, *catalogue.notes(tables)),
        ),
        resources=replace(
            found.plan.resources,
            constants=constants_of(named),
            veiled=is_veiled(named, catalogue.numeric_columns),
            promised=all(catalogue.private[name].most_rows is not None for name in tables),
        ),
        again=partial(_again, asked, catalogue, options),
    )
    plan.check_sizes()
    return plan


def _again(
    asked: Resolved, catalogue: Catalogue, options: Options, centres: Centres, reaches: Reaches
) -> Plan:
    """The plan with what was found of columns; centred as it was where that is too wide."""
    known = replace(options, reaches=reaches)
    try:
        return compile_resolved(asked, catalogue, replace(known, centres=centres))
    except QueryError:
        return compile_resolved(asked, catalogue, known)


def compile_rows(tree: exp.Expr, catalogue: Catalogue) -> Selected:
    """The rows of a SELECT, for what sums them itself: they are shown to nobody."""
    asked = resolved(tree, catalogue, stars=True)
    found = _compiled(asked.tree, catalogue, Options())
    if isinstance(found, Released):
        raise QueryError(
            "rows are learned from, not aggregates: SELECT columns, or GROUP BY the unit to make "
            "one row of each unit's"
        )
    if not found.private:
        raise QueryError("the SELECT names no private table; learn from public rows directly")
    catalogue.neighbours(found.tables)
    return Selected(
        found,
        dict(zip(found.columns, asked.typed, strict=True)),
        text=asked.text,
        constants=constants_of(asked.tree),
        veiled=is_veiled(asked.tree, catalogue.numeric_columns),
    )


def table_rows(name: str, catalogue: Catalogue) -> Selected:
    """All rows of a private table."""
    names = {column.lower(): column for column in catalogue.schemas[name].columns}
    return Selected(catalogue.relation(name, Options()), names)


def _compiled(named: exp.Expr, catalogue: Catalogue, options: Options) -> RowSet | Released:
    try:
        return _Compiler(catalogue, options).compile(named, {})
    except DeniableError:
        raise
    except RecursionError:
        raise QueryError(TOO_DEEP) from None
    except Exception:  # whatever is not understood is refused, not answered
        raise QueryError("the question is not understood; write it in simpler steps") from None


def _check_options(tree: exp.Expr, catalogue: Catalogue, options: Options) -> None:
    """Refuse declarations about names that the question does not have."""
    known = {e.alias_or_name for s in tree.find_all(exp.Select) for e in s.expressions}
    known |= {column.name for column in tree.find_all(exp.Column)}
    known |= {name.lower() for schema in catalogue.schemas.values() for name in schema.columns}
    for argument, given in (("keys", options.keys), ("bounds", options.bounds)):
        for name in given:
            if name not in known:
                raise ParameterError(argument, name, f"no such column; {nearest(name, known)}")


@dataclass
class _Compiler:
    catalogue: Catalogue
    options: Options

    def compile(self, node: exp.Expr, named: Named) -> RowSet | Released:
        """Any relation: a table, a common table expression, a SELECT or a union."""
        if isinstance(node, exp.Table):
            known = named.get(node.name)
            return self.catalogue.relation(node.name, self.options) if known is None else known
        if isinstance(node, exp.Subquery):
            return self.compile(node.this, named)
        inside = dict(named)
        with_ = node.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise QueryError("WITH RECURSIVE is not answered")
            for cte in with_.expressions:
                inside[cte.alias_or_name] = self.compile(cte.this, inside)
        made = self._select(node, inside) if isinstance(node, exp.Select) else None
        made = made or union(node, inside, self.compile)
        if isinstance(made, RowSet) and sum(1 for _ in made.sql.walk()) > _MOST_NODES:
            raise QueryError("the question is too long once its parts are put in; ask several")
        return made

    def _select(self, select: exp.Select, named: Named) -> RowSet | Released:
        for clause, sentence in _REFUSED.items():
            if select.args.get(clause):
                raise QueryError(sentence)
        lower = [each.alias_or_name.lower() for each in select.expressions]
        if len(set(lower)) != len(lower):
            raise QueryError("two columns of one SELECT have one name; name them apart with AS")
        read = read_sources(select, named, self.compile, self.catalogue.count)
        if isinstance(read, Released):
            return over_released(select, read)
        find = resolver(read.columns)
        where = select.args.get("where")
        if where is not None:
            kept = condition(where.this, find, "WHERE")
            no_unit(where.this, find, "WHERE")
            narrower = narrowed(read.columns, where.this)
            read = replace(read, sql=read.sql.where(kept), columns=narrower)
            find = resolver(read.columns)
        groups, sets = self._groups(select)
        found = [n for each in select.expressions for n in each.find_all(exp.AggFunc)]
        aggregates = [node for node in found if node.find_ancestor(exp.Window) is None]
        if not read.merged.private:
            return self._public(select, read)
        if not groups and not aggregates and not select.args.get("having"):
            return self._rows(select, read, find)
        if any(isinstance(g, exp.Column) and find(g).is_unit for g in groups):
            _only_one(sets)
            return self._per_unit(select, read, find, groups)
        return Released(
            plan_of(select, read, find, (groups, sets), self.options),
            tuple(e.alias for e in select.expressions),
        )

    def _groups(self, select: exp.Select) -> tuple[list[exp.Expr], list[Set]]:
        """What is grouped by, and the groupings."""
        group = select.args.get("group")
        if group is None:
            return [], [()]
        if group.args.get("all"):
            keys = [e for e in select.expressions if next(e.find_all(exp.AggFunc), None) is None]
            group = exp.Group(expressions=[bare(key).copy() for key in keys])
        return grouped_by(group, text_of)

    def _public(self, select: exp.Select, read: Sources) -> RowSet:
        """A SELECT of public tables is run as it stands, if it is the same each time."""
        made = select.copy()
        made.set("from_", read.sql.args["from_"])
        made.set("joins", read.sql.args.get("joins"))
        made.set("with_", None)
        for expression in select.expressions:
            check_public(expression)
        for clause in ("where", "group", "having", "order", "distinct", "limit", "offset"):
            given = select.args.get(clause)
            for each in [] if given is None else given.iter_expressions():
                check_public(each)
        for clause in ("limit", "offset"):
            if select.args.get(clause):
                raise QueryError(f"{clause.upper()} of public rows is not answered; use WHERE")
        find = resolver(read.columns)
        columns = {}
        for projection, copied in zip(select.expressions, made.expressions, strict=True):
            node, name = bare(projection), projection.alias
            # A fault of a public row must not show whether a private one met it.
            if isinstance(node, exp.AggFunc):
                value = public_aggregate(node, find)
            else:
                value = read_column(node, find, "SELECT")
            columns[name] = self.options.applied(name, Column(value.kind))
            copied.replace(exp.alias_(finished(value), name, quoted=True))
        groups, sets = self._groups(select)
        _only_one(sets)
        if not all(isinstance(group, exp.Column) for group in groups):
            raise QueryError("public tables are grouped by bare columns")
        where = made.args.get("where")
        if where is not None:
            made.set("where", exp.Where(this=condition(where.this, find, "WHERE")))
        if made.args.get("having") or made.args.get("order"):
            raise QueryError("HAVING and ORDER BY of public tables are not answered")
        return RowSet(made, columns)

    def _rows(self, select: exp.Select, read: Sources, find: Resolve) -> RowSet:
        """Rows made of rows: every one still belongs to its unit."""
        for clause in ("order", "limit", "offset"):
            if select.args.get(clause):
                raise QueryError(
                    f"{clause.upper()} of private rows is not answered: which rows are kept would "
                    "depend on other people's"
                )
        made, columns = dict[str, exp.Expr](), {}
        whose = False
        simple = read.merged.simple and next(select.find_all(exp.Window), None) is None
        for projection in select.expressions:
            name, node = projection.alias, bare(projection)
            made[name], column = self._projected(node, read, find)
            whose = whose or column.is_unit
            columns[name] = self.options.applied(name, column)
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise QueryError("DISTINCT ON is not answered; use ROW_NUMBER() by the unit instead")
        if distinct is not None and not whose:
            raise QueryError(
                "SELECT DISTINCT of private rows is not answered; COUNT(DISTINCT ...) is, and "
                "SELECT DISTINCT with the unit column"
            )
        made[UNIT] = read.merged.sql.copy()
        numbered = len(places_in(made.values())) > 1
        sql = read.sql
        if numbered:
            sql, made = placed(read, made)
        for name, each in made.items():
            sql.select(exp.alias_(each, name, quoted=True), copy=False)
        if distinct is not None:
            sql = sql.distinct()
        made_of = replace(read.merged, sql=sql, columns=columns, simple=simple)
        windows = list(select.find_all(exp.Window))
        if windows or distinct is not None:
            # In a window rows are ordered by all columns that are there.
            scope = sum(replace(made_of, columns=known).width for known in read.columns.values())
            width = made_of.width + ((1 + numbered) * scope + _ordered(windows) if windows else 0)
            made_of = replace(made_of, kept=(*made_of.kept, Kept(width, made_of.growth)))
        if distinct is not None and all(column.is_unit for column in columns.values()):
            return _one_row(made_of)
        return made_of

    def _projected(self, node: exp.Expr, read: Sources, find: Resolve) -> tuple[exp.Expr, Column]:
        if isinstance(node, exp.Column):
            return node.copy(), find(node)
        if isinstance(node, exp.Window):
            return window(node, find, read.columns, read.merged.sql)
        no_unit(node, find, "SELECT")
        value = read_column(node, find, "SELECT")
        known = Column(
            value.kind,
            bounds=find_bounds(node, find),
            keys=known_values(node, find),
            private=True,
            places=places_of(node, find),
        )
        return finished(value), known

    def _per_unit(
        self, select: exp.Select, read: Sources, find: Resolve, groups: list[exp.Expr]
    ) -> RowSet:
        """GROUP BY the unit: rows of its own for each unit.

        Aggregates are made in an inner SELECT, what is computed from them in an outer one, where it
        can be guarded like any other expression.
        """
        for clause in ("order", "limit", "offset", "distinct"):
            if select.args.get(clause):
                raise QueryError(f"{clause.upper()} in a SELECT by unit is not answered")
        made = UnitRows(read, find)
        for group in groups:
            made.add_key(group, self._projected(group, read, find))
        columns = {}
        outer = exp.Select()
        for projection in select.expressions:
            name = projection.alias
            sql, column = made.expression(bare(projection), "SELECT")
            columns[name] = self.options.applied(name, column)
            outer = outer.select(exp.alias_(sql, name, quoted=True))
        outer = outer.select(exp.alias_(exp.column(UNIT, quoted=True), UNIT, quoted=True))
        having = select.args.get("having")
        if having is not None:
            outer = outer.where(made.condition(having.this, "HAVING"))
        alone = all(isinstance(each, exp.Column) and find(each).is_unit for each in groups)
        merged = read.merged
        kept = (*merged.kept, Kept(merged.unit_width + made.width, merged.growth))
        found = replace(
            merged,
            sql=outer.from_(named(made.select(), "by_unit")),
            columns=columns,
            simple=False,
            kept=kept,
        )
        return _one_row(found) if alone else found


def _ordered(windows: list[exp.Window]) -> int:
    """Bytes of what windows compute to split and to order rows by, at the worst."""
    keys = [key for each in windows for key in each.args.get("partition_by") or []]
    orders = [each.args.get("order") for each in windows]
    keys += [key.this for order in orders if order is not None for key in order.expressions]
    return MOST_BYTES * sum(not isinstance(key, exp.Column) for key in keys)


def _one_row(relation: RowSet) -> RowSet:
    """Rows of which every unit has one at most."""
    return replace(relation, rows=1, single=True, cap=1, fan=1, most=1, growth=1)


def _only_one(sets: list[Set]) -> None:
    if len(sets) > 1:
        raise QueryError("ROLLUP, CUBE and GROUPING SETS are answered in the outer SELECT only")
