"""The catalog's part of a run: which tables' entries are out of date, and when to send them again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from spark_app.catalog.catalog_table import CatalogTable, NotInCatalog, catalog_table
from spark_app.catalog.glue import GlueCatalog
from spark_app.columns.table_columns import TableColumns
from spark_app.reports import Cataloged, CatalogFailed, ProgressWriter
from tributary.contract.errors import told_by
from tributary.contract.lake import TablePolicy


class StoredTable(Protocol):
    """The parts of a Hudi table that the catalog needs."""

    @property
    def path(self) -> str: ...
    @property
    def policy(self) -> TablePolicy: ...
    def partitions(self) -> frozenset[str]: ...


class OfferedTable(Protocol):
    """A table after a commit or right after its recovery.

    columns             None: the table does not exist yet
    partitions_written  the paths of the partitions that its last commit wrote
    """

    @property
    def name(self) -> str: ...
    @property
    def hudi(self) -> StoredTable: ...
    @property
    def columns(self) -> TableColumns | None: ...
    @property
    def partitions_written(self) -> frozenset[str]: ...


@dataclass(frozen=True)
class CatalogPace:
    """When to retry, and how long the end of a run waits for unfinished entries."""

    first_retry_seconds: float = 1.0
    longest_retry_seconds: float = 60.0
    patience_seconds: float = 30.0


@dataclass(frozen=True)
class _Shown:
    """The state of a table that the catalog shows or should show."""

    columns: TableColumns
    partitions: frozenset[str] = frozenset()


@dataclass
class _TableSync:
    """A table's progress in the run. `refused` are columns that no catalog can show."""

    hudi: StoredTable
    wanted: _Shown
    shown: _Shown | None = None
    refused: TableColumns | None = None
    attempts: int = 0
    not_before: float = 0.0
    error: str | None = None

    @property
    def is_pending(self) -> bool:
        if self.wanted.columns == self.refused:
            return False
        shown = self.shown
        return (
            shown is None
            or shown.columns != self.wanted.columns
            or not self.wanted.partitions <= shown.partitions
        )


@dataclass
class CatalogSync:
    """Keep a catalog up to date with the tables of a run, without making a table wait.

    Call the methods from one thread; another thread sends the requests. All methods except `finish` return at
    once. Glue gets no request while a table's columns and partitions equal those last sent in this run.
    `name_of` returns a table's name in the catalog.
    """

    catalog: GlueCatalog
    name_of: Callable[[str], str]
    progress: ProgressWriter
    pace: CatalogPace = CatalogPace()
    _tables: dict[str, _TableSync] = field(default_factory=dict)
    _working: tuple[str, _Shown, Future[_Shown]] | None = None
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="catalog")
    )

    def offer(self, table: OfferedTable) -> None:
        """Record the table's current state."""
        if table.columns is None:
            return
        known = self._tables.get(table.name)
        written = table.partitions_written
        if known is None:
            self._tables[table.name] = _TableSync(table.hudi, _Shown(table.columns, written))
        elif known.wanted.columns != table.columns or not written <= known.wanted.partitions:
            known.wanted = _Shown(table.columns, known.wanted.partitions | written)

    def step(self) -> None:
        """Take the result of the last requests and start the next ones that are due."""
        if self._working is not None and self._working[2].done():
            self._collect()
        if self._working is not None:
            return
        now = time.monotonic()
        for name, sync in self._tables.items():
            if sync.is_pending and now >= sync.not_before:
                self._working = (name, sync.wanted, self._thread.submit(self._show, name, sync))
                return

    def finish(self) -> Mapping[str, str]:
        """Wait a while for unfinished entries. Return the tables whose entries are out of date, and why."""
        deadline = time.monotonic() + self.pace.patience_seconds
        self.step()
        while self._is_busy and time.monotonic() < deadline:
            time.sleep(0.02)
            self.step()
        self._thread.shutdown(wait=False, cancel_futures=True)
        return {
            name: sync.error or "Glue has not answered yet"
            for name, sync in self._tables.items()
            if sync.is_pending or sync.error is not None
        }

    @property
    def _is_busy(self) -> bool:
        return self._working is not None or any(sync.is_pending for sync in self._tables.values())

    def _show(self, name: str, sync: _TableSync) -> _Shown:
        """Send the requests for a table, on the thread of requests. Return the state that is shown then."""
        wanted, shown = sync.wanted, sync.shown
        table = self._entry(name, sync.hudi, wanted.columns)
        if shown is None or shown.columns != wanted.columns:
            partitions = sync.hudi.partitions() | wanted.partitions
            self.catalog.show_table(table, partitions)
            return _Shown(wanted.columns, partitions)
        self.catalog.add_partitions(table, wanted.partitions - shown.partitions)
        return _Shown(wanted.columns, wanted.partitions | shown.partitions)

    def _entry(self, name: str, hudi: StoredTable, columns: TableColumns) -> CatalogTable:
        return catalog_table(self.name_of(name), hudi.path, name, columns, hudi.policy)

    def _collect(self) -> None:
        assert self._working is not None
        (name, wanted, done), self._working = self._working, None
        sync = self._tables[name]
        match error := done.exception():
            case None:
                sync.shown, sync.refused = done.result(), None
                sync.attempts, sync.error = 0, None
                self.progress.write(Cataloged(name, self.name_of(name), len(sync.shown.partitions)))
            case NotInCatalog():
                sync.refused, sync.error = wanted.columns, str(error)
                self.progress.write(CatalogFailed(name, sync.error, sync.attempts + 1, None))
            case Exception():
                # No failure of the catalog may fail a table.
                self._retry_later(name, sync, error)
            case _:
                raise error

    def _retry_later(self, name: str, sync: _TableSync, error: Exception) -> None:
        wait = min(self.pace.first_retry_seconds * 2**sync.attempts, self.pace.longest_retry_seconds)
        sync.attempts += 1
        sync.not_before = time.monotonic() + wait
        sync.error = told_by(error)
        self.progress.write(CatalogFailed(name, sync.error, sync.attempts, wait))
