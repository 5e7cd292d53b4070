"""Types that compare without a cast that can fail."""

from __future__ import annotations

from sqlglot import exp

TEXTS = {exp.DataType.Type.VARCHAR, exp.DataType.Type.TEXT, exp.DataType.Type.CHAR}
INTEGERS = {
    exp.DataType.Type.TINYINT,
    exp.DataType.Type.SMALLINT,
    exp.DataType.Type.INT,
    exp.DataType.Type.BIGINT,
    exp.DataType.Type.INT128,
}
NUMBERS = {
    *INTEGERS,
    exp.DataType.Type.DOUBLE,
    exp.DataType.Type.FLOAT,
    exp.DataType.Type.DECIMAL,
}
DATES = {exp.DataType.Type.DATE}
TIMES = {exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ}


def family(node: exp.Expr) -> str | None:
    """Types that compare without a cast that can fail."""
    kind = node.type.this if node.type is not None else None
    for name, members in (
        ("text", TEXTS),
        ("number", NUMBERS),
        ("date", DATES),
        ("time", TIMES),
    ):
        if kind in members:
            return name
    return "boolean" if kind == exp.DataType.Type.BOOLEAN else None


def branches(node: exp.Expr) -> list[exp.Expr]:
    """What a CASE or IF can give; NULL, which is no number, left out."""
    given = [branch.args["true"] for branch in node.args.get("ifs", [node])]
    other = node.args.get("default") or node.args.get("false")
    if other is not None:
        given.append(other)
    return [branch for branch in given if not isinstance(branch, exp.Null)]


def arguments(node: exp.Expr) -> list[exp.Expr]:
    """What a function is computed from."""
    return list(node.iter_expressions())
