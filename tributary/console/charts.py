"""What ECharts draws for a tile: options without code, in which every value of the lake is only data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tributary.console.colors import QUIET_COLOR
from tributary.console.trends import Rates
from tributary.contract.boards.board import BarTile, Tile
from tributary.operations.boards.answers import Lines, Points, Slices

if TYPE_CHECKING:
    from tributary.api.timeline import Commit

QUIET = {":color": QUIET_COLOR}
"""The style of a text."""
_RATES_SECONDS = 300
_LEAST_ROOM_SECONDS = 30
"""So much time is drawn before the first commit and after the last one."""
_LOOKS_IN_A_GAP = 5
_LINES_OF_A_GRID = {"lineStyle": {**QUIET, "opacity": 0.25}}
"""The lines behind the values of a chart."""
_MOST_NAMED = 12
"""So many bars or points of a category each have their name below them. Of more, those that fit have it."""
_LETTERS_IN_A_ROW = 32
"""So many letters fit side by side below the narrowest chart. More names than that are written aslant."""
_LONGEST_NAME = 75
"""A name below a chart ends after so many pixels."""
_LARGEST, _SMALLEST = 48.0, 6.0
"""Diameters of bubbles in pixels."""


def chart_options(tile: Tile, what: Lines | Slices | Points) -> dict[str, Any]:
    """Return the options of a chart.

    NiceGUI runs the values of keys that begin with a colon as code, so no key comes from the lake. The
    tooltip is drawn on the canvas, so a text cannot become HTML.
    """
    match what:
        case Lines():
            return _lines(tile, what)
        case Slices():
            return _pie(what)
        case Points():
            return _scatter(what)


def rates_options(rates: Sequence[Rates], now: datetime, seconds: float) -> dict[str, Any]:
    """Return the chart of the events that Kafka got, and that the lake applied, in a second.

    seconds  between two looks at the lake. A line ends where nobody looked for much longer.
    """
    end = now.timestamp() * 1000
    lines = {
        "into Kafka": [(one.at, one.entered) for one in rates],
        "into the lake": [(one.at, one.applied) for one in rates],
    }
    return {
        **_base("axis"),
        "legend": {"top": 0, "textStyle": QUIET},
        "xAxis": _axis("time", min=end - _RATES_SECONDS * 1000, max=end),
        "yAxis": _axis("value", min=0),
        "series": [
            {
                "name": name,
                "type": "line",
                "showSymbol": False,
                "data": _with_gaps(points, _LOOKS_IN_A_GAP * seconds),
            }
            for name, points in lines.items()
        ],
    }


def commits_options(commits: Sequence[Commit]) -> dict[str, Any]:
    """Return the chart of the rows and the freshness of commits, which come newest first."""
    rows, fresh = [], []
    for commit in reversed(commits):
        moment = commit.completed.timestamp() * 1000
        rows.append([moment, commit.rows])
        if commit.freshness is not None:
            fresh.append([moment, commit.freshness.p95 / 1000])
    return {
        "grid": {"left": 60, "right": 60, "top": 40, "bottom": 30},
        "textStyle": QUIET,
        "legend": {"top": 0, "textStyle": QUIET},
        "tooltip": {"trigger": "axis"},
        "xAxis": _axis("time", **_span(commits)),
        "yAxis": [
            _axis("value", name="rows", nameTextStyle=QUIET),
            _axis("value", name="s", nameTextStyle=QUIET, splitLine={"show": False}),
        ],
        "series": [
            {"name": "rows written", "type": "bar", "barMaxWidth": 24, "data": rows},
            {"name": "fresh p95", "type": "line", "yAxisIndex": 1, "data": fresh},
        ],
    }


def _span(commits: Sequence[Commit]) -> dict[str, float]:
    """Return the times between which the commits are drawn. ECharts shows a single one within two days."""
    if not commits:
        return {}
    first, last = (commit.completed.timestamp() * 1000 for commit in (commits[-1], commits[0]))
    room = max(_LEAST_ROOM_SECONDS * 1000, (last - first) / 50)
    return {"min": first - room, "max": last + room}


def _with_gaps(points: Sequence[tuple[datetime, float]], seconds: float) -> list[list[float | None]]:
    """Return the points of a line, with a point without a value between two that are too far apart."""
    data: list[list[float | None]] = []
    for at, rate in points:
        moment = at.timestamp() * 1000
        if data and data[-1][0] is not None and moment - data[-1][0] > seconds * 1000:
            data.append([moment, None])
        data.append([moment, round(rate, 1)])
    return data


def _base(trigger: str) -> dict[str, Any]:
    return {
        "animation": False,
        "useUTC": True,
        "textStyle": QUIET,
        "tooltip": {"trigger": trigger, "renderMode": "richText", "confine": True},
        "grid": {"left": 12, "right": 24, "top": 36, "bottom": 12, "containLabel": True},
    }


def _axis(kind: str, **more: Any) -> dict[str, Any]:
    label = {**QUIET, "hideOverlap": True}
    lines = {} if kind == "category" else {"splitLine": _LINES_OF_A_GRID}
    return {"type": kind, "axisLabel": label, **lines, **more}


def _categories(names: Sequence[str]) -> dict[str, Any]:
    """Return an axis on which each of a few categories has its name."""
    if len(names) > _MOST_NAMED:
        return _axis("category", data=list(names))
    longest = max(map(len, names), default=0)
    aslant = {"rotate": 35} if longest * len(names) > _LETTERS_IN_A_ROW else {}
    size = {"width": _LONGEST_NAME, "overflow": "truncate"}
    label = {**QUIET, "interval": 0, "hideOverlap": True, **size, **aslant}
    return _axis("category", data=list(names), axisLabel=label)


def _lines(tile: Tile, what: Lines) -> dict[str, Any]:
    is_bar = isinstance(tile, BarTile)
    stack = {"stack": "all"} if isinstance(tile, BarTile) and tile.stacked else {}
    return {
        **_base("axis"),
        "legend": {"show": len(what.series) > 1, "type": "scroll", "top": 0, "textStyle": QUIET},
        "xAxis": _categories(what.x) if what.axis == "category" else _axis(what.axis),
        "yAxis": _axis("value"),
        "series": [
            {
                "name": series.name,
                "type": "bar" if is_bar else "line",
                "data": list(series.values)
                if what.axis == "category"
                else [list(pair) for pair in zip(what.x, series.values, strict=True)],
                **stack,
            }
            for series in what.series
        ],
    }


_NAMES_AT_ONCE = 12
"""So many names fit below a pie, in a few lines."""


def _pie(what: Slices) -> dict[str, Any]:
    return {
        **_base("item"),
        # Names beside their slices would be cut to a letter or two on a narrow board.
        "legend": {
            "type": "plain" if len(what.slices) <= _NAMES_AT_ONCE else "scroll",
            "bottom": 0,
            "textStyle": QUIET,
        },
        "series": [
            {
                "type": "pie",
                "radius": ["29%", "57%"],
                "center": ["50%", "38%"],
                "label": {**QUIET, "formatter": "{d} %"},
                "data": [{"name": name, "value": value} for name, value in what.slices],
            }
        ],
    }


def _scatter(what: Points) -> dict[str, Any]:
    x, y, _ = what.names
    largest = max((size or 0 for _, _, size, _ in what.points), default=0)
    return {
        **_base("item"),
        "grid": {"left": 12, "right": 24, "top": 36, "bottom": 32, "containLabel": True},
        "xAxis": _axis("value", name=x, nameLocation="middle", nameGap=28, scale=True),
        "yAxis": _axis("value", name=y, scale=True),
        "series": [
            {
                "type": "scatter",
                "itemStyle": {"opacity": 0.65},
                "data": [
                    {"name": name, "value": [px, py, size], "symbolSize": _diameter(size, largest, what)}
                    for px, py, size, name in what.points
                ],
            }
        ],
    }


def _diameter(size: int | float | None, largest: int | float, what: Points) -> float:
    """Return the diameter of a point in pixels. A bubble's area is proportional to its size."""
    if what.names[2] is None or not size or size < 0 or largest <= 0:
        return _SMALLEST if what.names[2] is not None else 2 * _SMALLEST
    return max(_SMALLEST, _LARGEST * math.sqrt(size / largest))
