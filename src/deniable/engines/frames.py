"""Tables in memory: each becomes one Arrow table, read once, that nothing changes any more.

The types of an Arrow or polars table are declared; those of a pandas table follow its values: one
missing value makes whole numbers fractions, one fraction makes the texts of numbers others. So of a
pandas table the types are declared, and each cell is read as one of its declared type by itself.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from deniable.engines.arrow_columns import Frame, of_arrow, of_polars
from deniable.engines.leaves import check_read
from deniable.engines.sources import check_names
from deniable.errors import ParameterError
from deniable.held import is_pandas, opened
from deniable.tables import ColumnType, hold

if TYPE_CHECKING:
    import numpy.typing as npt

_WHOLE = re.compile(r"[+-]?\d{1,19}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOST = 1 << 63
_ROUNDED = float(1 << 53)
_AT_A_TIME = 1 << 14


def pinned_frame(
    source: Any, columns: Mapping[str, ColumnType] | None, unit: str | None = None
) -> Any:
    """An Arrow table of what is in memory now, without columns that an engine may fail to read.

    The unit is named in lower case.
    """
    source = opened(hold(source))
    if is_pandas(source) and columns is None:
        raise ParameterError(
            "columns",
            "none",
            "the types of a pandas table follow its values; declare them: " + _drafted(source),
        )
    import pyarrow  # noqa: PLC0415  (slow to import)

    if is_pandas(source):
        with _numpy().errstate(all="ignore"):  # a number too large for its type would warn
            found = Frame(_from_pandas(source, columns or {}, unit))
    elif isinstance(source, pyarrow.Table):
        found = of_arrow(source)
    elif isinstance(source, pyarrow.RecordBatch):
        found = of_arrow(pyarrow.Table.from_batches([source]))
    else:
        found = of_polars(source, {name.lower() for name in columns or {}})
    check_read(columns, found.hidden)
    if unit is not None and (why := found.hidden.get(unit)):
        raise ParameterError("unit", unit, f"cannot be read: {why}")
    if not found.table.num_columns:
        why = "".join(f"; {name}: {why}" for name, why in found.hidden.items())
        raise ParameterError("source", "a table", f"has no column that is read{why}")
    return _copied(found.table)


def _copied(table: Any) -> Any:
    """The same in memory of our own: its buffers may be an array's or a file's, and change."""
    import pyarrow  # noqa: PLC0415  (slow to import, and there already with such a table)

    written = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(written, table.schema) as stream:
        stream.write_table(table)
    return pyarrow.ipc.open_stream(written.getvalue()).read_all()


def pandas_cells(values: Any) -> npt.NDArray[Any] | None:
    """What pandas holds, as an array of cells as each would be alone; None of anything else.

    Where all columns are of real numbers they are that, however they are held.
    """
    import numpy  # noqa: PLC0415  (not needed where there is no table in memory)

    columns = _columns_of(values)
    if columns is None:
        return None
    kinds = [column.dtype for column in columns]
    if all(isinstance(kind, numpy.dtype) and kind.kind in "fiub" for kind in kinds):
        return numpy.asarray(values)
    cells = numpy.empty((len(values), len(columns)), dtype=object)
    with warnings.catch_warnings(action="ignore"):  # one would tell of a row
        for place, column in enumerate(columns):
            read = map(_read_by(_alone), _each(column.array))
            cells[:, place] = numpy.fromiter(read, object, len(column))
    return cells if is_pandas(values) else cells[:, 0]


def _alone(value: Any) -> Any:
    """A cell as pandas holds it in a column of its kind."""
    if isinstance(value, datetime):
        return _pandas().Timestamp(value)
    return _pandas().Timedelta(value) if isinstance(value, timedelta) else value


def _columns_of(values: Any) -> list[Any] | None:
    """The columns of a pandas table, or the one of a Series or its like."""
    if is_pandas(values):
        return [values.iloc[:, place] for place in range(values.shape[1])]
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return None
    rows = (pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray)
    return [pandas.Series(values)] if isinstance(values, rows) else None


def arrow_types() -> dict[ColumnType, Any]:
    """How Arrow holds each canonical type."""
    import pyarrow  # noqa: PLC0415  (slow to import)

    return {
        ColumnType.INTEGER: pyarrow.int64(),
        ColumnType.NUMBER: pyarrow.float64(),
        ColumnType.TEXT: pyarrow.string(),
        ColumnType.BOOLEAN: pyarrow.bool_(),
        ColumnType.DATE: pyarrow.date32(),
        ColumnType.TIMESTAMP: pyarrow.timestamp("us"),
    }


def _drafted(source: Any) -> str:
    """What to write, from names and the types as they are now."""
    kinds = {"b": "boolean", "i": "integer", "u": "integer", "f": "number", "M": "timestamp"}
    drafted = {str(name): kinds.get(kind.kind, "text") for name, kind in source.dtypes.items()}
    return f"columns={drafted}"


def _from_pandas(source: Any, columns: Mapping[str, ColumnType], unit: str | None) -> Any:
    import pyarrow  # noqa: PLC0415  (slow to import)

    check_names([str(name) for name in source.columns])
    by_name = {str(name).lower(): name for name in source.columns}
    kinds = arrow_types()
    arrays = {}
    for name, kind in columns.items():
        if name.lower() in by_name:
            column = source[by_name[name.lower()]]
            _check_exact(name, kind, column)
            if name.lower() == unit:
                _check_unit(name, kind, column)
            form = _AT_ONCE.get((column.dtype.kind, kind))
            if form is not None and not column.hasnans:
                arrays[name] = pyarrow.array(column.to_numpy(dtype=form, copy=True), kinds[kind])
            else:
                arrays[name] = pyarrow.array(map(_CELLS[kind], _each(column.array)), kinds[kind])
    return pyarrow.table(arrays)


def _each(array: Any) -> Iterator[Any]:
    """The cells of a column. One that pandas cannot give, as a time too far, is missing."""
    for start in range(0, len(array), _AT_A_TIME):
        yield from _given(array[start : start + _AT_A_TIME])


def _given(array: Any) -> list[Any]:
    try:
        return list(array)
    except Exception:
        half = len(array) // 2
        return [*_given(array[:half]), *_given(array[half:])] if half else [None]


def _check_exact(name: str, kind: ColumnType, column: Any) -> None:
    """Refuse whole numbers that pandas holds as fractions, and has rounded: two may be one."""
    if kind not in {ColumnType.INTEGER, ColumnType.TEXT}:
        return
    values = getattr(column.dtype, "categories", column)  # each once, of a column of categories
    if values.dtype.kind in "fc":
        sizes = abs(values)
        rounded = bool(((sizes >= _ROUNDED) & (sizes < math.inf)).any())
    else:
        cells = _each(values.array)
        fractions = (each for each in cells if isinstance(each, float) and math.isfinite(each))
        rounded = values.dtype.kind == "O" and any(abs(each) >= _ROUNDED for each in fractions)
    if rounded:
        raise ParameterError(
            "columns",
            name,
            "pandas holds it as fractions, as a cell is missing or not whole, and rounds beyond "
            "2^53; give it as text, or as pandas' Int64",
        )


def _check_unit(name: str, kind: ColumnType, column: Any) -> None:
    """Refuse a unit whose cells are not all of one kind that stays as it is when it is read.

    Read as whole numbers, "7" and "007" are one; read as text, 7 and "7" are; read as days, two
    times of one day are.
    """
    values = getattr(column.dtype, "categories", column)  # each once, of a column of categories
    cells = values.array
    if isinstance(values.dtype, _numpy().dtype) and values.dtype.kind in "iuf":
        cells = cells[:1]  # all are of its type
    kinds = {_kind_of(type(each)) for each in _each(cells) if not _is_missing(each)}
    if len(kinds) > 1 or not kinds <= _UNIT_KINDS.get(kind, frozenset()):
        raise ParameterError(
            "unit",
            name,
            f"its cells are not all of one kind that can be read as {kind} just as they stand, so "
            "two people may become one; give whole numbers, texts or dates alone, and declare them "
            "as what they are",
        )


_NUMBERS, _DATES = "numbers", "dates"
_PLAIN_KINDS = {str: "texts", int: _NUMBERS, float: _NUMBERS, date: _DATES, Decimal: "decimals"}
_UNIT_KINDS = {
    ColumnType.INTEGER: {_NUMBERS},
    ColumnType.DATE: {_DATES},
    ColumnType.TEXT: set(_PLAIN_KINDS.values()),
}
"""What cells of a unit may be, all of them, so that different ones are read as different ones."""


def _kind_of(cell: type) -> str | None:
    """The kind of cells of a Python type, or of one of NumPy's that holds the same."""
    numpy = _numpy()
    if issubclass(cell, numpy.generic) and not issubclass(cell, numpy.longdouble):
        cell = {"i": int, "u": int, "f": float, "U": str}.get(numpy.dtype(cell).kind, cell)
    return _PLAIN_KINDS.get(cell)


def _is_missing(value: Any) -> bool:
    plain = _plain(value)
    return plain is None or (isinstance(plain, float) and math.isnan(plain))


def _numpy() -> Any:
    import numpy  # noqa: PLC0415  (slow to import, and there already with a pandas table)

    return numpy


def _pandas() -> Any:
    import pandas  # noqa: PLC0415  (slow to import, and there already with a pandas table)

    return pandas


# Kinds of NumPy's whose cells are read all at once, and as each would be by itself.
_AT_ONCE = {
    ("i", ColumnType.INTEGER): "int64",
    **dict.fromkeys(((kind, ColumnType.NUMBER) for kind in "iuf"), "float64"),
    ("b", ColumnType.BOOLEAN): "bool",
}


def _plain(value: Any) -> Any:
    """A cell without NumPy's or pandas' clothes; None where it is missing.

    One cell decides how pandas holds a column: all numbers of one with a complex cell are complex,
    and times beside a text are NumPy's own. So each is read as it would be in a column of its kind.
    """
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if isinstance(value, str | bool | int | float | datetime | date):
        return value
    numpy = _numpy()
    if isinstance(value, numpy.datetime64 | numpy.timedelta64):
        return _moment(value)
    if isinstance(value, numpy.longdouble):
        return float(value)
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", 0) == 0:
        value = item()
    if isinstance(value, complex):
        return float(value.real) if value.imag == 0 else None
    return value


def _moment(value: Any) -> Any:
    """A time or time span of NumPy's as pandas has it; None where it has none."""
    kind = _pandas().Timestamp if isinstance(value, _numpy().datetime64) else _pandas().Timedelta
    try:
        made = kind(value)
    except Exception:
        return None
    return None if made is _pandas().NaT else made


def _read_by(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of a cell; whatever goes wrong makes it missing, and is not told."""

    def cell(value: Any) -> Any:
        try:
            plain = _plain(value)
            return None if plain is None else read(plain)
        except Exception:
            return None

    return cell


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and not _WHOLE.fullmatch(value.strip()):
        return None
    # Compared first: a decimal of a few signs may have more digits than any memory holds.
    if not isinstance(value, str) and not -_MOST <= value < _MOST:
        return None
    number = int(value)
    exact = isinstance(value, str) or number == value
    return number if exact and -_MOST <= number < _MOST else None


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _text(value: Any) -> str | None:
    """As it prints; whole numbers alike, whether pandas holds them as fractions or not.

    Of whatever else Python holds, what prints may be where it lies in memory.
    """
    if isinstance(value, _pandas().Interval):
        return _interval(value)
    if isinstance(value, timedelta):
        value = _pandas().Timedelta(value)  # Python prints its own otherwise
    if not isinstance(value, (*_PRINTED, _pandas().Period)):
        return None
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer():
            value = int(value)
    text = str(value)
    text.encode()
    return text


def _interval(value: Any) -> str | None:
    """With ends as they print by themselves: one fraction makes fractions of a column's ends."""
    ends = [_plain(value.left), _plain(value.right)]
    if any(isinstance(end, int | float) and abs(end) >= _ROUNDED for end in ends):
        return None
    left, right = map(_text, ends)
    opening, closing = "[" if value.closed_left else "(", "]" if value.closed_right else ")"
    return f"{opening}{left}, {right}{closing}"


_PRINTED = (str, bool, int, float, Decimal, date, time, timedelta, UUID, bytes)


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return bool(value) if value in {0, 1} else None


def _time(value: Any) -> datetime | None:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip()) if _DAY.match(value.strip()) else None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    moved = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return datetime(*moved.timetuple()[:6], moved.microsecond)


def _day(value: Any) -> date | None:
    moment = _time(value)
    return None if moment is None else moment.date()


_CELLS = {
    ColumnType.INTEGER: _read_by(_whole),
    ColumnType.NUMBER: _read_by(_number),
    ColumnType.TEXT: _read_by(_text),
    ColumnType.BOOLEAN: _read_by(_truth),
    ColumnType.DATE: _read_by(_day),
    ColumnType.TIMESTAMP: _read_by(_time),
}
