"""What Spark writes differently, function by function, so that it means the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

from deniable.engines.literals import MOMENT
from deniable.engines.rounding import in_spark
from deniable.engines.translate import INTEGERS, SPACES, TEXTS, Kind, refused, type_of
from deniable.engines.trees import whole_constant

_NAME = "Spark"
_FRACTIONS = {Kind.DOUBLE, Kind.FLOAT, Kind.DECIMAL}
_TIMES = {Kind.TIMESTAMP, Kind.TIMESTAMPNTZ}
_MOMENTS = {Kind.DATE, *_TIMES}
_TYPES = {
    **{kind: str(kind.value) for kind in (*INTEGERS, Kind.DOUBLE, Kind.BOOLEAN, Kind.DATE)},
    **dict.fromkeys(TEXTS, "STRING"),
    **dict.fromkeys(_TIMES, "TIMESTAMP_NTZ"),
    Kind.INT128: "DECIMAL(38, 0)",
}
_BITS = {Kind.TINYINT: 7, Kind.SMALLINT: 15, Kind.INT: 31, Kind.BIGINT: 63}

# Texts that engines read alike. Java would also take 1f and 0x1p3, or count up to 1e999999999.
_BLANK = "[ \\t-\\r]*"
_WHOLE = "[-+]?[0-9]{1,40}"
_NUMBER = "[-+]?([0-9]{1,99}[.]?[0-9]{0,99}|[.][0-9]{1,99})([eE][-+]?[0-9]{1,3})?"
_NAMED = "[-+]?[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN]"
_DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?)?"
_READ = {
    **dict.fromkeys(INTEGERS, f"^{_BLANK}({_WHOLE}){_BLANK}$"),
    Kind.DOUBLE: f"^{_BLANK}({_NUMBER}|{_NAMED}){_BLANK}$",
    Kind.BOOLEAN: "^([tT]([rR][uU][eE])?|[fF]([aA][lL][sS][eE])?|[yY]([eE][sS])?|[nN][oO]?|[01])$",
    **dict.fromkeys(_MOMENTS, f"^{_BLANK}({_DAY}){_BLANK}$"),
}
_MARKS = ["!", "#", "~", "^", "|", "@", *map(chr, range(0x4E00, 0x9FFF))]

_PARTS = {
    **{part: f"{part}(:a)" for part in ("YEAR", "QUARTER", "MONTH", "DAY")},
    **{part: f"{part}(:a)" for part in ("HOUR", "MINUTE", "SECOND")},
    **dict.fromkeys(("DOW", "DAYOFWEEK"), "DAYOFWEEK(:a) - 1"),
    **dict.fromkeys(("DOY", "DAYOFYEAR"), "DAYOFYEAR(:a)"),
    **dict.fromkeys(("WEEK", "WEEKOFYEAR"), "WEEKOFYEAR(:a)"),
    "DAYOFMONTH": "DAY(:a)",
    "ISODOW": "WEEKDAY(:a) + 1",
}
_UNITS = {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"}
_COUNTED = {
    "DAY": "CAST(UNIX_DATE(CAST(:a AS DATE)) AS BIGINT)",
    "MONTH": "(CAST(YEAR(:a) AS BIGINT) * 12 + MONTH(:a))",
    "YEAR": "CAST(YEAR(:a) AS BIGINT)",
}
_TRY_NAMES = {exp.Add: "TRY_ADD", exp.Sub: "TRY_SUBTRACT"}
_WHOLE_OF = "deniable_whole_of"
"""Marks a whole number that is a double: how it is written as one of 64 bits."""


def _try_cast(node: exp.TryCast) -> exp.Expr:
    """A cast that gives NULL where the value does not fit."""
    value, wanted = node.this, node.to.this
    found, kind = type_of(value), _TYPES.get(wanted)
    known = found != Kind.UNKNOWN or isinstance(value, exp.Null)
    dated = (found in _MOMENTS) != (wanted in _MOMENTS) and wanted not in TEXTS
    wide = wanted == Kind.INT128 and found in _FRACTIONS
    if found in TEXTS and wanted in {*_READ, *TEXTS}:
        return _cast_text(value, wanted)
    if kind is None or not known or dated or wide or found in TEXTS:
        raise refused(f"CAST from {found.value} to {wanted.value}", _NAME)
    if wanted in TEXTS and found in _FRACTIONS:
        raise refused("a fraction as text", _NAME)
    if wanted in INTEGERS and found in _FRACTIONS:
        end = 2.0 ** _BITS[wanted]
        inside = f"RINT(:a) >= {-end!r} AND RINT(:a) < {end!r}"
        return put(f"CASE WHEN {inside} THEN CAST(RINT(:a) AS {kind}) END", value)
    if found == Kind.DATE and wanted in _TIMES:
        return _moment(value)
    return put(f"TRY_CAST(:a AS {kind})", value)


def _cast_text(value: exp.Expr, wanted: Kind) -> exp.Expr:
    if wanted in TEXTS:
        return value
    made = f"WHEN RLIKE(:a, {string(_ended(_READ[wanted]))}) THEN TRY_CAST(:a AS {_TYPES[wanted]})"
    if wanted in INTEGERS:
        whole = f"TRY_CAST(ROUND(TRY_CAST(:a AS DECIMAL(38, 18))) AS {_TYPES[wanted]})"
        made += f" WHEN RLIKE(:a, {string(_ended(f'^{_BLANK}({_NUMBER}){_BLANK}$'))}) THEN {whole}"
    return put(f"CASE {made} END", value)


def _plain_cast(node: exp.Cast) -> exp.Expr:
    """Casts that we wrote ourselves, of whole numbers below 2^63 and of what is hashed."""
    value, found, wanted = node.this, type_of(node.this), node.to.this
    if wanted == Kind.BIGINT and _WHOLE_OF in value.meta:
        text, of = value.meta[_WHOLE_OF]
        return put(text, of)
    if wanted == Kind.INT128 and found in _FRACTIONS:
        return put("CAST(CAST(:a AS BIGINT) AS DECIMAL(38, 0))", value)
    return put(f"CAST(:a AS {_TYPES[wanted]})", value)


def _moment(value: exp.Expr) -> exp.Expr:
    """A date as a timestamp."""
    return value if type_of(value) in _TIMES else put("CAST(:a AS TIMESTAMP_NTZ)", value)


def _number(node: exp.Literal) -> exp.Expr:
    """A number with a fraction is a double, not a decimal."""
    plain = node.is_string or "." not in node.name or "e" in node.name.lower()
    return node if plain else exp.Literal.number(f"{node.name}e0")


def _arithmetic(node: exp.Binary) -> exp.Expr:
    """Whole numbers are wide enough where they come from a question; doubles are IEEE 754's."""
    return _moved(node) if {type_of(node.this), type_of(node.expression)} & _MOMENTS else node


def _moved(node: exp.Binary) -> exp.Expr:
    """A time and a constant interval."""
    left, right = node.this, node.expression
    amount, unit = right.name, right.text("unit").upper().rstrip("S")
    whole = amount.removeprefix("-").isdigit()
    if not isinstance(right, exp.Interval) or not whole or unit not in _UNITS - {"QUARTER"}:
        raise refused("an interval that is not a number of years, ... or seconds", _NAME)
    return put(f"{_TRY_NAMES[type(node)]}(:a, INTERVAL '{int(amount)}' {unit})", _moment(left))


def _divided(node: exp.Div) -> exp.Expr:
    """Fractions come out; a divisor of zero is NULL already."""
    return put("CAST(:a AS DOUBLE) / CAST(:b AS DOUBLE)", node.this, node.expression)


def _whole_division(node: exp.Binary) -> exp.Expr:
    """// and %, toward zero; a divisor of zero is NULL already."""
    parts, kinds = (node.this, node.expression), {type_of(node.this), type_of(node.expression)}
    if not isinstance(node, exp.IntDiv):
        return put(":a % :b", *parts)
    if kinds & _FRACTIONS:
        return put("CAST(:a AS DOUBLE) / CAST(:b AS DOUBLE)", *parts)
    if Kind.INT128 in kinds:  # DIV gives 64 bits; without a rest the fraction is exact
        return put("CAST((:a - :a % :b) / :b AS DECIMAL(38, 0))", *parts)
    return put(":a DIV :b", *parts)


def _shifted(node: exp.BitwiseRightShift) -> exp.Expr:
    """Of numbers below 2^126 that are not negative: beyond 64 bits in two parts, as DIV has 64."""
    bits = int(node.expression.name)
    short = f"CAST(CAST(:a AS BIGINT) >> {bits} AS DECIMAL(38, 0))"
    high = f"CAST(:a DIV {1 << 64} AS DECIMAL(38, 0)) * {1 << (64 - bits)}"
    long = f"{high} + (:a % {1 << 64}) DIV {1 << bits}"
    return put(f"CASE WHEN :a < {1 << 63} THEN {short} ELSE {long} END", node.this)


def _summed(node: exp.Sum) -> exp.Expr:
    """Sums of 64 bits would wrap around: three sums of 22 bits each hold 2^41 rows."""
    if type_of(node.this) not in INTEGERS:
        return node
    node.type = exp.DataType(this=Kind.INT128)
    wide = isinstance(node.this, exp.Column) and type_of(node.this) == Kind.BIGINT
    if not wide or isinstance(node.parent, exp.Window):
        return put("SUM(CAST(:a AS DECIMAL(38, 0)))", node.this)
    return put(
        f"(CAST(SUM(:a >> 44) AS DECIMAL(38, 0)) * {1 << 44} + "
        f"CAST(SUM((:a >> 22) & 4194303) AS DECIMAL(38, 0)) * {1 << 22} + SUM(:a & 4194303))",
        node.this,
    )


def _floored(node: exp.Expr) -> exp.Expr:
    """FLOOR and CEIL of doubles are doubles, however large."""
    name, value = node.key.upper(), node.this
    if type_of(value) not in _FRACTIONS:
        return put("CAST(:a AS DOUBLE)", value)
    inside = "ABS(:a) < 9007199254740992e0"
    made = put(f"CASE WHEN {inside} THEN CAST({name}(:a) AS DOUBLE) ELSE :a END", value)
    made.meta[_WHOLE_OF] = (f"{name}(:a)", value.copy())
    return made


def _rounded(node: exp.Round) -> exp.Expr:
    value, given = node.this, node.args.get("decimals")
    if type_of(value) not in _FRACTIONS:
        return put("CAST(:a AS DOUBLE)", value)
    places = 0 if given is None else whole_constant(given)
    if places is None:
        raise refused("ROUND to a number of places that is not constant", _NAME)
    return put(in_spark(places), value)


def _logarithm(node: exp.Expr) -> exp.Expr:
    """Of numbers above 0: questions leave out others."""
    value = node.args.get("expression") or node.this
    if value is not node.this and node.name != "10":
        raise refused("LOG with a base", _NAME)
    made = put("CAST(:a AS DOUBLE)", value)
    if isinstance(node, exp.Ln):
        return exp.Ln(this=made)
    # sqlglot would make LOG(10, ...) of it, less exact
    return exp.Anonymous(this="LOG10", expressions=[made])


def _like(node: exp.Expr) -> exp.Expr:
    """No character is special but % and _, and what ESCAPE names."""
    if isinstance(node.parent, exp.Escape):
        return node
    inner, given = (node.this, node.expression.name) if isinstance(node, exp.Escape) else (node, "")
    lowered = isinstance(inner.expression, exp.Lower)
    constant = inner.expression.this if lowered else inner.expression
    if not isinstance(constant, exp.Literal):
        # It becomes a regular expression of Java's, and those can overflow its stack.
        raise refused("LIKE with a pattern that is not constant", _NAME)
    pattern, made = constant.name, ""
    mark = next(char for char in _MARKS if char not in pattern)
    rest = iter(pattern)
    for char in rest:
        following = next(rest, "") if char == given else ""
        if char == given and not following:
            raise refused("a pattern that ends with its ESCAPE", _NAME)
        made += mark + following if following in {"%", "_"} else following or char
    written = f"LOWER({string(made)})" if lowered else string(made)
    return put(f":a LIKE {written} ESCAPE {string(mark)}", inner.this)


def _matches(node: exp.RegexpLike) -> exp.Expr:
    """Java's regular expressions can overflow its stack: only one of ours is taken."""
    if node.expression.name != MOMENT:
        raise refused("a regular expression", _NAME)
    return put(f"RLIKE(:a, {string(_ended(MOMENT))})", node.this)


def _ended(pattern: str) -> str:
    """Java's $ also matches before a line's last end."""
    return pattern.removesuffix("$") + r"\z"


def _of_text(node: exp.Expr) -> exp.Expr:
    """Functions of texts take nothing else; lengths and places have 64 bits."""
    for name in ("this", "expression", "replacement", "substr"):
        part = node.args.get(name)
        if isinstance(part, exp.Expr) and type_of(part) not in TEXTS:
            raise refused(f"{node.key.upper()} of what is not text", _NAME)
    if isinstance(node, exp.Trim) and node.expression is None:
        node.set("expression", exp.Literal.string(SPACES))
    counts = isinstance(node, exp.Length | exp.StrPosition)
    return put("CAST(:a AS BIGINT)", node) if counts else node


def _cut_out(node: exp.Expr) -> exp.Expr:
    """From constant places; what comes before the first letter differs between engines."""
    ends = [node.args.get(name) for name in ("start", "length", "expression")]
    plain = all(end is None or (isinstance(end, exp.Literal) and end.is_int) for end in ends)
    if (
        not plain
        or type_of(node.this) not in TEXTS
        or (ends[0] is not None and ends[0].name == "0")
    ):
        raise refused(f"{node.key.upper()} of text by places that are not constant, or 0,", _NAME)
    node.type = exp.DataType(this=Kind.VARCHAR)
    return node


def _joined(node: exp.Concat) -> exp.Expr:
    """CONCAT leaves NULL out."""
    filled = [put("COALESCE(CAST(:a AS STRING), '')", part) for part in node.expressions]
    return exp.Anonymous(this="CONCAT", expressions=filled)


def _part(node: exp.Expr) -> exp.Expr:
    name, value = (node.key, node.this)
    if isinstance(node, exp.Extract):
        name, value = node.name, node.expression
    made, kind = _PARTS.get(name.upper().replace("_", "")), type_of(value)
    if made is None or kind not in _MOMENTS:
        raise refused(f"{name.upper()} of {kind.value}", _NAME)
    return put(f"CAST({made} AS BIGINT)", value)


def _truncated(node: exp.Expr) -> exp.Expr:
    unit = node.text("unit").upper()
    if unit not in _UNITS or type_of(node.this) not in _MOMENTS:
        raise refused(f"DATE_TRUNC to {unit.lower()}", _NAME)
    made = f"CAST(DATE_TRUNC('{unit}', CAST(:a AS TIMESTAMP_LTZ)) AS TIMESTAMP_NTZ)"
    return put(made, node.this)


def _difference(node: exp.DateDiff) -> exp.Expr:
    unit = node.text("unit").upper().rstrip("S") or "DAY"
    if unit not in _COUNTED or not {type_of(node.this), type_of(node.expression)} <= _MOMENTS:
        raise refused(f"DATE_DIFF in {unit.lower()}s", _NAME)
    later, earlier = _COUNTED[unit], _COUNTED[unit].replace(":a", ":b")
    made = put(f"({later} - {earlier})", node.this, node.expression)
    for days in list(made.find_all(exp.UnixDate)):  # sqlglot would write DATEDIFF, which can raise
        days.replace(exp.Anonymous(this="UNIX_DATE", expressions=[days.this]))
    return made


def _windowed(node: exp.Window) -> exp.Expr:
    """Ranks of 64 bits; rows are numbered without bringing them together."""
    if not isinstance(node.this, exp.RowNumber | exp.Rank | exp.DenseRank):
        return node
    if not node.args.get("partition_by") and node.args.get("order") is None:
        return exp.Anonymous(this="MONOTONICALLY_INCREASING_ID")
    return put("CAST(:a AS BIGINT)", node)


def _known_functions(node: exp.Anonymous) -> exp.Expr:
    if node.name.upper() == "HASH":  # of text: the same whatever the type
        made = put("XXHASH64(CAST(:a AS STRING))", node.expressions[0])
        made.type = exp.DataType.build("BIGINT")
        return made
    if node.name.upper() == "STRLEN":
        return put("OCTET_LENGTH(:a)", node.expressions[0])
    if node.name.upper() != "ISFINITE":
        raise refused(node.name.upper(), _NAME)
    most = "1.7976931348623157e308D"
    return put(f"(:a >= -{most} AND :a <= {most})", node.expressions[0])


def _refuse(node: exp.Expr) -> exp.Expr:
    raise refused(node.key.upper(), _NAME)


def _tuple(node: exp.Tuple) -> exp.Expr:
    """In lists of released keys alone."""
    return node if isinstance(node.parent, exp.Values | exp.In) else _refuse(node)


def _template(text: str) -> Callable[[Any], exp.Expr]:
    return lambda node: put(text, *node.iter_expressions())


RULES: dict[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _arithmetic),
    **dict.fromkeys((exp.Lower, exp.Upper, exp.StartsWith, exp.Replace, exp.Trim), _of_text),
    **dict.fromkeys((exp.Length, exp.StrPosition), _of_text),
    **dict.fromkeys((exp.Left, exp.Right, exp.Substring), _cut_out),
    **dict.fromkeys((exp.Like, exp.Escape), _like),
    **dict.fromkeys((exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day), _part),
    **dict.fromkeys((exp.Hour, exp.Minute, exp.WeekOfYear, exp.Extract), _part),
    **dict.fromkeys((exp.DayOfWeek, exp.DayOfMonth, exp.DayOfYear), _part),
    **dict.fromkeys((exp.DateTrunc, exp.TimestampTrunc), _truncated),
    exp.TryCast: _try_cast,
    **dict.fromkeys((exp.Floor, exp.Ceil), _floored),
    **dict.fromkeys((exp.IntDiv, exp.Mod), _whole_division),
    **dict.fromkeys((exp.Ln, exp.Log), _logarithm),
    **dict.fromkeys((exp.SimilarTo, exp.TimeToStr, exp.DateAdd, exp.ILike), _refuse),
    exp.Anonymous: _known_functions,
    exp.BitwiseRightShift: _shifted,
    exp.Cast: _plain_cast,
    exp.Concat: _joined,
    exp.DateDiff: _difference,
    exp.Div: _divided,
    exp.IsNan: _template("(:a = CAST('NaN' AS DOUBLE))"),  # NULL of NULL, unlike Spark's own
    exp.Literal: _number,
    exp.RegexpLike: _matches,
    exp.Pow: _template(
        "CASE WHEN (:a = 1 AND :b IS NOT NULL) OR (:a = -1 AND ABS(:b) = CAST('inf' AS DOUBLE)) "
        "THEN 1e0 ELSE POWER(:a, :b) END"
    ),
    exp.Round: _rounded,
    exp.Sign: _template("CAST(SIGN(CAST(:a AS DOUBLE)) AS BIGINT)"),
    exp.Sum: _summed,
    exp.Tuple: _tuple,
    exp.Window: _windowed,
}


def put(text: str, *parts: exp.Expr) -> exp.Expr:
    """Spark's SQL with parts for :a and :b."""
    marks = dict(zip("ab", parts, strict=False))

    def placed(node: exp.Expr) -> exp.Expr:
        return _closed(marks[node.name]) if isinstance(node, exp.Placeholder) else node

    return _read(text).transform(placed)


@cache
def _read(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="spark")


def _closed(node: exp.Expr) -> exp.Expr:
    """A part that keeps together wherever it is put."""
    single = isinstance(node, exp.Column | exp.Literal | exp.Func | exp.Paren | exp.Null)
    return node.copy() if single and not isinstance(node, exp.Binary) else exp.paren(node.copy())


def string(text: str) -> str:
    """A text in quotes."""
    return str(exp.Literal.string(text).sql("spark"))
