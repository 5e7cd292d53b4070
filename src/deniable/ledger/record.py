"""What a population's releases cost as one list: the tight number for the record."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from deniable.ledger.entries import ANSWERS, EntryKind, Row
from deniable.ledger.filters import Totals, charge
from deniable.privacy.accountants import zcdp
from deniable.privacy.composition import compose
from deniable.privacy.exact import Number, probability
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.price import GRID
from deniable.privacy.wire import loss_from_json


def tight_epsilon(rows: Iterable[Row], delta: Number) -> float:
    """ε of all releases since the last renewal.

    It counts what was drawn. Of a door that never closed and was not resumable only the price is
    known: if that is pure, it counts as randomised response; if not, everything counts by ρ. What
    is held has no door, and counts from when it is settled.
    """
    allowed = probability(delta, "delta")
    doors, drawn = _read(rows)
    if not doors:
        return 0.0
    losses: list[Loss] = []
    for number, door in doors.items():
        if number in drawn:
            losses += drawn[number]
        elif door.pure is not None:
            losses.append(PureLoss(bound=door.pure, relation=door.relation))
        else:
            return _by_rho(doors.values(), allowed)
    return compose(*losses).epsilon(delta=allowed) if losses else 0.0


def _read(rows: Iterable[Row]) -> tuple[dict[int, Loss], dict[int, list[Loss]]]:
    """Each reservation's loss, and the losses that were drawn where that is known."""
    doors: dict[int, Loss] = {}
    drawn: dict[int, list[Loss]] = {}
    for row in rows:
        data, number = row.data, row.refers
        if row.kind == EntryKind.RENEW:
            doors, drawn = {}, {}
        elif row.kind == EntryKind.RESERVE:
            doors[row.number] = loss_from_json(data["loss"])
            if data["resumable"]:
                drawn[row.number] = []
        elif row.kind == EntryKind.DEBIT and number in drawn:
            drawn[number].append(loss_from_json(data["loss"]))
        elif row.kind in ANSWERS and number in doors and number not in drawn:
            texts = data.get("drawn")
            drawn[number] = [doors[number]] if texts is None else [*map(loss_from_json, texts)]
        if row.kind == EntryKind.SETTLE and "loss" in data:
            doors[row.number] = loss_from_json(data["loss"])
    return doors, drawn


def _by_rho(losses: Iterable[Loss], delta: Fraction) -> float:
    total = Totals()
    for loss in losses:
        total = total + charge(loss)
    left = delta - total.delta * GRID
    return zcdp.epsilon(float(total.rho * GRID), float(left)) if left > 0 else math.inf
