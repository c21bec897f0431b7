"""The database's side of a verification: checksums of parts, within the load that the lake file allows."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from connectors.engines.checksums import (
    CHECKSUM,
    VERSION,
    CheckedColumn,
    Checksum,
    Part,
    RangeChecksums,
    TableParts,
    row_checksum,
    sums_of,
)
from connectors.engines.engine import DatabaseTable
from connectors.engines.registry import AnyEngine
from tributary.operations.reconcile.hidden import Hiding
from tributary.operations.reconcile.pairing import Pairing


class DatabaseSide(Protocol):
    """One table of a database. Each call sees the state at a time after the call. Raises RowsUnreadable."""

    def checksums(self, parts: Sequence[Part]) -> list[Checksum]:
        """Return the checksum of each part. All parts are seen at one time."""

    def rows(self, part: Part) -> pa.Table:
        """Return the part's rows: the columns of the key, `checksum` and `version`."""

    def full_rows(self, part: Part) -> pa.Table:
        """Return the part's rows in comparable form."""


@dataclass
class Load:
    """Keeps the database from working for more than a share of the time. `seconds` is how long it worked.

    share           between 0 and 1
    statement_seconds  how long a statement may run
    """

    share: float
    statement_seconds: float
    stop: threading.Event = field(default_factory=threading.Event)
    seconds: float = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Wait after the context, in proportion to its duration."""
        began = time.monotonic()
        try:
            yield
        finally:
            worked = time.monotonic() - began
            self.seconds += worked
        self.stop.wait(worked * (1 / self.share - 1))


@dataclass(frozen=True)
class _Access:
    """What both ways to read a table need."""

    engine: AnyEngine
    ways: TableParts[Any]
    session: Any
    hiding: Hiding
    pairing: Pairing
    load: Load

    @property
    def table(self) -> DatabaseTable:
        return self.hiding.table_to_read

    @property
    def columns(self) -> tuple[CheckedColumn, ...]:
        """The compared columns whose comparable form the database can tell. The key is among them."""
        by_name = {column.name: column for column in self.hiding.sent.columns}
        return tuple(
            CheckedColumn(name, self.hiding.expression(by_name[name]), form.arrow)
            for name, form in self.pairing.forms.items()
            if not self.hiding.is_hashed(name)
        )

    def full_rows(self, part: Part) -> pa.Table:
        """Return the part's rows in comparable form."""
        condition = self.ways.condition(self.table, self.columns, part)
        read = partial(self.engine.read_rows, self.session)
        with self.load.measured(), self.ways.limited(self.session, self.load.statement_seconds):
            batches = list(self.hiding.where(condition).read(read, self.pairing.schema))
        return pa.Table.from_batches(batches, self.pairing.schema)


@dataclass(frozen=True)
class InDatabase(_Access):
    """Lets the database compute the checksums."""

    ways: RangeChecksums[Any]

    def checksums(self, parts: Sequence[Part]) -> list[Checksum]:
        with self.load.measured(), self.ways.limited(self.session, self.load.statement_seconds):
            return list(self.ways.read_checksums(self.session, self.table, self.columns, parts))

    def rows(self, part: Part) -> pa.Table:
        key = self.pairing.key
        types = [*((name, self.pairing.forms[name].arrow) for name in key)]
        schema = pa.schema([*types, (CHECKSUM, pa.string()), (VERSION, pa.string())])
        with self.load.measured(), self.ways.limited(self.session, self.load.statement_seconds):
            batches = list(self.ways.read_row_checksums(self.session, self.table, self.columns, key, part))
        return pa.Table.from_batches(batches, schema)


@dataclass(frozen=True)
class FromRows(_Access):
    """Reads the rows and computes the checksums here, for values that the database cannot turn into texts.

    A row that is deleted and inserted again with the same values has the same version.
    """

    def checksums(self, parts: Sequence[Part]) -> list[Checksum]:
        return [self._checksum(part) for part in parts]

    def rows(self, part: Part) -> pa.Table:
        keys = "".join(f"{_quoted(name)}, " for name in self.pairing.key)
        with self._hashed(part) as engine:
            return engine.sql(
                f"SELECT {keys}{CHECKSUM}, {CHECKSUM} AS {VERSION} FROM hashed"
            ).to_arrow_table()

    def _checksum(self, part: Part) -> Checksum:
        with self._hashed(part) as engine:
            sums = engine.execute(f"SELECT {sums_of(CHECKSUM)} FROM hashed").fetchone()
        assert sums is not None, "an aggregate has one row"
        return Checksum.of_sums(*sums)

    @contextmanager
    def _hashed(self, part: Part) -> Iterator[duckdb.DuckDBPyConnection]:
        columns = [(_quoted(name), form.arrow) for name, form in self.pairing.forms.items()]
        with duckdb.connect() as engine:
            engine.register("rows", self.full_rows(part))
            engine.execute(f"CREATE VIEW hashed AS SELECT *, {row_checksum(columns)} AS {CHECKSUM} FROM rows")
            yield engine


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
