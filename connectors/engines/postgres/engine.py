"""PostgreSQL behind the engine interface. Each method delegates to the module that implements it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pyarrow as pa
from psycopg.conninfo import make_conninfo

from connectors.deployment import ConnectorConfig, DatabaseAccess, Deployment, SecretReference
from connectors.engines.database_log import DatabaseLog, LogReader
from connectors.engines.definitions import TableDefinition
from connectors.engines.engine import (
    Awaited,
    Checked,
    DatabaseTable,
    Engine,
    Login,
    NotADatabaseUrl,
    NotConnected,
    ReadOffset,
)
from connectors.engines.postgres import (
    connector,
    definitions,
    preflight,
    preparation,
    reading,
    signals,
    slot,
    survey,
)
from connectors.engines.postgres.checksums import PostgresChecksums
from connectors.engines.postgres.names import replication_slot, replication_user
from connectors.engines.survey import DatabaseAddress, SourceEntries, Survey, SurveyedTable
from tributary.contract.engines.postgres import PORT, PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.online_snapshot import Request
from tributary.contract.remedies import Remedies, TakeSnapshot, remedies_of
from tributary.contract.table_name import TableName


class PostgresEngine(Engine[PostgresSource, psycopg.Connection]):
    """The engine of sources with `engine = "postgres"`."""

    title = "PostgreSQL"
    port = PORT
    schemes = ("postgresql", "postgres")
    plugin = connector.PLUGIN
    connector_class = connector.CONNECTOR_CLASS
    connection_keys = "host, port, database, user, password and sslmode"
    driver_errors = (psycopg.Error,)

    def render(
        self, lake: Lake, source: PostgresSource, deployment: Deployment, untaken: Collection[TableName] = ()
    ) -> ConnectorConfig:
        return connector.render(lake, source, deployment, untaken)

    def user(self, lake: Lake, source: PostgresSource) -> str:
        return replication_user(lake, source)

    def access(
        self, lake: Lake, source: PostgresSource, host: str, port: int, password: SecretReference
    ) -> DatabaseAccess:
        return connector.access_at(lake, source, host, port, password)

    def remedies(self) -> Mapping[str, Remedies]:
        # Debezium cannot resume from its offset (BaseSourceTask#validateSchemaHistory).
        return {
            "change stream starting at PostgresOffsetContext": remedies_of(
                ["Its replication slot was dropped or has lost its log.", TakeSnapshot()]
            )
        }

    def remains(self, config: Mapping[str, str]) -> str | None:
        name = config.get(connector.SLOT_OPTION)
        if name is None:
            return None
        return (
            "Its replication slot keeps the database's log until it is dropped: "
            f"SELECT pg_drop_replication_slot('{name}');"
        )

    def connect(self, source: PostgresSource, login: Login) -> psycopg.Connection:
        sslmode, certificates = _encryption(source, login)
        conninfo = make_conninfo(
            host=login.host,
            port=login.port,
            dbname=source.database,
            user=login.user,
            password=login.password.get_secret_value(),
            sslmode=sslmode,
            sslrootcert=certificates,
            connect_timeout=10,
            application_name="tributary",
        )
        try:
            return psycopg.connect(conninfo, autocommit=True)
        except psycopg.Error as error:
            found = _sentences(str(error)) or type(error).__name__
            raise NotConnected(f"database {source.database}", found) from error

    def check_server(
        self, session: psycopg.Connection, lake: Lake, source: PostgresSource
    ) -> tuple[str, ...]:
        preflight.check_server(session, lake, source)
        return ()

    def check_tables(self, session: psycopg.Connection, lake: Lake, source: PostgresSource) -> Checked:
        found = preflight.check_tables(session, lake, source)
        published_whole = preflight.warnings_before_publishing(session, lake, source)
        return Checked(found.left_out, found.parts, (*found.warnings, *published_whole))

    def check_later_tables(self, session: psycopg.Connection, lake: Lake, source: PostgresSource) -> Checked:
        found = preflight.check_later_tables(session, lake, source)
        return Checked(found.left_out, found.parts)

    def prepare(
        self,
        admin: psycopg.Connection,
        lake: Lake,
        source: PostgresSource,
        password: str,
        untaken: Collection[TableName],
    ) -> tuple[str, ...]:
        return preparation.apply_postgres_setup(admin, lake, source, password, untaken)

    def check_prepared(
        self,
        session: psycopg.Connection,
        lake: Lake,
        source: PostgresSource,
        untaken: Collection[TableName],
    ) -> None:
        preflight.check_replication(session, lake, source, untaken)

    def script(self, lake: Lake, source: PostgresSource, untaken: Collection[TableName]) -> str:
        return preparation.setup_script(lake, source, untaken)

    def script_command(self, script: Path) -> str:
        return f"psql -f {script}"

    def forget(self, admin: psycopg.Connection, lake: Lake, source: PostgresSource) -> None:
        slot.drop_slot(admin, replication_slot(lake, source))

    def entries_of(self, address: DatabaseAddress) -> SourceEntries:
        if not address.database:
            raise NotADatabaseUrl(
                "the URL names no database",
                found=f"{address.scheme}://{address.user}@{address.host}",
                expected=f"{address.scheme}://user@host/database",
            )
        known = {"sslmode", "sslrootcert"}
        if unknown := sorted(address.options.keys() - known):
            raise NotADatabaseUrl(
                "an option that the lake file has no entry for",
                found=unknown[0],
                expected=" or ".join(sorted(known)),
            )
        return SourceEntries({"database": address.database}, dict(address.options))

    def survey(self, session: psycopg.Connection, address: DatabaseAddress) -> Survey:  # noqa: ARG002
        return survey.survey(session)

    def sample(
        self, session: psycopg.Connection, table: SurveyedTable, columns: Iterable[str]
    ) -> Sequence[Sequence[str | None]]:
        return survey.sample(session, table, columns)

    def read_definitions(
        self, session: psycopg.Connection, lake: Lake, source: PostgresSource
    ) -> Mapping[TableName, TableDefinition]:
        return definitions.read_definitions(session, lake, source)

    def has_rows(self, session: psycopg.Connection, table: TableName) -> bool:
        return definitions.has_rows(session, table)

    def ask_for_snapshot(
        self, session: psycopg.Connection, lake: Lake, source: PostgresSource, request: Request
    ) -> None:
        signals.ask_for_snapshot(session, lake, source, request)

    def forget_request(
        self, session: psycopg.Connection, lake: Lake, source: PostgresSource, request: Request
    ) -> None:
        signals.forget_request(session, lake, source, request)

    def steps_to_kafka(
        self,
        session: psycopg.Connection,
        lake: Lake,
        source: PostgresSource,
        read_offset: ReadOffset,  # noqa: ARG002  The slot says it, too, and asks Kafka Connect for nothing.
    ) -> Iterator[Awaited]:
        return slot.steps_to_kafka(session, lake, source)

    def read_log(
        self,
        session: psycopg.Connection,
        lake: Lake,
        source: PostgresSource,
        reader: LogReader,
    ) -> DatabaseLog:
        return slot.read_log(session, replication_slot(lake, source), reader)

    def snapshot(self, session: psycopg.Connection) -> AbstractContextManager[None]:
        return reading.one_snapshot(session)

    def read_tables(self, session: psycopg.Connection) -> tuple[DatabaseTable, ...]:
        return reading.read_tables(session)

    def read_rows(
        self, session: psycopg.Connection, table: DatabaseTable, columns: Iterable[str]
    ) -> Iterator[pa.RecordBatch]:
        return reading.read_rows(session, table, columns)

    @property
    def parts(self) -> PostgresChecksums:
        return PostgresChecksums()


def _encryption(source: PostgresSource, login: Login) -> tuple[str, str | None]:
    """Return libpq's `sslmode` and `sslrootcert`."""
    if login.encryption is not None:
        ca_file = login.encryption.ca_file
        return "require" if ca_file is None else "verify-full", ca_file
    own = source.connection
    return ("disable", None) if own is None else (own.sslmode, own.sslrootcert)


def _sentences(text: str) -> str:
    """Return the lines of libpq's message as sentences. Its questions stand on lines of their own."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return " ".join(
        line if line.endswith((".", "?", "!", ":", ",")) else f"{line}." for line in lines
    ).rstrip(".")
