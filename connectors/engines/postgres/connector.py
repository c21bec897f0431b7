"""The Debezium connector of a PostgreSQL source, with the settings that lose no change and no value."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from connectors.certificates import PEM
from connectors.deployment import ConnectorConfig, DatabaseAccess, Deployment, SecretReference
from connectors.engines.debezium_options import BY_SCHEMA, READ_TABLES, login, options_of_all_engines
from connectors.engines.postgres.names import publication, replication_slot, replication_user, signal_table
from connectors.engines.postgres.preparation import heartbeat_query
from connectors.engines.postgres.row_filters import row_filters
from tributary.contract.engines.postgres import PostgresSource, SslMode
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName

PLUGIN = "debezium-connector-postgres"
CONNECTOR_CLASS = "io.debezium.connector.postgresql.PostgresConnector"
SLOT_OPTION = "slot.name"
_TRANSFORMS = {"resumableOffsets.type": "io.tributary.connect.postgres.PostgresOffsets"}


def render(
    lake: Lake, source: PostgresSource, deployment: Deployment, untaken: Collection[TableName] = ()
) -> ConnectorConfig:
    """Return the connector that turns the source's changes into Kafka events, without its password.

    The connector does not read the tables in `untaken`, although the source's patterns match them.
    """
    return ConnectorConfig(
        name=lake.source_names(source).connector,
        config={
            "connector.class": CONNECTOR_CLASS,
            **login(deployment.databases[source.name]),
            "database.dbname": source.database,
            **options_of_all_engines(
                lake, source, deployment, signal_table(lake, source), BY_SCHEMA, _TRANSFORMS
            ),
            "plugin.name": "pgoutput",
            SLOT_OPTION: replication_slot(lake, source),
            # A connector with a backlog finds its place in the log and then opens the slot again, often
            # before PostgreSQL has closed it. The default wait is 10 seconds, up to 6 times.
            "slot.retry.delay.ms": "1000",
            "slot.max.retries": "60",
            "publication.name": publication(lake, source),
            "publication.autocreate.mode": "disabled",
            READ_TABLES: source.patterns.debezium_regex_without(
                (table.schema, table.table) for table in untaken
            ),
            # A template names no partitions, because nobody has seen the database yet. The user may not read
            # them (role.py), and a snapshot of one would stop the connector.
            "driver.hideUnprivilegedObjects": "true",
            **_LOSSLESS,
            **_snapshots_of_some_rows(lake, source),
            "heartbeat.action.query": heartbeat_query(lake, source),
            # A logical message, from an application's own pg_logical_emit_message, is not a row.
            "message.prefix.exclude.list": ".*",
        },
    )


def _snapshots_of_some_rows(lake: Lake, source: PostgresSource) -> dict[str, str]:
    """Return how a snapshot reads only the rows that the publication's filter lets pass."""
    option = "snapshot.select.statement.overrides"
    statements = {
        f"{table.schema}.{table.table}": f'SELECT * FROM "{table.schema}"."{table.table}" WHERE ({rows})'
        for table, rows in row_filters(lake, source).items()
    }
    if not statements:
        return {}
    return {option: ",".join(statements)} | {f"{option}.{name}": sql for name, sql in statements.items()}


def access_at(
    lake: Lake, source: PostgresSource, host: str, port: int, password: SecretReference
) -> DatabaseAccess:
    """Return the access to the database at this address. Tributary's own local server has no encryption."""
    connection = source.connection
    encryption = (
        encrypted("disable") if connection is None else encrypted(connection.sslmode, connection.sslrootcert)
    )
    return DatabaseAccess(host, port, replication_user(lake, source), password, encryption)


def encrypted_on_aws(sslmode: SslMode) -> Mapping[str, str]:
    """Return the options for a database on AWS, whose certificate the roots of Amazon RDS verify."""
    return encrypted(sslmode, PEM if sslmode == "verify-full" else None)


def encrypted(sslmode: SslMode, sslrootcert: str | None = None) -> Mapping[str, str]:
    """Return the connector's options that encrypt its connections."""
    certificates = {} if sslrootcert is None else {"database.sslrootcert": sslrootcert}
    return {"database.sslmode": sslmode, **certificates}


_LOSSLESS: Mapping[str, str] = {
    "time.precision.mode": "adaptive",
    # The default counts a month as 30.4 days.
    "interval.handling.mode": "string",
    "hstore.handling.mode": "json",
    # The default leaves columns of a type that Debezium does not know out of the event.
    "include.unknown.datatypes": "true",
}
