"""What a question may be made of: clauses that are all read, and text that is nothing but names.

The SQL of the engine is written from the question's tree. Whatever a parser keeps as raw text
(units of time, types) is held against fixed lists, and a clause that nobody reads is refused.
"""

from __future__ import annotations

from sqlglot import exp

from deniable.errors import QueryError

_READ: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"}
        | {"distinct", "with_"}
        # These are refused by a sentence of their own.
        | {"qualify", "windows", "sample", "pivots", "laterals", "locks", "into"}
    ),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.Table: frozenset({"this", "alias", "db", "catalog"}),
    exp.TableAlias: frozenset({"this"}),
    exp.Union: frozenset({"this", "expression", "distinct", "with_"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Join: frozenset({"this", "on", "side", "kind", "using", "method"}),
    exp.With: frozenset({"expressions", "recursive"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Group: frozenset({"expressions", "all", "grouping_sets", "rollup", "cube", "totals"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.From: frozenset({"this"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"}),
    exp.Filter: frozenset({"this", "expression"}),
    exp.Distinct: frozenset({"expressions", "on"}),
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank), frozenset[str]()),
    **dict.fromkeys((exp.Lag, exp.Lead), frozenset({"this", "offset", "default"})),
    **dict.fromkeys((exp.FirstValue, exp.LastValue), frozenset({"this"})),
    exp.Count: frozenset({"this", "expressions", "big_int"}),
    **dict.fromkeys(
        (
            *(exp.Sum, exp.Avg, exp.Min, exp.Max, exp.CountIf, exp.Median, exp.Variance),
            *(exp.VariancePop, exp.Stddev, exp.StddevPop, exp.StddevSamp),
        ),
        frozenset({"this"}),
    ),
    **dict.fromkeys((exp.Corr, exp.CovarPop, exp.CovarSamp), frozenset({"this", "expression"})),
    **dict.fromkeys((exp.PercentileCont, exp.PercentileDisc), frozenset({"this", "expression"})),
    **dict.fromkeys((exp.Quantile, exp.ApproxQuantile), frozenset({"this", "quantile"})),
}
_UNITS = frozenset(
    {"YEAR", "YEARS", "QUARTER", "QUARTERS", "MONTH", "MONTHS", "WEEK", "WEEKS", "DAY", "DAYS"}
    | {"HOUR", "HOURS", "MINUTE", "MINUTES", "SECOND", "SECONDS", "DOW", "ISODOW", "DAYOFWEEK"}
    | {"DOY", "DAYOFYEAR", "DAYOFMONTH", "DECADE", "CENTURY", "EPOCH", "ISOYEAR"}
)
_TYPES = frozenset(
    {"TINYINT", "SMALLINT", "INT", "BIGINT", "INT128", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR"}
    | {"TEXT", "CHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPNTZ"}
)
_CLOCKS = frozenset({"now", "today", "tomorrow", "yesterday", "infinity", "-infinity"})
_RESERVED = "deniable_"


def check_structure(tree: exp.Expr) -> None:
    """Refuse clauses that would not be read, reserved names, and raw text that is on no list."""
    for node in tree.walk():
        for name, value in node.args.items() if type(node) in _READ else ():
            if value and name not in _READ[type(node)]:
                clause = name.strip("_").replace("_", " ").upper()
                raise QueryError(f"{clause} of a {node.key.upper()} is not answered")
        sampled = isinstance(node, exp.Var) and node.find_ancestor(exp.TableSample)
        if isinstance(node, exp.Var) and node.name.upper() not in _UNITS and not sampled:
            raise QueryError(f"{node.name[:30]!r} is no unit of time that is known")
        if isinstance(node, exp.Identifier) and node.name.lower().startswith(_RESERVED):
            raise QueryError(f"names that begin with {_RESERVED} are reserved")
        if isinstance(node, exp.Extract) and not isinstance(node.this, exp.Var):
            raise QueryError("EXTRACT takes a unit of time: EXTRACT(month FROM day)")
        if isinstance(node, exp.Cast):
            _check_cast(node)


def _check_cast(node: exp.Cast) -> None:
    kind = node.to
    plain = str(getattr(kind.this, "value", kind.this)).upper() in _TYPES
    sizes = kind.expressions if plain else []
    sized = all(
        isinstance(size, exp.DataTypeParam)
        and isinstance(size.this, exp.Literal)
        and size.this.is_int
        for size in sizes
    )
    if not plain or not sized or kind.args.get("nested"):
        raise QueryError(
            "CAST is answered to INTEGER, BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE, TIMESTAMP"
        )
    text = node.this
    if isinstance(text, exp.Literal) and text.is_string and text.name.strip().lower() in _CLOCKS:
        raise QueryError(f"'{text.name}' is not answered: it is not the same each time")
