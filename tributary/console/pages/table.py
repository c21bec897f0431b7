"""One table: how it is kept, its files, its commits, and its columns with their changes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nicegui import ui

from connectors.engines.database_log import size_text
from tributary.api.column_history import ColumnChange, column_changes
from tributary.api.table_files import TableFiles
from tributary.console.charts import commits_options
from tributary.console.console import Console
from tributary.console.pages.buttons import action_button, jobs_panel
from tributary.console.pages.frame import (
    PATIENCE_SECONDS,
    ago,
    page_frame,
    plain_table,
    show_error,
    state_badge,
)
from tributary.console.pages.problems import Problem, has_buttons, problem_card, problem_of
from tributary.console.view import LakeView
from tributary.contract.column_names import OWN_COLUMNS
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Storage

if TYPE_CHECKING:
    from tributary.api.table import Table
    from tributary.api.timeline import Commit

_COMMITS = 50


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/table/{name}", response_timeout=PATIENCE_SECONDS)
    async def show(name: str) -> None:
        with page_frame(console, name):
            view = await console.view()
            _state(console, name, view)
            _buttons(console, name, view)
            try:
                table = await asyncio.to_thread(console.table, name)
                commits = await asyncio.to_thread(table.history, _COMMITS)
                facts = await asyncio.to_thread(_facts, console, table, commits)
            except TributaryError as error:
                _without_commit(console, name, view, error)
                return

            @ui.refreshable
            def settings(facts: _Facts) -> None:
                _settings(console, table, facts.files)

            settings(facts)
            chart = ui.echart(commits_options(commits)).classes("w-full h-64")
            ui.label("Commits, newest first").classes("text-lg font-bold")
            grid = ui.aggrid(
                {
                    "columnDefs": [
                        {"headerName": title, "field": field, **_MORE.get(field, {})}
                        for field, title in _FIELDS.items()
                    ],
                    "rowData": commit_rows(commits),
                    ":getRowId": "params => params.data.instant",
                    "defaultColDef": {"flex": 1, "minWidth": 90, "resizable": True, "sortable": True},
                }
            ).classes("w-full h-72")

            @ui.refreshable
            def columns(facts: _Facts) -> None:
                _columns(facts)

            columns(facts)

            async def look() -> None:
                try:
                    now = await asyncio.to_thread(table.history, _COMMITS)
                except TributaryError:
                    return  # The pipeline page says what does not run.
                grid.run_grid_method("setGridOption", "rowData", commit_rows(now))
                chart.options.update(commits_options(now))

            async def look_closer() -> None:
                """Show the files and the columns as they are now, for example after a rebuild."""
                nonlocal facts
                try:
                    last = await asyncio.to_thread(table.history, _COMMITS)
                    now = await asyncio.to_thread(_facts, console, table, last)
                except TributaryError:
                    return
                settings.refresh(now)
                if replace(now, files=facts.files) != facts:
                    columns.refresh(now)
                facts = now

            ui.timer(2 * console.shown.seconds, look)
            ui.timer(5 * console.shown.seconds, look_closer)


def _without_commit(console: Console, name: str, view: LakeView, error: TributaryError) -> None:
    """Say why the page has no commits. It appears as a whole once the table has one."""
    if (state := view.table(name)) is None or state.commit is not None:
        show_error(error, console)
        return
    if state.is_well:
        ui.label("The table has no commit yet, so the lake cannot show its rows. This page follows.")

    async def look() -> None:
        now = (await console.view()).table(name)
        if now is not None and now.commit is not None:
            ui.navigate.reload()

    ui.timer(console.shown.seconds, look)


def _state(console: Console, name: str, view: LakeView) -> None:
    """Show the table's state, and what needs a person."""

    def found(view: LakeView) -> tuple[str | None, Problem | None]:
        state = view.table(name)
        return (None, None) if state is None else (state.state, problem_of(state, console))

    @ui.refreshable
    def content(state: str | None, problem: Problem | None) -> None:
        with ui.row().classes("items-center gap-3"):
            ui.label(name).classes("text-xl font-bold")
            if state is not None:
                state_badge(state)
            ui.link("A row's life", f"/row?table={quote(name, safe='')}")
        if problem is not None:
            problem_card(problem)

    shown = found(view)
    with ui.column().classes("w-full gap-4"):
        content(*shown)

    async def look() -> None:
        nonlocal shown
        now = found(await console.view())
        if now != shown:
            shown = now
            content.refresh(*now)

    ui.timer(console.shown.seconds, look)


def _buttons(console: Console, name: str, view: LakeView) -> None:
    state = view.table(name)
    if state is None or not has_buttons(state) or console.actions is None:
        return

    @ui.refreshable
    def buttons(*, is_paused: bool) -> None:
        actions = console.actions
        if actions is None:
            return
        with ui.row().classes("gap-2"):
            for action in (
                actions.resume(name) if is_paused else actions.pause(name),
                actions.verify(name),
                actions.snapshot(name),
                actions.rebuild(name),
            ):
                action_button(console, action, name)
            if is_paused:
                ui.label("This table is paused.").classes("self-center text-warning")

    is_shown_paused = state.paused is not None
    buttons(is_paused=is_shown_paused)
    jobs_panel(console, [name])

    async def look() -> None:
        nonlocal is_shown_paused
        now = (await console.view()).table(name)
        is_paused = now is not None and now.paused is not None
        if is_paused != is_shown_paused:
            is_shown_paused = is_paused
            buttons.refresh(is_paused=is_paused)

    ui.timer(console.shown.seconds, look)


@dataclass(frozen=True)
class _Facts:
    """What the page shows of a table besides its commits.

    columns   the types in the lake and in the source, by name; None: there is no such column
    key       the columns of the record key
    """

    files: TableFiles
    columns: Mapping[str, tuple[str | None, str | None]]
    key: Collection[str]
    changes: Sequence[ColumnChange]


def _facts(console: Console, table: Table, commits: Sequence[Commit]) -> _Facts:
    here = {field.name: str(field.type) for field in table.columns()}
    there = console.shown.source_types(table.name)
    names = dict.fromkeys([*(name for name in here if name not in OWN_COLUMNS), *there, *here])
    return _Facts(
        table.files(console.shown.lake.policy(table.name).storage),
        {name: (here.get(name), there.get(name)) for name in names},
        commits[0].ledger.key_columns if commits else (),
        tuple(column_changes(commits)),
    )


def _settings(console: Console, table: Table, files: TableFiles) -> None:
    policy = console.shown.lake.policy(table.name)
    hours = policy.history.total_seconds() / 3600
    facts = {
        "storage": policy.storage.replace("_", " "),
        "deletes": policy.deletes,
        "history": f"{hours:g} h",
        "buckets": str(policy.buckets),
        "key": ", ".join(policy.key or ()) or "the primary key",
        "base files": f"{files.base_files:,}, {size_text(files.base_bytes)}",
        "log files": f"{files.log_files:,}, {size_text(files.log_bytes)}",
        "compacted": _compacted(policy.storage, files),
        "files": table.uri,
    }
    with ui.row().classes("gap-6"):
        for name, value in facts.items():
            with ui.column().classes("gap-0"):
                ui.label(name).classes("quiet text-sm")
                ui.label(value)


def _compacted(storage: Storage, files: TableFiles) -> str:
    if storage != "merge_on_read":
        return "not needed"
    pending = f", {files.pending:,} planned" if files.pending else ""
    return f"{ago(files.compacted)}{pending}"


def _columns(facts: _Facts) -> None:
    ui.label("Columns").classes("text-lg font-bold")
    plain_table(
        {"column": "column", "lake": "type in the lake", "source": "type in the source", "key": "key"},
        [
            {
                "column": name,
                "lake": here or "–",
                "source": there or "–",
                "key": "key" if name in facts.key else "",
            }
            for name, (here, there) in facts.columns.items()
        ],
    )
    if not facts.changes:
        return
    ui.label("Changes of the columns, newest first").classes("text-lg font-bold")
    plain_table(
        {"completed": "committed (UTC)", "column": "column", "change": "change"},
        [
            {
                "completed": f"{one.completed:%Y-%m-%d %H:%M:%S}",
                "column": one.column,
                "change": change_text(one),
            }
            for one in facts.changes
        ],
    )


def change_text(change: ColumnChange) -> str:
    """Return what happened to a column."""
    if change.before is None:
        return f"added: {change.after}"
    return f"removed: {change.before}" if change.after is None else f"{change.before} → {change.after}"


_SIZE = """params => {
  const [unit, bytes] = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["bytes", 1]].find(
    ([_, least]) => params.value >= least) ?? ["bytes", 1];
  const digits = bytes > 1 ? 1 : 0;
  const options = {minimumFractionDigits: digits, maximumFractionDigits: digits};
  return `${(params.value / bytes).toLocaleString("en-US", options)} ${unit}`;
}"""
"""Shows a number of bytes as `size_text` does. The grid sorts by the number."""
_MORE: dict[str, dict[str, Any]] = {
    "instant": {"minWidth": 180},
    "completed": {"minWidth": 180},
    "written": {":valueFormatter": _SIZE},
    "quarantined": {"minWidth": 112},
}
_FIELDS = {
    "instant": "instant",
    "completed": "completed (UTC)",
    "took": "took, s",
    "events": "events",
    "rows": "rows",
    "deletes": "deletes",
    "written": "written",
    "quarantined": "quarantined",
    "p50": "fresh p50, s",
    "p95": "fresh p95, s",
}


def commit_rows(commits: Sequence[Commit]) -> list[dict[str, Any]]:
    """Return the rows of the grid of commits."""
    return [
        {
            "instant": commit.instant,
            "completed": f"{commit.completed:%Y-%m-%d %H:%M:%S}",
            "took": round(commit.took.total_seconds()),
            "events": commit.events,
            "rows": commit.rows,
            "deletes": commit.deletes,
            "written": commit.written,
            "quarantined": commit.quarantined,
            "p50": None if commit.freshness is None else round(commit.freshness.p50 / 1000, 1),
            "p95": None if commit.freshness is None else round(commit.freshness.p95 / 1000, 1),
        }
        for commit in commits
    ]
