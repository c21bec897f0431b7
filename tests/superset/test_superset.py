"""Superset itself shows the numbers that DuckDB computes over the lake's rows."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import requests

from tests.browser.chromium import chromium
from tests.ports import free_port
from tests.sql_server.test_server import Lake
from tributary.api.sql import Limits, query_arrow
from tributary.contract.boards.board import Board, read_board
from tributary.contract.table_name import TableName
from tributary.operations.boards.tile_names import named_tiles
from tributary.sql_server.board_tables import BoardTables
from tributary.sql_server.server import HOST, USER, Access, serving
from tributary.sql_server.session import ServedLake
from tributary.superset.charts import chart_of
from tributary.superset.home import SupersetHome
from tributary.superset.rest import Superset
from tributary.superset.run import Served, Shown, running, show_boards
from tributary.tickit.generator import generate
from tributary.tickit.schema import TABLES

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

BOARD = Path(__file__).parents[2] / "boards" / "tickit.toml"
_PATIENCE_MS = 240_000
"""How long Superset may take to answer all charts of a dashboard on a busy machine."""


@dataclass(frozen=True)
class World:
    """Superset on the tickets' lake, with its board, and a file that is none."""

    home: SupersetHome
    superset: Superset
    lake: Lake
    board: Board
    shown: Shown
    show: Any


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("superset")
    rows = generate(0.02)
    lake = Lake(
        {
            TableName("shop", "public", table.name): pa.Table.from_pylist(
                [dict(zip(table.columns, row, strict=True)) for row in rows[table.name]]
            )
            for table in TABLES
        }
    )
    broken = folder / "broken.toml"
    broken.write_text("title = 7")
    files, told = (BOARD, broken), list[str]()
    access = Access(free_port(), "a password: for/tests")
    home = SupersetHome.open(folder / "home")
    home.prepare()
    served = ServedLake(lake, Limits(30, "500MB"), BoardTables(lambda: files, told.append))
    run_folder = folder / "run"
    run_folder.mkdir()
    with serving(served, access), running(home, free_port(), run_folder) as superset:
        address = Served(HOST, access.port, USER, access.password)

        def show() -> Shown:
            return show_boards(superset, "shop", address, files, told.append)

        yield World(home, superset, lake, read_board(BOARD), show(), show)


def test_every_chart_has_the_numbers_of_its_tile(world: World) -> None:
    tiles = named_tiles(world.board)
    assert len(tiles) == 9
    for name, tile in tiles.items():
        dataset = world.superset._find("dataset", table_name=name, schema="boards")
        assert dataset is not None
        chart = world.superset._find("chart", datasource_id=dataset)
        assert chart is not None
        expected = query_arrow(world.lake.tables, tile.sql, None).to_pylist()
        asked = chart_of(tile, world.superset.columns(dataset)).query
        names = {*asked["columns"], *(metric["label"] for metric in asked["metrics"])}
        expected = [{key: value for key, value in row.items() if key in names} for row in expected]
        assert expected
        assert _plain(world.superset.answer(chart)) == _plain(expected), name


def test_the_board_is_a_dashboard_and_a_file_that_is_none_does_not_stop_it(world: World) -> None:
    (address,) = world.shown.dashboards
    assert address.endswith("/superset/dashboard/tributary-tickit/")
    (problem,) = world.shown.problems
    assert "broken.toml" in problem
    charts = world.superset._call("GET", "dashboard/tributary-tickit/charts")["result"]
    assert {chart["slice_name"] for chart in charts} >= {"Revenue ($)", "Revenue by category"}


def test_a_second_start_changes_what_is_there_and_adds_nothing(world: World) -> None:
    kinds = ("database", "dataset", "chart", "dashboard")
    before = {kind: world.superset._call("GET", f"{kind}/")["count"] for kind in kinds}
    assert world.show() == world.shown
    assert {kind: world.superset._call("GET", f"{kind}/")["count"] for kind in kinds} == before
    assert before == {"database": 1, "dataset": 9, "chart": 9, "dashboard": 1}


def test_the_dashboard_is_drawn_and_asks_nothing_on_the_internet(world: World) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1600})
        page.set_default_timeout(_PATIENCE_MS)
        answered: list[str] = []
        page.on("requestfinished", lambda request: answered.append(request.url))
        page.goto(f"{world.superset.address}/login/")
        page.fill("input[name=username], #username", world.home.login.user)
        page.fill("input[name=password], #password", world.home.login.password)
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "login" not in url)
        page.goto(world.shown.dashboards[0])
        page.get_by_text("7,271,616.8").wait_for()
        for title in ("Revenue by category", "Best sellers"):
            page.get_by_text(title).first.wait_for()
        assert page.locator("canvas").count() >= 4
        outside = {
            url for url in answered if url.startswith("http") and not url.startswith(world.superset.address)
        }
        assert outside == set()


def test_nobody_reads_a_secret_or_looks_in_without_logging_in(world: World) -> None:
    assert stat.S_IMODE(world.home.secrets_file.stat().st_mode) == 0o600
    login = world.home.login
    for path in world.home.folder.glob("*.log"):
        text = path.read_text()
        assert login.password not in text
        assert login.secret_key not in text
    refused = requests.get(f"{world.superset.address}/api/v1/chart/", timeout=30)
    assert refused.status_code == 401
    page = requests.get(world.shown.dashboards[0], timeout=30)
    assert "login" in page.url


def _plain(rows: list[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the rows, in no order, as Superset's JSON has them: numbers, and moments in milliseconds."""
    return sorted(
        (tuple(_value(row[name]) for name in sorted(row)) for row in rows), key=lambda row: str(row)
    )


def _value(value: Any) -> Any:
    match value:
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp() * 1000
        case Decimal() | float():
            return round(float(value), 6)
        case int():
            return float(value)
        case _:
            return value
