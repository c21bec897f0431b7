"""Each kind of tile becomes a chart of Superset with the same columns, and a board a dashboard of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tributary.contract.boards.board import Board, parse_board
from tributary.operations.boards.tile_names import named_tiles
from tributary.superset.charts import chart_of, dashboard_of

BOARD = """
title = "All kinds"
refresh = "1m"

[[tile]]
title = "Number"
chart = "number"
unit = "$"
value = "revenue"
sql = "SELECT 1 AS revenue"

[[tile]]
title = "Bars"
chart = "bar"
stacked = true
width = 8
x = "month"
y = ["a", "b"]
sql = "SELECT 'm' AS month, 1 AS a, 2 AS b"

[[tile]]
title = "Line"
chart = "line"
width = 4
x = "day"
y = "a"
sql = "SELECT DATE '2026-01-01' AS day, 1 AS a"

[[tile]]
title = "Pie"
chart = "pie"
label = "name"
value = "share"
sql = "SELECT 'n' AS name, 1 AS share"

[[tile]]
title = "Points"
chart = "scatter"
x = "a"
y = "b"
sql = "SELECT 1 AS a, 2 AS b"

[[tile]]
title = "Rows"
chart = "table"
width = 12
sql = "SELECT 1 AS a, 2 AS b"
"""


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return parse_board(BOARD, tmp_path / "all-kinds.toml")


def test_each_tile_is_a_chart_that_asks_for_its_columns(board: Board) -> None:
    found = {}
    for name, tile in named_tiles(board).items():
        chart = chart_of(tile, ["a", "b"])
        asked = [*chart.query["columns"], *(metric["label"] for metric in chart.query["metrics"])]
        found[name] = (chart.title, chart.kind, asked)
    assert found == {
        "all_kinds_number": ("Number ($)", "big_number_total", ["revenue"]),
        "all_kinds_bars": ("Bars", "echarts_timeseries_bar", ["month", "a", "b"]),
        "all_kinds_line": ("Line", "echarts_timeseries_line", ["day", "a"]),
        "all_kinds_pie": ("Pie", "pie", ["name", "share"]),
        "all_kinds_points": ("Points", "bubble_v2", ["a", "a of the point", "b", "rows"]),
        "all_kinds_rows": ("Rows", "table", ["a", "b"]),
    }


def test_a_dashboard_has_every_chart_in_rows_that_fit_and_asks_again_as_the_board_says(board: Board) -> None:
    charts = [(tile, chart_of(tile, ["a", "b"]), number) for number, tile in enumerate(board.tiles)]
    dashboard = dashboard_of(board, charts)
    assert dashboard["slug"] == "tributary-all-kinds"
    about = json.loads(dashboard["json_metadata"])
    assert about["refresh_frequency"] == 60
    layout: dict[str, Any] = about["positions"]
    rows = [layout[row]["children"] for row in layout["GRID_ID"]["children"]]
    widths = [[layout[chart]["meta"]["width"] for chart in row] for row in rows]
    assert widths == [[3, 8], [4, 6], [6], [12]]
    assert [layout[chart]["meta"]["chartId"] for row in rows for chart in row] == list(range(6))


def test_two_tiles_of_one_title_have_names_of_their_own(tmp_path: Path) -> None:
    twice = BOARD.replace('title = "Pie"', 'title = "Line!"')
    names = list(named_tiles(parse_board(twice, tmp_path / "b.toml")))
    assert names[2:4] == ["b_line_3", "b_line_4"]
