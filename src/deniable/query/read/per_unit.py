"""What is computed within one unit's rows: inner GROUP BY and window functions.

Sums of floats are made in fixed point, and orders are made total: a unit's result must not depend
on the order in which an engine happens to read its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from deniable.engines.leaves import MOST_BYTES
from deniable.engines.literals import cast_to, data_type
from deniable.engines.trees import case, half_up, is_aggregate, only_if, ordered
from deniable.errors import QueryError
from deniable.query.read.columns import UNIT, Column, Resolve, bytes_of, columns_in, no_unit
from deniable.query.read.expressions import places_of
from deniable.query.read.sources import Sources
from deniable.query.read.values.operators import condition as read_condition, read_column
from deniable.query.read.values.value import Value, finished, made
from deniable.tables import NUMERIC, ColumnType

_FIXED = 1 << 20  # steps of a float sum within one unit
_FARTHEST = "4398046511104e0"  # 2^42
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_SHIFTS = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.CountIf)
_PLACE = "deniable_place"
_COUNTED = Column(ColumnType.INTEGER, least=Fraction(0), private=True)


def aggregate(node: exp.Expr, find: Resolve) -> tuple[exp.Expr, Column]:
    """One aggregate of a unit's rows: its SQL, and what is known of it."""
    condition: exp.Expr | None = None
    if isinstance(node, exp.Filter):
        no_unit(node.expression.this, find, "FILTER")
        condition = read_condition(node.expression.this, find, "FILTER")
        node = node.this
    name = f"{node.key.upper()}(...)"
    if not isinstance(node, _AGGREGATES):
        raise QueryError(
            f"{node.key.upper()} within a unit is not answered; COUNT, SUM, AVG, MIN and MAX are"
        )
    if isinstance(node, exp.Count):
        return _count(node, condition, find), _COUNTED
    no_unit(node.this, find, name)
    if isinstance(node, exp.CountIf):
        kept = only_if(read_condition(node.this, find, name), exp.Literal.number(1))
        return exp.Count(this=only_if(condition, kept)), _COUNTED
    value = read_column(node.this, find, name)
    argument = only_if(condition, finished(value))
    source = find(node.this) if isinstance(node.this, exp.Column) else Column(None, private=True)
    source = replace(source, kind=value.kind)
    if isinstance(node, exp.Min | exp.Max):
        return type(node)(this=argument), source
    if value.kind not in NUMERIC:
        raise QueryError(f"{name} within a unit is of numbers; CAST it first")
    whole = value.kind == ColumnType.INTEGER
    places = None if whole else places_of(node.this, find)
    per = _FIXED if places is None else 10**places
    total = exact_sum(argument, whole=whole, per=per)
    if isinstance(node, exp.Sum):
        summed = _as_number(total, whole=whole, per=per)
        return summed, Column(value.kind, private=True, places=places)
    counted = exp.Nullif(this=exp.Count(this=argument.copy()), expression=exp.Literal.number(0))
    # Of whole numbers the sum may need more than 64 bits where the mean does not.
    number = cast_to(total if whole else _as_number(total, whole=False, per=per), "DOUBLE")
    mean = exp.paren(exp.Div(this=number, expression=cast_to(counted, "DOUBLE")))
    return mean, Column(ColumnType.NUMBER, bounds=source.bounds, private=True)


def public_aggregate(node: exp.Expr, find: Resolve) -> Value:
    """An aggregate of a public table: of a bare column, and with the same care."""
    if not isinstance(node.this, exp.Column | exp.Star):
        raise QueryError("aggregates of public tables are answered of bare columns")
    sql, column = aggregate(node, find)
    assert column.kind is not None
    return made(column.kind, sql)


class UnitRows:
    """The inner SELECT of a grouping by unit: keys and aggregates, each under a name of its own."""

    def __init__(self, read: Sources, find: Resolve) -> None:
        self._read, self._find = read, find
        self._sql = read.sql
        self._keys: dict[str, tuple[str, Column]] = {}
        self._aggregates: dict[str, tuple[str, Column]] = {}
        self._distinct = 0

    def add_key(self, node: exp.Expr, made: tuple[exp.Expr, Column]) -> None:
        """Group by an expression."""
        name = f"k{len(self._keys)}"
        self._keys[node.sql("duckdb")] = (name, made[1])
        self._sql = self._sql.select(exp.alias_(made[0], name)).group_by(made[0].copy())

    @property
    def width(self) -> int:
        """Bytes of a row at the worst; of values that are told apart, all are held."""
        kinds = [column.kind for _, column in (*self._keys.values(), *self._aggregates.values())]
        return bytes_of(kinds) + self._distinct * MOST_BYTES

    def select(self) -> exp.Select:
        """The inner SELECT."""
        unit = self._read.merged.sql
        made = self._sql.select(exp.alias_(unit.copy(), UNIT, quoted=True))
        return made.group_by(unit.copy())

    def expression(self, node: exp.Expr, where: str) -> tuple[exp.Expr, Column]:
        """What is computed from keys and aggregates, as an expression of the outer SELECT."""
        filled = self._filled(node.copy())
        if isinstance(filled, exp.Column):
            return filled, self._known(filled.name)
        self._without_unit(filled, where)
        value = read_column(filled, self._find_made, where)
        return finished(value), Column(value.kind, private=True)

    def condition(self, node: exp.Expr, where: str) -> exp.Expr:
        """What must hold of keys and aggregates."""
        filled = self._filled(node.copy())
        self._without_unit(filled, where)
        return read_condition(filled, self._find_made, where)

    def _find_made(self, column: exp.Column) -> Column:
        return self._known(column.name)

    def _without_unit(self, filled: exp.Expr, where: str) -> None:
        if any(self._known(column.name).is_unit for column in columns_in(filled)):
            raise QueryError(f"the unit column in {where} is not answered, but by itself")

    def _known(self, name: str) -> Column:
        both = {**self._keys, **self._aggregates}
        return next(column for found, column in both.values() if found == name)

    def _filled(self, node: exp.Expr) -> exp.Expr:
        text = node.sql("duckdb")
        if text in self._keys:
            return exp.column(self._keys[text][0])
        if is_aggregate(node):
            return self._aggregate(node, text)
        if isinstance(node, exp.Column):
            raise QueryError(f"{text[:60]} is neither grouped by nor aggregated")
        for child in list(node.iter_expressions()):
            made = self._filled(child)
            if made is not child:
                child.replace(made)
        return node

    def _aggregate(self, node: exp.Expr, text: str) -> exp.Expr:
        if text not in self._aggregates:
            sql, column = aggregate(node, self._find)
            name = f"a{len(self._aggregates)}"
            self._aggregates[text] = (name, column)
            self._distinct += next(node.find_all(exp.Distinct), None) is not None
            self._sql = self._sql.select(exp.alias_(sql, name))
        return exp.column(self._aggregates[text][0])


def counted_by(node: exp.Count) -> tuple[exp.Expr | None, bool]:
    """What a COUNT is of, None for all rows; and whether equal values count once."""
    argument = node.this
    if node.args.get("expressions"):
        raise QueryError("COUNT of several columns is not answered; count one")
    if argument is None or isinstance(argument, exp.Star):
        return None, False
    values = argument.expressions if isinstance(argument, exp.Distinct) else [argument]
    if len(values) != 1:
        raise QueryError("COUNT(DISTINCT ...) of several columns is not answered; count one")
    return values[0], isinstance(argument, exp.Distinct)


def _count(node: exp.Count, condition: exp.Expr | None, find: Resolve) -> exp.Expr:
    value, distinct = counted_by(node)
    if value is None:
        return exp.Count(this=only_if(condition, exp.Literal.number(1)))
    no_unit(value, find, "COUNT(...)")
    kept = only_if(condition, finished(read_column(value, find, "COUNT(...)")))
    return exp.Count(this=exp.Distinct(expressions=[kept]) if distinct else kept)


def exact_sum(argument: exp.Expr, *, whole: bool, per: int = _FIXED) -> exp.Expr:
    """A sum of canonical numbers, so many steps to 1, that does not depend on the order of rows."""
    if whole:
        return exp.Sum(this=argument)
    far = exp.Literal.number(_FARTHEST)
    near = exp.Neg(this=far.copy())
    inside = case(
        (exp.GTE(this=argument.copy(), expression=far), far.copy()),
        (exp.LTE(this=argument.copy(), expression=near), near.copy()),
        otherwise=argument,
    )
    steps = half_up(exp.Mul(this=inside, expression=exp.Literal.number(f"{per}e0")))
    return exp.Sum(this=exp.TryCast(this=steps, to=data_type("BIGINT")))


def _as_number(total: exp.Expr, *, whole: bool, per: int = _FIXED) -> exp.Expr:
    if whole:
        return exp.TryCast(this=total, to=data_type("BIGINT"))
    made = exp.Div(this=cast_to(total, "DOUBLE"), expression=exp.Literal.number(f"{per}e0"))
    return exp.paren(made)


def window(
    node: exp.Window,
    find: Resolve,
    columns: Mapping[str, Mapping[str, Column]],
    unit: exp.Expr,
) -> tuple[exp.Expr, Column]:
    """A window function over one unit's rows."""
    parts = node.args.get("partition_by") or []
    if not any(isinstance(part, exp.Column) and find(part).is_unit for part in parts):
        raise QueryError(
            "a window function looks at one unit's rows only: add PARTITION BY the unit column"
        )
    _check_frame(node)
    spec = node.args.get("spec")
    split = [finished(read_column(part, find, "PARTITION BY")) for part in parts]
    # Made of what was read, and of nothing else that stands in the question.
    made = exp.Window(
        partition_by=[unit.copy(), *split],
        order=_total_order(node, find, columns),
        spec=None if spec is None else spec.copy(),
        over="OVER",
    )
    function = node.this
    if isinstance(function, _RANKS):
        made.set("this", type(function)())
        return made, Column(ColumnType.INTEGER, private=True)
    if isinstance(function, _SHIFTS):
        name = f"{function.key.upper()}(...)"
        no_unit(function.this, find, name)
        offset = function.args.get("offset")
        if offset is not None and not (isinstance(offset, exp.Literal) and offset.is_int):
            raise QueryError(f"the offset of {function.key.upper()} is a constant")
        if function.args.get("default") is not None:
            raise QueryError(f"{function.key.upper()} has no default; use COALESCE around it")
        if isinstance(function, exp.LastValue) and node.args.get("spec") is None:
            raise QueryError("LAST_VALUE needs a frame: ROWS BETWEEN ... AND ...")
        value = read_column(function.this, find, name)
        moved = {} if offset is None else {"offset": offset.copy()}
        made.set("this", type(function)(this=finished(value), **moved))
        known = find(function.this) if isinstance(function.this, exp.Column) else Column(None)
        return made, replace(known, kind=value.kind, private=True)
    inner, known = aggregate(function, find)
    summed = isinstance(function, exp.Sum) and known.kind == ColumnType.INTEGER
    if summed:
        inner = inner.this  # the sum, without the cast around it
    if not isinstance(inner, exp.AggFunc):
        raise QueryError(
            f"{function.key.upper()} of fractions in a window is not answered; sum whole numbers, "
            "or aggregate by the unit in a subquery"
        )
    made.set("this", inner)
    return _as_number(made, whole=True) if summed else made, known


def by_place(node: exp.Window) -> bool:
    """Whether what it gives depends on the place of a row, among those that are equal too."""
    return isinstance(node.this, (exp.RowNumber, *_SHIFTS)) or node.args.get("spec") is not None


def _check_frame(node: exp.Window) -> None:
    """ROWS between constants, or the default."""
    spec = node.args.get("spec")
    if spec is None:
        return
    ends = [spec.args.get("start"), spec.args.get("end")]
    plain = all(
        end is None or isinstance(end, str) or (isinstance(end, exp.Literal) and end.is_int)
        for end in ends
    )
    if str(spec.args.get("kind", "")).upper() != "ROWS" or not plain or spec.args.get("exclude"):
        raise QueryError("a window's frame is ROWS BETWEEN whole numbers, or left out")


def _total_order(
    node: exp.Window, find: Resolve, columns: Mapping[str, Mapping[str, Column]]
) -> exp.Order | None:
    """The given order, ties broken by all columns, so that equal rows are all that is left.

    Ranks, and aggregates without a frame, treat ties alike, whatever their order.
    """
    given = node.args.get("order")
    if given is None and not by_place(node):
        return None
    keys = [] if given is None else given.expressions
    made = [ordered(finished(read_column(key.this, find, "ORDER BY")), key) for key in keys]
    if not by_place(node):
        return exp.Order(expressions=made)
    ties = [
        exp.Ordered(this=exp.column(name, table=table, quoted=True), desc=False)
        for table, known in columns.items()
        for name in known
    ]
    return exp.Order(expressions=[*made, *ties])


def places_in(made: Iterable[exp.Expr]) -> list[exp.Window]:
    """The windows that count places of rows."""
    return [each for one in made for each in one.find_all(exp.Window) if by_place(each)]


def placed(read: Sources, made: Mapping[str, exp.Expr]) -> tuple[exp.Select, dict[str, exp.Expr]]:
    """Rows that have numbers of their own, and what is made of rows, as made of those.

    Rows that are equal in every column tie in each window, and engines order ties by what else they
    sort, other people's rows included. One window gives the same rows either way; of two, the
    places of equal rows in one would meet their places in the other by chance. So the rows of a
    unit are numbered once, and that number comes last in every order. Which of equal rows has which
    number does not matter: they differ in nothing else.
    """
    names = {
        (table, name): f"s{place}"
        for place, (table, name) in enumerate(
            [(table, name) for table, known in read.columns.items() for name in known]
        )
    }
    unit = read.merged.sql
    names[unit.args["table"].name, UNIT] = UNIT
    every = {new: exp.column(*reversed(old), quoted=True) for old, new in names.items()}
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[unit.copy()],
        order=exp.Order(
            expressions=[exp.Ordered(this=each.copy(), desc=False) for each in every.values()]
        ),
        over="OVER",
    )
    inner = read.sql.select(
        *(exp.alias_(each, new, quoted=True) for new, each in every.items()),
        exp.alias_(number, _PLACE, quoted=True),
    )

    def renamed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return exp.column(names[node.table, node.name], quoted=True)
        return node

    moved = {name: each.transform(renamed) for name, each in made.items()}
    for window in places_in(moved.values()):
        last = exp.Ordered(this=exp.column(_PLACE, quoted=True), desc=False)
        window.args["order"].append("expressions", last)
    return exp.Select().from_(inner.subquery("placed")), moved
