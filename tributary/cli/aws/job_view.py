"""The view of an AWS job for a waiting person: one line that updates itself, or a line for each new state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tributary.operations.aws.jobs import JobRun, elapsed_text

Show = Callable[[JobRun], None]

_STYLES = {"waiting": "yellow", "running": "cyan", "ended": "green", "cancelled": "red", "failed": "red"}


@contextmanager
def job_view(console: Console) -> Iterator[Show]:
    """Yield a function that shows the job passed to it, as long as the context lasts."""
    if not console.is_terminal:
        yield _new_states(console)
        return
    shown: list[JobRun] = []
    with Live(
        console=console,
        refresh_per_second=1,
        get_renderable=lambda: _line(shown[0]) if shown else Text("…"),
    ) as live:

        def show(run: JobRun) -> None:
            shown[:] = [run]
            live.refresh()

        yield show


def run_facts(run: JobRun) -> dict[str, Any]:
    """Return a job as JSON values."""
    return {
        "id": run.id,
        "name": run.name,
        "state": run.aws_state,
        "since": run.created,
        "ended": run.ended,
        "reason": run.reason,
        "logs": run.logs,
    }


def _new_states(console: Console) -> Show:
    states: list[str] = []

    def show(run: JobRun) -> None:
        if run.aws_state not in states[-1:]:
            states.append(run.aws_state)
            console.print(_line(run), soft_wrap=True)

    return show


def _line(run: JobRun) -> Text:
    parts = (f"{run.name}  {run.id}  ", (run.aws_state, _STYLES[run.state]), f"  {elapsed_text(run)}")
    return Text.assemble(*parts)
