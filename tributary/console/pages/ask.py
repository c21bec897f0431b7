"""Ask the lake in SQL: now, or as of a time."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from nicegui import ui

from tributary.api.tables import spellings
from tributary.api.values import values_of
from tributary.console.charts import chart_options
from tributary.console.console import MOST_ROWS_SHOWN, QUERY_LIMITS, Console
from tributary.console.pages.downloads import download_button
from tributary.console.pages.frame import PATIENCE_SECONDS, cell, counted, page_frame, shortened, show_error
from tributary.contract.boards.board import BarTile, BoardError, LineTile, PieTile, ScatterTile, Tile
from tributary.contract.errors import TributaryError
from tributary.contract.table_name import TableName
from tributary.operations.boards.answers import Lines, Points, Slices, shown

if TYPE_CHECKING:
    import pyarrow as pa


def add(console: Console) -> None:
    """Register the page."""

    @ui.page("/ask", response_timeout=PATIENCE_SECONDS)
    async def show() -> None:
        with page_frame(console, "Ask"):
            names = await console.readable_tables()
            ui.label(
                "One statement in DuckDB's SQL. It can neither write nor read files, and ends after "
                f"{QUERY_LIMITS.seconds:g} seconds. Ctrl-Enter runs it. Escape, then Tab, leaves the editor."
            ).classes("quiet")
            first = f"SELECT * FROM {names[0]} LIMIT 100" if names else "SELECT 1"
            editor = ui.codemirror(first, language="SQL", line_wrapping=True).classes("w-full h-40")
            editor.props('aria-label="SQL"')
            ui.run_javascript(_THEME % editor.id)
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
            ui.run_javascript(_RUN_BY_KEY % (editor.id, run.id))

            async def complete() -> None:
                try:
                    schemas = await asyncio.to_thread(console.shown.open().schemas)
                except TributaryError:
                    return  # The pipeline page says what does not run.
                columns = {name: schema.names for name, schema in schemas.items()}
                ui.run_javascript(_COMPLETE % (editor.id, json.dumps(list(completions(columns)))))

            ui.timer(0.1, complete, once=True)


_THEME = """
const element = getElement(%d), dark = window.matchMedia('(prefers-color-scheme: dark)');
await element.editorPromise;
const choose = () => element.setTheme(dark.matches ? 'githubDark' : 'githubLight');
dark.addEventListener('change', choose);
choose();
"""
"""Lets the editor be dark when the page is."""

_RUN_BY_KEY = """
getElement(%d).$el.addEventListener('keydown', event => {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.stopPropagation();
  getElement(%d).$el.click();
}, {capture: true});
"""
"""Lets Ctrl-Enter run the statement. The editor itself would insert a line."""

_COMPLETE = """
const CM = await import('nicegui-codemirror');
const element = getElement(%d), names = %s;
await element.editorPromise;
element.editor.dispatch({effects: CM.StateEffect.appendConfig.of(
  CM.EditorState.languageData.of(() => [{autocomplete: names}]))});
"""
"""Offers the names as completions, beside SQL's words."""


def completions(columns: Mapping[TableName, list[str]]) -> Iterator[Mapping[str, str]]:
    """Yield the names of all tables and columns as CodeMirror completes them. A name of a column is once."""
    tables_of: dict[str, list[str]] = {}
    for table, names in columns.items():
        yield {"label": spellings(table)[1], "type": "class", "detail": "table"}
        for name in names:
            tables_of.setdefault(name, []).append(table.table)
    for name, tables in tables_of.items():
        detail = tables[0] if len(tables) == 1 else f"{tables[0]} and {len(tables) - 1} more"
        yield {"label": name, "type": "property", "detail": detail, "apply": quoted(name)}


def quoted(name: str) -> str:
    """Return a column's name as SQL needs it."""
    if re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in _reserved():
        return name
    return '"' + name.replace('"', '""') + '"'


@cache
def _reserved() -> frozenset[str]:
    import duckdb

    rows = duckdb.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
    return frozenset(name for (name,) in rows.fetchall())


def _show(found: pa.Table) -> None:
    shown = f", of which {MOST_ROWS_SHOWN:,} are shown" if found.num_rows > MOST_ROWS_SHOWN else ""
    with ui.row().classes("items-center gap-3"):
        ui.label(f"{counted(found.num_rows, 'row')}{shown}")
        download_button("CSV", found, "csv", "answer.csv")
        download_button("Parquet", found, "parquet", "answer.parquet")
    if len(set(found.column_names)) > 1 and found.num_rows:
        with ui.expansion("Chart").classes("w-full").props("dense"):
            _chart(found)
    answer_grid(found, "h-[60vh]")


def _chart(found: pa.Table) -> None:
    """Draw an answer: a person chooses the kind and the columns."""
    names = list(dict.fromkeys(found.column_names))
    with ui.row().classes("items-end gap-3"):
        kind = ui.select(list(_CHARTS), label="chart", value="bar").classes("min-w-24")
        x = ui.select(names, label="x or label", value=names[0]).classes("min-w-40")
        y = ui.select(names, label="y or value", value=names[1]).classes("min-w-40")
    drawn = ui.column().classes("w-full")

    def draw() -> None:
        drawn.clear()
        with drawn:
            try:
                tile = _CHARTS[str(kind.value)](str(x.value), str(y.value))
                what = shown(tile, found, "the chart")
            except BoardError as error:
                ui.label(str(error)).classes("text-warning")
                return
            if isinstance(what, Lines | Slices | Points):
                ui.echart(chart_options(tile, what)).classes("w-full h-72")

    for choice in (kind, x, y):
        choice.on_value_change(draw)
    draw()


_OF_ANSWER: Mapping[str, Any] = {"title": "answer", "sql": "SELECT"}
_CHARTS: Mapping[str, Callable[[str, str], Tile]] = {
    "bar": lambda x, y: BarTile(**_OF_ANSWER, chart="bar", x=x, y=(y,)),
    "line": lambda x, y: LineTile(**_OF_ANSWER, chart="line", x=x, y=(y,)),
    "pie": lambda x, y: PieTile(**_OF_ANSWER, chart="pie", label=x, value=y),
    "scatter": lambda x, y: ScatterTile(**_OF_ANSWER, chart="scatter", x=x, y=y),
}


def answer_grid(found: pa.Table, height: str) -> None:
    """Show the first rows of an answer in a grid. `height` is a class of Tailwind."""
    # A field's name must not hold a dot, which AG Grid reads as a path.
    fields = [f"column {number}" for number in range(found.num_columns)]
    columns = [
        [grid_cell(value) for value in values_of(column)]
        for column in found.slice(0, MOST_ROWS_SHOWN).columns
    ]
    ui.aggrid(
        {
            "columnDefs": [
                {
                    "headerName": name,
                    "field": field,
                    "minWidth": column_width(name, values),
                    "resizable": True,
                    "sortable": True,
                    ":valueFormatter": "params => params.value === null ? 'NULL' : params.value",
                    "cellClassRules": {"quiet": "x === null"},
                }
                for field, name, values in zip(fields, found.column_names, columns, strict=True)
            ],
            "rowData": [dict(zip(fields, values, strict=True)) for values in zip(*columns, strict=True)],
        }
    ).classes(f"w-full {height}")


_NARROWEST, _WIDEST = 110, 320
_OF_A_LETTER, _AROUND_A_VALUE, _AROUND_A_TITLE = 8, 32, 52


def column_width(title: str, values: Sequence[Any]) -> int:
    """Return how many pixels wide a column is at least: a time is readable as a whole, a long text is not."""
    longest = max((len(str(value)) for value in values if value is not None), default=0)
    wanted = max(longest * _OF_A_LETTER + _AROUND_A_VALUE, len(title) * _OF_A_LETTER + _AROUND_A_TITLE)
    return min(max(wanted, _NARROWEST), _WIDEST)


_LONGEST = 2_000


def grid_cell(value: Any) -> Any:
    """Return a value as a grid shows it. A long text is cut, because a browser gets slow with it."""
    shown = cell(value)
    return shortened(shown, _LONGEST) if isinstance(shown, str) else shown
