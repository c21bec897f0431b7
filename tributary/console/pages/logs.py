"""The logs of all parts: the end of each, as it grows, by part, level and text."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nicegui import ui

from tributary.console.console import Console
from tributary.console.pages.frame import PATIENCE_SECONDS, live_part, page_frame, show_error
from tributary.contract.errors import TributaryError
from tributary.operations.logs import LEVELS, LogEntry

_COLORS = {"error": "text-negative", "warning": "text-warning", "info": ""}


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/logs", response_timeout=PATIENCE_SECONDS)
    async def show(part: str = "") -> None:
        with page_frame(console, "Logs"):
            try:
                known = await asyncio.to_thread(console.shown.log_parts)
            except TributaryError as error:
                show_error(error, console)
                return
            if not known:
                ui.label("There are no logs yet.").classes("text-lg")
                return
            first = next((one for one in (part, console.shown.first_log) if one in known), known[0])
            with ui.row().classes("items-end gap-3 w-full"):
                parts = ui.select(list(known), label="part", value=first)
                parts.classes("min-w-32")
                level = ui.select(
                    {one: f"{one} and worse" for one in LEVELS}, label="level", value="info"
                ).classes("min-w-40")
                text = ui.input("with the text").classes("min-w-48").props("clearable debounce=300")
            ui.label("Newest first. Passwords and keys are hidden.").classes("quiet")

            def read() -> Sequence[LogEntry]:
                return console.log(str(parts.value), level.value, text.value or "")

            look = await live_part(console, read, _entries)
            for field in (parts, level, text):
                field.on_value_change(look)


def _entries(found: Sequence[LogEntry]) -> None:
    if not found:
        ui.label("No such entry.")
    for one in reversed(found):
        ui.label(one.text).classes(
            f"font-mono text-xs whitespace-pre-wrap break-all w-full {_COLORS[one.level]}"
        )
