"""Productions: texts with holes, by what they make. A new aggregate or function is one more text.

`{number}` is filled with a number, `{bounded}` with one whose bounds follow, `{unit}` with the
unit's column, `{by}` with PARTITION BY the unit, and now and then a column of its rows,
`{column_text}` with a column and nothing else.
"""

AGGREGATES = (
    *("COUNT(*)", "COUNT(*)", "COUNT({any})", "COUNT(DISTINCT {unit})", "COUNT(DISTINCT {any})"),
    *(
        "SUM({bounded})",
        "SUM({bounded})",
        "AVG({bounded})",
        "AVG({bounded})",
        "COUNT_IF({boolean})",
    ),
    *("VARIANCE({bounded})", "VAR_POP({bounded})", "STDDEV({bounded})", "STDDEV_POP({bounded})"),
    *("VAR_SAMP({bounded})", "STDDEV_SAMP({bounded})"),
    "COUNT(*) FILTER (WHERE {boolean})",
    "SUM({bounded}) FILTER (WHERE {boolean})",
    "AVG({bounded}) FILTER (WHERE {boolean})",
    "COUNT(DISTINCT {unit}) FILTER (WHERE {boolean})",
    "COUNT(DISTINCT {any}) FILTER (WHERE {boolean})",
    "SUM(CASE WHEN {boolean} THEN {bounded} ELSE 0 END)",
    "SUM(CASE WHEN {boolean} THEN 1 ELSE 0 END)",
    *("MEDIAN({bounded})", "MIN({bounded})", "MAX({bounded})", "QUANTILE_CONT({bounded}, 0.9)"),
    "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY {bounded} DESC)",
    *("CORR({bounded}, {bounded})", "COVAR_SAMP({bounded}, {bounded})"),
)
GROUPINGS = (*["{}"] * 12, "ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())")
# Arithmetic on what is released.
OUTPUTS = (
    *["{aggregate}"] * 120,
    *("{aggregate} / {aggregate}", "{aggregate} * 2 - {aggregate}", "ROUND({aggregate} / 10, 1)"),
    *("100.0 * {aggregate} / NULLIF({aggregate}, 0)", "SQRT(ABS({aggregate}))", "-{aggregate}"),
    *("CASE WHEN {aggregate} > 3 THEN 1 ELSE 0 END", "COALESCE({aggregate}, {literal_number})"),
    *("{aggregate} // 3", "LN({aggregate})", "GREATEST({aggregate}, 0)", "{aggregate} > 1e3"),
    *("CAST({aggregate} AS INTEGER)", "{aggregate} % 7", "POW({aggregate}, 2)", "EXP({aggregate})"),
)
GROUPS = (
    *["{keyed}"] * 6,
    *("{boolean}", "{text}", "{column_text}", "{column_integer}", "{column_date}", "{integer}"),
    "CASE WHEN {boolean} THEN 'low' WHEN {boolean} THEN 'o''ne' ELSE 'high' END",
    *("EXTRACT(month FROM {date})", "QUARTER({date})", "EXTRACT(dow FROM {timestamp})"),
    *("DATE_TRUNC('month', {date})", "DATE_TRUNC('day', {timestamp})", "{column_timestamp}"),
    *("{bounded} // 10", "FLOOR({bounded} / 10)", "CAST({bounded} AS INTEGER) % 3"),
    *("WIDTH_BUCKET({bounded}, -5, 50, 7)", "WIDTH_BUCKET({number}, 0, 1, 3)"),
    *("LEFT({text}, 1)", "LENGTH({text})", "HOUR({timestamp})", "IF({boolean}, 1, 2)"),
)
# Within one unit: inner GROUP BY, and windows.
WITHIN = {
    "number": (
        *("COUNT(*)", "COUNT({any})", "COUNT(DISTINCT {any})", "SUM({number})", "SUM({integer})"),
        *("AVG({number})", "MIN({number})", "MAX({integer})", "MAX({integer}) - MIN({integer})"),
        *("COUNT(*) FILTER (WHERE {boolean})", "SUM({number}) FILTER (WHERE {boolean})"),
        *("SUM({number}) / COUNT(*)", "LN(COUNT(*) + SUM({number}))", "COUNT_IF({boolean})"),
        *("COALESCE(SUM({integer}), 0)", "CAST(MAX({text}) AS INTEGER)", "MAX({number})"),
        *("SUM({integer}) * SUM({integer})", "MIN({number}) + MAX({number})"),
    ),
    "text": ("MIN({text})", "MAX({text})"),
    "date": ("MIN({date})", "MAX({date})"),
    "timestamp": ("MIN({timestamp})", "MAX({timestamp})"),
}
_FRAME = "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"
WINDOWS = {
    "integer": (
        *("ROW_NUMBER() OVER ({by} ORDER BY {any})", "RANK() OVER ({by} ORDER BY {any} DESC)"),
        *("DENSE_RANK() OVER ({by} ORDER BY {any})", "SUM({integer}) OVER ({by})"),
        *("COUNT(*) OVER ({by} ORDER BY {any})", "LAG({integer}) OVER ({by} ORDER BY {any})"),
        "SUM({integer}) OVER ({by} ORDER BY {any} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        *("MIN({integer}) OVER ({by} ORDER BY {any})", "COUNT({number}) OVER ({by})"),
    ),
    "number": (
        *("MAX({number}) OVER ({by})", "MIN({number}) OVER ({by} ORDER BY {any})"),
        *("LEAD({number}, 2) OVER ({by} ORDER BY {any})", "FIRST_VALUE({number}) OVER ({by})"),
        "FIRST_VALUE({column_number}) OVER ({by} ORDER BY {column_number})",
        f"LAST_VALUE({{number}}) OVER ({{by}} ORDER BY {{number}} DESC {_FRAME})",
        "LAG({column_number}) OVER ({by} ORDER BY {column_number} DESC)",
    ),
    "text": (
        "FIRST_VALUE({text}) OVER ({by} ORDER BY {text})",
        "LAG({text}) OVER ({by} ORDER BY {column_number})",
        f"MAX({{text}}) OVER ({{by}} ORDER BY {{any}} {_FRAME})",
    ),
    "date": (
        f"LAST_VALUE({{date}}) OVER ({{by}} ORDER BY {{date}} {_FRAME})",
        "LEAD({date}) OVER ({by} ORDER BY {any})",
    ),
}
# What tells the places of rows, those that are equal among them; two of them stand in one SELECT.
PLACES = (
    *("ROW_NUMBER() OVER ({by} ORDER BY {any})", "ROW_NUMBER() OVER ({by} ORDER BY {any} DESC)"),
    *("ROW_NUMBER() OVER ({by})", "LAG({integer}) OVER ({by} ORDER BY {any} DESC)"),
    *("LEAD({integer}, 2) OVER ({by} ORDER BY {any}, {any})", "RANK() OVER ({by} ORDER BY {any})"),
    "COUNT(*) OVER ({by} ORDER BY {any} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "SUM({integer}) OVER ({by} ORDER BY {any} DESC ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)",
)
PAIRED = ("f = g", "f < g", "f > g", "f + g = 3", "f = 1 AND g = 2", "f = 2 OR g IS NULL")
# Conditions by which values that are equal, or look so, would be told apart.
TOLD_APART = {
    "integer": ("{} = 1", "{} > 0"),
    "number": ("POW({}, -1) > 0", "POW({}, -3) < 0"),
    "text": ("{} = 'é'", "LOWER({}) = 'a'", "{} ILIKE '%İ%'", "LENGTH({}) = 2"),
    "date": ("EXTRACT(week FROM {}) = 5", "DATE_TRUNC('week', {}) IS NULL"),
    "timestamp": ("CAST({} AS VARCHAR) LIKE '2024%'", "EXTRACT(epoch FROM {}) > 0"),
}
ALIKE = ("CASE WHEN {boolean} THEN {0} ELSE {0} END", "COALESCE({0}, {0})", "NULLIF({0}, {0})")
EXPRESSIONS = {
    "integer": (
        *("{integer} + {integer}", "{integer} - {integer}", "{integer} * {integer}", "-{integer}"),
        *("{integer} // {integer}", "{integer} % {integer}", "ABS({integer})", "LENGTH({text})"),
        *("CAST({number} AS INTEGER)", "CAST({text} AS BIGINT)", "EXTRACT(year FROM {date})"),
        *("MONTH({date})", "GREATEST({integer}, {integer})", "LEAST({integer}, {integer})"),
        *("DATE_DIFF('day', {date}, {date})", "STRPOS({text}, {literal_text})", "SIGN({integer})"),
        *("EXTRACT(week FROM {date})", "TRY_CAST({text} AS INTEGER)", "DAYOFYEAR({date})"),
        *(
            "{boolean}::INTEGER",
            "{integer}::SMALLINT",
            "DATE_DIFF('hour', {timestamp}, {timestamp})",
        ),
    ),
    "number": (
        *(
            "{number} + {integer}",
            "{number} - {number}",
            "{number} * {number}",
            "{number} / {number}",
        ),
        *("{integer} / {integer}", "SQRT({number})", "LN({number})", "EXP({number})", "-{number}"),
        *("POW({number}, -1)", "{number} * {literal_number}", "1 / {number}"),
        *("POW({number}, {integer})", "ROUND({number}, 1)", "FLOOR({number})", "CEIL({number})"),
        *("CAST({integer} AS DOUBLE)", "CAST({text} AS DOUBLE)", "LOG({number})", "ABS({number})"),
        *("CAST({number} AS DECIMAL(18, 2))", "{number} % {number}", "ROUND({number}, 2)"),
        *("EXTRACT(epoch FROM {timestamp})", "LEAST({number}, {number})", "{number}::FLOAT"),
    ),
    "text": (
        *("LOWER({text})", "UPPER({text})", "TRIM({text})", "{text} || {text}", "LEFT({text}, 2)"),
        *("SUBSTRING({text}, 1, 2)", "SUBSTRING({text}, 2, 3)", "RIGHT({text}, 1)"),
        *("REPLACE({text}, 'a', 'b')", "CAST({any} AS VARCHAR)", "CONCAT({text}, '-', {text})"),
        *("LEFT({text}, 3)", "STRFTIME({date}, '%Y-%m')", "REPLACE({text}, {literal_text}, 'x')"),
    ),
    "boolean": (
        *("{integer} > {integer}", "{number} <= {number}", "{text} = {text}", "{date} < {date}"),
        *(
            "{integer} BETWEEN {integer} AND {integer}",
            "{text} IN ('a', 'b', {text})",
            "{any} IS NULL",
        ),
        *("NOT {boolean}", "({boolean} AND {boolean})", "({boolean} OR {boolean})"),
        *(
            "{text} LIKE 'a%'",
            "{text} ILIKE {literal_text}",
            "{any} IS NOT NULL",
            "{number} <> {number}",
        ),
        *("{integer} NOT IN (1, 2, {integer})", "STARTS_WITH({text}, {text})", "{boolean} IS TRUE"),
        *("REGEXP_MATCHES({text}, 'a.?')", "{timestamp} >= {timestamp}"),
        *("{text} LIKE 'a!%%' ESCAPE '!'", "{text} SIMILAR TO '(a|b).*'"),
        *("{date} + INTERVAL 1 MONTH > {date}", "CAST({text} AS BOOLEAN)"),
        *("{text} ILIKE '%İ%'", "{text} ILIKE 'z%'", "LOWER({text}) = 'é'", "{number} > 0"),
        *("POW({column_number}, -1) > 0", "POW({column_number}, -1) < 0", "POW({number}, -3) >= 0"),
        *("{timestamp} > {date}", "{number} IN ({integer}, {number}, 0.5)"),
    ),
    "date": (
        *(
            "CAST({timestamp} AS DATE)",
            "CAST({text} AS DATE)",
            "CAST({date} + INTERVAL 3 DAY AS DATE)",
        ),
        *("CAST(DATE_TRUNC('year', {date}) AS DATE)", "{date} + 7", "{date} - 40"),
    ),
    "timestamp": (
        *(
            "CAST({date} AS TIMESTAMP)",
            "{date} + INTERVAL 10 YEAR",
            "DATE_TRUNC('hour', {timestamp})",
        ),
        *("DATE_TRUNC('week', {date})", "DATE_TRUNC('month', {timestamp})"),
        *("{timestamp} - INTERVAL 1 WEEK", "CAST({text} AS TIMESTAMP)"),
    ),
    "bounded": (
        *("{bounded} + {bounded}", "{bounded} - 2", "{bounded} * {bounded}", "{bounded} * 0.5"),
        *("ABS({bounded})", "GREATEST({bounded}, 1)", "LEAST({bounded}, {bounded})", "-{bounded}"),
        *(
            "CAST({bounded} AS INTEGER)",
            "COALESCE({bounded}, 0)",
            "ROUND({bounded})",
            "{bounded} / 7",
        ),
        *("CASE WHEN {boolean} THEN {bounded} END", "IF({boolean}, {bounded}, 2.5)"),
        *("CAST({boolean} AS INTEGER)", "SQRT({bounded})", "EXTRACT(month FROM {date})"),
        *("FLOOR({bounded})", "CAST({bounded} AS DOUBLE)"),
    ),
}
# What types keep apart: refused, or what the engine makes of it.
MIXED = {
    "integer": ("STRPOS({text}, {text})", "{boolean} + {integer}"),
    "number": ("ROUND({number}, {integer})", "{number} + {text}"),
    "text": (
        "SUBSTRING({text}, {integer}, {integer})",
        "LEFT({text}, {integer})",
        "{integer} || ''",
    ),
    "boolean": (
        *("{text} = {integer}", "{date} = {text}", "{integer} = {boolean}", "{text} > {date}"),
        *("{text} LIKE {text} ESCAPE '!'", "REGEXP_MATCHES({text}, {text})", "{text}"),
        *("{text} SIMILAR TO {text}", "{number} IN ({integer}, {number}, NULL)"),
    ),
    "date": ("{date} + {integer}", "{date} - {integer}", "{timestamp}"),
    "timestamp": ("{timestamp} + {integer}", "{text}"),
    "bounded": ("{bounded} + {text}",),
}
LITERALS = {
    "integer": ("0", "1", "2", "7", "40", "-3"),
    "number": ("0.5", "2.25", "17", "1e3", "-0.25"),
    "text": ("'a'", "'b'", "'Ada'", "'5'", "'%a'"),
    "boolean": ("TRUE", "FALSE"),
    "date": ("DATE '2024-02-29'", "DATE '2023-12-31'"),
    "timestamp": ("TIMESTAMP '2024-01-31 12:00:00'", "DATE_TRUNC('hour', DATE '2024-01-31')"),
}
HOSTILE_LITERALS = {
    "integer": ("9223372036854775807", "-9223372036854775808", "99999999999999999999", "NULL"),
    "number": ("1e308", "1e400", "-0.0", "'nan'::DOUBLE", "5e-324", "0.1e0", "NULL", "1e-400"),
    "text": ("''", "'O''Neill'", "'\\'", "'😀'", "'%%_'", "'(['", "'nan'", "NULL", "'a\0b'"),
    "boolean": ("NULL", "1", "'true'", "'maybe'"),
    "date": ("DATE '9999-12-31'", "DATE '0001-01-01'", "'2024-13-45'", "NULL", "DATE 'infinity'"),
    "timestamp": (
        "TIMESTAMP '9999-12-31 23:59:59'",
        "NULL",
        "'now'::TIMESTAMP",
        "DATE '2024-01-01'",
    ),
}
BROKEN = (
    "SELECT * FROM {table}",
    "DROP TABLE {table}",
    "SELECT COUNT(*) FROM {table}; SELECT 1",
    "INSERT INTO {table} VALUES (1)",
    "COPY {table} TO '/tmp/out.csv'",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "PRAGMA database_list",
    "ATTACH 'x.db'",
    "SELECT MAX({column}) FROM {table}",
    "SELECT {column} FROM {table}",
    "SELECT COUNT(*) FROM {table} WHERE RANDOM() < 0.5",
    "SELECT COUNT(*) FROM {table} LIMIT (SELECT COUNT(*) FROM {table})",
    "SELECT {column}, COUNT(*) FROM {table} GROUP BY ROLLUP ({column})",
    "SELECT COUNT(*) FROM {table} AS a, {table} AS b",
    "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT COUNT(*) FROM r, {table}",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM {table}",
    "SELECT COUNT(*) FROM {table} WHERE EXISTS (SELECT 1 FROM {table} WHERE {column} IS NULL)",
    "SELECT ERROR({column}) FROM {table}",
    "SELECT COUNT(*) FROM {table} USING SAMPLE 10%",
    "SELECT LIST({column}), ANY_VALUE({column}), STRING_AGG({column}) FROM {table}",
)
