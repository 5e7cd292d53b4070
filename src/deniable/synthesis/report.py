"""A page about a synthetic table: how it fits what was measured, and what was not needed."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from deniable.synthesis.domain import Clique, Floats
from deniable.synthesis.measurement import Measurement
from deniable.synthesis.model.base import Model
from deniable.synthesis.rare import Unmerged
from deniable.synthesis.synthetic import SyntheticTable

_STYLE = (
    "body{font:15px system-ui,sans-serif;max-width:60em;margin:2em auto;color:#1f2933}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}"
    "svg{display:block;margin:1em 0}"
)


@dataclass(frozen=True)
class MeasuredFit:
    """One measured marginal: distances are total variation, in shares of the rows."""

    clique: Clique
    model: float
    noise: float
    independent: float

    @property
    def independence_would_do(self) -> bool:
        """Whether independent columns lie as close to the measurement as its noise allows."""
        return len(self.clique) > 1 and self.independent <= self.noise * 1.1


def measured_fits(table: SyntheticTable) -> list[MeasuredFit]:
    """How far the model, and independent columns, are from what was measured. Public: no cost."""
    found = []
    for each in table.measurements:
        if not each.clique or not each.values.ndim:
            continue
        model = _in_its_codes(table.model, each)
        rows = max(model.total, 1.0)
        found.append(
            MeasuredFit(
                each.clique,
                _distance(model.marginal(each.clique), each.values, rows),
                each.noise / rows / 2,
                _distance(independent(model, each.clique), each.values, rows),
            )
        )
    return found


def _in_its_codes(model: Model, measured: Measurement) -> Model:
    """The model in the codes of a measurement: rare values may have been merged before it."""
    if isinstance(model, Unmerged) and model.domain.shape(measured.clique) != measured.values.shape:
        return model.inner
    return model


def independent(model: Model, clique: Clique) -> Floats:
    """What the model's own single columns would say if they were independent."""
    rows = max(model.total, 1e-300)
    found = np.array(rows)
    for column in clique:
        found = np.multiply.outer(found, model.marginal((column,)) / rows)
    return found


def by_way(table: SyntheticTable) -> list[tuple[int, int, float]]:
    """For 1 to 3 columns: how many marginals, and their mean distance from independence."""
    model, rows = table.model, max(table.model.total, 1.0)
    found = []
    for way in range(1, min(3, len(model.domain)) + 1):
        some = list(combinations(model.domain.columns, way))[:200]
        far = [_distance(model.marginal(c), independent(model, c), rows) for c in some]
        found.append((way, len(some), float(np.mean(far))))
    return found


def page(table: SyntheticTable, private: Mapping[int, float]) -> str:
    """The whole page, as HTML."""
    fits = measured_fits(table)
    ways = sorted({len(fit.clique) for fit in fits})
    summary = [
        (
            f"{way}-way",
            str(len(some)),
            *(_percent(float(np.mean([getattr(f, name) for f in some]))) for name in _KINDS),
        )
        for way in ways
        if (some := [fit for fit in fits if len(fit.clique) == way])
    ]
    spare = [fit for fit in fits if fit.independence_would_do]
    sections = [
        f"<h1>Synthetic table</h1><p>Method {html.escape(table.method)}; about {table.rows:,} "
        "rows, estimated.</p>",
        _table(("paid for", "price"), [(what, str(price)) for what, price in table.receipt]),
        "<h2>Public evaluation</h2><p>Against the noisy measurements, which are public: nothing "
        "was spent on it. A model that fits is as far from them as their noise.</p>",
        _table(("marginals", "measured", "model", "noise", "independent columns"), summary),
        _bars(fits),
        "<h2>Private evaluation</h2>",
        _table(
            ("marginals", "mean distance from the private table, noisy"),
            [(f"{way}-way", _percent(far)) for way, far in private.items()],
        )
        if private
        else "<p>None: comparing with the private table costs budget; "
        "<code>dp.synthesis.evaluate</code> does it.</p>",
        "<h2>Where plain independence would have done</h2>",
        _table(
            ("columns", "independent columns", "noise"),
            [(" × ".join(f.clique), _percent(f.independent), _percent(f.noise)) for f in spare],
        )
        if spare
        else "<p>Nowhere: every pair or larger set that was measured is told apart from "
        "independence.</p>",
        "<h2>How far from independence the model is</h2>",
        _table(
            ("columns", "marginals", "mean distance"),
            [(f"{way}-way", str(count), _percent(far)) for way, count, far in by_way(table)],
        ),
    ]
    head = f"<meta charset='utf-8'><title>Synthetic table</title><style>{_STYLE}</style>"
    return f"<!doctype html><html><head>{head}</head><body>{''.join(sections)}</body></html>"


_KINDS = ("model", "noise", "independent")


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _bars(fits: Sequence[MeasuredFit]) -> str:
    """The worst-fitting marginals as bars, with a tick where noise alone would end."""
    worst = sorted(fits, key=lambda fit: -fit.model)[:15]
    most = max((max(fit.model, fit.noise) for fit in worst), default=0.0) or 1.0
    parts = []
    for place, fit in enumerate(worst):
        y, wide, tick = 22 * place, 300 * fit.model / most, 300 * fit.noise / most
        label = html.escape(" × ".join(fit.clique))
        parts.append(
            f"<text x='255' y='{y + 14}' text-anchor='end' font-size='12'>{label}</text>"
            f"<rect x='260' y='{y + 3}' width='{wide:.1f}' height='14' fill='#4c8dae'/>"
            f"<rect x='{260 + tick:.1f}' y='{y}' width='2' height='20' fill='#c8553d'/>"
        )
    return f"<svg width='600' height='{22 * len(worst) + 4}'>{''.join(parts)}</svg>"


def _distance(one: Floats, other: Floats, rows: float) -> float:
    return float(np.abs(one - other).sum()) / rows / 2


def _percent(share: float) -> str:
    return f"{100 * float(share):.2f} %"
