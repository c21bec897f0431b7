"""What the sources' databases tell of themselves: their logs, and the types of their columns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from connectors.engines.source_log import SourceLog
from tributary.contract.table_name import TableName
from tributary.operations.reconcile.proof import SourceLink
from tributary.operations.sourced_lake import SourcedLake, passing_errors


def read_source_logs(lake: SourcedLake) -> Mapping[str, SourceLog]:
    """Return the log of each source that Debezium reads, by the source's name.

    A log that cannot be read has the reason as its problem. Raises PipelineDown.
    """
    return {link.source.name: _read_log(lake, link) for link in lake.links()}


def _read_log(lake: SourcedLake, link: SourceLink) -> SourceLog:
    try:
        with link.connect() as session:
            return link.engine.read_log(session, link.lake, link.source, link.read_offset)
    except passing_errors(lake) as error:
        return SourceLog(problem=f"Its log cannot be read now: {' '.join(str(error).split())}")


def read_source_types(lake: SourcedLake, table: TableName) -> Mapping[str, str]:
    """Return the types of a table's columns as its database calls them, by name.

    Empty for a table that the database does not have. Raises PipelineDown and the drivers' errors.
    """
    for link in lake.links():
        if link.source.name == table.source:
            with link.connect() as session:
                found = link.engine.read_tables(session)
            return {
                column.name: column.type
                for one in found
                if (one.schema, one.name) == (table.schema, table.table)
                for column in one.columns
            }
    return {}


@dataclass
class KeptLogs:
    """Reads the logs again and again, but at most every some seconds."""

    seconds: float
    _logs: Mapping[str, SourceLog] = field(default_factory=dict)
    _until: float = 0.0

    def read(self, lake: SourcedLake) -> Mapping[str, SourceLog]:
        if time.monotonic() >= self._until:
            self._logs = read_source_logs(lake)
            self._until = time.monotonic() + self.seconds
        return self._logs
