"""A table of an open lake: its rows as Arrow, pandas or DuckDB, now or as of a time, and its commits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tributary.api.changes import Changes, changes_between
from tributary.api.lake_files import LakeFiles, told_unreadable
from tributary.api.quarantine import QuarantinedEvent, read_quarantine
from tributary.api.rows import count_rows, read_schema, read_table
from tributary.api.table_files import TableFiles, read_table_files
from tributary.api.tables import LakeTable
from tributary.api.time_travel import NotAMoment, instant_of
from tributary.api.timeline import Commit, read_commits, read_last_commit
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Storage
from tributary.contract.table_name import TableName

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa


class PandasMissing(TributaryError):
    """pandas is not installed."""


class Rows(ABC):
    """One state of a table's rows: the source's columns, then Tributary's own, such as `_op`."""

    @abstractmethod
    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table. Raises OutOfHistory, ReadInSpark and UnreadableTable."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows. Soft-deleted rows do not count."""

    def pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame. Raises PandasMissing and the errors of `arrow`."""
        try:
            import pandas  # noqa: F401  PyArrow imports it, and would not say how to get it.
        except ImportError as error:
            raise PandasMissing(
                "pandas is not installed", remedy="Install it: pip install 'tributary[pandas]'."
            ) from error
        return self.arrow().to_pandas()

    def duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of the connection, or of DuckDB's default connection.

        Raises the errors of `arrow`.
        """
        import duckdb

        return (connection or duckdb.default_connection()).from_arrow(self.arrow())


@dataclass(frozen=True)
class Table(Rows):
    """A table of a lake. Each call reads the latest commit.

    name  source, schema and table
    uri   the address of its files, such as s3://shop-silver/web/public/orders
    """

    name: TableName
    uri: str
    _files: LakeFiles = field(repr=False)
    _quarantine_path: str = field(repr=False)

    def arrow(self) -> pa.Table:
        with told_unreadable(self.uri):
            return read_table(self._files, self._place)

    def count(self) -> int:
        with told_unreadable(self.uri):
            return count_rows(self._files, self._place)

    def as_of(self, moment: str | datetime) -> TableAsOf:
        """Return the table as it was at a time, or at the instant of a commit.

        A time is a text in ISO 8601 or a datetime, in UTC unless it names a zone. It selects the latest
        commit that had begun by then. Raises NotAMoment.
        """
        return TableAsOf(self.name, self.uri, instant_of(moment), self._files)

    def changes(self, since: str | datetime, until: str | datetime | None = None) -> Changes:
        """Return the rows that changed between two states: after `since`, and up to `until`.

        Both are instants or times, as for `as_of`. None is the latest commit, whose instant is then in the
        result: the `since` of the next call. Raises NotAMoment and the errors of `arrow`.
        """
        last = self.last_commit() if until is None else None
        end = instant_of(until) if until is not None else last.instant if last else instant_of(since)
        before, after = self.as_of(since), self.as_of(end)
        if before.instant > after.instant:
            raise NotAMoment(
                "The changes end before they begin",
                where=str(self.name),
                found=f"from {before.instant} until {after.instant}",
                expected="an earlier state first",
            )
        return changes_between(before.instant, before.arrow(), after.instant, after.arrow())

    def history(self, limit: int = 20) -> tuple[Commit, ...]:
        """Return the latest commits that applied events, newest first.

        The table's timeline holds at least 20 of them. Older ones eventually leave the timeline.
        """
        with told_unreadable(self.uri):
            return read_commits(self._files.filesystem, self._place.path, limit)

    def columns(self) -> pa.Schema:
        """Return the columns of `arrow` without reading a row. Raises UnreadableTable."""
        with told_unreadable(self.uri):
            return read_schema(self._files, self._place)

    def files(self, storage: Storage) -> TableFiles:
        """Return how many files the table has, and when it was compacted last."""
        with told_unreadable(self.uri):
            return read_table_files(self._files.filesystem, self._place.path, storage)

    def last_commit(self) -> Commit | None:
        """Return the latest commit that applied events, or None if there is none."""
        with told_unreadable(self.uri):
            return read_last_commit(self._files.filesystem, self._place.path)

    def quarantine(self) -> tuple[QuarantinedEvent, ...]:
        """Return the table's events that could not be applied, with the reasons."""
        with told_unreadable(f"s3://{self._quarantine_path}"):
            return read_quarantine(self._files.filesystem, self._quarantine_path)

    @property
    def _place(self) -> LakeTable:
        return _place(self.name, self.uri)


@dataclass(frozen=True)
class TableAsOf(Rows):
    """A table as it was at an instant in Hudi's form: 17 digits, in UTC."""

    name: TableName
    uri: str
    instant: str
    _files: LakeFiles = field(repr=False)

    def arrow(self) -> pa.Table:
        with told_unreadable(self.uri):
            return read_table(self._files, _place(self.name, self.uri), self.instant)

    def count(self) -> int:
        with told_unreadable(self.uri):
            return count_rows(self._files, _place(self.name, self.uri), self.instant)


def _place(name: TableName, uri: str) -> LakeTable:
    return LakeTable(name, uri.removeprefix("s3://"))
