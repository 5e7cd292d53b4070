"""What the ledger holds of a question, as an answer: numbers, intervals, labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deniable.answer import Answer
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.query.plan.measures import ColumnNoise
from deniable.query.plan.plan import SCALE
from deniable.query.price.price import Priced
from deniable.query.run.drawing import as_released
from deniable.query.show.ends import Cut
from deniable.query.show.lost import LABEL, restored
from deniable.query.show.shape import Noisy, shape
from deniable.release import Answer as Recorded

_MUCH = 0.05  # of the rows: a declared bound that cuts off more is worth a word


def shown(priced: Priced, recorded: Recorded, paid: Loss | None = None) -> Answer:
    """The answer, from what the ledger holds; `paid` was spent on bounds beside it."""
    value = recorded.value
    assert isinstance(value, dict)
    kinds = [group.kind for group in priced.plan.groups]
    keys = [as_released(key, kinds) for key in value["keys"]]
    x = np.zeros((len(keys), priced.plan.columns))
    for place, column in enumerate(value["columns"]):
        x[:, place] = column
    noise, cut = priced.noise, _cut(priced, x, value)
    labels: tuple[str, ...] = ()
    if priced.lost is not None:
        spread = [priced.lost.deviation(n) / SCALE for n in range(len(value["lost"]))]
        made = restored(priced.plan, x, noise, list(zip(value["lost"], spread, strict=True)))
        x, noise, labels = made.x, made.noise, (LABEL,) if made.added.any() else ()
    elif (share := _cut_share(priced, x, value)) > _MUCH:
        labels = (f"max_rows cuts off about {share:.0%} of the rows; leave it out to buy it",)
    if priced.plan.left_out and priced.plan.cap is None:  # else that is promised not to happen
        labels = (*labels, priced.plan.rows_left_out)
    shaped = shape(priced.plan, Noisy(keys, x, noise, cut))
    return Answer(
        data=shaped.data,
        noise=shaped.noise,
        total=shaped.total,
        cost=recorded.cost if paid is None else compose(paid, priced.loss).price,
        number=recorded.number,
        head=recorded.head,
        repeated=recorded.repeated,
        labels=(*labels, *priced.plan.notes),
    )


def _cut(priced: Priced, x: Any, stored: Mapping[str, Any]) -> Cut | None:
    """What bounds cut off: nothing, or what was bought about it; None where that is not known."""
    if not priced.plan.cuts(l2=priced.joint is None or priced.joint.norm == "l2"):
        return Cut(x, priced.noise)
    law = priced.cut
    if law is None:
        return None
    noise = ColumnNoise(law.deviation(0) / SCALE, law.law(0), SCALE)
    return Cut(x, priced.noise, float(stored["cut"]), noise)


def _cut_share(priced: Priced, x: Any, stored: Mapping[str, Any]) -> float:
    """The share of rows that a declared bound surely cuts off, where that was bought."""
    counts = [
        n for n, each in enumerate(priced.plan.statistics) if each.counts and not each.missing
    ]
    if priced.cut is None or not counts:
        return 0.0
    least = float(stored["cut"]) - priced.cut.error(0, confidence=0.95) / SCALE
    return max(0.0, least) / max(1.0, least + float(x[:, counts[0]].sum()))
