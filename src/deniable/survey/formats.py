"""Formats of reports: checked whole, or refused before anything is counted; written, and read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ReportError
from deniable.survey.bits import column_sums
from deniable.survey.hashing import PRIME, spoken_for

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Json = Any

_HEX = re.compile(r"[0-9a-f]*")


class Format(ABC):
    """How the reports of a protocol are checked, written, read and counted."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """How many bits a report has."""

    @abstractmethod
    def check(self, reports: Any) -> Any:
        """All reports as an array, or an error."""

    def to_wire(self, reports: Any) -> list[Json]:
        """One JSON value for each report, all of which were checked: lists as they are."""
        return [*reports.tolist()]

    def from_wire(self, payloads: Sequence[Json]) -> Any:
        """Reports from JSON values, to be checked: lists as they are."""
        return list(payloads)

    @abstractmethod
    def count(self, reports: Any) -> Integers:
        """What the server keeps of reports that were checked."""


@dataclass(frozen=True)
class Numbers(Format):
    """One whole number, 0 to `below` - 1."""

    below: int

    @property
    def bits(self) -> int:
        return (self.below - 1).bit_length()

    def check(self, reports: Any) -> Integers:
        return integers(reports, self.below)

    def count(self, reports: Integers) -> Integers:
        return np.bincount(reports, minlength=self.below)


@dataclass(frozen=True)
class Bits(Format):
    """A row of `width` packed bits, the first being the highest of the first byte.

    Where `ones` is given, so many of them are set.
    """

    width: int
    ones: int | None = None

    @property
    def bits(self) -> int:
        return self.width

    def check(self, reports: Any) -> Bytes:
        """Rows of bytes, with nothing behind the last bit."""
        rows, width = np.asarray(reports), -(-self.width // 8)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != width or not rows.size:
            raise ReportError(
                f"reports are rows of {width} bytes (uint8), which hold {self.width} bits"
            )
        spare = 8 * width - self.width
        if spare and bool((rows[:, -1] & ((1 << spare) - 1)).any()):
            raise ReportError(f"a report sets bits beyond its {self.width}")
        if self.ones is not None and bool((np.bitwise_count(rows).sum(axis=1) != self.ones).any()):
            raise ReportError(f"a report must be a set of {self.ones} categories")
        return rows

    def to_wire(self, reports: Bytes) -> list[Json]:
        text, width = reports.tobytes().hex(), 2 * reports.shape[1]
        return [text[at : at + width] for at in range(0, len(text), width)]

    def from_wire(self, payloads: Sequence[Json]) -> Bytes:
        return from_hex(payloads, -(-self.width // 8))

    def count(self, reports: Bytes) -> Integers:
        return column_sums(reports, self.width)


@dataclass(frozen=True)
class Tuples(Format):
    """A row of whole numbers, each below its own limit."""

    limits: tuple[int, ...]

    @property
    def bits(self) -> int:
        return sum((limit - 1).bit_length() for limit in self.limits)

    def check(self, reports: Any) -> Integers:
        rows = integers(reports, max(self.limits), columns=len(self.limits))
        for column, below in zip(rows.T, self.limits, strict=True):
            integers(column, below)
        return rows

    def count(self, reports: Integers) -> Integers:
        """How often each row came in: a table with an axis for each number."""
        cells = np.ravel_multi_index(tuple(reports.T), self.limits)
        return np.bincount(cells, minlength=int(np.prod(self.limits))).reshape(self.limits)


@dataclass(frozen=True)
class PlacedBits(Tuples):
    """Places with a bit each, written as 2 * place + bit; the one limit is 2 * places.

    Places rise within a report: one that came twice would have two coins of one bit.
    """

    def check(self, reports: Any) -> Integers:
        rows = super().check(reports)
        if not rising(rows // 2):
            raise ReportError("a report has its places in rising order, each once")
        return rows

    def count(self, reports: Integers) -> Integers:
        """How often each place was reported, and how often as 1."""
        seen = np.bincount(reports.ravel(), minlength=self.limits[0]).reshape(-1, 2)
        return np.stack([seen.sum(axis=1), seen[:, 1]])


@dataclass(frozen=True)
class Hashed(Format):
    """A hash function of one's own, three residues, and one of its buckets: four 64-bit words."""

    buckets: int
    categories: int

    @property
    def bits(self) -> int:
        return 3 * PRIME.bit_length() + (self.buckets - 1).bit_length()

    def check(self, reports: Any) -> npt.NDArray[np.uint64]:
        rows = np.asarray(reports)
        if rows.dtype != np.uint64 or rows.ndim != 2 or rows.shape[1] != 4 or not rows.size:
            raise ReportError("reports are rows of four 64-bit words: a function and a bucket")
        if int(rows[:, :3].max()) >= PRIME:
            raise ReportError(f"a function's numbers are below {PRIME}")
        integers(rows[:, 3], self.buckets)
        return rows

    def to_wire(self, reports: npt.NDArray[np.uint64]) -> list[Json]:
        return [[f"{a:016x}{b:016x}{c:016x}", y] for a, b, c, y in reports.tolist()]

    def from_wire(self, payloads: Sequence[Json]) -> npt.NDArray[np.uint64]:
        texts, named = columns_of(payloads, 2)
        functions = from_hex(texts, 24).view(">u8").astype(np.uint64)
        answers = integers(list(named), self.buckets).astype(np.uint64)
        return np.column_stack([functions, answers])

    def count(
        self, reports: npt.NDArray[np.uint64], candidates: Integers | None = None
    ) -> Integers:
        """How many reports speak for each category, or for the candidates in their order."""
        wanted = np.arange(self.categories) if candidates is None else candidates
        return spoken_for(reports[:, :3], reports[:, 3].astype(np.int64), self.buckets, wanted)


@dataclass(frozen=True)
class Sketched(Format):
    """The number of one of `functions`, in four bytes, and a row of `width` packed bits."""

    functions: int
    width: int

    @property
    def bits(self) -> int:
        return (self.functions - 1).bit_length() + self.width

    @property
    def row(self) -> Bits:
        """The format of the bits."""
        return Bits(self.width)

    def check(self, reports: Any) -> Bytes:
        rows = np.asarray(reports)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] < 5 or not rows.size:
            raise ReportError("reports are rows of bytes: a function's number, then packed bits")
        integers(_numbers(rows), self.functions)
        self.row.check(rows[:, 4:])
        return rows

    def to_wire(self, reports: Bytes) -> list[Json]:
        texts = self.row.to_wire(reports[:, 4:])
        return [
            [number, row] for number, row in zip(_numbers(reports).tolist(), texts, strict=True)
        ]

    def from_wire(self, payloads: Sequence[Json]) -> Bytes:
        functions, texts = columns_of(payloads, 2)
        return self.joined(integers(list(functions), self.functions), self.row.from_wire(texts))

    def joined(self, functions: Integers, rows: Bytes) -> Bytes:
        """Reports of these functions with these bits."""
        return np.column_stack([functions.astype(">u4").view(np.uint8).reshape(-1, 4), rows])

    def count(self, reports: Bytes) -> Integers:
        functions = _numbers(reports)
        table = np.zeros((self.functions, self.width), dtype=np.int64)
        order = np.argsort(functions, kind="stable")
        numbers, first = np.unique(functions[order], return_index=True)
        for number, rows in zip(numbers, np.split(order, first[1:]), strict=True):
            table[number] = self.row.count(reports[rows, 4:])
        return table


def _numbers(reports: Bytes) -> Integers:
    return np.ascontiguousarray(reports[:, :4]).view(">u4").astype(np.int64).ravel()


def rising(rows: Integers) -> bool:
    """Whether each row rises, every number being there once."""
    return bool((np.diff(rows, axis=1) > 0).all())


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
        each = "one number" if columns is None else f"{columns} numbers"
        raise ReportError(f"the reports must be one row or more, each of {each}")
    if array.min() < 0 or array.max() >= below:
        raise _out_of_range(below)
    return array.astype(np.int64, copy=False)


def from_hex(texts: Sequence[Json], width: int) -> Bytes:
    """Hexadecimal digits as rows of `width` bytes."""
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
