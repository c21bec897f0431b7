"""What all pages share: the header with the ways to other pages, states' colors, errors and times."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import quote

from nicegui import ui

from tributary.console.console import Console
from tributary.contract.errors import TributaryError

Value = TypeVar("Value")

PATIENCE_SECONDS = 60.0
"""How long a page may take to read what it shows. NiceGUI's default is three seconds."""

_PAGES = {
    "Pipeline": "/",
    "Tables": "/tables",
    "A row's life": "/row",
    "Quarantine": "/quarantine",
    "Alerts": "/alerts",
    "Logs": "/logs",
    "Ask": "/ask",
    "Boards": "/boards",
}

_COLORS = {
    "well": "positive",
    "running": "positive",
    "RUNNING": "positive",
    "blocked": "negative",
    "died": "negative",
    "FAILED": "negative",
    "stopped": "grey",
    "left out": "warning",
    "differs": "warning",
    "cut off": "warning",
    "orphan": "grey",
    "kept": "grey",
    "removal interrupted": "warning",
    "paused": "warning",
    "waiting": "info",
    "loading": "info",
}


@contextmanager
def page_frame(console: Console, title: str) -> Iterator[None]:
    """Draw the header, and let the caller fill the page below it."""
    ui.page_title(f"{title} · {console.shown.lake.name} · Tributary")
    with ui.header().classes("items-center gap-4 py-2"):
        ui.label(console.shown.lake.name).classes("text-lg font-bold")
        with ui.row().classes("gap-1"):
            for name, path in _PAGES.items():
                link = ui.link(name, path).classes("text-white no-underline px-2 py-1 rounded")
                if name == title:
                    link.props('aria-current="page"')
    with ui.column().classes("w-full max-w-screen-xl mx-auto gap-4 p-2"):
        yield


def color_of(state: str) -> str:
    """Return the color of a table's, a server's or a connector's state."""
    return _COLORS.get(state, "info")


def state_badge(state: str) -> None:
    ui.badge(state, color=color_of(state)).props("outline" if color_of(state) == "grey" else "")


def table_path(name: object) -> str:
    """Return the path of a table's page."""
    return f"/table/{quote(str(name), safe='')}"


def error_text(error: TributaryError, console: Console) -> str:
    return error.text(console.shown.words)


def show_error(error: TributaryError, console: Console) -> None:
    """Show an error where the caller is: what, where, found, expected, what to do."""
    with ui.card().classes("w-full border-l-4 border-red-500"):
        ui.label(error_text(error, console)).classes("whitespace-pre-wrap")


async def live_part(
    console: Console,
    read: Callable[[], Sequence[Value]],
    draw: Callable[[Sequence[Value]], None],
) -> Callable[[], Awaitable[None]]:
    """Draw what a function reads in a thread, and again as soon as it differs. Return how to look at once.

    A TributaryError of the reading is shown above, and nothing was found then.
    """
    trouble = ui.column().classes("w-full")
    content = ui.refreshable(draw)

    async def found() -> Sequence[Value]:
        trouble.clear()
        try:
            return await asyncio.to_thread(read)
        except TributaryError as error:
            with trouble:
                show_error(error, console)
            return ()

    shown = await found()
    with ui.column().classes("w-full gap-1"):
        content(shown)

    async def look() -> None:
        nonlocal shown
        now = await found()
        if now != shown:
            shown = now
            content.refresh(now)

    ui.timer(console.shown.seconds, look)
    return look


def plain_table(titles: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Show rows under the titles of their fields."""
    ui.table(
        columns=[
            {"name": field, "label": title, "field": field, "align": "left"}
            for field, title in titles.items()
        ],
        rows=[{"number": number, **row} for number, row in enumerate(rows)],
        row_key="number",
    ).classes("w-full").props("dense flat wrap-cells")


def ago(moment: datetime | None) -> str:
    """Return how long ago a moment was, in the largest unit that fits."""
    if moment is None:
        return "never"
    seconds = max(0, round((datetime.now(UTC) - moment).total_seconds()))
    size, unit = next((one for one in _UNITS if seconds >= one[0]), _SECOND)
    return f"{seconds // size} {unit} ago"


_SECOND = (1, "s")
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def length_text(length: timedelta) -> str:
    """Return a length of time exactly, in the largest unit that has whole numbers."""
    seconds = round(length.total_seconds())
    size, unit = next((one for one in _UNITS if seconds and seconds % one[0] == 0), _SECOND)
    return f"{seconds // size} {unit}"


def counted(number: int, what: str) -> str:
    """Return a number of things: `1 table`, `2,000 tables`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def milliseconds(value: float | None) -> str:
    """Return a duration in seconds, or a dash."""
    return "–" if value is None else f"{value / 1000:.1f} s"


def cell(value: Any) -> Any:
    """Return a value as a grid shows it: numbers and texts as they are, all else as text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        # JavaScript's numbers hold integers only up to 2⁵³.
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, bytes):
        return value.decode() if value.isascii() and value.decode().isprintable() else value.hex()
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def shortened(text: str, most: int) -> str:
    """Return a text, or its first characters and how many it has. A browser gets slow with long texts."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"
