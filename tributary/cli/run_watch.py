"""Let a person watch a run of the app, and handle Ctrl-C."""

from __future__ import annotations

from rich.console import Console

from tributary.cli.live_view import live_view
from tributary.cli.rendering import messages
from tributary.operations.runs.ingest_run import IngestRun
from tributary.operations.runs.run_progress import RunProgress

PATIENCE_SECONDS = 60.0
_SECONDS_BETWEEN_LOOKS = 0.25


def watch_run(run: IngestRun, console: Console, *, is_shown: bool = True) -> None:
    """Return when the run has ended without errors. Raises `IngestFailed`.

    The first Ctrl-C lets the run finish its commits, and a second one ends it at once. Either way
    KeyboardInterrupt is raised after the app has ended.
    """
    try:
        with live_view(console) as show:
            while not run.is_over(_SECONDS_BETWEEN_LOOKS):
                if is_shown:
                    show(run.progress)
            if is_shown:
                show(run.progress)
    except BaseException:
        stop_run(run)
        raise
    run.wait()


def print_dropped(progress: RunProgress, console: Console) -> None:
    """Say which derived tables left events out, and why."""
    for dropped in progress.dropped:
        console.print(
            f"{dropped.table}: {dropped.late:,} rows came later than the watermark allows, and "
            f"{dropped.unreadable:,} events were unreadable. They are in no result.",
            style="yellow",
            highlight=False,
            soft_wrap=True,
        )


def stop_run(run: IngestRun) -> None:
    """End the run between two commits, or in the middle of one after a timeout or another Ctrl-C."""
    if not run.is_over():
        messages.print("Finishing the current commits (press Ctrl-C again to stop at once) …", style="dim")
        run.ask_to_stop()
        try:
            if not run.is_over(PATIENCE_SECONDS):
                messages.print(f"The Spark app did not stop within {PATIENCE_SECONDS:.0f} s.", style="yellow")
                run.kill()
        except BaseException:
            run.kill()
            raise
    run.end()
