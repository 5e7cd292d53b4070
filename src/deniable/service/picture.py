"""The estimate against the number of reports, as SVG made on the server."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from deniable.service.results import Line

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 44


def growth_svg(points: Sequence[tuple[int, Line]], *, title: str, percent: bool) -> str:
    """A line with its 95 % band; without points, an empty frame. Styled by classes only."""
    head = (
        f'<svg class="growth" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
    )
    if not points:
        return f'{head}<text class="axis" x="{_WIDTH // 2}" y="{_HEIGHT // 2}">–</text></svg>'
    least, most = _range(points, percent)
    last = points[-1][0]

    def x(n: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * n / last

    def y(value: float) -> float:
        inside = min(max(value, least), most)
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (most - inside) / (most - least)

    upper = [f"{x(n):.1f},{y(line.high):.1f}" for n, line in points]
    lower = [f"{x(n):.1f},{y(line.low):.1f}" for n, line in reversed(points)]
    middle = [f"{x(n):.1f},{y(line.value):.1f}" for n, line in points]
    parts = [head, f'<polygon class="band" points="{" ".join(upper + lower)}"/>']
    for step in range(5):
        value = least + (most - least) * step / 4
        shown = f"{100 * value:.0f}%" if percent else f"{value:.4g}"
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" '
            f'y2="{y(value):.1f}"/><text class="axis end" x="{_LEFT - 8}" '
            f'y="{y(value) + 4:.1f}">{shown}</text>'
        )
    parts += [
        f'<polyline class="line" points="{" ".join(middle)}"/>',
        f'<circle class="dot" cx="{x(last):.1f}" cy="{y(points[-1][1].value):.1f}" r="4"/>',
        f'<text class="axis start" x="{_LEFT}" y="{_HEIGHT - 24}">0</text>',
        f'<text class="axis end" x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 24}">{last:,}</text>',
        f'<text class="axis" x="{_WIDTH / 2:.0f}" y="{_HEIGHT - 8}">reports</text></svg>',
    ]
    return "".join(parts)


def _range(points: Sequence[tuple[int, Line]], percent: bool) -> tuple[float, float]:
    """Enough for the later half's band; the first few reports may leave the frame."""
    later = [line for _, line in points[len(points) // 2 :]]
    least, most = min(line.low for line in later), max(line.high for line in later)
    if percent:
        least, most = max(0.0, least), min(1.0, most)
    margin = (most - least or 1.0) / 10
    return (
        max(0.0, least - margin) if percent else least - margin,
        min(1.0, most + margin) if percent else most + margin,
    )
