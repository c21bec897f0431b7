"""What MySQL and MariaDB share behind the engine interface. Each method delegates to a module."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pymysql

from connectors import certificates
from connectors.deployment import ConnectorConfig, DatabaseAccess, Deployment, SecretReference
from connectors.engines.binlog import (
    connector,
    definitions,
    preflight,
    preparation,
    progress,
    reading,
    signals,
    survey,
)
from connectors.engines.binlog.checksums import BinlogParts
from connectors.engines.binlog.names import connector_user
from connectors.engines.binlog.session import Session, connect
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
    UnknownTable,
)
from connectors.engines.survey import DatabaseAddress, SourceEntries, Survey, SurveyedTable
from tributary.contract.engines.binlog import PORT, BinlogConnection, BinlogSource
from tributary.contract.lake import Lake
from tributary.contract.online_snapshot import Request
from tributary.contract.remedies import BringUp, Remedies, TakeSnapshot, remedies_of
from tributary.contract.table_name import TableName

_UNKNOWN_TABLE = re.compile(
    r"change event for table (?P<schema>[^.]+)\.(?P<known>.+) whose schema isn't known"
    r"|Error processing row in (?P<sized>.+), internal schema size \d+, but row size \d+"
)
"""How BinlogStreamingChangeEventSource names a table without a definition, such as a sequence, and one whose
rows have other columns than its definition, such as a system-versioned table."""

_UNREADABLE_TABLE = (
    "The connector met a change of a table whose columns it does not know. The message names the table. "
    "If it is gone, or a sequence or a system-versioned table of MariaDB, the start leaves it out.",
    BringUp(),
    "For any other table, read all tables again.",
    TakeSnapshot(),
)


class BinlogEngine(Engine[BinlogSource, Session]):
    """An engine whose connector reads a binary log.

    rules    what the engine demands of its servers
    mending  options of transforms that correct its connector's rows
    """

    rules: ClassVar[preflight.Rules]
    mending: ClassVar[Mapping[str, str]] = {}
    port = PORT
    keeps_history = True
    connection_keys = "host, port, user, password, ssl_mode and ca_file"
    driver_errors = (pymysql.Error,)

    @abstractmethod
    def encryption(self, *, is_required: bool) -> Mapping[str, str]:
        """Return the connector's options that encrypt its connections, or do not."""

    @property
    @abstractmethod
    def verifying_mode(self) -> str:
        """Return the mode in which the connector verifies the server's certificate and name."""

    def verified_on_aws(self) -> Mapping[str, str]:
        """Return the options that also verify the certificate, by the roots of Amazon's databases."""
        return self._verified(certificates.TRUST_STORE, certificates.TRUST_STORE_PASSWORD)

    def render(
        self, lake: Lake, source: BinlogSource, deployment: Deployment, untaken: Collection[TableName] = ()
    ) -> ConnectorConfig:
        return connector.render(self.connector_class, lake, source, deployment, untaken, self.mending)

    def user(self, lake: Lake, source: BinlogSource) -> str:
        return connector_user(lake, source)

    def access(
        self, lake: Lake, source: BinlogSource, host: str, port: int, password: SecretReference
    ) -> DatabaseAccess:
        return DatabaseAccess(
            host, port, connector_user(lake, source), password, self._encryption_of(source.connection)
        )

    def _encryption_of(self, connection: BinlogConnection | None) -> Mapping[str, str]:
        # Tributary's own local server has no encryption.
        if connection is None or connection.ssl_mode == "disabled":
            return self.encryption(is_required=False)
        if connection.ssl_mode == "required":
            return self.encryption(is_required=True)
        return self._verified(connection.trust_store or "", certificates.STORE_PASSWORD)

    def _verified(self, trust_store: str, password: str) -> Mapping[str, str]:
        return {
            "database.ssl.mode": self.verifying_mode,
            "database.ssl.truststore": trust_store,
            "database.ssl.truststore.password": password,
        }

    def remedies(self) -> Mapping[str, Remedies]:
        return {
            # BaseSourceTask and BinlogConnectorConnection.isBinlogPositionAvailable.
            "change stream starting at BinlogOffsetContext": remedies_of(
                [
                    "The server no longer has the log from which the connector has to continue. Or it is "
                    "another server, which lacks transactions that the connector has read.",
                    TakeSnapshot(),
                ]
            ),
            "DDL statement couldn't be parsed": remedies_of(
                [
                    "Debezium does not understand a statement that changed a table. The message shows it. "
                    "If the tables are as the lake needs them now, read them all again.",
                    TakeSnapshot(),
                ]
            ),
            # BinlogStreamingChangeEventSource, at the events of a sequence or a system-versioned table.
            "whose schema isn't known to this connector": remedies_of(_UNREADABLE_TABLE),
            "restart connector with schema recovery mode": remedies_of(_UNREADABLE_TABLE),
            # BinlogDateValue, RowDeserializers.
            "Invalid date '": remedies_of(
                [
                    "The log has a date that does not exist, such as 2023-02-31. Take ALLOW_INVALID_DATES "
                    "out of sql_mode, correct the row, and read all tables again.",
                    TakeSnapshot(),
                ]
            ),
            "The db history topic is missing": remedies_of(
                ["The topic with the tables' definitions is lost.", TakeSnapshot()]
            ),
        }

    def unknown_table(self, failure: str) -> UnknownTable | None:
        found = _UNKNOWN_TABLE.search(failure)
        return None if found is None else UnknownTable(found["schema"], found["known"] or found["sized"])

    def defines(self, config: Mapping[str, str]) -> Callable[[str], bool] | None:
        databases = config.get(connector.READ_DATABASES)
        return None if databases is None else lambda schema: re.fullmatch(databases, schema) is not None

    def remains(self, config: Mapping[str, str]) -> str | None:
        table = config.get("signal.data.collection")
        return None if table is None else f"Its table remains in the database: DROP TABLE {table};"

    def connect(self, source: BinlogSource, login: Login) -> Session:
        return connect(source, login)

    def check_server(self, session: Session, lake: Lake, source: BinlogSource) -> tuple[str, ...]:
        return preflight.check_server(session, lake, source, self.rules)

    def check_tables(self, session: Session, lake: Lake, source: BinlogSource) -> Checked:
        return preflight.check_tables(session, lake, source, self.rules)

    def check_later_tables(self, session: Session, lake: Lake, source: BinlogSource) -> Checked:
        return Checked(preflight.check_later_tables(session, lake, source, self.rules))

    def prepare(
        self,
        admin: Session,
        lake: Lake,
        source: BinlogSource,
        password: str,
        untaken: Collection[TableName],  # noqa: ARG002  Rights are for whole databases.
    ) -> tuple[str, ...]:
        preparation.apply_setup(admin, lake, source, password)
        return ()

    def check_prepared(
        self,
        session: Session,
        lake: Lake,
        source: BinlogSource,
        untaken: Collection[TableName],  # noqa: ARG002
    ) -> None:
        preflight.check_user(session, lake, source)

    def script(self, lake: Lake, source: BinlogSource, untaken: Collection[TableName]) -> str:  # noqa: ARG002
        return preparation.setup_script(lake, source)

    def forget(self, admin: Session, lake: Lake, source: BinlogSource) -> None:
        preparation.forget(admin, lake, source)

    def entries_of(self, address: DatabaseAddress) -> SourceEntries:
        # As the command lines of both engines and their drivers write it.
        mode = address.options.get("ssl-mode", address.options.get("ssl_mode"))
        unknown = sorted(address.options.keys() - {"ssl-mode", "ssl_mode"})
        if unknown or (mode is not None and mode.lower() not in ("disabled", "required")):
            raise NotADatabaseUrl(
                "an option that the lake file has no entry for",
                found=unknown[0] if unknown else f"ssl-mode={mode}",
                expected="ssl-mode=required or ssl-mode=disabled",
            )
        if mode is None and address.host in ("localhost", "127.0.0.1"):
            mode = "disabled"  # Few servers have a certificate for their own machine.
        return SourceEntries({}, {} if mode is None else {"ssl_mode": mode.lower()})

    def survey(self, session: Session, address: DatabaseAddress) -> Survey:
        return survey.survey(session, address.database)

    def sample(
        self, session: Session, table: SurveyedTable, columns: Iterable[str]
    ) -> Sequence[Sequence[str | None]]:
        return survey.sample(session, table, columns)

    def read_definitions(
        self,
        session: Session,
        lake: Lake,
        source: BinlogSource,
    ) -> Mapping[TableName, TableDefinition]:
        return definitions.read_definitions(session, lake, source, is_mariadb=self.rules.is_mariadb)

    def unseen(
        self, session: Session, missing: Mapping[TableName, TableDefinition | None]
    ) -> frozenset[TableName]:
        return frozenset(table for table in missing if reading.is_denied(session, table))

    def has_rows(self, session: Session, table: TableName) -> bool:
        return reading.has_rows(session, table)

    def ask_for_snapshot(self, session: Session, lake: Lake, source: BinlogSource, request: Request) -> None:
        signals.ask_for_snapshot(session, lake, source, request)

    def forget_request(self, session: Session, lake: Lake, source: BinlogSource, request: Request) -> None:
        signals.forget_request(session, lake, source, request)

    def steps_to_kafka(
        self, session: Session, lake: Lake, source: BinlogSource, read_offset: ReadOffset
    ) -> Iterator[Awaited]:
        return progress.steps_to_kafka(session, lake, source, read_offset)

    def read_log(
        self,
        session: Session,
        lake: Lake,  # noqa: ARG002
        source: BinlogSource,  # noqa: ARG002  All sources of a server share its log.
        reader: LogReader,
    ) -> DatabaseLog:
        return progress.read_log(session, reader.offset())

    def snapshot(self, session: Session) -> AbstractContextManager[None]:
        return reading.one_snapshot(session)

    def read_tables(self, session: Session) -> tuple[DatabaseTable, ...]:
        return reading.read_tables(session)

    def read_rows(
        self, session: Session, table: DatabaseTable, columns: Iterable[str]
    ) -> Iterator[pa.RecordBatch]:
        return reading.read_rows(session, table, columns)

    @property
    def parts(self) -> BinlogParts:
        return BinlogParts(*self.statement_limits)

    def script_command(self, script: Path) -> str:
        return f"{self.client} < {script}"

    client: ClassVar[str]
    """The engine's command line program."""

    statement_limits: ClassVar[tuple[str, str]]
    """The statements that limit the time of others, and that end that limit."""
