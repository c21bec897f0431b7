"""The Debezium connector of a SQL Server source, with the settings that lose no change and no value."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from connectors import certificates
from connectors.deployment import ConnectorConfig, Deployment
from connectors.engines.debezium_options import (
    BY_SCHEMA,
    READ_TABLES,
    login,
    options_of_all_engines,
    schema_history,
)
from connectors.engines.sqlserver.names import signal_table
from connectors.engines.sqlserver.preparation import heartbeat_query
from tributary.contract.engines.sqlserver import SqlServerConnection, SqlServerSource
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA
from tributary.contract.table_name import TableName

PLUGIN = "debezium-connector-sqlserver"
CONNECTOR_CLASS = "io.debezium.connector.sqlserver.SqlServerConnector"
_TRANSFORMS = {"resumableOffsets.type": "io.tributary.connect.sqlserver.SqlServerOffsets"}


def render(
    lake: Lake, source: SqlServerSource, deployment: Deployment, untaken: Collection[TableName] = ()
) -> ConnectorConfig:
    """Return the connector that turns the source's changes into Kafka events, without its password.

    The connector does not read the tables in `untaken`, although the source's patterns match them.
    """
    signals = signal_table(lake, source)
    return ConnectorConfig(
        name=lake.source_names(source).connector,
        config={
            "connector.class": CONNECTOR_CLASS,
            **login(deployment.databases[source.name]),
            "database.names": source.database,
            **options_of_all_engines(lake, source, deployment, signals, BY_SCHEMA, _TRANSFORMS),
            "heartbeat.action.query": heartbeat_query(lake, source),
            # Debezium's names of tables begin with the database here.
            "signal.data.collection": f"{source.database}.{OWN_SCHEMA}.{signals}",
            READ_TABLES: source.patterns.debezium_regex_without(
                (table.schema, table.table) for table in untaken
            ),
            **_LOSSLESS,
            **schema_history(lake, source, deployment.kafka),
            # A table that gets captured later is read from the catalog then.
            "schema.history.internal.store.only.captured.tables.ddl": "true",
        },
    )


_LOSSLESS: Mapping[str, str] = {
    # The default counts a datetime2(7) in nanoseconds, which end in the year 2262. No lake type holds the
    # seventh digit.
    "time.precision.mode": "microseconds",
    # The changes of a transaction in the order in which they were made. The function that the other mode
    # calls has no __$command_id, so a row whose key another row had before would come in the wrong order.
    "data.query.mode": "direct",
    # With a limit, Debezium loses rows of a transaction that is longer (issue 2012 of debezium/dbz).
    "streaming.fetch.size": "0",
    # Reads all tables as they are at one moment, and holds no writer back.
    "snapshot.isolation.mode": "snapshot",
    "snapshot.locking.mode": "none",
}


def encryption(connection: SqlServerConnection | None) -> Mapping[str, str]:
    """Return the connector's options that encrypt its connections, and verify the server's certificate."""
    if connection is None or connection.ssl_mode == "disabled":
        return {"driver.encrypt": "false"}
    if connection.ssl_mode == "required":
        return ENCRYPTED
    return {
        "driver.encrypt": "true",
        "driver.trustServerCertificate": "false",
        "driver.trustStore": connection.trust_store or "",
        "driver.trustStorePassword": certificates.STORE_PASSWORD,
    }


VERIFIED_ON_AWS: Mapping[str, str] = {
    "driver.encrypt": "true",
    "driver.trustServerCertificate": "false",
    "driver.trustStore": certificates.TRUST_STORE,
    "driver.trustStorePassword": certificates.TRUST_STORE_PASSWORD,
}
"""Encrypted connections to a server whose certificate the roots of Amazon RDS verify."""

ENCRYPTED: Mapping[str, str] = {"driver.encrypt": "true", "driver.trustServerCertificate": "true"}
"""Encrypted connections to a server whose certificate nobody verifies."""
