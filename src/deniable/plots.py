"""Pictures from plain arrays. Needs the `plot` extra (matplotlib), loaded when first used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deniable.errors import MissingExtraError

_INK, _BAR = "#1f2933", "#4c8dae"


def bars_with_errors(
    labels: Sequence[str],
    values: Sequence[float],
    half_widths: Sequence[float],
    *,
    title: str,
    path: str | Path,
) -> Path:
    """Draw a bar for each value with its interval, and save the picture."""
    figure, axes = _canvas()
    axes.bar(labels, values, yerr=half_widths, capsize=4, color=_BAR, ecolor=_INK)
    axes.set_title(title, loc="left")
    return _save(figure, path)


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
