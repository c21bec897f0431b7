"""The events that could not be applied, by table and reason, with their bytes."""

from __future__ import annotations

from collections import Counter

from nicegui import ui

from tributary.api.quarantine import QuarantinedEvent
from tributary.console.console import Console
from tributary.console.pages.buttons import action_button, jobs_panel
from tributary.console.pages.frame import PATIENCE_SECONDS, page_frame, show_error, table_path
from tributary.contract.errors import TributaryError

_MOST_SHOWN = 100
_LONGEST = 20_000


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/quarantine", response_timeout=PATIENCE_SECONDS)
    async def show() -> None:
        with page_frame(console, "Quarantine"):
            try:
                found = await console.quarantine()
            except TributaryError as error:
                show_error(error, console)
                return
            if not found:
                ui.label("Nothing is in quarantine.").classes("text-lg")
                return
            ui.label(
                "These events could not be read. All others were applied. Once the cause is mended, a replay "
                "applies them at their places."
            )
            jobs_panel(console, map(str, found))
            for name, events in found.items():
                with ui.row().classes("items-center gap-3"):
                    ui.link(str(name), table_path(name)).classes("text-lg font-bold break-all")
                    if (actions := console.actions) is not None:
                        action_button(console, actions.replay(str(name)), str(name))
                reasons = Counter(event.reason for event in events)
                ui.label(", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common()))
                for event in events[:_MOST_SHOWN]:
                    _event(event)
                if len(events) > _MOST_SHOWN:
                    ui.label(f"{len(events) - _MOST_SHOWN:,} more: tributary quarantine list {name}")


def _event(event: QuarantinedEvent) -> None:
    with ui.expansion(f"{event.position} · {event.reason} · {event.message}").classes("w-full border"):
        ui.label(f"since {event.quarantined_at:%Y-%m-%d %H:%M:%S} UTC, from {event.topic}")
        for title, found in (("key", event.key), ("value", event.value)):
            if found is not None:
                ui.label(title).classes("text-gray-500")
                ui.label(_shown(found)).classes("font-mono whitespace-pre-wrap break-all")


def _shown(found: bytes) -> str:
    text = found.decode(errors="backslashreplace")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text):,} characters)"
