"""All tables in a grid, to sort and to filter."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from tributary.console.console import Console
from tributary.console.pages.frame import PATIENCE_SECONDS, page_frame, table_path
from tributary.console.view import LakeView
from tributary.operations.verify.view import verified_text

_COLUMNS: list[dict[str, Any]] = [
    {"headerName": "table", "field": "table", "filter": "agTextColumnFilter", "flex": 3, "minWidth": 180},
    {"headerName": "state", "field": "state", "filter": "agTextColumnFilter", "flex": 2, "minWidth": 110},
    {"headerName": "events behind", "field": "behind", "type": "numericColumn", "flex": 1, "minWidth": 110},
    {"headerName": "last commit (UTC)", "field": "last_commit", "flex": 2, "minWidth": 170},
    {"headerName": "events in it", "field": "events", "type": "numericColumn", "flex": 1, "minWidth": 100},
    {"headerName": "fresh p50, s", "field": "p50", "type": "numericColumn", "flex": 1, "minWidth": 100},
    {"headerName": "fresh p95, s", "field": "p95", "type": "numericColumn", "flex": 1, "minWidth": 100},
    {"headerName": "verified as of (UTC)", "field": "verified", "flex": 2, "minWidth": 170},
]
_COLOR_OF_STATE = {
    "text-red-600": "x == 'blocked'",
    "text-orange-600": "x == 'left out' || x == 'differs' || x == 'paused'",
    "text-green-700": "x == 'well'",
}


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/tables", response_timeout=PATIENCE_SECONDS)
    async def show() -> None:
        with page_frame(console, "Tables"):
            view = await console.view()
            ui.label("Click a table to see its commits. A click on a title sorts.").classes("text-gray-500")
            columns = [
                {**column, "cellClassRules": _COLOR_OF_STATE} if column["field"] == "state" else column
                for column in _COLUMNS
            ]
            grid = ui.aggrid(
                {
                    "columnDefs": columns,
                    "rowData": rows_of(view),
                    ":getRowId": "params => params.data.table",
                    "defaultColDef": {"sortable": True, "resizable": True},
                }
            ).classes("w-full h-[75vh]")
            grid.on("cellClicked", lambda event: ui.navigate.to(table_path(event.args["data"]["table"])))

            async def look() -> None:
                grid.run_grid_method("setGridOption", "rowData", rows_of(await console.view()))

            ui.timer(console.shown.seconds, look)


def rows_of(view: LakeView) -> list[dict[str, Any]]:
    """Return the rows of the grid."""
    rows = []
    for table in view.tables:
        commit = table.commit
        fresh = None if commit is None else commit.freshness
        rows.append(
            {
                "table": str(table.table),
                "state": table.state,
                "behind": table.behind,
                "last_commit": None if commit is None else f"{commit.completed:%Y-%m-%d %H:%M:%S}",
                "events": None if commit is None else commit.events,
                "p50": None if fresh is None else fresh.p50 / 1000,
                "p95": None if fresh is None else fresh.p95 / 1000,
                "verified": None if table.verified is None else verified_text(table.verified),
            }
        )
    return rows
