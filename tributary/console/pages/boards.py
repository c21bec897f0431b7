"""Boards: charts, numbers and tables over the lake, from files beside the lake file."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from nicegui import ui

from tributary.console.charts import chart_options
from tributary.console.console import MOST_ROWS_SHOWN, Console
from tributary.console.pages.ask import answer_grid
from tributary.console.pages.downloads import download_button
from tributary.console.pages.frame import PATIENCE_SECONDS, counted, error_text, page_frame, show_error
from tributary.contract.boards.board import Board, BoardError, Tile
from tributary.contract.errors import TributaryError
from tributary.operations.boards.answers import MOST_POINTS, Figure, Grid, Lines, Points, Shown, Slices

_SECONDS_BETWEEN_LOOKS_AT_THE_FILE = 2.0
_WIDTHS = {width: f"md:col-span-{width}" for width in range(3, 13)}


def add(console: Console) -> None:
    """Register the list of boards and the page of a board."""

    @ui.page("/boards", response_timeout=PATIENCE_SECONDS)
    async def show_list() -> None:
        with page_frame(console, "Boards"):
            found = await asyncio.to_thread(console.boards.read_all)
            if not found:
                folder = console.shown.lake_file.parent / "boards"
                ui.label(
                    f"There are no boards yet. Put a file of SQL and charts into {folder}; "
                    "docs/console.md describes it."
                ).classes("quiet")
            for board in found:
                if isinstance(board, BoardError):
                    show_error(board, console)
                    continue
                with ui.row().classes("items-baseline gap-3"):
                    ui.link(board.title, board_path(board.name)).classes("text-lg font-bold")
                    ui.label(f"{counted(len(board.tiles), 'tile')} · {interval_text(board)}").classes("quiet")

    @ui.page("/board/{name}", response_timeout=PATIENCE_SECONDS)
    async def show(name: str) -> None:
        with page_frame(console, "Boards"):
            try:
                board = await asyncio.to_thread(console.boards.read, name)
            except BoardError as error:
                show_error(error, console)
                return
            with ui.row().classes("items-baseline gap-3"):
                ui.label(board.title).classes("text-xl font-bold")
                ui.label(interval_text(board)).classes("quiet")
            with ui.element("div").classes("w-full grid grid-cols-1 md:grid-cols-12 gap-4"):
                looks = [_tile(console, board, number) for number in range(len(board.tiles))]

            async def look() -> None:
                await asyncio.gather(*(one() for one in looks))

            async def follow_file() -> None:
                if await asyncio.to_thread(_board_now, console, name) != board:
                    ui.navigate.reload()

            ui.timer(board.refresh.total_seconds(), look)
            ui.timer(_SECONDS_BETWEEN_LOOKS_AT_THE_FILE, follow_file, immediate=False)


def board_path(name: str) -> str:
    """Return the path of a board's page."""
    return f"/board/{quote(name, safe='')}"


def interval_text(board: Board) -> str:
    """Return how often a board's tiles are asked."""
    return f"every {board.refresh.total_seconds():g} s"


def _board_now(console: Console, name: str) -> Board | None:
    try:
        return console.boards.read(name)
    except BoardError:
        return None


def _tile(console: Console, board: Board, number: int) -> Callable[[], Awaitable[None]]:
    """Draw a tile, and return what updates it: only if something changed, and in place if it can."""
    tile = board.tiles[number]
    with ui.card().classes(f"w-full min-w-0 {_WIDTHS[tile.width]}"):
        with ui.row().classes("w-full items-center justify-between no-wrap"):
            ui.label(tile.title).classes("font-bold")
            save = ui.row()
        content = ui.column().classes("w-full min-w-0")
        with content:
            ui.spinner()
    before: Shown | str | None = None
    chart: ui.echart | None = None

    async def look() -> None:
        nonlocal before, chart
        found = await console.boards.shown(board, number)
        # Errors compare by identity, and each look raises a new one.
        now = error_text(found, console) if isinstance(found, TributaryError) else found
        if now == before:
            return
        note = _rows_left_out(before), _rows_left_out(now)
        before = now
        if chart is not None and isinstance(found, Lines | Slices | Points) and note == (0, 0):
            chart.options.clear()
            chart.options.update(chart_options(tile, found))
            return
        content.clear()
        save.clear()
        with content:
            chart = _fill(console, tile, found, save)

    return look


def _rows_left_out(what: Shown | str | None) -> int:
    """Return how many rows a chart leaves out, which the text below it says."""
    return max(0, what.rows - MOST_POINTS) if isinstance(what, Lines | Slices | Points) else 0


def _fill(console: Console, tile: Tile, found: Shown | TributaryError, save: ui.row) -> ui.echart | None:
    """Draw the content of a tile, and return its chart if it has one."""
    match found:
        case TributaryError():
            ui.label(error_text(found, console)).classes("whitespace-pre-wrap text-negative break-words")
        case Figure(value, unit):
            ui.label(f"{figure_text(value)} {unit}".strip()).classes("text-4xl font-bold break-all")
        case Grid(table):
            answer_grid(table, "h-72")
            _note_left_out(table.num_rows, MOST_ROWS_SHOWN)
            with save:
                download_button("CSV", table, "csv", file_name(tile.title, "csv"))
        case Lines() | Slices() | Points():
            chart = ui.echart(chart_options(tile, found)).classes("w-full h-72")
            _note_left_out(found.rows, MOST_POINTS)
            with save:
                ui.button("PNG").props("flat dense").on("click", js_handler=_save_png(chart, tile.title))
            return chart
    return None


def _note_left_out(rows: int, most: int) -> None:
    if rows > most:
        ui.label(f"The first {most:,} of {rows:,} rows.").classes("quiet text-sm")


def _save_png(chart: ui.echart, title: str) -> str:
    """Return a handler with which the browser saves the chart as a picture."""
    name = json.dumps(file_name(title, "png"))
    return (
        "() => { const link = document.createElement('a');"
        f" link.href = getElement({chart.id}).chart.getDataURL("
        "{type: 'png', pixelRatio: 2, backgroundColor: '#fff'});"
        f" link.download = {name}; link.click(); }}"
    )


def file_name(title: str, suffix: str) -> str:
    """Return a name of a file for a tile's title, of letters, digits and hyphens."""
    return f"{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-') or 'tile'}.{suffix}"


def figure_text(value: Any) -> str:
    """Return a number with separators of thousands, and any other value as text."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return str(value)
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
