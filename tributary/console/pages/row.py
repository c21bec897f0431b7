"""A row's life: every event of its key, what changed, where it came from, and the row at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import ui

from tributary.api.row_events import RowEvent, RowState, row_at
from tributary.api.time_travel import time_of
from tributary.console.console import Console
from tributary.console.pages.frame import (
    PATIENCE_SECONDS,
    cell,
    page_frame,
    plain_table,
    shortened,
    show_error,
)
from tributary.contract.errors import TributaryError


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/row", response_timeout=PATIENCE_SECONDS)
    async def show(table: str = "", key: str = "") -> None:
        found: Sequence[RowEvent] = ()
        with page_frame(console, "A row's life"):
            names = await console.readable_tables()
            ui.label("Every event of a row, from bronze, which is some seconds behind Kafka.")
            with ui.row().classes("items-end gap-3 w-full"):
                chosen = ui.select(names, label="table", value=table if table in names else None)
                chosen.classes("min-w-64")
                typed = ui.input("key", value=key, placeholder="7, or order=7,line=2").classes("min-w-48")
                button = ui.button("Show")
                as_of = ui.input("the row at a time (UTC)", placeholder="2026-01-02 03:04:05")
                as_of.classes("min-w-64")
            row = ui.column().classes("w-full")
            events = ui.column().classes("w-full gap-2")

            unknown = table and table not in names
            choice = f"The lake has no table {table}. Choose one." if unknown else "Choose a table."
            asked, is_looking = 0, False

            async def look() -> None:
                """Show the events. Who asks again meanwhile gets a second answer, in place of the first."""
                nonlocal asked, is_looking
                asked += 1
                if is_looking:
                    return
                is_looking, answered = True, 0
                button.props("loading")
                try:
                    while answered != asked:
                        answered = asked
                        await look_once()
                finally:
                    is_looking = False
                    button.props(remove="loading")

            async def look_once() -> None:
                nonlocal found
                failure: TributaryError | None = None
                now: Sequence[RowEvent] = ()
                try:
                    if chosen.value:
                        now = await console.row_events(str(chosen.value), str(typed.value or ""))
                except TributaryError as error:
                    failure = error
                events.clear()
                found = now
                with events:
                    if failure is not None:
                        show_error(failure, console)
                        return
                    if not chosen.value:
                        ui.label(choice)
                        return
                    if not found:
                        ui.label("Bronze has no event of this key.")
                    for event in found:
                        _event(event)
                show_row()

            def show_row() -> None:
                row.clear()
                if not (as_of.value and found):
                    return
                with row:
                    try:
                        _row_at(row_at(found, time_of(str(as_of.value).strip())))
                    except TributaryError as error:
                        show_error(error, console)

            button.on_click(look)
            typed.on("keydown.enter", look)
            as_of.on("keydown.enter", show_row)
            if table and key:
                # Bronze takes a while, and the page should be there before it.
                ui.timer(0.1, look, once=True)


def _row_at(found: RowState | None) -> None:
    """Show a row as it was."""
    with ui.card().classes("w-full border-l-4 border-blue-500 gap-1"):
        if found is None:
            ui.label("Bronze has no event of this key from that time or before.")
            return
        since = f"since {found.since.committed:%Y-%m-%d %H:%M:%S.%f} UTC"
        if found.values is None:
            ui.label(f"There was no such row, {since}.").classes("font-bold")
            return
        ui.label(f"The row, as it was {since}").classes("font-bold")
        _values({name: _NOT_KNOWN if name in found.unknown else one for name, one in found.values.items()})


def _event(event: RowEvent) -> None:
    with ui.card().classes("w-full gap-1"):
        with ui.row().classes("items-center gap-3"):
            ui.label(_title(event)).classes("font-bold")
            ui.label(f"{event.at:%Y-%m-%d %H:%M:%S.%f} UTC")
            ui.label(f"{event.topic}, partition {event.partition}, offset {event.offset:,}").classes("quiet")
        if event.source:
            ui.label(_origin(event)).classes("quiet text-sm break-all")
        if event.changed:
            for name, (old, new) in event.changed.items():
                with ui.row().classes("items-center gap-2 font-mono"):
                    ui.label(f"{name}: {_shown(old)}").classes(_SCROLLED)
                    # Not every font for code has an arrow.
                    ui.icon("arrow_forward", size="xs").props('aria-label="became"')
                    ui.label(_shown(new)).classes(_SCROLLED)
        elif (row := event.after or event.before) is not None:
            text = ", ".join(f"{name} = {_shown(value)}" for name, value in row.items())
            ui.label(text).classes(_SCROLLED)
        if event.changed and event.after is not None:
            with ui.expansion("the whole row after it").props("dense").classes("w-full"):
                _values(event.after)


def _origin(event: RowEvent) -> str:
    """Return the event's transaction and its place in the source's log."""
    facts = {name: value for name, value in event.source.items() if name not in _NOT_OF_THE_CHANGE}
    told = ", ".join(f"{name} {_shown(value)}" for name, value in facts.items() if value not in (None, ""))
    if event.op == "r" or "ts_ms" not in event.source:
        return told
    return f"committed {event.committed:%Y-%m-%d %H:%M:%S.%f} UTC: {told}"


_NOT_OF_THE_CHANGE = {
    "version", "connector", "name", "db", "schema", "table", "ts_ms", "ts_us", "ts_ns", "sequence", "query",
}  # fmt: skip
"""What Debezium's `source` says of every change of the table, and what is shown otherwise."""


_LONGEST, _LONGEST_IN_TABLE = 20_000, 2_000
_SCROLLED = "font-mono break-all max-h-40 overflow-auto"
"""Long values do not push the next event out of sight."""

_NOT_KNOWN = "not changed since before the first event in bronze"


def _values(row: Mapping[str, Any]) -> None:
    plain_table(
        {"column": "column", "value": "value"},
        [
            {"column": name, "value": shortened(_shown(value), _LONGEST_IN_TABLE)}
            for name, value in row.items()
        ],
    )


def _title(event: RowEvent) -> str:
    if event.moved_to is not None:
        return f"{event.kind}: it got the key {event.moved_to}"
    if event.moved_from is not None:
        return f"{event.kind}: it had the key {event.moved_from}"
    return event.kind


def _shown(value: object) -> str:
    return "NULL" if value is None else shortened(str(cell(value)), _LONGEST)
