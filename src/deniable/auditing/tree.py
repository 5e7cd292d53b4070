"""Any value as a plain tree, so that two runs can be compared part by part.

Types, lengths, keys and their order all count: each of them shows to whoever gets the value. What
is not data (functions, locks, connections) is told by its type and name alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import singledispatch
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from deniable.release import Answer

_DEEPEST = 60


@dataclass(frozen=True)
class Tree:
    """A type's name, what stands there itself, and the parts by name."""

    kind: str
    text: str = ""
    keys: tuple[str, ...] = ()
    parts: tuple[Tree, ...] = ()


@dataclass(frozen=True)
class Difference:
    """Where two trees first differ, and in what: type, shape, row set or value."""

    where: str
    what: str


def tree(value: object, depth: int = 0) -> Tree:
    """The plain tree of a value."""
    if depth > _DEEPEST:
        return Tree("too deep to compare", type(value).__name__)
    found = _table(value, depth)
    return branch(value, depth) if found is None else found


def difference(one: Tree, other: Tree, where: str = "the output") -> Difference | None:
    """The first difference, if there is one."""
    if one.kind != other.kind:
        return Difference(where, "type")
    if len(one.parts) != len(other.parts):
        return Difference(where, "shape" if not one.keys and not other.keys else "row set")
    if one.keys != other.keys:
        return Difference(where, "row set")
    if one.text != other.text:
        return Difference(where, "shape" if one.kind.startswith("array") else "value")
    names = one.keys or tuple(f"[{i}]" for i in range(len(one.parts)))
    for name, a, b in zip(names, one.parts, other.parts, strict=True):
        # Keys may be private: the place is told by its number.
        place = name if name.startswith(("[", ".")) else f"[{names.index(name)}]"
        found = difference(a, b, f"{where}{place}")
        if found:
            return found
    return None


@singledispatch
def branch(value: Any, depth: int) -> Tree:
    """A value of some type. Open by registration."""
    name = type(value).__qualname__
    if is_dataclass(value) and not isinstance(value, type):
        return _by_fields(value, [field.name for field in fields(value)], depth)
    if isinstance(value, Mapping):
        keys = tuple(repr(tree(key, depth + 1)) for key in value)
        return Tree(name, "", keys, tuple(tree(part, depth + 1) for part in value.values()))
    if isinstance(value, Iterator):
        return Tree(name, "", (), tuple(tree(part, depth + 1) for part in value))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return Tree(name, "", (), tuple(tree(part, depth + 1) for part in value))
    if isinstance(value, set | frozenset):
        return Tree(name, "", (), tuple(sorted((tree(v, depth + 1) for v in value), key=repr)))
    if isinstance(value, type | FunctionType | MethodType):
        return Tree("code", f"{value.__module__}.{value.__qualname__}")
    if type(value).__module__ in _PLAIN:
        return Tree(name, repr(value))
    attributes = getattr(value, "__dict__", None)
    if attributes and not callable(value):
        return _by_fields(value, sorted(attributes), depth)
    return Tree(name)


_PLAIN = frozenset({"builtins", "datetime", "decimal", "fractions", "uuid", "pathlib", "enum"})


def _by_fields(value: object, names: list[str], depth: int) -> Tree:
    parts = tuple(tree(getattr(value, name), depth + 1) for name in names)
    return Tree(type(value).__qualname__, "", tuple(f".{name}" for name in names), parts)


@branch.register
def _(value: float, depth: int) -> Tree:
    del depth
    return Tree(type(value).__name__, "nan" if math.isnan(value) else value.hex())


@branch.register
def _(value: np.generic, depth: int) -> Tree:
    return Tree(f"numpy {value.dtype}", "", (), (tree(value.item(), depth + 1),))


@branch.register
def _(value: np.ndarray, depth: int) -> Tree:
    parts = tuple(tree(part, depth + 1) for part in value.ravel().tolist())
    return Tree(f"array of {value.dtype}", str(value.shape), (), parts)


@branch.register
def _(value: BaseException, depth: int) -> Tree:
    """With all that it carries along: causes and contexts show in tracebacks."""
    carried = [value.args, value.__cause__, None if value.__suppress_context__ else _before(value)]
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return Tree(name, str(value), (), tuple(tree(part, depth + 1) for part in carried))


def _before(error: BaseException) -> BaseException | None:
    return error.__context__


@branch.register
def _(value: Answer, depth: int) -> Tree:
    """Without its head, which holds the time of the entry."""
    return _by_fields(value, ["value", "cost", "number", "repeated"], depth)


def _table(value: Any, depth: int) -> Tree | None:
    """Tables of pandas, polars and Arrow, told without importing any of them."""
    home = type(value).__module__.partition(".")[0]
    name = type(value).__qualname__
    if home == "pandas" and hasattr(value, "dtypes"):
        whole = (
            [str(column) for column in getattr(value, "columns", [getattr(value, "name", "")])],
            str(value.dtypes),
            value.index.tolist(),
            value.to_numpy(dtype=object),
        )
        return Tree(f"pandas {name}", "", (), tuple(tree(part, depth + 1) for part in whole))
    if home == "pyarrow" and hasattr(value, "to_pydict"):
        return _columns(f"pyarrow {name}", str(value.schema), value.to_pydict(), depth)
    if home == "polars" and hasattr(value, "to_dict"):
        return _columns(f"polars {name}", str(value.schema), value.to_dict(as_series=False), depth)
    return None


def _columns(kind: str, schema: str, columns: Mapping[str, list[Any]], depth: int) -> Tree:
    parts = (Tree("schema", schema), tree(dict(columns), depth + 1))
    return Tree(kind, "", (), parts)
