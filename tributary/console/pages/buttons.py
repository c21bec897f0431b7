"""Buttons that say what they will do and ask before they do it, and the progress of what was asked for."""

from __future__ import annotations

from collections.abc import Iterable

from nicegui import ui

from tributary.console.actions import Action
from tributary.console.console import Console
from tributary.console.jobs import Job

_SECONDS_BETWEEN_LOOKS = 1.0
_COLORS = {"running": "info", "done": "positive", "failed": "negative"}


def action_button(console: Console, action: Action, table: str) -> None:
    """Draw a button. A click on it opens a dialog, and only its second button starts the action."""
    with ui.dialog() as dialog, ui.card().classes("max-w-lg"):
        ui.label(f"{action.title}: {table}").classes("text-lg font-bold break-all")
        ui.label(action.meaning)
        ui.label(f"The same as: {action.command}").classes("quiet font-mono text-sm break-all")
        with ui.row().classes("w-full justify-end"):
            ui.button("Cancel", on_click=dialog.close).props("flat")
            if (work := action.work) is not None:

                def start() -> None:
                    dialog.close()
                    console.jobs.start(action.title, table, work)

                ui.button(f"{action.title} now", on_click=start)
    ui.button(action.title, icon=action.icon, on_click=dialog.open).props("outline dense padding='xs sm'")


def jobs_panel(console: Console, tables: Iterable[str]) -> None:
    """Draw what was asked for about these tables, with its progress."""
    subjects = frozenset(tables)

    @ui.refreshable
    def content() -> None:
        for job in console.jobs.of(subjects):
            _job(job)

    shown: list[tuple[str, ...]] = []

    def look() -> None:
        now = [(job.title, job.subject, job.state, job.told) for job in console.jobs.of(subjects)]
        if now != shown:
            shown[:] = now
            content.refresh()

    with ui.column().classes("w-full gap-1"):
        content()
    ui.timer(_SECONDS_BETWEEN_LOOKS, look)


def _job(job: Job) -> None:
    with ui.row().classes("items-center gap-2 w-full"):
        ui.badge(job.state, color=_COLORS[job.state])
        ui.label(f"{job.title} {job.subject}, {job.began:%H:%M:%S} UTC").classes("font-bold break-all")
        ui.label(job.told).classes("break-words")
        if job.state == "running":
            ui.spinner(size="sm")
