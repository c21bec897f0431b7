"""What the sources' databases tell of themselves: their logs, and the types of their columns."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from connectors.connect_rest import GLANCE_SECONDS, ConnectRest
from connectors.engines.database_log import DatabaseLog, LogReader
from connectors.engines.survey import DatabaseAddress
from tributary.contract.errors import TributaryError
from tributary.contract.source import Source
from tributary.contract.table_name import TableName
from tributary.local.databases import SourceDatabase
from tributary.operations.left_out_tables import left_out_tables
from tributary.operations.sourced_lake import SourcedLake
from tributary.operations.workspace import Workspace


@dataclass
class KeptSizes:
    """Reads about how many rows the tables of a source have, but at most once in some seconds.

    It costs a survey of the whole database, so only those who show the sizes ask for them.
    """

    seconds: float = 60.0
    _sizes: dict[str, Mapping[TableName, int] | None] = field(default_factory=dict)
    _until: dict[str, float] = field(default_factory=dict)

    def read(
        self, workspace: Workspace, database: SourceDatabase, session: Any
    ) -> Mapping[TableName, int] | None:
        """Return the sizes as far as the database knows them. None: it could not be asked."""
        source = database.source.name
        if time.monotonic() >= self._until.get(source, 0.0):
            self._until[source] = time.monotonic() + self.seconds
            try:
                self._sizes[source] = _read_sizes(workspace, database, session)
            except Exception:  # noqa: BLE001  The log is known without the sizes, which only show progress.
                self._sizes[source] = None
        return self._sizes[source]


def read_source_logs(workspace: Workspace, sizes: KeptSizes | None = None) -> Mapping[str, DatabaseLog]:
    """Return the log of each source that Debezium reads, by the source's name.

    A log that cannot be read has the reason as its problem. No server has to run, because a log grows when
    one does not. Only with `sizes`, a log says how many rows its first snapshot has. Raises PipelineDown
    before the first start.
    """
    sources = workspace.lake.connected_sources
    with ThreadPoolExecutor(max(1, len(sources))) as pool:
        logs = pool.map(partial(_read_log, workspace, sizes), sources)
        return {source.name: log for source, log in zip(sources, logs, strict=True)}


def _read_log(workspace: Workspace, sizes: KeptSizes | None, source: Source) -> DatabaseLog:
    lake, settings = workspace.lake, workspace.settings
    connect = ConnectRest(settings.connect_url, GLANCE_SECONDS)
    database = SourceDatabase(lake, source, workspace.state, settings)
    connector = lake.source_names(source).connector
    reader = LogReader(
        partial(connect.offset, connector), lambda: connect.status(connector).failure is not None
    )
    try:
        with database.connect_for_replication() as session:
            log = database.engine.read_log(session, lake, source, reader)
            if sizes is not None and log.problem is None and reader.reads_first_snapshot():
                return replace(log, first=sizes.read(workspace, database, session))
            return log
    except Exception as error:  # noqa: BLE001  A fault of one source must not hide the others.
        return DatabaseLog(problem=f"Its log cannot be read now: {' '.join(str(error).split())}")


def _read_sizes(workspace: Workspace, database: SourceDatabase, session: Any) -> Mapping[TableName, int]:
    """Return about how many rows each table of the source has, as far as the database knows."""
    source, left_out = database.source, left_out_tables(workspace)
    everything = DatabaseAddress(source.engine, user="", host="")
    return {
        name: one.rows
        for one in database.engine.survey(session, everything).tables
        if one.rows is not None
        and source.matches(one.schema, one.table)
        and (name := TableName(source.name, one.schema, one.table)) not in left_out
    }


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
    """Reads the logs again and again, but at most every some seconds.

    patience  how many seconds a call waits for databases that do not answer. Then it returns what was known.
    sizes     adds how many rows a first snapshot has; None: nobody needs them
    """

    seconds: float
    patience: float = 1.0
    sizes: KeptSizes | None = None
    _logs: Mapping[str, DatabaseLog] = field(default_factory=dict)
    _until: float = 0.0
    _reading: threading.Thread | None = None

    def read(self, workspace: Workspace) -> Mapping[str, DatabaseLog]:
        """Return the logs as they are known now."""
        if time.monotonic() >= self._until and (self._reading is None or not self._reading.is_alive()):
            self._until = time.monotonic() + self.seconds
            self._reading = threading.Thread(target=self._refresh, args=(workspace,), daemon=True)
            self._reading.start()
            self._reading.join(self.patience)
        return self._logs

    def _refresh(self, workspace: Workspace) -> None:
        try:
            self._logs = read_source_logs(workspace, self.sizes)
        except TributaryError:  # The folder was never started, or is damaged: other parts say so.
            self._logs = {}
