"""Surveys and their reports as versioned JSON, for clients in any language.

A question's text names its protocol, all parameters, and the thresholds that a client compares
random words with. Its `id` is the SHA-256 of that text, so a report belongs to one question, one
protocol and one set of parameters. Reading is strict: what is not exactly as it should be is
refused whole, and nothing is counted. Nothing named in a text is ever imported or called.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from deniable.errors import DeniableError, ParameterError, ParameterTypeError, ReportError
from deniable.lazy import lazy
from deniable.strict_json import read_json
from deniable.survey.bit_flip import BitFlip
from deniable.survey.hadamard import HadamardResponse
from deniable.survey.heavy_hitters import HeavyHitters
from deniable.survey.hierarchy import Hierarchy
from deniable.survey.kary import KaryResponse
from deniable.survey.lasting import LastingResponse, Rappor
from deniable.survey.local_hashing import LocalHashing
from deniable.survey.means import HybridMean, OneBitMean, PiecewiseMean
from deniable.survey.places import Places
from deniable.survey.several import SampleOne, Together
from deniable.survey.sketches import CountMeanSketch, HadamardSketch
from deniable.survey.square_wave import SquareWave
from deniable.survey.subset import SubsetSelection
from deniable.survey.unary import UnaryEncoding

VERSION = 1

KINDS: Mapping[str, type[Any]] = {
    protocol.kind: protocol
    for protocol in (
        BitFlip,
        CountMeanSketch,
        HadamardResponse,
        HadamardSketch,
        HeavyHitters,
        Hierarchy,
        HybridMean,
        KaryResponse,
        LastingResponse,
        LocalHashing,
        OneBitMean,
        PiecewiseMean,
        Places,
        Rappor,
        SampleOne,
        SquareWave,
        SubsetSelection,
        Together,
        UnaryEncoding,
    )
}

_RATIONAL = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?")
_LONGEST = 100_000_000
_MOST_NAME = 200


@dataclass(frozen=True)
class Item:
    """A question's public name and the protocol its answers go through."""

    name: str
    protocol: Any

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not 1 <= len(name) <= _MOST_NAME:
            raise ParameterError("name", type(self.name).__name__, "must be text of 1 to 200 signs")
        if type(self.protocol) not in KINDS.values():
            raise ParameterTypeError(
                "protocol", type(self.protocol).__name__, "must be a protocol of deniable.survey"
            )

    @lazy
    def text(self) -> str:
        """The canonical text: what a client needs to know."""
        return _dump({"name": self.name, "version": VERSION, **_describe(self.protocol)})

    @lazy
    def id(self) -> str:
        """The first 32 digits of the SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]

    def write(self, reports: Any) -> str:
        """Reports as JSON."""
        return _dump(
            {"version": VERSION, "survey": self.id, "reports": self.protocol.to_wire(reports)}
        )

    def read(self, text: str | bytes) -> Any:
        """Reports from JSON, all of them checked; an error if a single one is wrong."""
        data = load(text)
        if not isinstance(data, dict) or data.keys() != {"version", "survey", "reports"}:
            raise ReportError("reports come as an object of version, survey and reports")
        if type(data["version"]) is not int or data["version"] != VERSION:
            raise ReportError(f"these reports are of another version; this one is {VERSION}")
        if data["survey"] != self.id:
            raise ReportError("these reports belong to another survey, or to other parameters")
        if not isinstance(data["reports"], list) or not data["reports"]:
            raise ReportError("there are no reports")
        return self.protocol.from_wire(data["reports"])


def read_item(text: str | bytes) -> Item:
    """The question of a text; parameters are checked, and thresholds must be the right ones."""
    data = load(text)
    if (
        not isinstance(data, dict)
        or type(data.get("version")) is not int
        or data["version"] != VERSION
    ):
        raise ReportError(f"a question is an object of version {VERSION}")
    given = {name: value for name, value in data.items() if name not in ("name", "version")}
    try:
        item = Item(data.get("name", ""), _protocol(given, depth=0))
    except ParameterError as cause:
        raise ReportError(f"a question has a bad parameter: {cause}") from cause
    if _dump(data) != item.text:
        raise ReportError("a question's thresholds are not those of its parameters")
    return item


def _describe(protocol: Any) -> dict[str, object]:
    values = {field.name: _encode(getattr(protocol, field.name)) for field in fields(protocol)}
    thresholds = getattr(protocol, "thresholds", {})
    return {
        "kind": protocol.kind,
        "parameters": values,
        # Whole numbers beyond 2^53 are text: many languages read JSON numbers as floats.
        "thresholds": {name: str(value) for name, value in thresholds.items()},
    }


def _encode(value: Any) -> object:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [_encode(each) for each in value]
    return value if isinstance(value, int | str) else _describe(value)


def _protocol(data: object, depth: int) -> Any:
    if not isinstance(data, dict) or data.keys() != {"kind", "parameters", "thresholds"}:
        raise ReportError("a protocol is an object of kind, parameters and thresholds")
    kind, parameters = data["kind"], data["parameters"]
    if not isinstance(kind, str) or kind not in KINDS or not isinstance(parameters, dict):
        raise ReportError("a question names an unknown kind of protocol")
    if depth > 1:  # parts are protocols of single answers, which have no parts
        raise ReportError("a protocol's parts have no parts of their own")
    wanted = {field.name: str(field.type) for field in fields(KINDS[kind])}
    if parameters.keys() != wanted.keys():
        raise ReportError(f"{kind} has exactly {', '.join(sorted(wanted))}")
    values = {name: _decode(name, wanted[name], value, depth) for name, value in parameters.items()}
    try:
        return KINDS[kind](**values)
    except DeniableError as cause:
        raise ReportError(f"{kind} has a bad parameter: {cause}") from cause


def _decode(name: str, annotation: str, value: object, depth: int) -> object:
    if "tuple" in annotation:
        if not isinstance(value, list):
            raise ReportError(f"{name} must be a list")
        if "Number" in annotation:
            return tuple(_decode(name, "Number", each, depth) for each in value)
        return tuple(_protocol(each, depth + 1) for each in value)
    if "Number" in annotation:
        if not isinstance(value, str) or not _RATIONAL.fullmatch(value):
            raise ReportError(f'{name} must be a rational such as "1/10"')
        try:
            return Fraction(value)
        except ZeroDivisionError:
            raise ReportError(f"{name} divides by zero") from None
    if type(value).__name__ != annotation:
        raise ReportError(f"{name} must be of type {annotation}")
    return value


def load(text: str | bytes) -> object:
    """JSON in UTF-8, no field twice, no NaN; an error if it is anything else."""
    given: object = text
    if not isinstance(given, str | bytes):
        raise ReportError(f"a text is str or bytes, not {type(given).__name__}")
    if len(text) > _LONGEST:
        raise ReportError(f"a text of {_LONGEST:,} signs at most is read")
    try:
        return read_json(text)
    except ValueError as cause:
        raise ReportError(f"this text cannot be read: {cause}") from None


def _dump(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
