"""Show the progress of a fetch: a bar on a terminal, and a few lines in a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from tributary.artifacts.fetch import FetchProgress


@contextmanager
def shown_on(console: Console) -> Iterator[Callable[[FetchProgress], None]]:
    """Yield a progress function for `fetch`. It shows nothing unless something is fetched."""
    if console.is_terminal:
        with Progress(
            TextColumn("fetching {task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
        ) as bar:
            yield _bar(bar)
    else:
        yield _lines(console)


def _bar(bar: Progress) -> Callable[[FetchProgress], None]:
    def show(now: FetchProgress) -> None:
        task = bar.task_ids[0] if bar.task_ids else bar.add_task("")
        files = f"{now.files} of {now.files_total} files"
        bar.update(task, description=files, completed=now.bytes, total=now.bytes_total)

    return show


def _lines(console: Console) -> Callable[[FetchProgress], None]:
    shown = -1

    def show(now: FetchProgress) -> None:
        nonlocal shown
        tenths = 10 * now.bytes // now.bytes_total
        if tenths > shown:
            shown = tenths
            done, total = now.bytes // 1_000_000, now.bytes_total // 1_000_000
            console.print(f"fetching {now.files_total} files: {done} of {total} MB", highlight=False)

    return show
