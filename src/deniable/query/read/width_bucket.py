"""WIDTH_BUCKET, written with CASE: buckets of one width, whose numbers are public."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from deniable.engines.literals import cast_to, double_literal, whole_literal
from deniable.engines.trees import case, is_known
from deniable.errors import QueryError
from deniable.query.read.values.constants import number

BUCKETS = "deniable_buckets"
"""Marks an expression whose values are 0, 1, ..., up to this number."""

_MOST = 100_000


def width_bucket(node: exp.WidthBucket) -> exp.Expr:
    """0 below the first bucket, one more than there are from the end of the last."""
    ends = [_constant(node.args.get(name)) for name in ("min_value", "max_value", "num_buckets")]
    low, high, count = ends
    if low is None or high is None or count is None or not low < high:
        raise QueryError("WIDTH_BUCKET takes two constant ends, the lower first, and a number")
    if count.denominator != 1 or not 1 <= count <= _MOST:
        raise QueryError("the number of buckets is a whole number from 1 to 100,000")
    value = node.this
    part = exp.Sub(this=exp.paren(value.copy()), expression=double_literal(low))
    steps = exp.Div(this=exp.paren(part), expression=double_literal((high - low) / count))
    # The last bucket ends where it is said to, however the division rounds.
    inner = exp.Least(this=exp.Floor(this=steps), expressions=[whole_literal(int(count) - 1)])
    below = exp.LT(this=value.copy(), expression=double_literal(low))
    above = exp.GTE(this=value.copy(), expression=double_literal(high))
    bucket = case(
        (below, whole_literal(0)),
        (above, whole_literal(int(count) + 1)),
        (is_known(value.copy()), exp.Add(this=inner, expression=whole_literal(1))),
    )
    made = cast_to(bucket, "BIGINT")
    made.meta[BUCKETS] = int(count) + 1
    return made


def _constant(node: exp.Expr | None) -> Fraction | None:
    negative = isinstance(node, exp.Neg)
    literal = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(literal, exp.Literal) or literal.is_string:
        return None
    value = number(literal.name)
    if value >= 10**300:
        return None
    return Fraction(-value if negative else value)
