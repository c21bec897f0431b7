"""Ask the lake in SQL: now, or as of a time."""

from __future__ import annotations

from io import BytesIO, StringIO
from typing import TYPE_CHECKING

from nicegui import ui

from tributary.console.console import MOST_ROWS_SHOWN, QUERY_LIMITS, Console
from tributary.console.pages.frame import PATIENCE_SECONDS, cell, counted, page_frame, show_error
from tributary.contract.errors import TributaryError

if TYPE_CHECKING:
    import pyarrow as pa


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/ask", response_timeout=PATIENCE_SECONDS)
    async def show() -> None:
        with page_frame(console, "Ask"):
            view = await console.view()
            names = [str(one.table) for one in view.tables if one.commit is not None]
            ui.label(
                "One statement in DuckDB's SQL. It can neither write nor read files, and ends after "
                f"{QUERY_LIMITS.seconds:g} seconds."
            ).classes("text-gray-500")
            first = f"SELECT * FROM {names[0]} LIMIT 100" if names else "SELECT 1"
            editor = ui.codemirror(first, language="SQL", line_wrapping=True).classes("w-full h-40")
            editor.props('aria-label="SQL"')
            with ui.row().classes("items-end gap-3"):
                as_of = ui.input("as of", placeholder="now, or 2026-01-02 03:04:05").classes("min-w-64")
                run = ui.button("Run")
                with ui.expansion(counted(len(names), "table")):
                    for name in names:
                        ui.label(name).classes("font-mono")
            answer = ui.column().classes("w-full")

            async def ask() -> None:
                answer.clear()
                run.disable()
                with answer:
                    try:
                        found = await console.ask(editor.value, as_of.value or None)
                    except TributaryError as error:
                        show_error(error, console)
                    else:
                        _show(found)
                    finally:
                        run.enable()

            run.on_click(ask)


def _show(found: pa.Table) -> None:
    shown = f", of which {MOST_ROWS_SHOWN:,} are shown" if found.num_rows > MOST_ROWS_SHOWN else ""
    with ui.row().classes("items-center gap-3"):
        ui.label(f"{counted(found.num_rows, 'row')}{shown}")
        csv_button = ui.button("CSV", on_click=lambda: ui.download.content(as_csv(found), "answer.csv"))
        csv_button.props("flat dense")
        parquet = ui.button(
            "Parquet", on_click=lambda: ui.download.content(as_parquet(found), "answer.parquet")
        )
        parquet.props("flat dense")
    answer_grid(found, "h-[60vh]")


def answer_grid(found: pa.Table, height: str) -> None:
    """Show the first rows of an answer in a grid. `height` is a class of Tailwind."""
    # A field's name must not hold a dot, which AG Grid reads as a path.
    fields = [f"column {number}" for number in range(found.num_columns)]
    columns = [column.to_pylist() for column in found.slice(0, MOST_ROWS_SHOWN).columns]
    ui.aggrid(
        {
            "columnDefs": [
                {"headerName": name, "field": field, "minWidth": 110, "resizable": True, "sortable": True}
                for field, name in zip(fields, found.column_names, strict=True)
            ],
            "rowData": [
                dict(zip(fields, map(cell, values), strict=True)) for values in zip(*columns, strict=True)
            ],
        }
    ).classes(f"w-full {height}")


def as_csv(found: pa.Table) -> str:
    """Return the rows as CSV with a line of titles."""
    import csv

    file = StringIO()
    writer = csv.writer(file)
    writer.writerow(found.column_names)
    for batch in found.to_batches():
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return file.getvalue()


def as_parquet(found: pa.Table) -> bytes:
    from pyarrow import parquet

    file = BytesIO()
    parquet.write_table(found, file)
    return file.getvalue()
