"""The first page: the way of a row, from the databases to the lake, and what needs a person."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from nicegui import ui

from connectors.engines.registry import engine_of
from tributary.console.console import Console
from tributary.console.pages.frame import (
    PATIENCE_SECONDS,
    ago,
    counted,
    milliseconds,
    page_frame,
    state_badge,
    table_path,
)
from tributary.console.view import LakeView, Part
from tributary.contract.remedies import in_words
from tributary.operations.verify.view import examples_of, sentence


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/", response_timeout=PATIENCE_SECONDS)
    async def show() -> None:
        with page_frame(console, "Pipeline"):
            view = await console.view()

            @ui.refreshable
            def content(view: LakeView) -> None:
                _summary(view)
                _way_of_a_row(console, view)
                _to_look_at(console, view)
                _servers(view)

            content(view)

            async def look() -> None:
                content.refresh(await console.view())

            ui.timer(console.shown.seconds, look)


def _summary(view: LakeView) -> None:
    with ui.row().classes("items-center gap-3"):
        well = "All is well" if view.is_well else "Something has to be done"
        icon, color = ("check_circle", "positive") if view.is_well else ("error", "negative")
        ui.icon(icon, color=color, size="md")
        ui.label(well).classes("text-xl")
        ui.label(f"as of {view.at:%H:%M:%S} UTC").classes("text-gray-500")
    if view.problem is not None:
        ui.label(f"The tables cannot be read now: {view.problem}").classes("text-red-600")
    if view.steps is not None and view.steps.warning is not None:
        ui.label(view.steps.warning).classes("text-amber-700")


def _way_of_a_row(console: Console, view: LakeView) -> None:
    lake = console.shown.lake
    behind = sum(table.behind or 0 for table in view.tables)
    commits = [table.commit for table in view.tables if table.commit is not None]
    fresh = [commit.freshness.p95 for commit in commits if commit.freshness is not None]
    last = max((commit.completed for commit in commits), default=None)
    connectors = {connector.name: connector for connector in view.pipeline.connectors}
    bronze = connectors.get(lake.names.bronze_connector)
    with ui.row().classes("items-stretch gap-2 w-full"):
        with _hop("Databases"):
            for source in lake.connected_sources:
                ui.label(f"{source.name} ({engine_of(source).title})")
            for source in lake.item_sources:
                ui.label(f"{source.name} ({source.engine}), read by the Spark app itself")
        _arrow()
        with _hop("Debezium"):
            for source in lake.connected_sources:
                _connector(source.name, connectors.get(lake.source_names(source).connector))
        _arrow()
        with _hop("Kafka"):
            if view.pipeline.kafka is not None:
                _state(view.pipeline.kafka)
            ui.label(f"{counted(behind, 'event')} behind")
        _arrow()
        with _hop("Bronze"):
            _connector("every event, kept", bronze)
        _arrow()
        with _hop("Spark app"):
            _state(view.pipeline.spark)
            ui.label("applies the changes")
        _arrow()
        with _hop("Silver"):
            ui.label(counted(len(commits), "table"))
            ui.label(f"last commit {ago(last)}")
            ui.label(f"fresh p95 {milliseconds(max(fresh, default=None))}")


def _hop(title: str) -> Any:
    card = ui.card().classes("grow min-w-36 gap-1")
    with card:
        ui.label(title).classes("font-bold")
    return card


def _arrow() -> None:
    ui.icon("arrow_forward").classes("self-center text-gray-400")


def _connector(name: str, connector: Part | None) -> None:
    with ui.row().classes("items-center gap-2"):
        ui.label(name)
        _state(connector)


def _state(part: Part | None) -> None:
    state_badge("stopped" if part is None else part.state)


def _to_look_at(console: Console, view: LakeView) -> None:
    parts = view.pipeline.to_look_at
    if not (parts or view.to_look_at):
        return
    ui.label("To do").classes("text-lg font-bold")
    for part in parts:
        path = None if part.log is None else f"/logs?part={quote(part.log, safe='')}"
        _problem(part.name, part.problem or "", part.remedy, path)
    for table in view.to_look_at:
        name, path = str(table.table), table_path(table.table)
        if table.left_out is not None:
            remedy = " ".join(filter(None, table.left_out.remedies))
            _problem(name, " ".join(table.left_out.reasons), remedy, path)
        elif table.outcome is not None:
            remedy = in_words(table.outcome.remedies, console.shown.words)
            _problem(name, table.outcome.reason, remedy, path)
        elif table.snapshot is not None:
            command = f"tributary snapshot {name}"
            _problem(name, "; ".join(table.snapshot.request.reasons), f"Run {command}.", path)
        elif table.verified is not None:
            _problem(name, sentence(table.verified), "; ".join(examples_of(table.verified)), path)


def _problem(name: str, reason: str, remedy: str, path: str | None = None) -> None:
    with ui.card().classes("w-full border-l-4 border-orange-500 gap-1"):
        if path is None:
            ui.label(name).classes("font-bold")
        else:
            ui.link(name, path).classes("font-bold")
        ui.label(reason)
        if remedy:
            ui.label(remedy).classes("text-gray-500")


def _servers(view: LakeView) -> None:
    servers = view.pipeline.servers
    ui.label(view.pipeline.title).classes("text-lg font-bold")
    columns = ["name", "state", *dict.fromkeys(title for server in servers for title in server.facts)]
    ui.table(
        columns=[{"name": name, "label": name, "field": name, "align": "left"} for name in columns],
        rows=[
            {"number": number, "name": server.name, "state": server.state, **server.facts}
            for number, server in enumerate(servers)
        ],
        row_key="number",
    ).classes("w-full").props("dense flat")
