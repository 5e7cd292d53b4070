"""Closed lists: which objects of a caller are believed, by their exact type, and read only once.

A subclass may state one price and draw with another; so may an object that merely looks like a
number. So whatever decides about private data is of a type that is listed, never of a subclass,
and is copied into plain values before anything is decided by it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, MappingProxyType, NoneType
from typing import Any, TypeVar

import numpy as np

from deniable.errors import DeniableError, ParameterTypeError

Value = TypeVar("Value")

_SCALARS = frozenset(np.sctypeDict.values())
WHOLE = frozenset({int, *(kind for kind in _SCALARS if issubclass(kind, np.integer))}) - {
    np.timedelta64
}
"""Types of whole numbers."""

REAL = WHOLE | {float, Fraction, Decimal, *(k for k in _SCALARS if issubclass(k, np.floating))}
"""Types of numbers."""

TEXT = frozenset({str, np.str_})

_CODE = frozenset({FunctionType, BuiltinFunctionType, type(np.mean)})
_PLAIN = REAL | TEXT | _CODE | {bool, bytes, range, date, datetime, NoneType}

MECHANISMS = frozenset(
    {
        "deniable.learning.exponential:LineExponential",
        "deniable.learning.fit:_Whole",
        "deniable.learning.projected:ProjectedDescent",
        "deniable.mechanisms.base:PostProcessed",
        "deniable.mechanisms.gaussian:DiscreteGaussian",
        "deniable.mechanisms.gaussian:Gaussian",
        "deniable.mechanisms.grid_quantile:GridQuantile",
        "deniable.mechanisms.histogram:Histogram",
        "deniable.mechanisms.histogram:StabilityHistogram",
        "deniable.mechanisms.joint:JointNoise",
        "deniable.mechanisms.keys:KeySelection",
        "deniable.mechanisms.laplace:Geometric",
        "deniable.mechanisms.laplace:Laplace",
        "deniable.mechanisms.metric:MetricExponential",
        "deniable.mechanisms.noisy_max:ReportNoisyMax",
        "deniable.mechanisms.planar:PlanarLaplace",
        "deniable.mechanisms.propose_test_release:ProposeTestRelease",
        "deniable.mechanisms.quantile:Quantile",
        "deniable.mechanisms.response:RandomizedResponse",
        "deniable.mechanisms.sampled_sum:SampledSum",
        "deniable.mechanisms.selection:Exponential",
        "deniable.mechanisms.selection:PermuteAndFlip",
        "deniable.mechanisms.selection:TopK",
        "deniable.mechanisms.sparse_vector:SparseVector",
        "deniable.mechanisms.subsample:SubsampleAggregate",
        "deniable.mechanisms.truncated:TruncatedGeometric",
    }
)
"""What a door draws with."""

_ENGINE_TABLES = frozenset(
    {
        "deniable.engines.csv_format:CSVFiles",
        "deniable.engines.duckdb:DuckDBTable",
        "deniable.engines.postgres:PostgresTable",
        "deniable.engines.spark:SparkTable",
    }
)
"""What names a table to the engine that reads it."""

_INSIDE = {
    "deniable.mechanisms.base:PostProcessed": ("mechanism", MECHANISMS),
    "deniable.mechanisms.selection:TopK": (
        "selector",
        {
            "deniable.mechanisms.noisy_max:ReportNoisyMax",
            "deniable.mechanisms.selection:Exponential",
            "deniable.mechanisms.selection:PermuteAndFlip",
        },
    ),
}
"""What may stand in those that draw with another one, and under which name."""


def exactly(value: Value, kinds: Collection[type], argument: str, wanted: str) -> Value:
    """The value, if its type is one of these; a subclass is not."""
    if type(value) not in kinds:
        raise ParameterTypeError(argument, type(value).__name__, wanted)
    return value


def read_text(value: object, argument: str, wanted: str = "must be text") -> str:
    """Plain text."""
    return str(exactly(value, TEXT, argument, wanted))


def read_fraction(value: Fraction, argument: str) -> Fraction:
    """A fraction of plain whole numbers: what stands in one may be an object of a caller's."""
    parts = value.numerator, value.denominator
    if any(type(part) not in WHOLE for part in parts) or int(parts[1]) < 1:
        raise ParameterTypeError(argument, "a fraction", "must be one of plain whole numbers")
    return Fraction(*map(int, parts))


def is_mechanism(value: object) -> bool:
    """Whether a door may draw with it, and with what stands in it, however deep."""
    return _is_listed(value, MECHANISMS)


def is_engine_table(value: object) -> bool:
    """Whether an engine of ours reads the table that it names."""
    return _is_listed(value, _ENGINE_TABLES)


def _is_listed(value: object, listed: Collection[str]) -> bool:
    name = _name(type(value))
    if name not in listed or not _is_ours(type(value)):
        return False
    if name not in _INSIDE:
        return True
    field, inside = _INSIDE[name]
    return _is_listed(vars(value).get(field), inside)


def frozen(value: Any, argument: str) -> Any:
    """A copy made of plain values and of this library's own data, which nobody else holds.

    What was computed from the old values and kept beside them is left behind. The library's own is
    made by its constructor, which looks at the values again: they may have been changed since.
    """
    kind = type(value)
    if kind is Fraction:
        return read_fraction(value, argument)
    if kind is datetime and type(value.tzinfo) not in (NoneType, timezone):
        raise ParameterTypeError(argument, "a time", "must be without a time zone, or in UTC")
    if kind in _PLAIN:
        return value
    if kind in (tuple, list, set, frozenset):
        return kind(frozen(each, argument) for each in value)
    if kind in (dict, MappingProxyType):
        return {frozen(name, argument): frozen(each, argument) for name, each in value.items()}
    if kind is np.ndarray and not value.dtype.hasobject:
        return value.copy()
    if kind is np.ndarray:
        return np.array(frozen(value.tolist(), argument), dtype=object)
    if _is_ours(kind) and issubclass(kind, Enum):
        return value
    if _is_ours(kind) and is_dataclass(kind):
        copied = {each.name: frozen(getattr(value, each.name), argument) for each in fields(kind)}
        make = getattr(kind, "of_fields", kind)  # of those whose constructor takes other names
        try:
            return make(**copied)
        except DeniableError:
            raise
        except Exception:
            raise ParameterTypeError(argument, kind.__name__, "is none any more") from None
    wanted = "must be made of plain numbers, text and this library's own types"
    if callable(value):
        wanted = "must hold plain functions: write this one with def or lambda"
    raise ParameterTypeError(argument, kind.__name__, wanted)


def read_mapping(value: object, argument: str, wanted: str) -> dict[str, Any]:
    """A mapping from plain text, read once, whatever it says when it is asked again."""
    if not isinstance(value, Mapping):
        raise ParameterTypeError(argument, type(value).__name__, wanted)
    return {read_text(name, argument, "names are text"): each for name, each in value.items()}


def read_names(values: object, argument: str) -> tuple[str, ...]:
    """A list of plain texts, read once."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterTypeError(argument, type(values).__name__, "must be a list of names")
    return tuple(read_text(each, argument, "names are text") for each in values)


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _is_ours(kind: type) -> bool:
    """Whether the class is what a module of this library has under that name."""
    module = kind.__module__
    if type(module) is not str or module.partition(".")[0] != "deniable":
        return False
    return vars(sys.modules.get(module, object)).get(kind.__qualname__) is kind
