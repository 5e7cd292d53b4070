"""From a question to its plan: clauses are checked one by one, the rest is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from deniable.errors import DeniableError, ParameterError, QueryError
from deniable.query.aggregates import Statistics, settle
from deniable.query.catalogue import Catalogue, Options
from deniable.query.checks import Resolve, check, no_unit, resolver
from deniable.query.columns import UNIT, Column, Relation
from deniable.query.expressions import find_bounds, is_integer, known_values, safe, safe_condition
from deniable.query.measures import Measure
from deniable.query.per_unit import UnitRows, window
from deniable.query.plan import Group, Output, Plan
from deniable.query.released import bare, check_public, over_released, whole_number
from deniable.query.resolve import parse, resolved
from deniable.query.sources import Named, Released, Sources, read_sources, union
from deniable.tables import ColumnType, check_keys, nearest

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
_MOST_CELLS = 1_000_000
_MOST_WEIGHTS = 50_000_000
_MOST_NODES = 20_000

Measured = Callable[[exp.Expr], exp.Expr]


def compile_sql(text: str, catalogue: Catalogue, options: Options) -> Plan:
    """The plan of a question in SQL."""
    return compile_tree(parse(text), catalogue, options)


def compile_tree(tree: exp.Expr, catalogue: Catalogue, options: Options) -> Plan:
    """The plan of a parsed question."""
    named = resolved(tree, catalogue)
    try:
        found = _Compiler(catalogue, options).compile(named, {})
    except DeniableError:
        raise
    except RecursionError:
        raise QueryError("the question is nested too deeply; write it in steps") from None
    except Exception:  # whatever is not understood is refused, not answered
        raise QueryError("the question is not understood; write it in simpler steps") from None
    if isinstance(found, Relation):
        if not found.private:
            raise QueryError("the question names no private table; ask the public one directly")
        raise QueryError(
            "rows of private tables are not shown; ask for aggregates: COUNT, SUM, AVG ... with "
            "GROUP BY"
        )
    assert isinstance(found.plan, Plan)
    _check_options(named, catalogue, options)
    plan = replace(found.plan, text=named.sql("duckdb"))
    plan.check_sizes()
    return plan


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

    def compile(self, node: exp.Expr, named: Named) -> Relation | Released:
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
        if isinstance(made, Relation) and sum(1 for _ in made.sql.walk()) > _MOST_NODES:
            raise QueryError("the question is too long once its parts are put in; ask several")
        return made

    def _select(self, select: exp.Select, named: Named) -> Relation | Released:
        for clause, sentence in _REFUSED.items():
            if select.args.get(clause):
                raise QueryError(sentence)
        lower = [each.alias_or_name.lower() for each in select.expressions]
        if len(set(lower)) != len(lower):
            raise QueryError("two columns of one SELECT have one name; name them apart with AS")
        read = read_sources(select, named, self.compile)
        if isinstance(read, Released):
            return over_released(select, read)
        find = resolver(read.columns)
        where = select.args.get("where")
        if where is not None:
            check(where.this, "WHERE")
            no_unit(where.this, find, "WHERE")
            read = replace(read, sql=read.sql.where(safe_condition(where.this)))
        groups = list({_text(group): group for group in self._groups(select)}.values())
        aggregates = [
            n for e in select.expressions for n in e.find_all(exp.AggFunc) if not _windowed(n)
        ]
        if not read.merged.private:
            return self._public(select, read)
        if not groups and not aggregates and not select.args.get("having"):
            return self._rows(select, read, find)
        if any(isinstance(g, exp.Column) and find(g).is_unit for g in groups):
            return self._per_unit(select, read, find, groups)
        return Released(
            self._plan(select, read, find, groups), tuple(e.alias for e in select.expressions)
        )

    def _groups(self, select: exp.Select) -> list[exp.Expr]:
        group = select.args.get("group")
        if group is None:
            return []
        for clause in ("grouping_sets", "rollup", "cube", "totals"):
            if group.args.get(clause):
                raise QueryError(f"{clause.upper()} is not answered; ask for each grouping")
        if group.args.get("all"):
            return [
                bare(e) for e in select.expressions if next(e.find_all(exp.AggFunc), None) is None
            ]
        return list(group.expressions)

    def _public(self, select: exp.Select, read: Sources) -> Relation:
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
            columns[name] = self.options.applied(name, Column(_kind(node, find)))
            if isinstance(node, exp.AggFunc):
                if not isinstance(node.this, exp.Column | exp.Star):
                    raise QueryError("aggregates of public tables are answered of bare columns")
                continue
            check(node, "SELECT")  # a fault of a row must not show whether a private one met it
            copied.replace(exp.alias_(safe(node), name, quoted=True))
        if not all(isinstance(group, exp.Column) for group in self._groups(select)):
            raise QueryError("public tables are grouped by bare columns")
        where = made.args.get("where")
        if where is not None:
            check(where.this, "WHERE")
            made.set("where", exp.Where(this=safe_condition(where.this)))
        if made.args.get("having") or made.args.get("order"):
            raise QueryError("HAVING and ORDER BY of public tables are not answered")
        return Relation(made, columns)

    def _rows(self, select: exp.Select, read: Sources, find: Resolve) -> Relation:
        """Rows made of rows: every one still belongs to its unit."""
        for clause in ("order", "limit", "offset"):
            if select.args.get(clause):
                raise QueryError(
                    f"{clause.upper()} of private rows is not answered: which rows are kept would "
                    "depend on other people's"
                )
        sql, columns = read.sql, {}
        whose = False
        simple = read.merged.simple and next(select.find_all(exp.Window), None) is None
        for projection in select.expressions:
            name, node = projection.alias, bare(projection)
            made, column = self._projected(node, read, find)
            whose = whose or column.is_unit
            columns[name] = self.options.applied(name, column)
            sql = sql.select(exp.alias_(made, name, quoted=True))
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise QueryError("DISTINCT ON is not answered; use ROW_NUMBER() by the unit instead")
        if distinct is not None and not whose:
            raise QueryError(
                "SELECT DISTINCT of private rows is not answered; COUNT(DISTINCT ...) is, and "
                "SELECT DISTINCT with the unit column"
            )
        sql = sql.select(exp.alias_(read.merged.sql.copy(), UNIT, quoted=True))
        if distinct is not None:
            sql = sql.distinct()
        return replace(read.merged, sql=sql, columns=columns, simple=simple)

    def _projected(self, node: exp.Expr, read: Sources, find: Resolve) -> tuple[exp.Expr, Column]:
        if isinstance(node, exp.Column):
            return node.copy(), find(node)
        if isinstance(node, exp.Window):
            return window(node, find, read.columns, read.merged.sql)
        no_unit(node, find, "SELECT")
        check(node, "SELECT")
        return safe(node), self._known(node, find)

    def _known(self, node: exp.Expr, find: Resolve) -> Column:
        return Column(
            _kind(node, find),
            bounds=find_bounds(node, find),
            keys=known_values(node, find),
            private=True,
        )

    def _per_unit(
        self, select: exp.Select, read: Sources, find: Resolve, groups: list[exp.Expr]
    ) -> Relation:
        """GROUP BY the unit: rows of its own for each unit.

        Aggregates are made in an inner SELECT, what is computed from them in an outer one, where it
        can be guarded like any other expression.
        """
        for clause in ("order", "limit", "offset", "distinct"):
            if select.args.get(clause):
                raise QueryError(f"{clause.upper()} in a SELECT by unit is not answered")
        made = UnitRows(read, find)
        for group in groups:
            check(group, "GROUP BY")
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
            kept = made.expression(having.this, "HAVING")[0]
            outer = outer.where(exp.TryCast(this=kept, to=exp.DataType.build("BOOLEAN")))
        inner = exp.Subquery(this=made.select())
        inner.set("alias", exp.TableAlias(this=exp.to_identifier("by_unit", quoted=True)))
        alone = all(self._is_unit(group, find) for group in groups)
        merged = read.merged
        return replace(
            merged,
            sql=outer.from_(inner),
            columns=columns,
            rows=1 if alone else merged.rows,
            single=alone or merged.single,
            simple=False,
        )

    def _is_unit(self, node: exp.Expr, find: Resolve) -> bool:
        return isinstance(node, exp.Column) and find(node).is_unit

    def _plan(
        self, select: exp.Select, read: Sources, find: Resolve, groups: list[exp.Expr]
    ) -> Plan:
        made = tuple(self._group(group, select, find) for group in groups)
        cells = 1
        for group in made:
            cells *= len(group.keys) if group.keys else 1
        if cells > _MOST_CELLS:
            raise QueryError(f"{cells:,} groups are too many; declare fewer keys")
        statistics = Statistics(find)
        measures: dict[str, Measure] = {}

        def measured(node: exp.Expr) -> exp.Expr:
            text = _text(node)
            if text not in measures:
                measures[text] = statistics.measure(node)
            return exp.column(f"m{list(measures).index(text)}")

        keys = {_text(group): number for number, group in enumerate(groups)}
        outputs = tuple(
            self._output(projection, keys, measured) for projection in select.expressions
        )
        having = select.args.get("having")
        names = {output.name: output.sql for output in outputs}
        condition = None if having is None else self._released(having.this, keys, measured, {})
        ordered = self._order(select, keys, measured, names)
        if not measures:
            raise QueryError("a question asks for at least one aggregate: COUNT(*), SUM(x), ...")
        if select.args.get("distinct"):
            raise QueryError("SELECT DISTINCT of aggregates is not answered; groups differ anyway")
        statistic = tuple(statistics.found)
        settled = tuple(
            settle(m, len(statistic), len(statistics.distinct)) for m in measures.values()
        )
        widest = max((grid.cells for grid in statistics.grids), default=0)
        if cells * widest > _MOST_WEIGHTS:
            raise QueryError(
                f"quantiles of {cells:,} groups in {widest:,} cells each are too many; declare "
                "fewer keys, or a coarser grid"
            )
        merged = read.merged
        assert merged.population is not None
        return Plan(
            source=read.sql,
            unit=merged.sql,
            groups=made,
            statistics=statistic,
            distinct=tuple(statistics.distinct),
            grids=tuple(statistics.grids),
            ranks=tuple(statistics.ranks),
            measures=settled,
            outputs=outputs,
            having=condition,
            order=ordered,
            limit=whole_number(select, "limit"),
            offset=whole_number(select, "offset") or 0,
            rows=merged.rows,
            single=merged.single,
            simple=merged.simple,
            unit_has_name=merged.unit_has_name,
            max_groups=merged.max_groups,
            population=merged.population,
            tables=merged.tables,
            text="",
        )

    def _group(self, node: exp.Expr, select: exp.Select, find: Resolve) -> Group:
        if isinstance(node, exp.Literal):
            raise QueryError("GROUP BY a constant is not answered")
        check(node, "GROUP BY")
        if self._is_unit(node, find):
            raise QueryError("grouping by the unit shows people one by one; it is not answered")
        no_unit(node, find, "GROUP BY")
        name = next((e.alias for e in select.expressions if _text(bare(e)) == _text(node)), None)
        name = name or (node.name if isinstance(node, exp.Column) else f"key{id(node)}")
        kind = _kind(node, find)
        if kind == ColumnType.NUMBER:
            raise QueryError(
                f"GROUP BY {node.sql('duckdb')[:40]}: fractions are no groups; use FLOOR(...), a "
                "CASE, or CAST to INTEGER"
            )
        keys = self.options.keys.get(name, known_values(node, find))
        if keys is not None:
            check_keys(name, keys, kind or ColumnType.TEXT)
        sql = safe(node)
        if kind == ColumnType.INTEGER:  # by its looks; the engine may think of doubles
            sql = exp.TryCast(this=sql, to=exp.DataType.build("BIGINT"))
        return Group(name, _presentable(sql, kind), kind or ColumnType.TEXT, keys)

    def _output(self, projection: exp.Expr, keys: Mapping[str, int], measured: Measured) -> Output:
        name, node = projection.alias, bare(projection)
        if _text(node) in keys:
            return Output(name, exp.column(f"g{keys[_text(node)]}"), keys[_text(node)])
        return Output(name, self._released(node, keys, measured, {}), None)

    def _released(
        self,
        node: exp.Expr,
        keys: Mapping[str, int],
        measured: Measured,
        names: Mapping[str, exp.Expr],
    ) -> exp.Expr:
        """An expression of aggregates and groups, over the released table."""
        shapes = {type(sqlglot.parse_one(text, read="duckdb")) for text in keys}

        def put_in(each: exp.Expr) -> exp.Expr:
            if type(each) in shapes and _text(each) in keys:
                return exp.column(f"g{keys[_text(each)]}")
            if isinstance(each, exp.AggFunc) or (
                isinstance(each, exp.Filter) and isinstance(each.this, exp.AggFunc)
            ):
                return measured(each)
            if isinstance(each, exp.Column):
                if not each.table and each.name in names:
                    return exp.paren(names[each.name].copy())
                text = each.sql("duckdb")
                raise QueryError(f"{text} is neither grouped by nor inside an aggregate")
            if isinstance(each, exp.Window | exp.Subquery | exp.Select | exp.Exists):
                raise QueryError(f"{each.key.upper()} over aggregates is not answered")
            return each

        made = _replaced(node.copy(), put_in).transform(_whole_division)
        check_public(made)
        return made

    def _order(
        self,
        select: exp.Select,
        keys: Mapping[str, int],
        measured: Measured,
        names: Mapping[str, exp.Expr],
    ) -> tuple[exp.Expr, ...]:
        order = select.args.get("order")
        if order is None:
            return ()
        made = []
        for each in order.expressions:
            inner = self._released(each.this, keys, measured, names)
            made.append(
                exp.Ordered(
                    this=inner, desc=each.args.get("desc"), nulls_first=each.args.get("nulls_first")
                )
            )
        return tuple(made)


def _presentable(sql: exp.Expr, kind: ColumnType | None) -> exp.Expr:
    """Groups as values that differ wherever they are shown: dates that have a year, or text."""
    if kind is None:
        return exp.TryCast(this=sql, to=exp.DataType.build("VARCHAR"))
    if kind not in {ColumnType.DATE, ColumnType.TIMESTAMP}:
        return sql
    finite = exp.Anonymous(this="ISFINITE", expressions=[sql.copy()])
    years = exp.Between(
        this=exp.Anonymous(this="YEAR", expressions=[sql.copy()]),
        low=exp.Literal.number(1),
        high=exp.Literal.number(9999),
    )
    return exp.Case(ifs=[exp.If(this=exp.And(this=finite, expression=years), true=sql)])


def _replaced(node: exp.Expr, put_in: Measured) -> exp.Expr:
    """The tree with parts put in, from the top; what was put in is not looked into."""
    new = put_in(node)
    if new is not node:
        return new
    for child in list(node.iter_expressions()):
        found = _replaced(child, put_in)
        if found is not child:
            child.replace(found)
    return node


def _whole_division(node: exp.Expr) -> exp.Expr:
    """Released numbers have fractions, which // would keep."""
    if isinstance(node, exp.IntDiv):
        return exp.Floor(this=exp.Div(this=node.this, expression=node.expression))
    return node


def _windowed(node: exp.Expr) -> bool:
    return node.find_ancestor(exp.Window) is not None


def _text(node: exp.Expr) -> str:
    return str(bare(node).sql("duckdb"))


def _kind(node: exp.Expr, find: Resolve) -> ColumnType | None:
    """The type of an expression."""
    if isinstance(node, exp.Column):
        return find(node).kind
    if is_integer(node, find):
        return ColumnType.INTEGER
    named = node.type.this.value.upper() if node.type is not None else "UNKNOWN"
    families = {
        ColumnType.TEXT: ("VARCHAR", "TEXT", "CHAR"),
        ColumnType.INTEGER: ("INT", "BIGINT", "SMALLINT", "TINYINT", "INT128"),
        ColumnType.NUMBER: ("DOUBLE", "FLOAT", "DECIMAL"),
        ColumnType.BOOLEAN: ("BOOLEAN",),
        ColumnType.DATE: ("DATE",),
        ColumnType.TIMESTAMP: ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"),
    }
    return next((kind for kind, members in families.items() if named in members), None)
