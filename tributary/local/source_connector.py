"""Run a source's connector, so that no table that the lake cannot take stops it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from connectors.connect_rest import ConnectorFailed
from connectors.deployment import ConnectorConfig, Deployment
from connectors.engines.engine import Checked
from tributary.contract.errors import TributaryError
from tributary.contract.patterns import WILDCARDS
from tributary.contract.remedies import TakeSnapshot
from tributary.contract.table_name import TableName
from tributary.local.connector_state import ConnectorKeeper
from tributary.local.databases import SourceDatabase
from tributary.local.left_out import read_ever_left_out


@dataclass(frozen=True)
class Ran:
    """What it took to run a connector.

    changed  it was created or recreated
    gone     tables that it does not read and that are gone
    """

    changed: bool
    gone: frozenset[TableName]


class DatabaseUnknown(TributaryError):
    """A connector cannot read the tables of a database that the lake file names only now."""


@dataclass(frozen=True)
class SourceConnector:
    """The connector of one source, whose database is prepared."""

    database: SourceDatabase
    deployment: Deployment
    keeper: ConnectorKeeper

    @property
    def name(self) -> str:
        return self.database.lake.source_names(self.database.source).connector

    def ensure_running(self, found: Checked, *, recreate: bool) -> Ran:
        """Return once the connector runs without the tables that are left out.

        Raises DatabaseUnknown, which changes nothing, and ConnectorFailed.

        The log still has the changes of a table that was left out and is gone. Neither the connector nor the
        database says that it was one that the connector cannot read, until the connector fails."""
        known = _Known(self.database, found)
        self._check_databases(found, known)
        gone = known.gone(read_ever_left_out(self.database.state, self.database.source)) | self._skipped(
            known
        )
        while True:
            connector = self._render(found.untaken | gone)
            try:
                return Ran(self.keeper.ensure_running(connector, recreate=recreate), gone)
            except ConnectorFailed:
                more = self._skipped(known) - gone
                if not more:
                    raise
                gone, recreate = gone | more, True

    def _check_databases(self, found: Checked, known: _Known) -> None:
        """Check that the connector knows all databases: it learned of their tables in its own snapshot."""
        before = self.keeper.rest.config(self.name)
        if before is None or before == self._render(found.untaken).config:
            return
        defines = self.database.engine.defines(before)
        if defines is None:
            return
        undefined = [schema for schema in sorted(known.schemas) if not defines(schema)]
        if undefined and self.keeper.rest.offset(self.name) is not None:
            source = self.database.source.name
            raise DatabaseUnknown(
                "the connector does not know the tables of a database that was added",
                where=f"[source.{source}].tables",
                found=", ".join(undefined),
                expected="databases that the source had when its snapshot was taken, or without tables",
                remedy=["Take the database out, or read all tables again.", TakeSnapshot(source)],
            )

    def _render(self, untaken: frozenset[TableName]) -> ConnectorConfig:
        database = self.database
        return database.engine.render(database.lake, database.source, self.deployment, untaken)

    def would_skip(self, found: Checked, failure: str) -> bool:
        """Return whether the connector failed at a table that it does not read if it is started again."""
        return bool(_Known(self.database, found).untaken_at(failure))

    def _skipped(self, known: _Known) -> frozenset[TableName]:
        """Return the table at whose changes the connector has failed, if that is why and it is gone."""
        failure = self.keeper.failure(self.name)
        return frozenset() if failure is None else known.gone(known.untaken_at(failure))


@dataclass(frozen=True)
class _Known:
    """The tables of a source's database. It is asked only if need be."""

    database: SourceDatabase
    found: Checked

    @cached_property
    def _there(self) -> frozenset[TableName]:
        database = self.database
        with database.connect_for_replication() as session:
            defined = database.engine.read_definitions(session, database.lake, database.source)
        return frozenset(defined) | self.found.untaken

    @property
    def _taken(self) -> frozenset[TableName]:
        return self._there - self.found.untaken

    def gone(self, tables: Collection[TableName]) -> frozenset[TableName]:
        """Return which of the tables are not there."""
        unsure = frozenset(tables) - self.found.untaken
        return unsure - self._there if unsure else unsure

    @property
    def schemas(self) -> frozenset[str]:
        """The schemas of the tables that are there and that the lake takes."""
        return frozenset(table.schema for table in self._taken)

    def untaken_at(self, failure: str) -> frozenset[TableName]:
        """Return the table at which a connector failed, if the lake does not take it or it is gone.

        If the failure names no schema, these are tables of this name in all schemas."""
        source, unknown = self.database.source, self.database.engine.unknown_table(failure)
        if unknown is None:
            return frozenset()
        schemas = {unknown.schema} if unknown.schema is not None else self._schemas
        tables = {TableName(source.name, schema, unknown.table) for schema in schemas}
        named = frozenset(one for one in tables if source.patterns.would_match(one.schema, one.table))
        return frozenset() if named & self._taken else named

    @property
    def _schemas(self) -> frozenset[str]:
        named = {pattern.schema for pattern in self.database.source.patterns.include}
        return frozenset(table.schema for table in self._there) | {
            schema for schema in named if not {*schema} & {*WILDCARDS}
        }
