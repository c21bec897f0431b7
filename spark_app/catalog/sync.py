"""The catalog's part of a run: which tables it does not show as they are, and when to tell it again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from spark_app.catalog.catalog_table import CatalogTable, NotInCatalog, catalog_table
from spark_app.catalog.glue import GlueCatalog
from spark_app.columns.table_columns import TableColumns
from spark_app.run.progress import Cataloged, CatalogFailed, ProgressWriter
from tributary.contract.lake import TablePolicy


class StoredTable(Protocol):
    """The Hudi table, as the catalog needs it."""

    @property
    def path(self) -> str: ...
    @property
    def policy(self) -> TablePolicy: ...
    def partitions(self) -> frozenset[str]: ...


class OfferedTable(Protocol):
    """A table after a commit, or when it has just been recovered. `columns`: None where there is no table
    yet; `partitions_written`: by its last commit, as paths."""

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
    """When to try again, and how long the end of a run waits for what is left."""

    first_retry_seconds: float = 1.0
    longest_retry_seconds: float = 60.0
    patience_seconds: float = 30.0


@dataclass(frozen=True)
class _Shown:
    """What the catalog has been told of a table, or is to be."""

    columns: TableColumns
    partitions: frozenset[str] = frozenset()


@dataclass
class _TableSync:
    """A table within the run. `refused`: the columns that no catalog can show."""

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
    """Keeps a catalog up with the tables of a run, without any of them waiting for it.

    Its methods return at once, but for `finish`, and are for one thread; the requests go out on another. Glue
    is asked for nothing while a table's columns and partitions are those it was last told in this run.
    `name_of` gives a table's name in the catalog."""

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
        """Takes note of what the table is now."""
        if table.columns is None:
            return
        known = self._tables.get(table.name)
        written = table.partitions_written
        if known is None:
            self._tables[table.name] = _TableSync(table.hudi, _Shown(table.columns, written))
        elif known.wanted.columns != table.columns or not written <= known.wanted.partitions:
            known.wanted = _Shown(table.columns, known.wanted.partitions | written)

    def step(self) -> None:
        """Collects what has come of the last requests, and begins the next that are due."""
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
        """The tables that the catalog does not show as they are, by name, and why; after some patience."""
        deadline = time.monotonic() + self.pace.patience_seconds
        self.step()
        while self._is_busy and time.monotonic() < deadline:
            time.sleep(0.02)
            self.step()
        self._thread.shutdown(wait=False, cancel_futures=True)
        return {
            name: sync.error or "Glue has not answered"
            for name, sync in self._tables.items()
            if sync.is_pending or sync.error is not None
        }

    @property
    def _is_busy(self) -> bool:
        return self._working is not None or any(sync.is_pending for sync in self._tables.values())

    def _show(self, name: str, sync: _TableSync) -> _Shown:
        """On the thread of requests; returns what is shown then."""
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
                # Whatever it is: a catalog's failure is none of the tables'.
                self._retry_later(name, sync, error)
            case _:
                raise error

    def _retry_later(self, name: str, sync: _TableSync, error: Exception) -> None:
        wait = min(self.pace.first_retry_seconds * 2**sync.attempts, self.pace.longest_retry_seconds)
        sync.attempts += 1
        sync.not_before = time.monotonic() + wait
        sync.error = f"{type(error).__name__}: {error}"
        self.progress.write(CatalogFailed(name, sync.error, sync.attempts, wait))
