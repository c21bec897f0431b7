"""The charts and dashboards of Superset that show what the tiles of boards show.

Kinds of charts and their parameters: Superset's own form data, as its plugins read it (version 6.1).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from tributary.contract.boards.board import (
    BarTile,
    Board,
    LineTile,
    NumberTile,
    PieTile,
    ScatterTile,
    TableTile,
    Tile,
)

Form = dict[str, Any]

_MOST_ROWS = 10_000
_HEIGHT = 50
_HEIGHT_OF_A_NUMBER = 22
"""Of a chart, in Superset's units of 8 pixels."""
_COLUMNS = 12


@dataclass(frozen=True)
class Chart:
    """A chart. `form` is what Superset calls form data. `query` asks for the same numbers through its API."""

    title: str
    kind: str
    form: Form
    query: Form


def chart_of(tile: Tile, columns: Sequence[str]) -> Chart:
    """Return the chart of a tile whose answer has these columns."""
    match tile:
        case NumberTile():
            unit = f" ({tile.unit})" if tile.unit else ""
            value = _sum(tile.value)
            form: Form = {"metric": value, "y_axis_format": ",.2~f"}
            return _chart(f"{tile.title}{unit}", "big_number_total", form, [], [value])
        case BarTile():
            form = {"stack": "Stack" if tile.stacked else None, "xAxisForceCategorical": True}
            return _over_x(tile, "echarts_timeseries_bar", form)
        case LineTile():
            return _over_x(tile, "echarts_timeseries_line", {})
        case PieTile():
            value = _sum(tile.value)
            form = {"groupby": [tile.label], "metric": value, "sort_by_metric": True}
            return _chart(tile.title, "pie", form, [tile.label], [value])
        case ScatterTile():
            # Superset shows one bubble for each value of the entity. Without a label, that is the value of x.
            entity, size = tile.label or tile.x, _sum(tile.size) if tile.size else _COUNT
            x, y = _sum(tile.x, tile.x if tile.label else f"{tile.x} of the point"), _sum(tile.y)
            form = {"entity": entity, "x": x, "y": y, "size": size}
            return _chart(tile.title, "bubble_v2", form, [entity], [x, y, size])
        case TableTile():
            form = {"query_mode": "raw", "all_columns": list(columns)}
            return _chart(tile.title, "table", form, columns, [])
        case _:
            assert_never(tile)


def dashboard_of(board: Board, charts: Sequence[tuple[Tile, Chart, int]]) -> Form:
    """Return a dashboard of the charts, which have these ids in Superset, in the order of the tiles."""
    return {
        "dashboard_title": board.title,
        "slug": slug_of(board),
        "published": True,
        "json_metadata": json.dumps(
            {
                "refresh_frequency": int(board.refresh.total_seconds()),
                "positions": _positions(board, charts),
            }
        ),
    }


def slug_of(board: Board) -> str:
    """Return the last part of the dashboard's address, by which it is found again."""
    return f"tributary-{board.name}"


def _over_x(tile: BarTile | LineTile, kind: str, more: Form) -> Chart:
    values = [_sum(name) for name in tile.y]
    form = {"x_axis": tile.x, "time_grain_sqla": None, "x_axis_sort_asc": True, "metrics": values, **more}
    return _chart(tile.title, kind, form, [tile.x], values)


def _chart(title: str, kind: str, form: Form, columns: Iterable[str], metrics: Sequence[Form]) -> Chart:
    columns = list(columns)
    query: Form = {"columns": columns, "metrics": list(metrics), "row_limit": _MOST_ROWS}
    if columns and metrics:
        query["orderby"] = [[columns[0], True]]
    return Chart(title, kind, {"viz_type": kind, "row_limit": _MOST_ROWS, **form}, query)


def _sum(column: str, label: str | None = None) -> Form:
    """Return a sum, which is the value itself: a tile's answer has one row for each label."""
    return {
        "expressionType": "SIMPLE",
        "column": {"column_name": column},
        "aggregate": "SUM",
        "label": label or column,
        "optionName": f"metric_{column}",
    }


_COUNT: Form = {
    "expressionType": "SQL",
    "sqlExpression": "COUNT(*)",
    "label": "rows",
    "optionName": "metric_rows",
}


def _positions(board: Board, charts: Sequence[tuple[Tile, Chart, int]]) -> Form:
    """Lay the charts out in rows of twelve columns, as the console does."""
    rows: list[list[tuple[Tile, Chart, int]]] = []
    left = 0
    for each in charts:
        if each[0].width > left:
            rows.append([])
            left = _COLUMNS
        rows[-1].append(each)
        left -= each[0].width
    above = ["ROOT_ID", "GRID_ID"]
    layout: Form = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "GRID_ID": {
            "type": "GRID",
            "id": "GRID_ID",
            "children": [f"ROW-{number}" for number in range(len(rows))],
            "parents": ["ROOT_ID"],
        },
        "HEADER_ID": {"type": "HEADER", "id": "HEADER_ID", "meta": {"text": board.title}},
    }
    for number, row in enumerate(rows):
        place = f"ROW-{number}"
        layout[place] = {
            "type": "ROW",
            "id": place,
            "children": [f"CHART-{chart_id}" for _, _, chart_id in row],
            "parents": above,
            "meta": {"background": "BACKGROUND_TRANSPARENT"},
        }
        for tile, chart, chart_id in row:
            layout[f"CHART-{chart_id}"] = {
                "type": "CHART",
                "id": f"CHART-{chart_id}",
                "children": [],
                "parents": [*above, place],
                "meta": _shown(tile, chart, chart_id),
            }
    return layout


def _shown(tile: Tile, chart: Chart, chart_id: int) -> Mapping[str, Any]:
    height = _HEIGHT_OF_A_NUMBER if isinstance(tile, NumberTile) else _HEIGHT
    return {"chartId": chart_id, "sliceName": chart.title, "width": tile.width, "height": height}
