"""Losses as canonical, versioned JSON.

One loss has one text: keys sorted, no spaces, rationals as "p/q". Fields are never removed and
never change their meaning; a new meaning is a new kind. Reading is strict: an unknown version,
kind or field is an error, and nothing named in the text is ever imported or called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import Field, fields
from fractions import Fraction
from typing import Any

from deniable.errors import DeniableError, LossFormatError
from deniable.privacy.composition import Composed, compose, repeat
from deniable.privacy.losses.base import Loss, read_loss
from deniable.privacy.losses.channel import ChannelLoss
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss, GaussianLoss
from deniable.privacy.losses.generic import ApproxLoss, ConcentratedLoss, PureLoss
from deniable.privacy.losses.laplace import DiscreteLaplaceLoss, LaplaceLoss
from deniable.privacy.losses.response import RandomizedResponseLoss
from deniable.privacy.losses.sampled import SampledLoss
from deniable.privacy.losses.selection import ExponentialLoss
from deniable.privacy.parallel import Parallel, parallel
from deniable.strict_json import read_json

VERSION = 1

KINDS: Mapping[str, type[Loss]] = {
    loss.kind: loss
    for loss in (
        ApproxLoss,
        ChannelLoss,
        ConcentratedLoss,
        DiscreteGaussianLoss,
        DiscreteLaplaceLoss,
        ExponentialLoss,
        GaussianLoss,
        LaplaceLoss,
        PureLoss,
        RandomizedResponseLoss,
        SampledLoss,
    )
}

_RATIONAL = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?")
_LONGEST = 10_000_000


def loss_to_json(loss: Loss) -> str:
    """The canonical text of a loss."""
    known = read_loss(loss)
    return json.dumps({"version": VERSION, **_encode(known)}, sort_keys=True, separators=(",", ":"))


def loss_from_json(text: str | bytes) -> Loss:
    """Read a loss from its text, which need not be the canonical one."""
    if not isinstance(text, str | bytes):
        raise LossFormatError(f"a loss is read from text, not from {type(text).__name__}")
    if len(text) > _LONGEST:
        raise LossFormatError(f"a stored loss has at most {_LONGEST} characters")
    try:
        data = read_json(text)
    except ValueError as cause:
        raise LossFormatError(f"a stored loss cannot be read: {cause}") from None
    if not isinstance(data, dict):
        raise LossFormatError("a stored loss must be a JSON object")
    version = data.pop("version", None)
    if version != VERSION or type(version) is not int:
        raise LossFormatError(
            f"this loss has version {_short(version)}; this software reads version {VERSION}"
        )
    try:
        return _decode(data)
    except RecursionError:
        raise LossFormatError("a stored loss is nested too deeply") from None


def _encode(loss: Loss) -> dict[str, object]:
    if isinstance(loss, Parallel):
        return {"kind": loss.kind, "losses": [_encode(each) for each in loss.losses]}
    if isinstance(loss, Composed):
        parts = [{"count": part.count, "loss": _encode(part.loss)} for part in loss.parts]
        return {"kind": loss.kind, "parts": parts}
    values = {field.name: getattr(loss, field.name) for field in fields(loss)}
    return {"kind": loss.kind, **{name: _encode_value(value) for name, value in values.items()}}


def _encode_value(value: object) -> object:
    if isinstance(value, tuple):
        return [_encode_value(each) for each in value]
    if isinstance(value, Loss):
        return _encode(value)
    return str(value) if isinstance(value, Fraction) else value


def _decode(data: object) -> Loss:
    if not isinstance(data, dict):
        raise LossFormatError("each loss must be a JSON object")
    kind = data.get("kind")
    if kind == Composed.kind:
        return _decode_composed(data)
    if kind == Parallel.kind:
        return _decode_parallel(data)
    if not isinstance(kind, str) or kind not in KINDS:
        raise LossFormatError(f"unknown kind of loss: {_short(kind)}")
    wanted = {field.name: field for field in fields(KINDS[kind])}
    given = {name: value for name, value in data.items() if name != "kind"}
    if given.keys() != wanted.keys():
        odd = ", ".join(ascii(name) for name in sorted(given.keys() ^ wanted.keys()))
        raise LossFormatError(
            f"a {kind} loss has exactly {', '.join(sorted(wanted))}; check {odd[:200]}"
        )
    values: dict[str, Any] = {n: _decode_value(n, _kept(wanted[n]), v) for n, v in given.items()}
    try:
        return KINDS[kind](**values)
    except DeniableError as cause:
        raise LossFormatError(f"a stored {kind} loss has a bad parameter: {cause}") from cause


def _decode_composed(data: dict[str, object]) -> Loss:
    parts = data.get("parts")
    if data.keys() != {"kind", "parts"} or not isinstance(parts, list) or not parts:
        raise LossFormatError("a composed loss has exactly its kind and a list of parts")
    losses = []
    for part in parts:
        if not isinstance(part, dict) or part.keys() != {"count", "loss"}:
            raise LossFormatError("each part of a composed loss has a loss and a count")
        count, inner = part["count"], part["loss"]
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise LossFormatError("a count must be a whole number, 1 or more")
        if isinstance(inner, dict) and inner.get("kind") == Composed.kind:
            raise LossFormatError("a composed loss is flat: its parts are not composed")
        losses.append((_decode(inner), count))
    try:
        return compose(*(repeat(loss, count) for loss, count in losses))
    except DeniableError as cause:
        raise LossFormatError(str(cause)) from cause


def _decode_parallel(data: dict[str, object]) -> Loss:
    losses = data.get("losses")
    if data.keys() != {"kind", "losses"} or not isinstance(losses, list) or not losses:
        raise LossFormatError("a parallel loss has exactly its kind and a list of losses")
    if any(isinstance(each, dict) and each.get("kind") == Parallel.kind for each in losses):
        raise LossFormatError("a parallel loss is flat: its parts are not parallel")
    try:
        return parallel(*(_decode(each) for each in losses))
    except DeniableError as cause:
        raise LossFormatError(str(cause)) from cause


def _kept(field: Field[Any]) -> str:
    """The type that a parameter keeps, by name: the second of Parameter[Number, Fraction]."""
    return str(field.type).rpartition(", ")[2].rstrip("]")


def _decode_value(name: str, kept: str, value: object) -> object:
    if kept == "Fraction":
        if not isinstance(value, str) or not _RATIONAL.fullmatch(value):
            raise LossFormatError(f'{name} must be a rational such as "1/10"')
        try:
            return Fraction(value)
        except ZeroDivisionError:
            raise LossFormatError(f"{name} divides by zero") from None
    if kept == "Rows":
        if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
            raise LossFormatError(f"{name} must be a list of rows")
        return tuple(tuple(_decode_value(name, "Fraction", p) for p in row) for row in value)
    if kept == "Loss":
        return _decode(value)
    if kept == "int":
        if not isinstance(value, int) or isinstance(value, bool):
            raise LossFormatError(f"{name} must be a whole number")
        return value
    if not isinstance(value, str):
        raise LossFormatError(f"{name} must be text")
    return value


def _short(value: object) -> str:
    """A short form of a public value read from JSON."""
    return ascii(value)[:60]
