"""The first page: the path of a row, from the databases to the lake, and what needs a person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import quote

from nicegui import ui

from connectors.engines.database_log import DatabaseLog, size_text
from connectors.engines.registry import engine_of
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
from tributary.console.pages.problems import Problem, has_buttons, problem_card, problem_of
from tributary.console.trends import Trends
from tributary.console.view import LakeView, Part
from tributary.contract.online_snapshot import Reading
from tributary.contract.table_name import TableName

_MOST_BARS = 10
_BUTTONS = "Open the table, which has buttons for these commands"


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
                _catching_up(console, view)
                _read_again(console, view)

            content(view)
            chart_place = ui.column().classes("w-full gap-4")
            chart: ui.echart | None = None

            def draw_rates(view: LakeView) -> None:
                nonlocal chart
                options = rates_options(console.trends.rates, view.at, console.shown.seconds)
                if chart is not None:
                    chart.options.update(options)
                elif any(table.ended is not None for table in view.tables):
                    with chart_place:
                        ui.label("Events in a second").classes("text-lg font-bold")
                        chart = ui.echart(options).classes("w-full h-48")

            draw_rates(view)

            @ui.refreshable
            def servers(view: LakeView) -> None:
                _servers(view)

            servers(view)

            async def look() -> None:
                view = await console.view()
                content.refresh(view)
                servers.refresh(view)
                draw_rates(view)

            ui.timer(console.shown.seconds, look)


def _summary(view: LakeView) -> None:
    with ui.row().classes("items-center gap-3"):
        well = "All is well" if view.is_well else "Something has to be done"
        icon, color = ("check_circle", "positive") if view.is_well else ("error", "negative")
        ui.icon(icon, color=color, size="md")
        ui.label(well).classes("text-xl")
        ui.label(f"as of {view.at:%H:%M:%S} UTC").classes("quiet")
    if view.problem is not None:
        ui.label(f"The tables cannot be read now: {view.problem}").classes("text-negative")
    if view.steps is not None and view.steps.warning is not None:
        ui.label(view.steps.warning).classes("text-warning")


def _way_of_a_row(console: Console, view: LakeView) -> None:
    lake = console.shown.lake
    behind = sum(table.behind or 0 for table in view.tables)
    commits = [table.commit for table in view.tables if table.commit is not None]
    fresh = [commit.freshness.p95 for commit in commits if commit.freshness is not None]
    last = max((commit.completed for commit in commits), default=None)
    connectors = {connector.name: connector for connector in view.pipeline.connectors}
    bronze = connectors.get(lake.names.bronze_connector)
    rates = console.trends.rates[-1] if console.trends.rates and view.problem is None else None
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
            if view.problem is None:
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
                    "text-warning"
                )
        _arrow()
        with _hop("Silver", path="/tables"):
            if view.problem is None:
                ui.label(counted(len(commits), "table"))
                ui.label(f"last commit {ago(last)}")
                ui.label(f"fresh p95 {milliseconds(max(fresh, default=None))}")
            else:
                ui.label("not known now")


def _hop(title: str, part: Part | None = None, path: str | None = None) -> Any:
    """Return a part of the way. Its title leads to its page, or to its log."""
    if part is not None and part.log is not None:
        path = _log_path(part.log)
    # What keeps a database's log has a name that can be longer than a line.
    card = ui.card().classes("grow basis-0 min-w-36 gap-1").style("overflow-wrap: anywhere")
    with card:
        if path is None:
            ui.label(title).classes("font-bold")
        else:
            ui.link(title, path).classes("font-bold")
    return card


def _log(log: DatabaseLog) -> None:
    """Show a database's log. Its growth is what fills the disk of a database whose connector has stopped."""
    texts = [
        None if log.unread is None else f"{size_text(log.unread)} of its log to read",
        None if log.behind is None else f"{log.behind:,.0f} s of changes to read",
        None if log.kept is None else f"{size_text(log.kept)} kept",
        None if log.left is None else f"{size_text(log.left)} until the server drops it",
    ]
    for text in filter(None, texts):
        ui.label(text).classes("quiet text-sm")
    if log.problem is not None:
        ui.label(log.problem).classes("text-warning text-sm")


def _arrow() -> None:
    ui.icon("arrow_forward").classes("self-center quiet")


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
        problem_card(Problem(part.problem or "", part.remedy), part.name, path)
    for table in view.to_look_at:
        if (problem := problem_of(table, console)) is not None:
            more = _BUTTONS if console.actions is not None and has_buttons(table) else ""
            problem_card(problem, str(table.table), table_path(table.table), more)


def _catching_up(console: Console, view: LakeView) -> None:
    """Show how far the first snapshot is, and tables that have much to apply."""
    tables = view.catching_up(console.trends.first_snapshot)
    if not tables:
        return
    read, total = sum(one.read for one in tables), sum(one.total for one in tables)
    applied = sum(one.applied for one in tables)
    is_first = any(one.is_new for one in tables)
    ui.label("First snapshot" if is_first else "Catching up").classes("text-lg font-bold")
    ui.label(catching_up_text(read, total, applied, console.trends, is_first=is_first))
    for one in tables[:_MOST_BARS]:
        about = "" if one.read == one.total else "about "
        text = f"{one.applied:,} of {about}{one.total:,}"
        _bar(one.table, _part(one.applied, one.total), text, _part(one.read, one.total))
    if len(tables) > _MOST_BARS:
        ui.label(f"and {counted(len(tables) - _MOST_BARS, 'more table')}").classes("quiet")


def _bar(table: TableName, part: float, text: str, buffer: float | None = None) -> None:
    """Show how far a table is: its name, a bar and a text, one below the other on a phone."""
    with ui.element("div").classes("w-full grid items-center gap-x-3 sm:grid-cols-[15rem_1fr_18rem]"):
        ui.link(str(table), table_path(table)).classes("break-all")
        bar = ui.linear_progress(part, show_value=False, size="10px").props("rounded")
        if buffer is not None:
            bar.props(f"buffer={buffer}")
        bar.props["aria-label"] = table.table  # Not parsed, because a name can hold quotes.
        ui.label(text)


def _part(number: int, total: int) -> float:
    return round(number / total, 4) if total else 1.0


def catching_up_text(read: int, total: int, applied: int, trends: Trends, *, is_first: bool) -> str:
    """Return how many of the rows or events have come how far, and how long it still takes."""
    left = trends.time_to_apply(total - applied, are_new_ones_counted=is_first)
    told = "" if left is None else f": about {left_text(left)}"
    if not is_first:
        return f"{total - applied:,} events in Kafka are not in the lake yet{told}"
    about = "about " if total > read else ""
    return f"Of {about}{total:,} rows, {read:,} are in Kafka and {applied:,} in the lake{told}"


def _read_again(console: Console, view: LakeView) -> None:
    """Show the online snapshots that the connectors take now."""
    found = [(one.table, one.snapshot) for one in view.tables if isinstance(one.snapshot, Reading)]
    if not found:
        return
    ui.label("Tables that are read again").classes("text-lg font-bold")
    for name, snapshot in found:
        part = snapshot.rows / snapshot.total if snapshot.total else 0.0
        _bar(name, part, snapshot_text(snapshot, console.trends.time_left(name, snapshot)))


def snapshot_text(snapshot: Reading, left: timedelta | None) -> str:
    """Return how far an online snapshot is."""
    if not snapshot.total:
        return "about to begin"
    text = f"{min(snapshot.rows, snapshot.total):,} of about {snapshot.total:,} rows"
    if left is None:
        return text
    return f"{text}, {left_text(left)}"


def left_text(left: timedelta) -> str:
    """Return how long something still takes."""
    seconds = round(left.total_seconds())
    return f"{seconds} s left" if seconds < 100 else f"{round(seconds / 60):,} min left"


def _servers(view: LakeView) -> None:
    servers = view.pipeline.servers
    ui.label(view.pipeline.title).classes("text-lg font-bold")
    columns = ["name", "state", *dict.fromkeys(title for server in servers for title in server.facts)]
    plain_table(
        {name: name for name in columns},
        [{"name": server.name, "state": server.state, **server.facts} for server in servers],
    )
