"""The logs of all parts: the end of each, as it grows, by part, level and text."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nicegui import ui

from tributary.console.console import SECONDS_BETWEEN_LOOKS, Console
from tributary.console.pages.frame import PATIENCE_SECONDS, page_frame
from tributary.operations.logs import LEVELS, PARTS, LogEntry

_COLORS = {"error": "text-red-600", "warning": "text-orange-600", "info": ""}


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/logs", response_timeout=PATIENCE_SECONDS)
    async def show(part: str = "spark") -> None:
        with page_frame(console, "Logs"):
            with ui.row().classes("items-end gap-3 w-full"):
                parts = ui.select(list(PARTS), label="part", value=part if part in PARTS else "spark")
                parts.classes("min-w-32")
                level = ui.select(
                    {one: f"{one} and worse" for one in LEVELS}, label="level", value="info"
                ).classes("min-w-40")
                text = ui.input("with the text").classes("min-w-48").props("clearable debounce=300")
            ui.label("Newest first. Passwords and keys are hidden.").classes("text-gray-500")

            @ui.refreshable
            def entries(found: Sequence[LogEntry]) -> None:
                if not found:
                    ui.label("No such entry.")
                for one in reversed(found):
                    ui.label(one.text).classes(
                        f"font-mono text-xs whitespace-pre-wrap break-all w-full {_COLORS[one.level]}"
                    )

            async def read() -> Sequence[LogEntry]:
                return await asyncio.to_thread(console.log, parts.value, level.value, text.value or "")

            shown = await read()
            with ui.column().classes("w-full gap-1"):
                entries(shown)

            async def look() -> None:
                nonlocal shown
                now = await read()
                if now != shown:
                    shown = now
                    entries.refresh(now)

            for field in (parts, level, text):
                field.on_value_change(look)
            ui.timer(SECONDS_BETWEEN_LOOKS, look)
