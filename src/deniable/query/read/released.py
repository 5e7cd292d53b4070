"""A SELECT over released aggregates: post-processing, folded into the plan it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from deniable.engines.trees import ordered
from deniable.errors import QueryError
from deniable.query.plan.plan import Output, Plan
from deniable.query.read.sources import Released
from deniable.query.read.values.operators import OPERATORS, VEILED

_ADVICE = "compute it from the answer's table (answer.to_pandas())"


def over_released(select: exp.Select, released: Released) -> Released:
    """Arithmetic, conditions, order and limit on columns that were released."""
    plan = released.plan
    assert isinstance(plan, Plan)
    for clause in ("group", "having", "distinct"):
        if select.args.get(clause):
            raise QueryError(f"{clause.upper()} over released numbers is not answered; {_ADVICE}")
    where, order = select.args.get("where"), select.args.get("order")
    limit, offset = whole_number(select, "limit"), whole_number(select, "offset")
    cut = plan.shown.limit is not None or plan.shown.offset
    if cut and any(each is not None for each in (where, order, limit, offset)):
        raise QueryError(
            f"a SELECT over a LIMIT has no WHERE, ORDER BY, LIMIT or OFFSET; {_ADVICE}"
        )
    known = {output.name: output for output in plan.shown.outputs}
    outputs = tuple(_output(projection, known) for projection in select.expressions)
    having = plan.shown.having
    if where is not None:
        condition = exp.paren(_filled(where.this, known))
        having = (
            condition if having is None else exp.And(this=exp.paren(having), expression=condition)
        )
    own = {**known, **{output.name: output for output in outputs}}
    keys = plan.shown.order
    if order is not None:
        keys = tuple(ordered(_filled(each.this, own), each) for each in order.expressions)
    shown = replace(
        plan.shown,
        outputs=outputs,
        having=having,
        order=keys,
        limit=plan.shown.limit if limit is None else limit,
        offset=plan.shown.offset + (offset or 0),
    )
    return Released(replace(plan, shown=shown), tuple(output.name for output in outputs))


def _output(projection: exp.Expr, known: Mapping[str, Output]) -> Output:
    node = bare(projection)
    if isinstance(node, exp.Column) and node.name in known:
        return replace(known[node.name], name=projection.alias)
    return Output(projection.alias, _filled(node, known), None)


def _filled(node: exp.Expr, known: Mapping[str, Output]) -> exp.Expr:
    """The expression with the released columns put in."""
    for each in node.walk():
        if isinstance(each, exp.AggFunc | exp.Window | exp.Subquery | exp.Select | exp.Exists):
            raise QueryError(f"{each.key.upper()} over released numbers is not answered; {_ADVICE}")
    check_public(node)

    def put_in(each: exp.Expr) -> exp.Expr:
        if not isinstance(each, exp.Column):
            return each
        if each.name not in known:
            raise QueryError(f"there is no column {each.name} among the released ones")
        sql = known[each.name].sql.copy()
        return sql if isinstance(sql, exp.Column) else exp.paren(sql)

    made: exp.Expr = node.copy().transform(put_in)
    return made


def bare(projection: exp.Expr) -> exp.Expr:
    """What stands before AS."""
    return projection.this if isinstance(projection, exp.Alias) else projection


def whole_number(select: exp.Select, clause: str) -> int | None:
    """The number of LIMIT or OFFSET."""
    given = select.args.get(clause)
    if given is None:
        return None
    value = given.expression
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        raise QueryError(f"{clause.upper()} takes a whole number")
    return int(value.name)


_PUBLIC = (
    *OPERATORS,
    *VEILED,
    *(exp.Column, exp.Identifier, exp.DataType, exp.DataTypeParam, exp.Var),
    exp.Alias,
    exp.Ordered,
    exp.Star,
    exp.Distinct,
    *(exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max),
)


def check_public(node: exp.Expr) -> None:
    """Of released or public values may be computed what is known to be the same each time."""
    for each in node.walk():
        if isinstance(each, exp.Subquery | exp.Select | exp.Exists):
            raise QueryError("a subquery beside public or released values is not answered; join")
        if not isinstance(each, _PUBLIC):
            text = each.sql("duckdb")[:40]
            raise QueryError(f"{text} is not answered: it is not known to be the same each time")
