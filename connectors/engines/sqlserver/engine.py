"""SQL Server behind the engine interface. Each method delegates to a module."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa

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
    ReadOffset,
)
from connectors.engines.hidden_columns import as_taken
from connectors.engines.sqlserver import (
    connector,
    preflight,
    preparation,
    progress,
    reading,
    signals,
    survey,
)
from connectors.engines.sqlserver.catalog import read_server, read_tables, read_unseen
from connectors.engines.sqlserver.definitions import definitions_of
from connectors.engines.sqlserver.login import connect
from connectors.engines.sqlserver.names import READER_ROLE, connector_user
from connectors.engines.sqlserver.session import DRIVER_ERRORS, Session
from connectors.engines.survey import (
    DatabaseAddress,
    SourceEntries,
    Survey,
    SurveyedTable,
)
from tributary.contract.engines.sqlserver import PORT, SqlServerSource
from tributary.contract.lake import Lake
from tributary.contract.online_snapshot import Request
from tributary.contract.remedies import Remedies, TakeSnapshot, remedies_of
from tributary.contract.table_name import TableName


class SqlServerEngine(Engine[SqlServerSource, Session]):
    """The engine of sources with `engine = "sqlserver"`."""

    title = "SQL Server"
    schemes = ("sqlserver", "mssql")
    port = PORT
    plugin = connector.PLUGIN
    connector_class = connector.CONNECTOR_CLASS
    keeps_history = True
    connection_keys = "host, port, user, password, ssl_mode and the database"
    driver_errors = DRIVER_ERRORS

    def render(
        self,
        lake: Lake,
        source: SqlServerSource,
        deployment: Deployment,
        untaken: Collection[TableName] = (),
    ) -> ConnectorConfig:
        return connector.render(lake, source, deployment, untaken)

    def user(self, lake: Lake, source: SqlServerSource) -> str:
        return connector_user(lake, source)

    def access(
        self, lake: Lake, source: SqlServerSource, host: str, port: int, password: SecretReference
    ) -> DatabaseAccess:
        encryption = connector.encryption(source.connection)
        return DatabaseAccess(host, port, connector_user(lake, source), password, encryption)

    def remedies(self) -> Mapping[str, Remedies]:
        return {
            # BaseSourceTask, after the cleanup job has removed the changes from the stored offset on.
            "change stream starting at SqlServerOffsetContext": remedies_of(
                [
                    "SQL Server no longer has the captured changes from which the connector has to continue.",
                    TakeSnapshot(),
                ]
            ),
            "The db history topic is missing": remedies_of(
                ["The topic with the tables' definitions is lost.", TakeSnapshot()]
            ),
            # Debezium, if a table of its list has no capture instance, or the user may not read its changes.
            "does not have access to CDC schema": remedies_of(
                f"Let an administrator prepare the database: the user has to be in the role {READER_ROLE}."
            ),
        }

    def remains(self, config: Mapping[str, str]) -> str | None:
        table = config.get("signal.data.collection")
        if table is None:
            return None
        name = table.partition(".")[2]
        return (
            f"Its table remains in the database, and tables stay captured: DROP TABLE {name}; "
            "EXEC sys.sp_cdc_disable_table for each capture instance tributary_… in cdc.change_tables."
        )

    def connect(self, source: SqlServerSource, login: Login) -> Session:
        return connect(source, login)

    def check_server(self, session: Session, lake: Lake, source: SqlServerSource) -> tuple[str, ...]:  # noqa: ARG002
        will_be_prepared = source.connection is None or source.connection.admin_user is not None
        return preflight.judge_server(source, read_server(session), will_be_prepared=will_be_prepared)

    def check_tables(self, session: Session, lake: Lake, source: SqlServerSource) -> Checked:
        return preflight.judge_tables(lake, source, read_tables(session))

    def check_later_tables(self, session: Session, lake: Lake, source: SqlServerSource) -> Checked:
        return Checked(preflight.judge_existing(lake, source, read_tables(session)))

    def prepare(
        self,
        admin: Session,
        lake: Lake,
        source: SqlServerSource,
        password: str,
        untaken: Collection[TableName],
    ) -> tuple[str, ...]:
        preparation.apply_setup(admin, lake, source, password, untaken)
        return ()

    def check_prepared(
        self, session: Session, lake: Lake, source: SqlServerSource, untaken: Collection[TableName]
    ) -> None:
        facts = read_server(session), read_tables(session)
        preflight.judge_preparation(lake, source, *facts, sorted(untaken))

    def script(self, lake: Lake, source: SqlServerSource, untaken: Collection[TableName]) -> str:
        return preparation.setup_script(lake, source, untaken)

    def script_command(self, script: Path) -> str:
        return f"sqlcmd -b -I -i {script}"

    def forget(self, admin: Session, lake: Lake, source: SqlServerSource) -> None:
        preparation.forget(admin, lake, source)

    def entries_of(self, address: DatabaseAddress) -> SourceEntries:
        if not address.database:
            raise NotADatabaseUrl(
                "the URL names no database",
                found=f"{address.scheme}://{address.user}@{address.host}",
                expected=f"{address.scheme}://user@host/database",
            )
        mode = address.options.get("ssl_mode")
        unknown = sorted(address.options.keys() - {"ssl_mode"})
        if unknown or mode not in (None, "disabled", "required"):
            raise NotADatabaseUrl(
                "an option that the lake file has no entry for",
                found=unknown[0] if unknown else f"ssl_mode={mode}",
                expected="ssl_mode=required or ssl_mode=disabled",
            )
        return SourceEntries({"database": address.database}, {} if mode is None else {"ssl_mode": mode})

    def survey(self, session: Session, address: DatabaseAddress) -> Survey:  # noqa: ARG002
        return survey.survey(session)

    def sample(
        self, session: Session, table: SurveyedTable, columns: Iterable[str]
    ) -> Sequence[Sequence[str | None]]:
        return survey.sample(session, table, columns)

    def read_definitions(
        self,
        session: Session,
        lake: Lake,
        source: SqlServerSource,
    ) -> Mapping[TableName, TableDefinition]:
        found = definitions_of(source, read_tables(session))
        return {name: as_taken(definition, lake.policy(name)) for name, definition in found.items()}

    def unseen(
        self, session: Session, missing: Mapping[TableName, TableDefinition | None]
    ) -> frozenset[TableName]:
        numbers = read_unseen(session) if missing else frozenset()
        return frozenset(
            table
            for table, known in missing.items()
            if numbers is None or (known is not None and known.identity in numbers)
        )

    def has_rows(self, session: Session, table: TableName) -> bool:
        return reading.has_rows(session, table)

    def ask_for_snapshot(
        self, session: Session, lake: Lake, source: SqlServerSource, request: Request
    ) -> None:
        signals.ask_for_snapshot(session, lake, source, request)

    def forget_request(self, session: Session, lake: Lake, source: SqlServerSource, request: Request) -> None:
        signals.forget_request(session, lake, source, request)

    def steps_to_kafka(
        self, session: Session, lake: Lake, source: SqlServerSource, read_offset: ReadOffset
    ) -> Iterator[Awaited]:
        return progress.steps_to_kafka(session, lake, source, read_offset)

    def read_log(
        self,
        session: Session,
        lake: Lake,  # noqa: ARG002
        source: SqlServerSource,  # noqa: ARG002  The session is in the source's database.
        reader: LogReader,
    ) -> DatabaseLog:
        return progress.read_log(session, reader.offset())

    def snapshot(self, session: Session) -> AbstractContextManager[None]:
        return reading.one_snapshot(session)

    def read_tables(self, session: Session) -> tuple[DatabaseTable, ...]:
        return reading.tables_of(read_tables(session))

    def read_rows(
        self, session: Session, table: DatabaseTable, columns: Iterable[str]
    ) -> Iterator[pa.RecordBatch]:
        return reading.read_rows(session, table, columns)
