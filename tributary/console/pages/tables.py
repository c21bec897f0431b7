"""All tables in a grid, to sort and to filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import ui

from tributary.console.console import Console
from tributary.console.pages.frame import PATIENCE_SECONDS, color_of, page_frame, table_path
from tributary.console.trends import Trends
from tributary.console.view import LakeView
from tributary.operations.verify.view import verified_text

Row = dict[str, Any]

_SPARKLINE = """params => {
  const values = params.value || [];
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 100 24');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('style', 'width: 100%; height: 24px; margin-top: 8px');
  const most = Math.max(...values, 1);
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'polyline');
  const step = 100 / Math.max(values.length - 1, 1);
  const point = (value, place) => `${place * step},${23 - 22 * value / most}`;
  line.setAttribute('points', values.map(point).join(' '));
  line.setAttribute('fill', 'none');
  line.setAttribute('stroke', 'var(--q-primary)');
  line.setAttribute('stroke-width', '1.5');
  line.setAttribute('vector-effect', 'non-scaling-stroke');
  svg.appendChild(line);
  return svg;
}"""
"""Draws the numbers of a cell as a line from 0 up. AG Grid's own sparklines are not free."""

_NAME = """params => {
  const name = document.createElement('span');
  for (const part of params.value.split(/(?<=[._])/)) name.append(part, document.createElement('wbr'));
  return name;
}"""
"""Lets a line of a name end after a dot or an underscore."""

_ENTER = """params => {
  if (params.event.key === 'Enter') window.location.href = `/table/${encodeURIComponent(params.data.table)}`;
}"""

_NO_ROWS = "No table yet. If this does not change, see the page Pipeline."
_UNKNOWN_ROWS = "The tables cannot be read now. The page Pipeline says why."

_NUMBER = {
    "type": "numericColumn",
    "flex": 1,
    ":valueFormatter": "params => params.value == null ? '' : params.value.toLocaleString('en-US')",
}
_WHOLE_NAME = {
    "display": "flex",
    "align-items": "center",
    "font-size": "12px",
    "line-height": "13.5px",
    "white-space": "normal",
    "overflow-wrap": "anywhere",
}
"""Names of a source's tables begin alike, so their ends must not be cut. A row has room for three lines."""
_COLUMNS: list[Row] = [
    {
        "headerName": "table",
        "field": "table",
        "filter": "agTextColumnFilter",
        "cellStyle": _WHOLE_NAME,
        ":cellRenderer": _NAME,
        "tooltipField": "table",
        "flex": 3,
        "minWidth": 180,
    },
    {"headerName": "state", "field": "state", "filter": "agTextColumnFilter", "flex": 2, "minWidth": 100},
    {"headerName": "events behind", "field": "behind", **_NUMBER, "minWidth": 85},
    {"headerName": "in quarantine", "field": "quarantined", **_NUMBER, "minWidth": 105},
    {"headerName": "fresh p50, s", "field": "p50", **_NUMBER, "minWidth": 75},
    {"headerName": "fresh p95, s", "field": "p95", **_NUMBER, "minWidth": 75},
    {
        "headerName": "p95, last commits",
        "field": "trend",
        "cellDataType": False,
        ":cellRenderer": _SPARKLINE,
        "sortable": False,
        "flex": 1,
        "minWidth": 95,
    },
    {"headerName": "last commit (UTC)", "field": "last_commit", "flex": 2, "minWidth": 165},
    {"headerName": "events in it", "field": "events", **_NUMBER, "minWidth": 85},
    {"headerName": "rows, verified", "field": "rows", **_NUMBER, "minWidth": 90},
    {"headerName": "verified as of (UTC)", "field": "verified", "flex": 2, "minWidth": 165},
    {"headerName": "order", "field": "order", "hide": True, "sort": "asc"},
]
_COLOR_OF_STATE = {
    "text-negative": "x == 'blocked'",
    "text-warning": "x == 'left out' || x == 'differs' || x == 'paused'",
    "text-positive": "x == 'well'",
}
_ORDER = ("negative", "warning", "info", "grey", "positive")
"""The colors of the states that a person should see first come first."""


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/tables", response_timeout=PATIENCE_SECONDS)
    async def show() -> None:
        with page_frame(console, "Tables"):
            view = await console.view()
            rows = rows_of(view, console.trends)
            problem = ui.label().classes("text-negative")
            _show_problem(problem, view)
            ui.label(
                "The tables that need somebody come first. A click on a table, or Enter, shows its commits. "
                "A click on a title sorts."
            ).classes("quiet")
            columns = [
                {**column, "cellClassRules": _COLOR_OF_STATE} if column["field"] == "state" else column
                for column in _COLUMNS
            ]
            grid = ui.aggrid(
                {
                    "columnDefs": columns,
                    "rowData": list(rows.values()),
                    ":getRowId": "params => params.data.table",
                    ":onCellKeyDown": _ENTER,
                    "overlayNoRowsTemplate": _NO_ROWS if view.problem is None else _UNKNOWN_ROWS,
                    "defaultColDef": {
                        "sortable": True,
                        "resizable": True,
                        "wrapHeaderText": True,
                        "autoHeaderHeight": True,
                    },
                }
            ).classes("w-full h-[75vh]")
            # So all columns fit on a page of 1,280 pixels.
            grid.style("--ag-cell-horizontal-padding: 8px")
            grid.on("cellClicked", lambda event: ui.navigate.to(table_path(event.args["data"]["table"])))

            async def look() -> None:
                nonlocal rows
                view = await console.view()
                _show_problem(problem, view)
                if view.problem is not None:
                    return  # The page keeps what it knows.
                now = rows_of(view, console.trends)
                if changes := changes_of(rows, now):
                    grid.run_grid_method("applyTransactionAsync", changes)
                rows = now

            ui.timer(console.shown.seconds, look)


def _show_problem(label: ui.label, view: LakeView) -> None:
    """Show why the tables cannot be read, if they cannot."""
    label.set_text(f"The tables cannot be read now: {view.problem}")
    label.set_visibility(view.problem is not None)


def changes_of(before: Mapping[str, Row], now: Mapping[str, Row]) -> Mapping[str, Sequence[Row]]:
    """Return what AG Grid has to add, update and remove. So a look costs what has changed."""
    found = {
        "add": [row for name, row in now.items() if name not in before],
        "update": [row for name, row in now.items() if name in before and row != before[name]],
        "remove": [{"table": name} for name in before if name not in now],
    }
    return {kind: rows for kind, rows in found.items() if rows}


def rows_of(view: LakeView, trends: Trends) -> dict[str, Row]:
    """Return the rows of the grid, by table."""
    rows = {}
    for table in view.tables:
        name, commit = str(table.table), table.commit
        fresh = None if commit is None else commit.freshness
        rows[name] = {
            "table": name,
            "state": table.state,
            "order": _ORDER.index(color_of(table.state)),
            "behind": table.behind,
            "quarantined": None if view.quarantined is None else view.quarantined.get(table.table, 0),
            "last_commit": None if commit is None else f"{commit.completed:%Y-%m-%d %H:%M:%S}",
            "events": None if commit is None else commit.events,
            "p50": None if fresh is None else round(fresh.p50 / 1000, 1),
            "p95": None if fresh is None else round(fresh.p95 / 1000, 1),
            "trend": list(trends.freshness(table.table)),
            "rows": table.verified.rows if table.verified is not None and table.verified.parts else None,
            "verified": None if table.verified is None else verified_text(table.verified),
        }
    return rows
