"""Long chains of AND and OR, as trees of halves: their depth is the logarithm of their length.

Both are associative, also with NULL, so a chain means the same however it is put in brackets.
"""

from __future__ import annotations

from sqlglot import exp

_LONG = 16


def halved(tree: exp.Expr) -> None:
    """Put brackets into every chain of more than 16 conditions."""
    for node in list(tree.find_all(exp.And, exp.Or)):
        if type(node.parent) is type(node):
            continue  # a part of another chain
        parts = _parts(node)
        if len(parts) > _LONG:
            node.replace(_joined(type(node), parts))


def _parts(chain: exp.Expr) -> list[exp.Expr]:
    found, waiting = list[exp.Expr](), [chain]
    while waiting:
        node = waiting.pop()
        if type(node) is type(chain):
            waiting += [node.args["expression"], node.this]
        else:
            found.append(node)
    return found


def _joined(kind: type[exp.Expr], parts: list[exp.Expr]) -> exp.Expr:
    middle = len(parts) // 2
    halves = [
        half[0] if len(half) == 1 else exp.paren(_joined(kind, half), copy=False)
        for half in (parts[:middle], parts[middle:])
    ]
    return kind(this=halves[0], expression=halves[1])
