"""Which columns of tables in memory are read, by a closed list of their types.

Arrow has more types than an engine reads. Some end it, whatever they hold; of some it makes one of
two cells; and some are not what they seem, as objects of Python, of which only the address is
handed on. So what is read is listed, and nothing else reaches the engine: no type that somebody
made, and no notes on columns, by which an engine takes bytes for a type of its own.

Nothing that makes or reads an Arrow table looks whether its cells lie where it says. An engine that
follows one elsewhere reads what lies there in memory, or ends the process. So that is looked at.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from deniable.engines.leaves import NESTED, unknown
from deniable.engines.sources import check_names
from deniable.errors import ParameterError

_PLAIN = frozenset(
    {"Boolean", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"}
    | {"Float32", "Float64", "Decimal", "String", "Categorical", "Enum", "Binary", "Date"}
    | {"Datetime"}
)
"""Types of polars that Arrow knows as they are."""
_WIDE = frozenset({"Int128", "UInt128"})
_NESTED = frozenset({"List", "Array", "Struct", "Map"})

_FAR = "its times count seconds or milliseconds with a zone, and one that lies too far would end "
_FAR += "every question; store microseconds"
_WRAPPED = "nothing can be asked about a type of somebody's own within another"


@dataclass(frozen=True)
class Frame:
    """An Arrow table of the columns that are read, and why others are not."""

    table: Any
    hidden: dict[str, str] = field(default_factory=dict)


def of_arrow(table: Any) -> Frame:
    """The columns of types that are listed; those that somebody made are read as what stores them.

    Times in seconds or milliseconds with a zone fail where they lie too far. Days that are counted
    in milliseconds are cut to whole days, and wrap around: two people's would be one. Fractions of
    16 bits, decimals of 32 bytes and those without room for their places fail whatever they are.
    """
    import pyarrow  # noqa: PLC0415  (slow to import, and there already with such a table)

    check_names(table.column_names)
    kept, hidden = {}, {}
    for name, given in zip(table.column_names, table.columns, strict=True):
        column = given
        while _is_somebodys(pyarrow, column.type):
            stored = [chunk.storage for chunk in column.chunks]
            column = pyarrow.chunked_array(stored, column.type.storage_type)
        if why := _why_unread(pyarrow, column.type):
            hidden[name] = why
        else:
            _check_lies_within(pyarrow, name, column)
            kept[name] = _within(pyarrow, column)
    return Frame(pyarrow.table(kept), hidden)


def _check_lies_within(arrow: Any, name: str, column: Any) -> None:
    """Refuse a column whose cells do not lie in its own memory, one after the other."""
    try:
        for chunk in column.chunks:
            _check_chunk(arrow, chunk)
    except (arrow.ArrowException, _AstrayError):
        astray = True
    else:
        astray = False
    if astray:  # out here, for what Arrow says quotes numbers
        raise ParameterError(
            "source", name, "is damaged: its cells do not lie where the Arrow table says"
        )


def _check_chunk(arrow: Any, array: Any) -> None:
    """Raise where cells lie astray. Whether a text is one, its leaf looks at, cell by cell."""
    types, kind = arrow.types, array.type
    array.validate()
    if types.is_dictionary(kind):
        _check_chunk(arrow, array.dictionary)
    elif types.is_run_end_encoded(kind):
        ends = array.run_ends.to_numpy()
        if (ends < 1).any() or (ends[1:] <= ends[:-1]).any():
            raise _AstrayError
        _check_chunk(arrow, array.values)
    elif (stored := _bytes_of(arrow, kind)) is not None:
        array.view(stored).validate(full=True)


def _bytes_of(arrow: Any, kind: Any) -> Any:
    """What stores cells of different lengths, as bytes; None of other types."""
    return {
        arrow.string(): arrow.binary(),
        arrow.binary(): arrow.binary(),
        arrow.large_string(): arrow.large_binary(),
        arrow.large_binary(): arrow.large_binary(),
        arrow.string_view(): arrow.binary_view(),
        arrow.binary_view(): arrow.binary_view(),
    }.get(kind)


class _AstrayError(Exception):
    """Cells do not lie one after the other."""


def _within(arrow: Any, column: Any) -> Any:
    """A column in which cells that point beside their dictionary are missing."""
    if not arrow.types.is_dictionary(column.type):
        return column
    from pyarrow import compute  # noqa: PLC0415  (slow to import)

    chunks = []
    for chunk in column.chunks:
        size = arrow.scalar(len(chunk.dictionary), arrow.uint64())
        inside = compute.less(chunk.indices.cast(arrow.uint64(), safe=False), size)
        places = compute.if_else(inside, chunk.indices, None)
        made = arrow.DictionaryArray.from_arrays(
            places, chunk.dictionary, ordered=chunk.type.ordered, safe=False
        )
        chunks.append(made)
    return arrow.chunked_array(chunks, column.type)


def of_polars(source: Any, declared: Collection[str]) -> Frame:
    """The columns of types that are listed; whole numbers of 128 bits as text, where declared."""
    import polars  # noqa: PLC0415  (slow to import, and there already with such a table)
    import pyarrow  # noqa: PLC0415

    check_names(source.columns)
    hidden, texts = {}, {}
    for name, kind in source.schema.items():
        called = type(kind).__name__
        if called in _WIDE and name.lower() in declared:
            texts[name] = polars.String
        elif called in _WIDE:
            hidden[name] = "its whole numbers have 128 bits; declare it, as text or what it is"
        elif called in _NESTED:
            hidden[name] = NESTED
        elif called not in _PLAIN:
            hidden[name] = unknown(f"{called} of polars")
    found = of_arrow(pyarrow.table(source.drop(list(hidden)).cast(texts)))
    return Frame(found.table, hidden | found.hidden)


def _is_somebodys(arrow: Any, kind: Any) -> bool:
    """Whether it is a type that is none of Arrow's own, but stored as one."""
    own = (arrow.UuidType, arrow.Bool8Type, arrow.JsonType, arrow.OpaqueType)
    return isinstance(kind, arrow.BaseExtensionType) and type(kind) not in own


def _why_unread(arrow: Any, kind: Any) -> str:
    """Why no column of a type is read; empty if it is."""
    types = arrow.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        inner = kind.value_type
        is_made = isinstance(inner, arrow.BaseExtensionType)
        return _WRAPPED if is_made else _why_unread(arrow, inner)
    if type(kind) in (arrow.UuidType, arrow.Bool8Type):
        return ""
    if types.is_nested(kind):
        return NESTED
    if types.is_timestamp(kind):
        return _FAR if kind.tz and kind.unit in {"s", "ms"} else ""
    if types.is_decimal(kind) and not types.is_decimal256(kind):
        return "" if 0 <= kind.scale <= kind.precision else unknown(kind)
    listed = (
        *(types.is_integer, types.is_float32, types.is_float64, types.is_boolean, types.is_date32),
        *(types.is_string, types.is_large_string, types.is_binary, types.is_large_binary),
        *(types.is_fixed_size_binary, types.is_string_view, types.is_binary_view),
    )
    return "" if any(is_kind(kind) for is_kind in listed) else unknown(kind)
