"""The events that could not be applied, by table and reason, with their bytes."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any
from urllib.parse import quote

from nicegui import ui

from tributary.api.quarantine import QuarantinedEvent
from tributary.console.console import Console
from tributary.console.pages.buttons import action_button, jobs_panel
from tributary.console.pages.frame import PATIENCE_SECONDS, page_frame, shortened, show_error, table_path
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
                "These events could not be read. All others were applied. The row of such an event stays as "
                "it was until its next event: correct the row in its database."
            )
            ui.label(
                "A replay applies the events that can be read now, each at its place: after a change of the "
                "lake file, or with a newer version. The others stay here."
            ).classes("quiet")
            jobs_panel(console, map(str, found))
            for name, events in found.items():
                with ui.row().classes("items-center gap-3"):
                    ui.link(str(name), table_path(name)).classes("text-lg font-bold break-all")
                    if (actions := console.actions) is not None:
                        action_button(console, actions.replay(str(name)), str(name))
                reasons = Counter(event.reason for event in events)
                ui.label(", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common()))
                for event in events[:_MOST_SHOWN]:
                    _event(str(name), event)
                if len(events) > _MOST_SHOWN:
                    ui.label(f"{len(events) - _MOST_SHOWN:,} more: tributary quarantine list {name}")


def _event(table: str, event: QuarantinedEvent) -> None:
    title = f"{event.position} · {event.reason} · {event.message}"
    key = key_text(event.key)
    with ui.expansion(title, caption=key).classes("w-full border border-gray-300 rounded"):
        with ui.row().classes("gap-3"):
            ui.label(f"since {event.quarantined_at:%Y-%m-%d %H:%M:%S} UTC, from {event.topic}")
            if key is not None:
                path = f"/row?table={quote(table, safe='')}&key={quote(key, safe='')}"
                ui.link("A row's life", path)
        readable = None if event.value is None else payload_text(event.value)
        if readable is not None:
            _text("value, without its schema", readable)
        with ui.expansion("the bytes", value=readable is None).props("dense").classes("w-full"):
            for name, found in (("key", event.key), ("value", event.value)):
                if found is not None:
                    _text(name, bytes_text(found))


def _text(title: str, text: str) -> None:
    ui.label(title).classes("quiet")
    ui.label(shortened(text, _LONGEST)).classes("font-mono whitespace-pre-wrap break-all")


def bytes_text(found: bytes) -> str:
    """Return bytes as text, with codes such as `\\x00` for what is no character or cannot be seen."""
    text = found.decode(errors="backslashreplace")
    return re.sub(r"[\x00-\x09\x0b-\x1f\x7f]", lambda one: f"\\x{ord(one[0]):02x}", text)


def payload_text(found: bytes) -> str | None:
    """Return what a JSON document says beside its schema; None: it is no such document."""
    payload = _payload(found)
    return None if payload is None else json.dumps(payload, indent=2, ensure_ascii=False)


def key_text(key: bytes | None) -> str | None:
    """Return a key as the page of a row's life reads it; None: that page cannot."""
    payload = None if key is None else _payload(key)
    if not isinstance(payload, dict) or not payload:
        return None
    if all(_is_plain(value) for value in payload.values()):
        return ",".join(f"{name}={value}" for name, value in payload.items())
    return json.dumps(payload, ensure_ascii=False)


def _is_plain(value: Any) -> bool:
    """Return whether a key's value can stand in a text such as `order=7,line=2`."""
    if isinstance(value, str):
        return value == value.strip() and not re.search("[,=]", value)
    return isinstance(value, int) and not isinstance(value, bool)


def _payload(found: bytes) -> Any:
    try:
        document = json.loads(found)
    except ValueError:
        return None
    is_with_schema = isinstance(document, dict) and document.keys() == {"schema", "payload"}
    return document["payload"] if is_with_schema else document
