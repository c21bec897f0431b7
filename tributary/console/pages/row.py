"""A row's life: every event of its key, what changed, and where it came from."""

from __future__ import annotations

from nicegui import ui

from tributary.api.row_events import RowEvent
from tributary.console.console import Console
from tributary.console.pages.frame import PATIENCE_SECONDS, cell, page_frame, show_error
from tributary.contract.errors import TributaryError


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/row", response_timeout=PATIENCE_SECONDS)
    async def show(table: str = "", key: str = "") -> None:
        with page_frame(console, "A row's life"):
            view = await console.view()
            names = [str(one.table) for one in view.tables if one.commit is not None]
            ui.label("Every event of a row, from bronze, which is some seconds behind Kafka.")
            with ui.row().classes("items-end gap-3 w-full"):
                chosen = ui.select(names, label="table", value=table if table in names else None)
                chosen.classes("min-w-64")
                typed = ui.input("key", value=key, placeholder="7, or order=7,line=2").classes("min-w-48")
                button = ui.button("Show")
            events = ui.column().classes("w-full gap-2")

            async def look() -> None:
                events.clear()
                with events:
                    if not chosen.value:
                        ui.label("Choose a table.")
                        return
                    try:
                        found = await console.row_events(str(chosen.value), str(typed.value or ""))
                    except TributaryError as error:
                        show_error(error, console)
                        return
                    if not found:
                        ui.label("Bronze has no event of this key.")
                    for event in found:
                        _event(event)

            button.on_click(look)
            typed.on("keydown.enter", look)
            if table and key:
                await look()


def _event(event: RowEvent) -> None:
    with ui.card().classes("w-full gap-1"):
        with ui.row().classes("items-center gap-3"):
            ui.label(_title(event)).classes("font-bold")
            ui.label(f"{event.at:%Y-%m-%d %H:%M:%S.%f} UTC")
            ui.label(f"{event.topic}, partition {event.partition}, offset {event.offset:,}").classes(
                "text-gray-500"
            )
        if event.changed:
            for name, (old, new) in event.changed.items():
                ui.label(f"{name}: {_shown(old)} → {_shown(new)}").classes("font-mono break-all")
        elif (row := event.after or event.before) is not None:
            text = ", ".join(f"{name} = {_shown(value)}" for name, value in row.items())
            ui.label(text).classes("font-mono break-all")


def _title(event: RowEvent) -> str:
    if event.moved_to is not None:
        return f"{event.kind}: it got the key {event.moved_to}"
    if event.moved_from is not None:
        return f"{event.kind}: it had the key {event.moved_from}"
    return event.kind


def _shown(value: object) -> str:
    return "NULL" if value is None else str(cell(value))
