"""Any value as a plain tree, so that two runs can be compared part by part.

Types, lengths, keys and their order all count: each of them shows to whoever gets the value. Trees
survive pickling, whatever they were made of.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import hashlib
import io
import math
import pathlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from deniable.lazy import lazy
from deniable.release import Release

_DEEPEST = 200
_PLAIN = (
    bool,
    bytearray,
    bytes,
    complex,
    int,
    range,
    str,
    type(None),
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
    pathlib.PosixPath,
)
OPAQUE = "cannot be compared"


@dataclass(frozen=True)
class Tree:
    """A type's name, what stands there itself, and the parts by name."""

    kind: str
    text: str = ""
    keys: tuple[str, ...] = ()
    parts: tuple[Tree, ...] = ()


@dataclass(frozen=True)
class TreeDifference:
    """Where two trees first differ, and in what: type, shape, row set or value."""

    where: str
    what: str


def tree(value: object) -> Tree:
    """The plain tree of a value."""
    return _Planter().plant(value, 0)


def opaque(node: Tree) -> str | None:
    """The type of a part that cannot be compared, if there is one."""
    if node.kind == OPAQUE:
        return node.text
    return next((found for part in node.parts if (found := opaque(part))), None)


def difference(one: Tree, other: Tree, where: str = "the output") -> TreeDifference | None:
    """The first difference, if there is one."""
    if one == other:
        return None
    if one.kind != other.kind:
        return TreeDifference(where, "type")
    if len(one.parts) != len(other.parts):
        return TreeDifference(where, "shape" if not one.keys and not other.keys else "row set")
    if one.keys != other.keys:
        return TreeDifference(where, "row set")
    if one.text != other.text:
        sized = one.kind.startswith("array") and one.text.split("#")[0] != other.text.split("#")[0]
        return TreeDifference(where, "shape" if sized else "value")
    names = one.keys or tuple(f"[{i}]" for i in range(len(one.parts)))
    for number, (name, a, b) in enumerate(zip(names, one.parts, other.parts, strict=True)):
        # Keys may be private: the place is told by its number.
        place = name if name.startswith(("[", ".")) else f"[{number}]"
        found = difference(a, b, f"{where}{place}")
        if found:
            return found
    return TreeDifference(where, "value")


class _Planter:
    """Makes one tree; what was met before is named, so that cycles end."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[int, object]] = {}

    def plant(self, value: Any, depth: int) -> Tree:
        if type(value) in _PLAIN:
            return Tree(type(value).__name__, repr(value))
        if isinstance(value, float) and type(value) is float:
            return Tree("float", "nan" if math.isnan(value) else value.hex())
        if id(value) in self._met:
            return Tree("met before", str(self._met[id(value)][0]))
        self._met[id(value)] = (len(self._met), value)  # kept, so that no other takes its id
        if depth > _DEEPEST:
            return Tree(OPAQUE, "something nested very deeply")
        try:
            return self._by_kind(value, depth + 1)
        except Exception:  # whatever an object does when it is looked at
            return Tree(OPAQUE, type(value).__qualname__)

    def _by_kind(self, value: Any, depth: int) -> Tree:
        name = type(value).__qualname__
        found = self._table(value, depth) or self._code(value, depth)
        if found is not None:
            return found
        if isinstance(value, np.generic):
            return Tree(f"numpy {value.dtype}", "", (), (self.plant(value.item(), depth),))
        if isinstance(value, np.ndarray):
            return self._array(value, depth)
        if isinstance(value, BaseException):
            return self._error(value, depth)
        if isinstance(value, Release):  # without its head, which holds the time of the entry
            return self._named(name, value, ["value", "cost", "number", "repeated"], depth)
        if dataclasses.is_dataclass(value):
            inside = [field.name for field in dataclasses.fields(value)]
            kept = getattr(value, "__dict__", {})
            extra = [n for n in kept if not n.startswith("_") and not _computed(value, n)]
            return self._named(name, value, list(dict.fromkeys(inside + extra)), depth)
        if isinstance(value, Mapping):
            keys = tuple(repr(self.plant(key, depth)) for key in value)
            parts = [self.plant(part, depth) for part in value.values()]
            return Tree(name, "", keys, (*parts, *self._extra(value, dict, depth)))
        if isinstance(value, list | tuple):
            parts = [self.plant(part, depth) for part in value]
            return Tree(name, "", (), (*parts, *self._extra(value, list, depth)))
        if isinstance(value, set | frozenset):
            return Tree(
                name, "", (), tuple(sorted((self.plant(v, depth) for v in value), key=repr))
            )
        if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
            return Tree(name, "", (), tuple(self.plant(part, depth) for part in value))
        if isinstance(value, io.StringIO | io.BytesIO):
            return Tree(name, "", (), (self.plant(value.getvalue(), depth),))
        return self._reduced(value, depth)

    def _extra(self, value: object, usual: type, depth: int) -> list[Tree]:
        """Attributes that a subclass of a container carries along."""
        if type(value) in {usual, tuple, dict, list} or not getattr(value, "__dict__", None):
            return []
        return [self.plant(dict(vars(value)), depth)]

    def _named(self, name: str, value: object, names: list[str], depth: int) -> Tree:
        parts = tuple(self.plant(getattr(value, each), depth) for each in names)
        return Tree(name, "", tuple(f".{each}" for each in names), parts)

    def _array(self, value: Any, depth: int) -> Tree:
        if value.dtype.hasobject:
            parts = tuple(self.plant(part, depth) for part in value.ravel().tolist())
            return Tree("array of objects", f"{value.shape}#", (), parts)
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        hidden = (
            ()
            if not isinstance(value, np.ma.MaskedArray)
            else (
                self.plant(np.array(value.mask), depth),
                self.plant(np.array(value.data), depth),
            )
        )
        return Tree(f"array of {value.dtype}", f"{value.shape}#{digest}", (), hidden)

    def _error(self, value: BaseException, depth: int) -> Tree:
        """With all that it carries along: causes, contexts, notes and attributes show."""
        before = None if value.__suppress_context__ else value.__context__
        carried = [value.args, value.__cause__, before, dict(vars(value))]
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        return Tree(name, str(value), (), tuple(self.plant(part, depth) for part in carried))

    def _code(self, value: Any, depth: int) -> Tree | None:
        """Code by its name and by what it holds: cells and defaults may be private."""
        if isinstance(value, FunctionType):
            cells = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
            held = (value.__code__, cells, value.__defaults__, value.__kwdefaults__)
            parts = tuple(self.plant(part, depth) for part in held)
            return Tree("function", f"{value.__module__}.{value.__qualname__}", (), parts)
        if isinstance(value, CodeType):
            constants = [c for c in value.co_consts if not isinstance(c, CodeType)]
            return Tree("code", value.co_code.hex(), (), (self.plant(constants, depth),))
        if isinstance(value, MethodType):
            return Tree("method", value.__qualname__, (), (self.plant(value.__self__, depth),))
        if isinstance(value, ModuleType):
            return Tree("module", value.__name__)
        if isinstance(value, type | BuiltinFunctionType):
            bound = getattr(value, "__self__", None)
            own = None if isinstance(bound, ModuleType | type) else bound
            name = f"{value.__module__ or ''}.{value.__qualname__}"
            return Tree("name", name, (), (self.plant(own, depth),))
        return None

    def _reduced(self, value: Any, depth: int) -> Tree:
        """Anything else by what it would be pickled from, which holds slots and attributes."""
        name = type(value).__qualname__
        made = value.__reduce_ex__(4)
        if isinstance(made, str):
            return Tree(name, made)
        return Tree(name, "", (), tuple(self.plant(part, depth) for part in made[1:]))

    def _table(self, value: Any, depth: int) -> Tree | None:
        """Tables of pandas, polars and Arrow, told without importing any of them."""
        home = type(value).__module__.partition(".")[0]
        name = f"{home} {type(value).__qualname__}"
        if home == "pandas" and hasattr(value, "dtypes") and hasattr(value, "index"):
            heads = [str(c) for c in getattr(value, "columns", [getattr(value, "name", "")])]
            whole = [heads, str(value.dtypes), value.index.tolist(), value.to_numpy(dtype=object)]
        elif home == "pyarrow" and hasattr(value, "to_pydict"):
            whole = [str(value.schema), value.schema.metadata, dict(value.to_pydict())]
        elif home == "pyarrow" and (hasattr(value, "to_pylist") or hasattr(value, "as_py")):
            plain = value.to_pylist() if hasattr(value, "to_pylist") else value.as_py()
            whole = [str(value.type), plain]
        elif home == "polars" and hasattr(value, "to_dict"):
            whole = [str(value.schema), dict(value.to_dict(as_series=False))]
        else:
            return None
        return Tree(name, "", (), tuple(self.plant(part, depth) for part in whole))


def _computed(value: object, name: str) -> bool:
    """Whether an attribute only keeps what its owner computed from its fields, if it was asked."""
    return isinstance(getattr(type(value), name, None), lazy)


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name that is not bound yet
        return False
