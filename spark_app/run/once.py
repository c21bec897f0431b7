"""What is done once to each of some tables: replaying its quarantine, making it anew, its services."""

from __future__ import annotations

from collections.abc import Callable

from spark_app.run.outcome import OutcomeStore
from spark_app.run.progress import Blocked, Committed, ProgressWriter, Replayed, Serviced, Started, Stopped
from spark_app.sources.event import EventSource
from spark_app.table.table_ingest import TableIngest
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import remedies_for_table


def run_errand(
    source: EventSource,
    table_of: Callable[[str], TableIngest | None],
    errand: Callable[[TableIngest], Committed | Replayed | Serviced],
    progress: ProgressWriter,
    outcomes: OutcomeStore,
) -> bool:
    """Whether it could be done to every table, one after the other. What has kept a table from going on is
    forgotten after an errand that commits: if it still does, the next ingest finds out."""
    tables = [table for topic in sorted(source.topics()) if (table := table_of(topic)) is not None]
    progress.write(Started(tuple(table.name for table in tables)))
    results: dict[str, str] = {}
    for table in tables:
        try:
            report = errand(table)
            progress.write(report)
            if isinstance(report, Committed):
                outcomes.clear(table.quarantine_path)
            results[table.name] = "ok"
        except TributaryError as error:
            remedies = remedies_for_table(error.remedies, table.name)
            progress.write(Blocked(table.name, error.reason, remedies))
            results[table.name] = error.reason
    progress.write(Stopped(results))
    return all(result == "ok" for result in results.values())
