"""Run Superset beside a server of the lake, and keep its dashboards as the boards are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import requests

from tributary.contract.boards.board import BoardError, Tile, read_board
from tributary.local.process import start_process, stop_process, wait_until_healthy
from tributary.operations.boards.tile_names import DATABASE, named_tiles
from tributary.superset.charts import Chart, chart_of, dashboard_of
from tributary.superset.home import HOST, SERVICE, SupersetHome
from tributary.superset.rest import Superset, SupersetRefused

_SECONDS_TO_START = 180.0


@dataclass(frozen=True)
class Served:
    """The server of the lake's tables, as Superset logs in to it."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)

    @property
    def uri(self) -> str:
        """SQLAlchemy's address."""
        return f"mysql+pymysql://{self.user}:{quote(self.password, safe='')}@{self.host}:{self.port}/"


@dataclass(frozen=True)
class Shown:
    """What Superset shows: the addresses of the boards' dashboards, and why other boards have none."""

    dashboards: tuple[str, ...]
    problems: tuple[str, ...]


@contextmanager
def running(home: SupersetHome, port: int, run_folder: Path) -> Iterator[Superset]:
    """Run Superset as long as the context lasts. Raises ServiceFailed and SupersetRefused."""
    address = f"http://{HOST}:{port}"
    record = start_process(home.command(port), run_folder)
    try:
        wait_until_healthy(record, lambda: _answers(address), _SECONDS_TO_START, threading.Event())
        yield Superset.logged_in(address, home.login.user, home.login.password)
    finally:
        stop_process(SERVICE, run_folder)


def show_boards(
    superset: Superset, lake: str, served: Served, files: Sequence[Path], tell: Callable[[str], None]
) -> Shown:
    """Make the lake a database of Superset, and each board a dashboard. Raises SupersetRefused.

    A board that cannot be shown does not stop the others.

    tell  gets what is done now
    """
    database = superset.put_database(f"Lake {lake}", served.uri)
    dashboards, problems = [], []
    for path in files:
        tell(f"making the dashboard of {path.name}")
        try:
            dashboards.append(_show(superset, database, path))
        except (BoardError, SupersetRefused) as error:
            problems.append(str(error))
    return Shown(tuple(dashboards), tuple(problems))


def _show(superset: Superset, database: int, path: Path) -> str:
    board = read_board(path)
    charts: list[tuple[Tile, Chart, int]] = []
    for name, tile in named_tiles(board).items():
        dataset = superset.put_dataset(database, DATABASE, name)
        chart = chart_of(tile, superset.columns(dataset))
        charts.append((tile, chart, superset.put_chart(chart, dataset)))
    return superset.put_dashboard(dashboard_of(board, charts))


def _answers(address: str) -> bool:
    try:
        return requests.get(f"{address}/health", timeout=2).ok
    except requests.RequestException:
        return False
