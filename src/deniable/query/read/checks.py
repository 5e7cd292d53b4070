"""Columns of a SELECT: how a name finds one, and where the unit's own may not stand."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from deniable.errors import QueryError
from deniable.query.read.columns import Column
from deniable.query.read.values.operators import Resolve

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)


def columns_in(node: exp.Expr) -> list[exp.Column]:
    """The columns that an expression reads."""
    return list(node.find_all(exp.Column))


def no_unit(node: exp.Expr, find: Resolve, where: str) -> None:
    """Refuse the unit's column where it could tell people apart."""
    for column in columns_in(node):
        if find(column).is_unit:
            raise QueryError(
                f"the unit column {column.name} in {where} is not answered: it may stand in "
                "COUNT(DISTINCT ...), in an inner GROUP BY and in join keys only"
            )


def resolver(columns: Mapping[str, Mapping[str, Column]]) -> Resolve:
    """Find a qualified column among the sources of a SELECT."""

    def find(column: exp.Column) -> Column:
        source = columns.get(column.table)
        if source is None or column.name not in source:
            raise QueryError(f"the column {column.sql('duckdb')} is unknown here")
        return source[column.name]

    return find
