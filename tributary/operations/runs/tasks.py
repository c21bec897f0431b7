"""Runs of the Spark app that a person asks for: a rebuild of tables, and a replay of their quarantine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Literal

from rich.console import Console

from tributary.api.tables import read_table_folders, resolve_names
from tributary.operations.known_tables import known_tables
from tributary.operations.runs.follower import end_run
from tributary.operations.runs.ingest_run import IngestFailed, IngestRun, start_ingest
from tributary.operations.runs.run_progress import RunProgress
from tributary.operations.workspace import Workspace

EventsFrom = Literal["kafka", "bronze"]

_SECONDS_BETWEEN_LOOKS = 0.5


def start_rebuild(
    workspace: Workspace,
    console: Console,
    tables: Sequence[str],
    events_from: EventsFrom = "bronze",
    on_line: Callable[[str], None] | None = None,
    *,
    since_snapshot: bool = False,
) -> IngestRun:
    """Start to rebuild tables from all their events. Raises UnknownTable and the errors of `start_ingest`."""
    wanted = resolve_names(tables, known_tables(workspace))
    options = ["--since-snapshot"] if since_snapshot else []
    return start_ingest(workspace, console, "rebuild", events_from, wanted, on_line=on_line, options=options)


def start_replay(
    workspace: Workspace,
    console: Console,
    tables: Sequence[str] = (),
    events_from: EventsFrom = "bronze",
    on_line: Callable[[str], None] | None = None,
) -> IngestRun | None:
    """Start to apply the quarantined events that can be read now; None: nothing is in quarantine.

    Without tables, it takes all. Raises UnknownTable and the errors of `start_ingest`.
    """
    lake = workspace.open_lake
    found = read_table_folders(lake.files.filesystem, lake.lake.names, lake.quarantine)
    known = [table.name for table in found]
    wanted = resolve_names(tables, known)
    if not known:
        return None
    return start_ingest(workspace, console, "replay", events_from, wanted or known, on_line=on_line)


def follow_to_the_end(
    run: IngestRun, say: Callable[[RunProgress], None], stop: threading.Event
) -> RunProgress:
    """Return the progress once the run has ended without errors. Raises `IngestFailed`.

    If `stop` is set, the run finishes its commit, and then this raises `IngestFailed`, too.
    """
    while not run.is_over(_SECONDS_BETWEEN_LOOKS):
        say(run.progress)
        if stop.is_set():
            end_run(run)
            raise IngestFailed("The run was stopped before its end")
    run.wait()
    return run.progress
