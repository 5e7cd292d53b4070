"""Private rows on their way into a sum: read without complaint, clipped, put on a whole grid.

A sum's sensitivity must hold in machine arithmetic. So each row's contribution is made a vector of
whole numbers whose squared length is checked in whole numbers: a row that would be longer than the
grid allows counts as nothing. Sums of such rows are exact in any order.

What becomes of a row must not depend on the others, not even in its last bit: a row that rounds to
another cell or another centre because somebody joined would move a sum twice. BLAS products and
numpy's sums along an axis choose their order of additions by how many rows there are and how they
lie in memory; `times` and `lengths` add column by column, by operations on single numbers, which
round alike wherever a row stands.

A fault that only private values show (NaN, infinities, text among numbers, a label that nobody
declared) never raises: the row counts as nothing. Shapes and types are public, and refused. The
types of what pandas holds are not: one cell decides how all others of its column are held. So that
is read cell by cell. Nor are the arrays that polars and Arrow make: one missing cell makes
fractions of whole numbers, and rounds those from 2^53 on; beside days or times it has them fail.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import DataConversionWarning

from deniable.engines.frames import pandas_cells
from deniable.errors import ParameterError, ParameterTypeError
from deniable.tables import ColumnType, unfit

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

GRID = 1 << 24
"""Steps to the longest contribution of a row to a plain sum."""

SQUARE_GRID = 1 << 16
"""Steps to the longest row whose products are summed."""

_LARGEST_BOUND = 1e100
_LEAST_SPAN = 1e-280  # a millionth of it is no subnormal number yet
_BLOCK = 1 << 10  # of rows: what fits in a cache
_ROUNDED = 1 << 53  # from here on doubles round whole numbers
_COLUMN = "A column-vector y was passed when a 1d array was expected: use y.ravel()"


@dataclass(frozen=True)
class Ranges:
    """Public bounds of the columns, and the longest row in units of half their spans.

    A row x becomes u = (x - middle)/half, in [-1, 1] for each column, clipped to length `norm` and
    divided by it: its length is at most 1.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    norm: float

    def __post_init__(self) -> None:
        read_ends((self.low, self.high))
        read_norm(self.norm)

    @property
    def width(self) -> int:
        return len(self.low)

    @property
    def middle(self) -> Floats:
        made: Floats = (np.array(self.low) + np.array(self.high)) / 2
        return made

    @property
    def half(self) -> Floats:
        made: Floats = (np.array(self.high) - np.array(self.low)) / 2
        return made

    @property
    def scale(self) -> Floats:
        """What one unit of u is, in units of the column."""
        return self.half * self.norm

    def units(self, values: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Rows u of length 1 at most, to float precision, and which rows are whole."""
        present = np.asarray(np.isfinite(values).all(axis=1), np.bool_)
        clipped = np.clip(np.where(present[:, None], values, self.middle), self.low, self.high)
        units = (clipped - self.middle) / self.scale
        units /= np.maximum(lengths(units), 1.0)[:, None]
        return units, present


def read_ranges(bounds: Any, norm: Any, width: int) -> Ranges:
    """Read `bounds=(low, high)`, each a number or one for each column, and the row norm."""
    low, high = read_ends(bounds)
    for end in (low, high):
        if end.size not in (1, width):
            raise ParameterError(
                "bounds", f"{end.size} numbers", f"give one number, or one for each of {width}"
            )
    return Ranges(
        low=tuple(np.broadcast_to(low, width).tolist()),
        high=tuple(np.broadcast_to(high, width).tolist()),
        norm=math.sqrt(width) if norm is None else read_norm(norm),
    )


def read_ends(bounds: Any, argument: str = "bounds") -> tuple[Floats, Floats]:
    """Read a pair (low, high) that rises, of numbers or of lists of numbers."""
    if not isinstance(bounds, tuple | list | np.ndarray) or len(bounds) != 2:
        raise ParameterError(argument, bounds, "must be public: a pair (low, high)")
    try:
        low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in bounds)
    except (TypeError, ValueError):
        raise ParameterTypeError(argument, bounds, "must hold numbers") from None
    except OverflowError:
        raise ParameterError(argument, "a pair", "must lie within ±1e100") from None
    if low.size != high.size and 1 not in (low.size, high.size):
        raise ParameterError(argument, bounds, "must be as many low ends as high ones")
    if low.ndim > 1 or high.ndim > 1 or not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ParameterError(argument, bounds, "must be finite numbers, or flat lists of them")
    if not np.all(low < high) or max(np.abs(low).max(), np.abs(high).max()) > _LARGEST_BOUND:
        raise ParameterError(argument, bounds, "must rise from low to high, within ±1e100")
    least = np.maximum(_LEAST_SPAN, 1e-12 * np.maximum(np.abs(low), np.abs(high)))
    if not np.all(high - low >= least):
        raise ParameterError(argument, bounds, "lie too close together to tell values apart")
    for each in (*low, *high, *((low + high) / 2), *((high - low) / 2)):
        if wrong := unfit(ColumnType.NUMBER, float(each)):
            raise ParameterError(argument, bounds, wrong)
    return low, high


def read_norm(norm: Any) -> float:
    """Read the longest row."""
    if isinstance(norm, bool) or not isinstance(norm, int | float | np.number):
        raise ParameterTypeError("norm", norm, "must be a number, or None for no further clipping")
    if not 1e-6 <= norm <= 1e6:
        raise ParameterError("norm", norm, "must lie between 1e-6 and 1e6")
    return float(norm)


@dataclass(frozen=True, repr=False)
class Rows:
    """Private rows, bounded: u of length 1 at most, a target in [-1, 1] or a class, and presence.

    Rows that are not present count as nothing.
    """

    units: Floats
    target: Floats | None
    label: Labels | None
    present: npt.NDArray[np.bool_]

    def some(self, at: npt.NDArray[np.int64]) -> Rows:
        """Those at these places."""
        target = None if self.target is None else self.target[at]
        label = None if self.label is None else self.label[at]
        return Rows(self.units[at], target, label, self.present[at])


def signed(rows: Rows) -> Floats:
    """Rows (u, 1) of length 1 at most, times -1 for the first of two classes; absent ones are 0."""
    assert rows.label is not None
    longer = np.hstack([rows.units, np.ones((len(rows.units), 1))]) / math.sqrt(2)
    signs = np.where(rows.label == 1, 1.0, -1.0) * rows.present
    made: Floats = longer * signs[:, None]
    return made


def times(rows: Floats, matrix: Floats) -> Floats:
    """rows @ matrix, for each row by the same additions in the same order."""
    made = np.zeros((len(rows), matrix.shape[1]))
    for start in range(0, len(rows), _BLOCK):
        block, into = rows[start : start + _BLOCK], made[start : start + _BLOCK]
        for column, factors in zip(block.T, matrix, strict=True):
            into += column[:, None] * factors
    return made


def added(rows: Floats) -> Floats:
    """The sum of each row, by the same additions in the same order."""
    made = np.zeros(len(rows))
    for column in rows.T:
        made += column
    return made


def lengths(rows: Floats) -> Floats:
    """The length of each row, by the same additions in the same order."""
    return np.sqrt(added(np.square(rows)))


def on_grid(
    parts: Floats, present: npt.NDArray[np.bool_], grid: int, most: int | None = None
) -> Floats:
    """Rows of length 1 at most as whole numbers (in doubles) of squared length grid² at most.

    With `most`, their sizes add up to that at most, too.

    Rounding lengthens a row by sqrt(k)/2 at most, so `steps(k, grid)` leaves room for it. What is
    longer all the same, through rounding of floats, becomes zero: the bound holds for any input.
    """
    with np.errstate(all="ignore"):
        whole = np.rint(parts * steps(parts.shape[1], grid))
        square = np.square(whole).sum(axis=1)
        kept = present & (square <= float(grid) ** 2)
        if most is not None:
            kept &= np.abs(whole).sum(axis=1) <= most
    return np.where(kept[:, None], whole, 0.0)


def most_steps(size: float, width: int, grid: int) -> int:
    """What the sizes of `width` whole numbers add up to, if those of the parts add up to `size`."""
    return math.ceil(grid * size * (1 + 2.0**-40)) + width


def steps(width: int, grid: int) -> int:
    """What a contribution of length 1 is multiplied by before it is rounded."""
    room = grid - math.isqrt(width) - 2
    if room < grid // 2:
        raise ParameterError("features", width, "are too many for exact sums")
    return room


def read_features(values: Any) -> Floats:
    """Read a table of numbers; what is no number becomes NaN."""
    if hasattr(values, "tocsr"):
        raise ParameterTypeError(
            "X", "a sparse matrix", "Sparse data were passed: give a dense array (X.toarray())"
        )
    array = _array(values)
    if array.ndim != 2:
        raise ParameterError(
            "X",
            f"{array.ndim} dimensions",
            f"Expected 2D array, got {array.ndim}D array instead: Reshape your data",
        )
    if array.shape[1] == 0:
        raise ParameterError(
            "X", "", f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    return _numbers(array, "X")


def read_target(values: Any, count: int) -> Floats:
    """Read one number for each row; what is no number becomes NaN."""
    return _numbers(read_column(values, count), "y")


def read_numbers(values: Any) -> Floats:
    """Read a flat list of numbers; what is no number becomes NaN."""
    array = _array(values)
    if array.ndim != 1:
        raise ParameterError("values", f"{array.ndim} dimensions", "must be a flat list")
    return _numbers(array, "values")


def read_labels(values: Any, count: int, classes: tuple[Any, ...]) -> Labels:
    """The place of each label among the declared classes; -1 for any other.

    One missing cell may have made fractions of a column of whole numbers, here or before.
    """
    if any(isinstance(each, int | float) and abs(each) >= _ROUNDED for each in classes):
        raise ParameterError(
            "classes",
            "numbers",
            "must lie below 2^53: one label that is missing would round all others; give texts, "
            "or learn from a table by dp.fit",
        )
    places = {label: place for place, label in enumerate(classes)}
    column = read_column(values, count).tolist()
    with warnings.catch_warnings(action="ignore"):  # one would tell of a row
        return np.array([_place(places, label) for label in column], np.int64)


def _place(places: dict[Any, int], label: Any) -> int:
    try:
        return places.get(label, -1)
    except Exception:  # what cannot be hashed or compared is no declared label
        return -1


def plain_labels(values: Any, count: int) -> list[Any]:
    """One value for each row: the same one in a column of whole numbers and of fractions."""
    with warnings.catch_warnings(action="ignore"):  # one would tell of a row
        return [_plain_label(each) for each in read_column(values, count).tolist()]


def _plain_label(value: Any) -> Any:
    try:
        if isinstance(value, float) and value.is_integer() and abs(value) < _ROUNDED:
            return int(value)
        if isinstance(value, int) and _ROUNDED <= abs(value) < _LARGEST_BOUND:
            return float(value)
    except Exception:  # of a class made from numbers
        return None
    return value


def read_column(values: Any, count: int) -> npt.NDArray[Any]:
    """One value for each row, as they are."""
    if values is None:
        raise ParameterError("y", None, "requires y to be passed, but the target y is None")
    array = _array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(_COLUMN, DataConversionWarning, stacklevel=5)
        array = array[:, 0]
    if array.ndim != 1:
        raise ParameterError("y", f"{array.ndim} dimensions", "must be one value for each row")
    if array.shape[0] != count:
        raise ParameterError("y", f"{array.shape[0]} values", f"but X has {count} rows")
    return array


def _array(values: Any) -> npt.NDArray[Any]:
    """An array; text and other objects among numbers stay as they are, and None is masked."""
    try:
        if isinstance(values, np.ma.MaskedArray):
            return np.ma.filled(values.astype(object), None)
        if (cells := pandas_cells(values)) is not None:
            return cells
        if (cells := _declared_cells(values)) is not None:
            return cells
        if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
            return np.asarray(values)
        listed = list(values)
        if not listed or not all(_is_row(each) for each in listed):
            return np.fromiter(listed, dtype=object, count=len(listed))
        # numpy would look into cells, and tell of one that is a list, or that cannot be read.
        rows = [list(each) for each in listed]
        (width,) = {len(row) for row in rows}
        flat = np.fromiter((cell for row in rows for cell in row), object, len(rows) * width)
        return flat.reshape(len(rows), width)
    except Exception:  # what it says may quote private values
        raise ParameterError("X", "no table", "must be rows of equal length") from None


def _declared_cells(values: Any) -> npt.NDArray[Any] | None:
    """A table of polars or Arrow, each column read by itself; None of numbers alone, and others."""
    polars, arrow = sys.modules.get("polars"), sys.modules.get("pyarrow")
    if polars is not None and isinstance(values, polars.DataFrame):
        columns = values.get_columns()
        plain = all(each.dtype.is_numeric() or each.dtype == polars.Boolean for each in columns)
    elif arrow is not None and isinstance(values, arrow.Table | arrow.RecordBatch):
        columns = values.columns
        plain = all(_is_arrow_number(each.type) for each in columns)
    else:
        return None
    if plain or len(columns) < 2:
        return None
    cells = np.empty((len(columns[0]), len(columns)), dtype=object)
    for place, column in enumerate(columns):
        cells[:, place] = np.fromiter(np.asarray(column), object, len(column))
    return cells


def _is_arrow_number(kind: Any) -> bool:
    types = sys.modules["pyarrow"].types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_row(value: Any) -> bool:
    sized = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    return sized and not isinstance(value, str | bytes | Mapping)


def _numbers(array: npt.NDArray[Any], argument: str) -> Floats:
    if array.dtype.kind in "fiub":
        with np.errstate(all="ignore"):  # what is beyond a double is infinite, and counts as none
            return array.astype(np.float64)
    if array.dtype.kind == "c":
        raise ParameterTypeError(argument, "complex numbers", "Complex data not supported")
    if array.dtype.kind not in "OUS":
        raise ParameterTypeError(argument, str(array.dtype), "must hold real numbers")
    cells = array.ravel().tolist()
    with warnings.catch_warnings(action="ignore"):  # one would tell of a row
        flat = [_number(value) for value in cells]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def _number(value: Any) -> float:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return math.nan
    if isinstance(value, complex | np.complexfloating):
        return math.nan if value.imag else float(value.real)
    try:
        return float(value)
    except Exception:  # no number, or beyond any double
        return math.nan
