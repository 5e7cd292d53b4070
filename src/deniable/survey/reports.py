"""Reports on their way into a server: checked whole, or refused before anything is counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ReportError

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Json = Any

_HEX = re.compile(r"[0-9a-f]*")


def integers(reports: Any, below: int, columns: int | None = None) -> Integers:
    """Whole numbers 0 <= report < below; rows of `columns` of them if given."""
    if isinstance(reports, list | tuple):
        if not all(type(one) is int for one in _flat(reports)):
            raise ReportError("a report holds something that is not a whole number")
        if any(not 0 <= one < below for one in _flat(reports)):
            raise _out_of_range(below)
    try:
        array = np.asarray(reports)
    except ValueError:
        raise ReportError("the reports are of different lengths") from None
    if array.dtype.kind not in "iu":
        raise ReportError(f"reports are whole numbers, not {array.dtype}")
    wanted = 1 if columns is None else 2
    if array.ndim != wanted or array.size == 0 or (columns and array.shape[1] != columns):
        raise ReportError(
            "the reports must be one row or more, each of one number"
            if columns is None
            else f"the reports must be one row or more, each of {columns} numbers"
        )
    if array.min() < 0 or array.max() >= below:
        raise _out_of_range(below)
    return array.astype(np.int64, copy=False)


def bit_rows(reports: Any, bits: int) -> Bytes:
    """Rows of packed bits, the first bit being the highest of the first byte."""
    array = np.asarray(reports)
    width = -(-bits // 8)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != width or not array.size:
        raise ReportError(f"reports are rows of {width} bytes (uint8), which hold {bits} bits")
    spare = 8 * width - bits
    if spare and bool((array[:, -1] & ((1 << spare) - 1)).any()):
        raise ReportError(f"a report sets bits beyond its {bits}")
    return array


def to_hex(rows: Bytes) -> list[str]:
    """Rows of bytes as text."""
    whole, width = rows.tobytes().hex(), 2 * rows.shape[1]
    return [whole[at : at + width] for at in range(0, len(whole), width)]


def from_hex(texts: Sequence[Json], width: int) -> Bytes:
    """Text back into rows of `width` bytes."""
    for text in texts:
        if not isinstance(text, str) or len(text) != 2 * width or not _HEX.fullmatch(text):
            raise ReportError(f"a report must be {2 * width} hexadecimal digits")
    return np.frombuffer(bytes.fromhex("".join(texts)), dtype=np.uint8).reshape(-1, width)


def columns_of(payloads: Sequence[Json], count: int) -> list[tuple[Json, ...]]:
    """Split payloads that are lists of `count` values into their columns."""
    if not payloads:
        raise ReportError("there are no reports")
    if any(not isinstance(one, list) or len(one) != count for one in payloads):
        raise ReportError(f"a report must be a list of {count} values")
    return list(zip(*payloads, strict=True))


def _flat(values: Sequence[Any]) -> list[Any]:
    return [each for one in values for each in (one if isinstance(one, list | tuple) else [one])]


def _out_of_range(below: int) -> ReportError:
    return ReportError(f"a report is out of range: numbers run from 0 to {below - 1}")
