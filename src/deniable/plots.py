"""Pictures from plain arrays. Needs the `plot` extra (matplotlib), loaded when first used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import MissingExtraError

Values = Sequence[float] | npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

_INK, _BAR = "#1f2933", "#4c8dae"
# Curves differ in dash as well as in colour, so that they survive a grey print.
_COLOURS = (_BAR, "#c8553d", "#3f7d4e", "#8a6bbe")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))  # one more, so that pairs repeat late


def bars_between(
    labels: Sequence[str],
    values: Values,
    ends: tuple[Values, Values],
    *,
    title: str,
    path: str | Path,
) -> Path:
    """Draw a bar for each value with the ends of its interval, open ones at the edge."""
    figure, axes = _canvas()
    places, middle = np.arange(len(labels)), np.nan_to_num(np.asarray(values, dtype=float))
    low, high = _closed(axes, middle, ends)
    apart = np.maximum([middle - low, high - middle], 0.0)
    axes.bar(places, middle, yerr=apart, capsize=4, color=_BAR, ecolor=_INK)
    axes.set_xticks(places, [_plain(label) for label in labels])
    axes.set_title(_plain(title), loc="left")
    return _save(figure, path)


def _closed(axes: Any, middle: Floats, ends: tuple[Values, Values]) -> tuple[Floats, Floats]:
    """Ends of intervals; open ones reach to the edges of the picture, which are set for them."""
    low, high = (np.asarray(each, dtype=float) for each in ends)
    known = np.concatenate([[0.0], middle, low[np.isfinite(low)], high[np.isfinite(high)]])
    wide = 0.1 * max(float(known.max() - known.min()), 1.0)
    edges = float(known.min()) - wide * bool(known.min() < 0), float(known.max()) + wide
    if np.isfinite(low).all() and np.isfinite(high).all():
        return low, high
    below, above = edges[0] - wide, edges[1]
    axes.set_ylim(edges[0] if np.isfinite(low).all() else below, above)
    return np.where(np.isfinite(low), low, below), np.where(np.isfinite(high), high, above)


def line_with_band(
    labels: Sequence[str],
    values: Values,
    ends: tuple[Values, Values],
    *,
    title: str,
    y_label: str,
    path: str | Path,
) -> Path:
    """Draw values in the order of their labels, with a band around them, open ends at the edge."""
    figure, axes = _canvas()
    x, middle = np.arange(len(labels)), np.nan_to_num(np.asarray(values, dtype=float))
    low, high = _closed(axes, middle, ends)
    axes.fill_between(x, low, high, color=_BAR, alpha=0.3, linewidth=0)
    axes.plot(x, middle, color=_INK, marker="o", markersize=3)
    step = max(1, len(labels) // 12)
    shown = [_plain(label) for label in labels][::step]
    axes.set_xticks(x[::step], shown, rotation=30, ha="right")
    axes.set_title(_plain(title), loc="left")
    axes.set_ylabel(_plain(y_label))
    return _save(figure, path)


def grouped_bars(
    labels: Sequence[str],
    groups: Mapping[str, Values],
    *,
    half_widths: Mapping[str, Values] | None = None,
    title: str,
    x_label: str,
    y_label: str,
    path: str | Path,
) -> Path:
    """Draw, over each label, one bar of every group; groups named in `half_widths` get intervals.

    A group's values are in the order of the labels.
    """
    figure, axes = _canvas()
    places, width = np.arange(len(labels)), 0.8 / len(groups)
    for number, (name, values) in enumerate(groups.items()):
        axes.bar(
            places + (number - (len(groups) - 1) / 2) * width,
            values,
            width,
            yerr=(half_widths or {}).get(name),
            capsize=3,
            color=_COLOURS[number % len(_COLOURS)],
            ecolor=_INK,
            label=name,
        )
    axes.set_xticks(places, labels)
    _describe(figure, axes, title, x_label, y_label)
    return _save(figure, path)


def lines(
    x: Values,
    curves: Mapping[str, Values],
    *,
    log_x: bool = False,
    log_y: bool = False,
    title: str,
    x_label: str,
    y_label: str,
    path: str | Path,
) -> Path:
    """Draw labelled curves over the same x; a NaN leaves a gap."""
    figure, axes = _canvas()
    for number, (name, values) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        dash = _DASHES[number % len(_DASHES)]
        axes.plot(x, values, linestyle=dash, color=colour, linewidth=2, label=name)
    if log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,g}")
    if log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:,g}")
    _describe(figure, axes, title, x_label, y_label)
    return _save(figure, path)


def _plain(text: str) -> str:
    """Text without the marks of formulas, which data may hold by chance."""
    return text.replace("$", r"\$")


def _describe(figure: Any, axes: Any, title: str, x_label: str, y_label: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    # Below the axes, where it hides nothing.
    figure.legend(loc="outside lower center", ncols=2, frameon=False)


def _canvas() -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  (optional, and slow to import)
    except ImportError:
        raise MissingExtraError("pictures", "plot") from None
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, path: str | Path) -> Path:
    target = Path(path)
    figure.savefig(target, dpi=150)
    return target
