"""The view of a running app: a table that updates itself on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tributary.cli.rendering import duration_text, positions_text
from tributary.operations.runs.run_progress import RunProgress, TableProgress

Show = Callable[[RunProgress], None]

_REFRESHES_PER_SECOND = 4
_SECONDS_BETWEEN_LINES = 5.0
_STATE_STYLE = {
    "caught up": "green",
    "ended": "green",
    "retrying": "yellow",
    "blocked": "red",
    "paused": "yellow",
}


@contextmanager
def live_view(console: Console) -> Iterator[Show]:
    """Yield a function that shows the progress passed to it, as long as the context lasts."""
    if console.is_terminal:
        with _renewed_table(console) as show:
            yield show
    else:
        lines = _Lines(console)
        yield lines.show
        lines.finish()


def progress_table(progress: RunProgress) -> Table:
    """Return a table with one row for each table of the run."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("table", no_wrap=True)
    for column in ("rows written", "deletes", "position", "fresh p50", "p95", "commits", "quarantined"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("state")
    for name, one in sorted(progress.tables.items()):
        style = _STATE_STYLE.get(one.state, "")
        table.add_row(name, *_figures(one), f"[{style}]{one.state}[/]" if style else one.state)
    return table


def _figures(one: TableProgress) -> tuple[str, ...]:
    return (
        f"{one.rows:,}",
        f"{one.deletes:,}",
        positions_text(one.positions),
        duration_text(one.p50_ms),
        duration_text(one.p95_ms),
        f"{one.commits:,}",
        f"{one.quarantined:,}",
    )


@contextmanager
def _renewed_table(console: Console) -> Iterator[Show]:
    with Live(console=console, refresh_per_second=_REFRESHES_PER_SECOND) as live:
        yield lambda progress: live.update(progress_table(progress))


class _Lines:
    """Prints a line for each changed table, every few seconds, so that a log of a run stays readable."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = RunProgress()
        self._latest = RunProgress()
        self._next = 0.0

    def show(self, progress: RunProgress) -> None:
        self._latest = progress
        if time.monotonic() >= self._next or progress.failures != self._shown.failures:
            self._write()

    def finish(self) -> None:
        self._write()

    def _write(self) -> None:
        for name, one in sorted(self._latest.tables.items()):
            if one.state != "waiting" and one != self._shown.tables.get(name):
                self._console.print(_line(name, one), highlight=False, markup=False, soft_wrap=True)
        self._shown = self._latest
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES


def _line(name: str, one: TableProgress) -> str:
    rows, deletes, position, p50, p95, commits, quarantined = _figures(one)
    facts = f"{rows} rows written, {deletes} deletes, position {position}, {commits} commits"
    bad = f", {quarantined} quarantined" if one.quarantined else ""
    fresh = f", fresh p50 {p50} p95 {p95}" if one.p50_ms is not None else ""
    error = f": {one.failure}" if one.failure else ""
    return f"{name}: {one.state}, {facts}{bad}{fresh}{error}"
