"""The first page: the way of a row, from the databases to the lake, and what needs a person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import quote

from nicegui import ui

from connectors.engines.registry import engine_of
from connectors.engines.source_log import SourceLog, size_text
from tributary.console.charts import rates_options
from tributary.console.console import Console
from tributary.console.pages.frame import (
    PATIENCE_SECONDS,
    ago,
    counted,
    milliseconds,
    page_frame,
    plain_table,
    state_badge,
    table_path,
)
from tributary.console.view import LakeView, Part
from tributary.contract.online_snapshot import Reading
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
                _read_again(console, view)

            content(view)
            chart = None
            if any(table.ended is not None for table in view.tables):
                ui.label("Events in a second").classes("text-lg font-bold")
                chart = ui.echart(rates_options(console.trends.rates, view.at)).classes("w-full h-48")

            @ui.refreshable
            def servers(view: LakeView) -> None:
                _servers(view)

            servers(view)

            async def look() -> None:
                view = await console.view()
                content.refresh(view)
                servers.refresh(view)
                if chart is not None:
                    chart.options.update(rates_options(console.trends.rates, view.at))

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
    rates = console.trends.rates[-1] if console.trends.rates else None
    with ui.row().classes("items-stretch gap-2 w-full"):
        with _hop("Databases"):
            for source in lake.connected_sources:
                ui.label(f"{source.name} ({engine_of(source).title})")
                if (log := view.logs.get(source.name)) is not None:
                    _log(log)
            for source in lake.item_sources:
                ui.label(f"{source.name} ({source.engine}), read by the Spark app itself")
        _arrow()
        with _hop("Debezium"):
            for source in lake.connected_sources:
                _connector(source.name, connectors.get(lake.source_names(source).connector))
        _arrow()
        with _hop("Kafka", view.pipeline.kafka):
            if view.pipeline.kafka is not None:
                _state(view.pipeline.kafka)
            ui.label(f"{counted(behind, 'event')} behind")
            if rates is not None:
                ui.label(f"{rates.entered:,.0f} events/s come")
        _arrow()
        with _hop("Bronze"):
            _connector("every event, kept", bronze)
        _arrow()
        with _hop("Spark app", view.pipeline.spark):
            _state(view.pipeline.spark)
            ui.label("applies the changes" if rates is None else f"applies {rates.applied:,.0f} events/s")
            if quarantined := sum((view.quarantined or {}).values()):
                ui.link(f"{counted(quarantined, 'event')} in quarantine", "/quarantine").classes(
                    "text-orange-600"
                )
        _arrow()
        with _hop("Silver", path="/tables"):
            ui.label(counted(len(commits), "table"))
            ui.label(f"last commit {ago(last)}")
            ui.label(f"fresh p95 {milliseconds(max(fresh, default=None))}")


def _hop(title: str, part: Part | None = None, path: str | None = None) -> Any:
    """Return a part of the way. Its title leads to its page, or to its log."""
    if part is not None and part.log is not None:
        path = _log_path(part.log)
    card = ui.card().classes("grow basis-0 min-w-36 gap-1")
    with card:
        if path is None:
            ui.label(title).classes("font-bold")
        else:
            ui.link(title, path).classes("font-bold")
    return card


def _log(log: SourceLog) -> None:
    """Show a database's log. Its growth is what fills the disk of a database whose connector has stopped."""
    texts = [
        None if log.unread is None else f"{size_text(log.unread)} of its log to read",
        None if log.behind is None else f"{log.behind:,.0f} s of changes to read",
        None if log.kept is None else f"{size_text(log.kept)} kept",
        None if log.left is None else f"{size_text(log.left)} until the server drops it",
    ]
    for text in filter(None, texts):
        ui.label(text).classes("text-gray-500 text-sm")
    if log.problem is not None:
        ui.label(log.problem).classes("text-orange-600 text-sm")


def _arrow() -> None:
    ui.icon("arrow_forward").classes("self-center text-gray-400")


def _connector(name: str, connector: Part | None) -> None:
    with ui.row().classes("items-center gap-2"):
        ui.label(name)
        _state(connector)


def _state(part: Part | None) -> None:
    state_badge("stopped" if part is None else part.state)


def _log_path(part: str) -> str:
    return f"/logs?part={quote(part, safe='')}"


def _to_look_at(console: Console, view: LakeView) -> None:
    parts = view.pipeline.to_look_at
    if not (parts or view.to_look_at):
        return
    ui.label("To do").classes("text-lg font-bold")
    for part in parts:
        path = None if part.log is None else _log_path(part.log)
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


def _read_again(console: Console, view: LakeView) -> None:
    """Show the online snapshots that the connectors take now."""
    found = [(one.table, one.snapshot) for one in view.tables if isinstance(one.snapshot, Reading)]
    if not found:
        return
    ui.label("Tables that are read again").classes("text-lg font-bold")
    for name, snapshot in found:
        with ui.row().classes("items-center gap-3 w-full"):
            ui.link(str(name), table_path(name)).classes("min-w-48")
            part = snapshot.rows / snapshot.total if snapshot.total else 0.0
            bar = ui.linear_progress(part, show_value=False).classes("grow min-w-32")
            bar.props["aria-label"] = name.table  # Not parsed, because a name can hold quotes.
            ui.label(snapshot_text(snapshot, console.trends.time_left(name, snapshot)))


def snapshot_text(snapshot: Reading, left: timedelta | None) -> str:
    """Return how far an online snapshot is."""
    if not snapshot.total:
        return "about to begin"
    text = f"{min(snapshot.rows, snapshot.total):,} of about {snapshot.total:,} rows"
    if left is None:
        return text
    seconds = round(left.total_seconds())
    return f"{text}, {seconds} s left" if seconds < 100 else f"{text}, {round(seconds / 60):,} min left"


def _servers(view: LakeView) -> None:
    servers = view.pipeline.servers
    ui.label(view.pipeline.title).classes("text-lg font-bold")
    columns = ["name", "state", *dict.fromkeys(title for server in servers for title in server.facts)]
    plain_table(
        {name: name for name in columns},
        [{"name": server.name, "state": server.state, **server.facts} for server in servers],
    )
