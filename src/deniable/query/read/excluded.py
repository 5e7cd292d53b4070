"""Which declared keys a condition can never hold for: from text and types alone.

A condition is followed with one key put in for what is grouped by, and with everything else
unknown. What it may come out as is a set of true, false and NULL; a key for which true is not in it
has no rows on any data. Whatever is not understood here may come out as anything.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from sqlglot import exp

from deniable.engines.literals import kind_of_value
from deniable.query.read.columns import Column
from deniable.query.read.values.casts import KINDS
from deniable.query.read.values.constants import as_kind, number
from deniable.tables import ColumnType

Outcomes = frozenset[bool | None]
_EXACT = 1 << 53
_MOST_STEPS = 500_000  # else every key counts as one that may have rows
_ANYTHING: Outcomes = frozenset({True, False, None})
_COMPARED: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}


def possible(
    keys: Sequence[Any], condition: exp.Expr, is_key: Callable[[exp.Expr], bool]
) -> tuple[Any, ...]:
    """The keys that may have rows; `is_key` knows what is grouped by."""
    nodes = list(condition.walk())
    stands = frozenset(id(node) for node in nodes if is_key(node))
    if len(nodes) * len(keys) > _MOST_STEPS:
        return tuple(keys)
    return tuple(key for key in keys if True in _With(key, stands).outcomes(condition))


def narrowed(
    columns: Mapping[str, Mapping[str, Column]], condition: exp.Expr
) -> dict[str, dict[str, Column]]:
    """Columns of a SELECT with the keys that its WHERE excludes; NULL may come back by a join."""
    return {
        alias: {name: _narrowed(alias, name, column, condition) for name, column in known.items()}
        for alias, known in columns.items()
    }


def _narrowed(alias: str, name: str, column: Column, condition: exp.Expr) -> Column:
    keys = column.keys
    if keys is None and column.kind == ColumnType.BOOLEAN:
        keys = (False, True)

    def is_key(node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and (node.table, node.name) == (alias, name)

    known = [key for key in keys or () if key is not None]
    found = frozenset(known) - frozenset(possible(known, condition, is_key))
    return replace(column, excluded=column.excluded | found) if found else column


class _UnknownError(Exception):
    """A value that hangs on the data."""


@dataclass(frozen=True)
class _With:
    """A condition where what is grouped by has one value."""

    key: Any
    stands: frozenset[int]
    """Where the key stands: which nodes are what is grouped by."""

    def outcomes(self, node: exp.Expr) -> Outcomes:
        """What a condition may come out as."""
        if isinstance(node, exp.Paren):
            return self.outcomes(node.this)
        if isinstance(node, exp.Not):
            return frozenset(
                None if each is None else not each for each in self.outcomes(node.this)
            )
        if isinstance(node, exp.And | exp.Or):
            both = product(self.outcomes(node.left), self.outcomes(node.right))
            joined = _and if isinstance(node, exp.And) else _or
            return frozenset(joined(left, right) for left, right in both)
        try:
            return frozenset({self._truth(node)})
        except _UnknownError:
            return _ANYTHING

    def _truth(self, node: exp.Expr) -> bool | None:
        if isinstance(node, exp.In) and node.expressions:
            found: bool | None = False
            for each in node.expressions:
                found = _or(found, self._compare(operator.eq, node.this, each))
            return _negated(node, found)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            above = self._compare(operator.ge, node.this, node.args["low"])
            below = self._compare(operator.le, node.this, node.args["high"])
            return _negated(node, _and(above, below))
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return self._stands(node.this) and self.key is None
        if isinstance(node, exp.Binary) and type(node) in _COMPARED:
            return self._compare(_COMPARED[type(node)], node.left, node.right)
        if isinstance(node, exp.Boolean | exp.Null):
            return bool(node.this) if isinstance(node, exp.Boolean) else None
        if self._stands(node) and isinstance(self.key, bool | None):
            return self.key
        raise _UnknownError

    def _stands(self, node: exp.Expr) -> bool:
        """Whether it is the key that stands there; nothing else is known."""
        if isinstance(node, exp.Paren):
            return self._stands(node.this)
        if id(node) not in self.stands:
            raise _UnknownError
        return True

    def _compare(
        self, compared: Callable[[Any, Any], bool], left: exp.Expr, right: exp.Expr
    ) -> bool | None:
        """The key beside a constant, on either side; two constants are read otherwise."""
        turned = id(right.unnest()) in self.stands
        if not turned:
            self._stands(left)
        constant = left if turned else right
        if self.key is None or isinstance(constant.unnest(), exp.Null):
            return None
        key, other = self.key, self._constant(constant.unnest())
        if isinstance(other, Fraction):
            key, other = float(key), float(other)  # as engines compare them
        return compared(other, key) if turned else compared(key, other)

    def _constant(self, node: exp.Expr) -> Any:
        """A constant, read as a value of the key's type."""
        kind, sign = kind_of_value(self.key), 1
        if isinstance(node, exp.Cast) and KINDS.get(node.to.this) == kind:
            node = node.this
        if isinstance(node, exp.Neg):
            node, sign = node.this, -1
        if isinstance(node, exp.Boolean) and kind == ColumnType.BOOLEAN:
            return bool(node.this)
        if not isinstance(node, exp.Literal):
            raise _UnknownError
        if node.is_string and sign > 0:
            read = as_kind(node.name, kind)
        else:
            read = sign * number(node.name) if kind == ColumnType.INTEGER else None
        # Beyond, a whole number may be compared as the double that is nearest to it.
        if read is None or any(type(n) is int and abs(n) > _EXACT for n in (read, self.key)):
            raise _UnknownError
        return read


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _negated(node: exp.Expr, found: bool | None) -> bool | None:
    return not found if node.args.get("negate") and found is not None else found
