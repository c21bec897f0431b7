"""Draw curves as a deterministic, plain-text SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 760, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 40, 40, 46
_COLORS = ("#0b6e99", "#c4553b", "#3d8b40", "#8255a5", "#b8860b", "#555555")
_TICKS = 6


@dataclass(frozen=True)
class Plot:
    """Named curves over one x axis.

    is_log  use a logarithmic x axis
    dots    draw the points without lines between them
    limit   a horizontal line and its label
    """

    title: str
    x: str
    y: str
    curves: Mapping[str, Points]
    is_log: bool = False
    dots: bool = False
    limit: tuple[float, str] | None = None


def svg(plot: Plot) -> str:
    """Return the picture. The y axis starts at zero, so double the height means double the value."""
    points = [point for curve in plot.curves.values() for point in curve]
    place_x = _scale([x for x, _ in points], is_log=plot.is_log)
    highest = max([y for _, y in points] + ([plot.limit[0]] if plot.limit else [])) * 1.05 or 1.0

    def at(point: tuple[float, float]) -> tuple[float, float]:
        x = _LEFT + place_x(point[0]) * (_WIDTH - _LEFT - _RIGHT)
        return round(x, 1), round(_HEIGHT - _BOTTOM - point[1] / highest * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 18, plot.title, size=14),
        *_axes(plot, at, sorted({x for x, _ in points}), highest),
    ]
    for number, (name, curve) in enumerate(plot.curves.items()):
        color = _COLORS[number % len(_COLORS)]
        parts += _curve([at(point) for point in curve], color, dots=plot.dots)
        if len(plot.curves) > 1:
            parts.append(_text(_LEFT + 8 + 150 * number, 34, name, color=color))
    return "\n".join([*parts, "</svg>", ""])


def _scale(values: Sequence[float], *, is_log: bool) -> Callable[[float], float]:
    """Return a function that maps the smallest value to 0 and the largest to 1."""
    of: Callable[[float], float] = math.log10 if is_log else float
    least, width = of(min(values)), (of(max(values)) - of(min(values))) or 1.0
    return lambda value: (of(value) - least) / width


def _axes(
    plot: Plot, at: Callable[[tuple[float, float]], tuple[float, float]], xs: Sequence[float], highest: float
) -> list[str]:
    parts = [_text(_WIDTH - _RIGHT, _HEIGHT - 8, plot.x, anchor="end"), _text(4, 34, plot.y)]
    for value in ticks(highest):
        _, y = at((xs[0], value))
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 6, y + 4, f"{value:g}", anchor="end"))
    marked = xs if plot.is_log else [least + xs[0] for least in ticks(xs[-1] - xs[0])]
    for value in marked:
        x, _ = at((value, 0.0))
        parts.append(_text(x, _HEIGHT - _BOTTOM + 18, f"{value:,.0f}", anchor="middle"))
    if plot.limit is not None:
        _, y = at((xs[0], plot.limit[0]))
        line = f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"'
        parts.append(f'{line} stroke="#c00" stroke-dasharray="6 4"/>')
        parts.append(_text(_WIDTH - _RIGHT, y - 5, plot.limit[1], anchor="end", color="#c00"))
    return parts


def ticks(highest: float) -> list[float]:
    """Return round numbers from 0 up to the highest value."""
    rough = highest / _TICKS
    power = 10 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [round(number * step, 10) for number in range(int(highest / step) + 1)]


def _curve(places: Sequence[tuple[float, float]], color: str, *, dots: bool) -> list[str]:
    marks = [f'<circle cx="{x}" cy="{y}" r="{2 if dots else 3}" fill="{color}"/>' for x, y in places]
    if dots:
        return marks
    line = " ".join(f"{x},{y}" for x, y in places)
    drawn = f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="1.5"/>'
    return [drawn, *(marks if len(places) <= 30 else [])]


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, color: str = "#333"
) -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="{color}">'
        f"{escape(text)}</text>"
    )
