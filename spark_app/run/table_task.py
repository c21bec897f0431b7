"""A task that runs once for each table, such as a replay, a rebuild or the table services."""

from __future__ import annotations

import sys
from collections.abc import Callable

from spark_app.acceleration.missing_member import missing_member
from spark_app.reports import (
    Blocked,
    Committed,
    Erased,
    ProgressWriter,
    Replayed,
    Serviced,
    Started,
    Stopped,
    Trimmed,
)
from spark_app.run.outcome import OutcomeStore
from spark_app.sources.event import EventSource
from spark_app.sources.passing_failures import PASSING_FAILURES
from spark_app.table.key_events import NotErased
from spark_app.table.table_ingest import TableIngest
from tributary.contract.errors import TributaryError, told_by
from tributary.contract.remedies import remedies_for_table

TableTask = Callable[[TableIngest], Committed | Replayed | Serviced | Erased | Trimmed]


def run_for_each_table(
    source: EventSource,
    table_of: Callable[[str], TableIngest | None],
    task: TableTask,
    progress: ProgressWriter,
    outcomes: OutcomeStore,
    passing: tuple[type[Exception], ...] = PASSING_FAILURES,
) -> bool:
    """Run the task for one table after the other; return whether it succeeded for all.

    A service that does not answer, such as the schema registry or S3, fails the table's task at once. These
    are the errors in `passing`. The report shows their text.

    After a task that commits, the recorded reason why a table was blocked is cleared. If the reason still
    exists, the next ingest finds it again."""
    tables = [table for topic in sorted(source.topics()) if (table := table_of(topic)) is not None]
    progress.write(Started(tuple(table.name for table in tables)))
    results: dict[str, str] = {}
    caught: tuple[type[Exception], ...] = (TributaryError, *passing)
    for table in tables:
        try:
            report = task(table)
            progress.write(report)
            if isinstance(report, Committed):
                outcomes.clear(table.quarantine_path)
            results[table.name] = "ok"
        except caught as error:
            told = error if isinstance(error, TributaryError) else _passing(error)
            remedies = remedies_for_table(told.remedies, table.name)
            is_unchanged = isinstance(error, NotErased)
            progress.write(Blocked(table.name, told.reason, remedies, is_unchanged=is_unchanged))
            results[table.name] = told.reason
    progress.write(Stopped(results))
    return all(result == "ok" for result in results.values())


def _passing(error: Exception) -> TributaryError:
    if isinstance(error, ConnectionError):
        return TributaryError(str(error), remedy="Run the command again once it answers.")
    print(f"{type(error).__name__}: {error}", file=sys.stderr)  # Also Java's calls.
    return missing_member(error) or TributaryError(told_by(error), remedy="Run the command again.")
