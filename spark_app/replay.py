"""The replay of all tables' quarantines: once, one table after the other."""

from __future__ import annotations

from collections.abc import Callable

from contract.errors import TributaryError
from spark_app.event import EventSource
from spark_app.progress import Blocked, ProgressWriter, Started, Stopped
from spark_app.table_ingest import TableIngest


def replay(
    source: EventSource, table_of: Callable[[str], TableIngest | None], progress: ProgressWriter
) -> bool:
    """Whether every table's quarantine could be gone through. What cannot be read yet stays there, and is
    well."""
    tables = [table for topic in sorted(source.topics()) if (table := table_of(topic)) is not None]
    progress.write(Started(tuple(table.name for table in tables)))
    outcomes: dict[str, str] = {}
    for table in tables:
        try:
            progress.write(table.replay())
            outcomes[table.name] = "ok"
        except TributaryError as error:
            progress.write(Blocked(table.name, str(error)))
            outcomes[table.name] = str(error)
    progress.write(Stopped(outcomes))
    return all(outcome == "ok" for outcome in outcomes.values())
