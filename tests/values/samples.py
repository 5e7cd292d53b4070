"""Questions' expressions for each operator, over columns i j, f g, t w, d e, s r and b c.

Columns of a name have a type: whole numbers, doubles, texts, days, times and truths, two of each.
A row of the table holds what the operator of that node is tried with.
"""

from sqlglot import exp

_PAIRS = ("i|j", "f|g", "t|w", "d|e", "s|r", "b|c")
_MIXED = ("i|f", "f|i", "d|s", "s|e")
_CONSTANTS = (
    *("i|0", "i|9223372036854775807", "i|2.5", "i|1e30", "f|0", "f|-0.0", "f|1e300", "f|1e-290"),
    *("t|'a'", "t|''", "t|'İ'", "d|'2024-02-29'", "d|'0001-01-01'", "s|'9999-12-31'"),
    *("s|'2024-02-29 12:34:56.789'", "d|'2024-02-29 12:00:00'", "b|TRUE", "i|NULL", "f|NULL"),
    *("t|NULL", "d|NULL", "b|NULL"),
)
_PARTS = (
    *("year", "quarter", "month", "week", "day", "dow", "isodow", "dayofweek", "doy", "dayofyear"),
    *("dayofmonth", "decade", "century", "isoyear", "hour", "minute", "second", "epoch"),
)
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_FAR = {
    "YEAR": 4_000,
    "QUARTER": 16_000,
    "MONTH": 48_000,
    "WEEK": 208_000,
    "DAY": 1_461_000,
    "HOUR": 35_000_000,
    "MINUTE": 2_100_000_000,
    "SECOND": 126_000_000_000,
}


def _each(text, pairs=(*_PAIRS, *_MIXED, *_CONSTANTS)):
    """An expression with places a and b for pairs of operands."""
    return tuple(text.format(*pair.split("|")) for pair in pairs)


def _intervals(sign):
    moved = (f"{c} {sign} INTERVAL {n} {u}" for c in "ds" for u, n in _FAR.items())
    near = (f"{c} {sign} INTERVAL '1' {u}" for c in "ds" for u in _FAR)
    return (*moved, *near, f"d {sign} 1461000", f"d {sign} 1")


def _parts(name):
    return f"{name}(d)", f"{name}(s)"


_NUMBERS = ("i|j", "f|g", "i|f", "f|i", "i|3", "i|-9223372036854775807", "i|2.5", "f|7", "f|1e300")
_FORMATS = ("%Y-%m-%d", "%H:%M:%S", "%j %y %B %b %A %a", "%I %p %%")
_WHEN = "CASE WHEN b THEN {0} ELSE {1} END"
_NAMED = "'2024-02-29 12:34:56.789'"

SAMPLES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Literal: ("5", "2.5", "1e300", "'a'", "i + 5", "'2024-01-01'"),
    exp.Boolean: ("TRUE", "FALSE", "b = TRUE"),
    exp.Null: ("COALESCE(NULL, i)", "CAST(NULL AS DATE)"),
    exp.Paren: ("(i)", "((f) * (g + 1))", "(b) AND (i > j)", "-(i - (j - 1))"),
    exp.EQ: _each("{0} = {1}"),
    exp.NEQ: _each("{0} <> {1}", (*_PAIRS, "i|f", "d|s", "i|2.5")),
    exp.GT: _each("{0} > {1}", (*_PAIRS, "i|f", "d|s", "i|2.5")),
    exp.GTE: _each("{0} >= {1}", (*_PAIRS, "i|f", "d|s", "i|2.5")),
    exp.LT: _each("{0} < {1}"),
    exp.LTE: _each("{0} <= {1}", (*_PAIRS, "i|f", "d|s", "i|2.5")),
    exp.Between: (
        *_each("{0} BETWEEN {1} AND {1}", _PAIRS),
        *("i BETWEEN -5 AND j", "i BETWEEN j AND f", "f NOT BETWEEN g AND 1e300"),
        *("t BETWEEN 'a' AND w", "d BETWEEN e AND '2024-02-29'", "s BETWEEN r AND d"),
        *("i BETWEEN 0.5 AND 7.5", "d BETWEEN '2024-01-01' AND '2024-02-01 12:00:00'"),
    ),
    exp.In: (
        *_each("{0} IN ({1}, {1})", (*_PAIRS, *_MIXED)),
        *("i IN (1, 2.5, 9223372036854775807)", "f NOT IN (0, 1, 1e300)", "t IN ('a', '', w)"),
        *("d IN ('2024-02-29', '1970-01-01')", "s IN ('1970-01-01')", "i IN (1, NULL)"),
        "b IN (TRUE, c)",
    ),
    exp.Is: (
        *(f"{c} IS NULL" for c in "iftdsb"),
        *("b IS TRUE", "b IS NOT FALSE", "i IS TRUE", "f IS FALSE", "(i > j) IS TRUE"),
        *("f * g IS NULL", "i + j IS NULL", "f / g IS NOT NULL", "LN(f) IS NULL"),
    ),
    exp.And: ("b AND c", "i AND f", "i > j AND (b OR c)", "f * 2 > 1 AND i * 2 > 1"),
    exp.Or: ("b OR c", "i OR f", "2 / f > 1 OR i % 2 = 1", "(b AND c) OR i = j"),
    exp.Not: ("NOT b", "NOT i", "NOT f", "NOT (i > j)", "NOT f * g > 1", "NOT b AND c"),
    exp.Case: (
        *_each(_WHEN, _PAIRS),
        *_each(_WHEN, _MIXED),
        *_each("CASE {0} WHEN {1} THEN 1 ELSE 2.5 END", (*_PAIRS, *_MIXED)),
        *("CASE WHEN i > 0 THEN 1 END", "CASE WHEN i THEN f * g END", "CASE i WHEN 1 THEN 'a' END"),
        *("CASE WHEN f > 0 THEN LN(f) ELSE -f END", "CASE WHEN b THEN NULL ELSE d END"),
        *("CASE WHEN j <> 0 THEN i // j END", "CASE WHEN b THEN i ELSE 1e300 END"),
    ),
    exp.If: (*_each("IF(b, {0}, {1})", _PAIRS), "IF(i, 1, 0)", "IF(f * g > 1, f, i)"),
    exp.Coalesce: (
        *_each("COALESCE({0}, {1})", (*_PAIRS, *_MIXED)),
        *("COALESCE(i * j, 0)", "COALESCE(f * g, 0)", "COALESCE(i, 2.5)", "COALESCE(t, 'none')"),
        *("COALESCE(d, '2024-01-01')", "COALESCE(NULL, i, j)", "COALESCE(f / g, i)"),
    ),
    exp.Greatest: (*_each("GREATEST({0}, {1})", (*_PAIRS, *_MIXED)), "GREATEST(f * g, f, 0)"),
    exp.Least: (*_each("LEAST({0}, {1})", (*_PAIRS, *_MIXED)), "LEAST(f / g, -f, 1e300)"),
    exp.Nullif: (*_each("NULLIF({0}, {1})", (*_PAIRS, *_MIXED)), "NULLIF(i, 0)", "NULLIF(-f, 0)"),
    exp.Add: (
        *_each("{0} + {1}", _NUMBERS),
        *_intervals("+"),
        "INTERVAL 1 DAY + d",
        "i + NULL",
        "i + -1",
        "9 + i",
    ),
    exp.Sub: (
        *_each("{0} - {1}", _NUMBERS),
        *_intervals("-"),
        "i - j - 1",
        "f - g - f",
        "5 - i",
        "-5 - i",
    ),
    exp.Mul: (
        *_each("{0} * {1}", _NUMBERS),
        *(
            "f * 1e-200 * 1e-200",
            "i * j * i",
            "f * f * f",
            "i * 4",
            "i * -4",
            "i * 0",
            "i * 1",
            "i * -1",
        ),
    ),
    exp.Div: (*_each("{0} / {1}", _NUMBERS), "f / 0", "f / 1e-290", "1 / f", "f * g / (f * g)"),
    exp.IntDiv: ("i // j", "i // 3", "i // -1", "i // 0", "5 // i", "(i + j) // (i - j)"),
    exp.Mod: ("i % j", "i % 3", "i % -1", "i % 0", "f % g", "f % 3", "f % 0", "i % 2.5", "f % i"),
    exp.Neg: ("-i", "-f", "-(i + j)", "-(f * g)", "-(-i)", "-5 + i", "- -f"),
    exp.Abs: ("ABS(i)", "ABS(f)", "ABS(i - j)", "ABS(f * g)", "ABS(-5)"),
    exp.Sign: ("SIGN(i)", "SIGN(f)", "SIGN(f * g)", "SIGN(-f)", "SIGN(f / g - f / g)"),
    exp.Round: (
        *("ROUND(f)", "ROUND(i)", "ROUND(f, 2)", "ROUND(f, -2)", "ROUND(f, 15)", "ROUND(f, -15)"),
        *("ROUND(i, 2)", "ROUND(i, -3)", "ROUND(i, -15)", "ROUND(f * g)", "ROUND(f * g, 2)"),
        *("ROUND(f, 0)", "ROUND(f * g - f * g, 1)"),
    ),
    exp.Floor: ("FLOOR(f)", "FLOOR(i)", "FLOOR(f * g)", "FLOOR(f / g)", "FLOOR(i / j)"),
    exp.Ceil: ("CEIL(f)", "CEIL(i)", "CEIL(f * g)", "CEIL(f - g)"),
    exp.Sqrt: ("SQRT(f)", "SQRT(i)", "SQRT(f * g)", "SQRT(-f)", "SQRT(SQRT(f))", "SQRT(f / g)"),
    exp.Ln: ("LN(f)", "LN(i)", "LN(f * g)", "LN(LN(f))", "LN(f / g - f / g)"),
    exp.Log: ("LOG(f)", "LOG(i)", "LOG10(f)", "LOG2(f)", "LOG(2, f)", "LOG(0.5, i)", "LOG(f * g)"),
    exp.Exp: ("EXP(f)", "EXP(i)", "EXP(-f)", "EXP(EXP(f))", "EXP(f * g)"),
    exp.Pow: (
        *("POW(f, g)", "POW(i, j)", "POW(f, i)", "POW(f, 2)", "POW(f, -1)", "POW(-f, 0.5)"),
        *("POW(2, f)", "f ** g", "POW(f * g, -1)", "POW(0, f)", "POW(f, 0)"),
    ),
    exp.Cast: (
        *(f"CAST({c} AS {k})" for c in "iftb" for k in ("BIGINT", "DOUBLE", "BOOLEAN")),
        *(f"CAST({c} AS VARCHAR)" for c in "itbds"),
        *(f"CAST({c} AS {k})" for c in "tds" for k in ("DATE", "TIMESTAMP")),
        *(f"CAST({c} AS {k})" for c in "ift" for k in ("INTEGER", "FLOAT", "SMALLINT")),
        *(f"CAST({c} AS DECIMAL({k}))" for c in "iftb" for k in ("18, 3", "10, 2", "5", "15, 15")),
        *("CAST(f * g AS BIGINT)", "CAST(f * g AS DECIMAL(18, 2))", "CAST(f / g AS BOOLEAN)"),
        *("CAST('2024-01-31' AS DATE)", "CAST(-5 AS DOUBLE)", "CAST('12' AS BIGINT)", "i::DOUBLE"),
        *("CAST(CAST(t AS DOUBLE) AS BIGINT)", "CAST(CAST(s AS DATE) AS TIMESTAMP)"),
        *("CAST(CAST(d AS VARCHAR) AS DATE)", "CAST(CAST(s AS VARCHAR) AS TIMESTAMP)"),
        "CAST(CAST(i AS VARCHAR) AS BIGINT)",
    ),
    exp.TryCast: ("TRY_CAST(t AS BIGINT)", "TRY_CAST(f AS BIGINT)", "TRY_CAST(t AS DATE)"),
    exp.Date: ("DATE(t)", "DATE(s)", "DATE(d)"),
    exp.Lower: ("LOWER(t)", "LOWER(UPPER(t))"),
    exp.Upper: ("UPPER(t)", "UPPER(t) = UPPER(w)"),
    exp.Length: ("LENGTH(t)", "LENGTH(UPPER(t))", "LENGTH(t || w)"),
    exp.Trim: (
        "TRIM(t)",
        "LTRIM(t)",
        "RTRIM(t)",
        "TRIM(t, 'ax')",
        "LTRIM(t, ' a')",
        "RTRIM(t, 'x')",
    ),
    exp.Left: ("LEFT(t, 3)", "LEFT(t, 0)", "LEFT(t, -1)", "LEFT(t, 65536)", "LEFT(t, -65536)"),
    exp.Right: (
        "RIGHT(t, 3)",
        "RIGHT(t, 0)",
        "RIGHT(t, -1)",
        "RIGHT(t, 65536)",
        "RIGHT(t, -65536)",
    ),
    exp.Substring: (
        *("SUBSTRING(t, 2)", "SUBSTRING(t, 2, 3)", "SUBSTRING(t, 0)", "SUBSTRING(t, -3)"),
        *("SUBSTRING(t, -3, 2)", "SUBSTRING(t, 2, -1)", "SUBSTRING(t, 65536, 65536)"),
        *("SUBSTRING(t, -65536, 65536)", "SUBSTRING(t, 1, 0)", "SUBSTRING(t, 0, 2)"),
    ),
    exp.DPipe: ("t || w", "t || 'x'", "t || i", "d || s", "b || t", "t || w || t", "t || NULL"),
    exp.Concat: (
        "CONCAT(t, w)",
        "CONCAT(t, 5, d, TRUE)",
        "CONCAT(i, b)",
        "CONCAT('a', s, NULL)",
        "CONCAT(t, t, t, w)",
    ),
    exp.Replace: (
        *("REPLACE(t, 'x', 'yy')", "REPLACE(t, 'a', '')", "REPLACE(t, '', 'b')"),
        *("REPLACE(t, 'İ', 'i')", f"REPLACE(t, 'x', '{'y' * 100}')", "REPLACE(t || w, 'x', 'z')"),
    ),
    exp.StrPosition: (
        *("STRPOS(t, w)", "STRPOS(t, 'x')", "STRPOS(t, '')", "STRPOS('abc', t)"),
        "POSITION('a' IN t)",
    ),
    exp.StartsWith: ("STARTS_WITH(t, w)", "STARTS_WITH(t, 'a')", "STARTS_WITH(t, '')"),
    exp.Like: (
        *("t LIKE '%a_'", "t LIKE ''", "t LIKE '%'", "t LIKE '_'", r"t LIKE 'a\'", "t LIKE '%İ%'"),
        *("t NOT LIKE 'a%'", "t LIKE '%é'", "t LIKE '%x%x%'", r"t LIKE '%\%'"),
    ),
    exp.ILike: ("t ILIKE '%İ%'", "t ILIKE 'A%'", "t NOT ILIKE '%ﬁ'", "t ILIKE 'ß'"),
    exp.Escape: (
        *("t LIKE '!%' ESCAPE '!'", "t LIKE 'a!_%' ESCAPE '!'", "t ILIKE '%!!' ESCAPE '!'"),
        *("t NOT LIKE '%~%%' ESCAPE '~'", r"t LIKE '%\\' ESCAPE '\'"),
    ),
    exp.RegexpLike: (
        *("REGEXP_MATCHES(t, 'a.*')", "REGEXP_MATCHES(t, '^[0-9]+$')", "REGEXP_MATCHES(t, '')"),
        *("REGEXP_MATCHES(t, 'A|x', 'i')", "REGEXP_MATCHES(t, '.', 's')", "t ~ 'a'"),
    ),
    exp.SimilarTo: ("t SIMILAR TO 'a.*'", "t SIMILAR TO 'x+'", "t NOT SIMILAR TO '.'"),
    exp.Extract: tuple(f"EXTRACT({p} FROM {c})" for p in _PARTS for c in ("d", "s", _NAMED)),
    exp.Year: _parts("YEAR"),
    exp.Month: _parts("MONTH"),
    exp.Day: _parts("DAY"),
    exp.Quarter: _parts("QUARTER"),
    exp.Hour: _parts("HOUR"),
    exp.Minute: _parts("MINUTE"),
    exp.DayOfWeek: _parts("DAYOFWEEK"),
    exp.DayOfMonth: _parts("DAYOFMONTH"),
    exp.DayOfYear: _parts("DAYOFYEAR"),
    exp.WeekOfYear: _parts("WEEKOFYEAR"),
    exp.Week: _parts("WEEK"),
    exp.DateTrunc: tuple(f"DATE_TRUNC('{u}', CAST({c} AS DATE))" for u in _UNITS for c in "dt"),
    exp.TimestampTrunc: tuple(f"DATE_TRUNC('{u}', {c})" for u in _UNITS for c in "ds"),
    exp.DateDiff: (
        *(f"DATE_DIFF('{u}', {c})" for u in _UNITS for c in ("d, e", "s, r", "d, s")),
        "DATE_DIFF('day', d, '2024-02-29')",
    ),
    exp.DateAdd: ("DATE_ADD(d, INTERVAL 4000 YEAR)", "DATE_ADD(s, INTERVAL '-48000' MONTH)"),
    exp.Interval: ("d + INTERVAL '-4000' YEAR", "s - INTERVAL -5 DAY", "d - INTERVAL '5' HOUR"),
    exp.TimeToStr: tuple(f"STRFTIME({c}, '{form}')" for c in "ds" for form in _FORMATS),
}
