"""The alerts that are open, and the rules of the lake file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import ui

from tributary.console.console import Console
from tributary.console.pages.buttons import action_button, jobs_panel
from tributary.console.pages.frame import (
    PATIENCE_SECONDS,
    counted,
    length_text,
    live_part,
    page_frame,
    plain_table,
)
from tributary.console.view import OpenAlert
from tributary.contract.alerts import Alerts

TEST = "the places of [alerts]"


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/alerts", response_timeout=PATIENCE_SECONDS)
    async def show() -> None:
        with page_frame(console, "Alerts"):
            if console.shown.lake.alerts is None and not console.shown.has_alarms:
                _how_to_begin()
                return
            await live_part(console, console.shown.open_alerts, _alerts)
            _rules(console)


_EXAMPLE = """[alerts]
quarantine = 0
webhook_env = "CHAT_WEBHOOK"
"""


def _how_to_begin() -> None:
    ui.label("Nobody gets alerts of this lake").classes("text-xl")
    with ui.row().classes("gap-1"):
        ui.label("The lake file has no [alerts], so nothing is sent.")
        ui.link("The first page", "/")
        ui.label("says what needs a person.")
    ui.label(
        "To get alerts in a chat, put the URL of its webhook into CHAT_WEBHOOK, add this to the lake file, "
        "and start again:"
    )
    ui.label(_EXAMPLE).classes("font-mono whitespace-pre-wrap")
    ui.label("docs/lake-file.md describes all rules, and how to get mails.").classes("quiet")


def _alerts(found: Sequence[OpenAlert]) -> None:
    title = f"{counted(len(found), 'alert')} open" if found else "No alert is open."
    ui.label(title).classes("text-xl")
    for one in found:
        with ui.card().classes("w-full border-l-4 border-orange-500 gap-1"):
            ui.label(f"{one.subject}: {one.rule}").classes("font-bold break-all")
            ui.label(one.text)
            ui.label(f"since {one.since}, by {one.channel}").classes("quiet text-sm")


def _rules(console: Console) -> None:
    ui.label("Rules").classes("text-lg font-bold")
    if console.shown.has_alarms:
        ui.label("CloudWatch has the rules: [aws.alarms] of the lake file sets their limits.")
        return
    rules = console.shown.lake.alerts
    if rules is None:
        return
    plain_table(
        {"rule": "rule", "limit": "limit"},
        [{"rule": rule, "limit": limit} for rule, limit in limits_of(rules).items()],
    )
    ui.label(
        "tributary start and tributary ingest --follow evaluate them. Without a running ingest, no alert is "
        "sent, and none ends."
    ).classes("quiet")
    if console.actions is not None:
        action_button(console, console.actions.test_alerts(rules), TEST)
        jobs_panel(console, [TEST])


def limits_of(rules: Alerts) -> Mapping[str, str]:
    """Return the rules that count, with their limits as a person reads them."""
    limits: dict[str, Any] = {
        "freshness": None if rules.freshness is None else length_text(rules.freshness),
        "lag": None if rules.lag is None else counted(rules.lag, "event"),
        "quarantine": None if rules.quarantine is None else counted(rules.quarantine, "event"),
        "verified": None if rules.verified is None else length_text(rules.verified),
        "unread_log_gb": None if rules.unread_log_gb is None else f"{rules.unread_log_gb:g} GB",
        "blocked": "any" if rules.blocked else None,
    }
    return {rule: str(limit) for rule, limit in limits.items() if limit is not None}
