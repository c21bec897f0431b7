"""The Debezium connector of a MySQL or MariaDB source, with the settings that lose no change and no value."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from connectors.deployment import ConnectorConfig, Deployment
from connectors.engines.binlog.names import server_id, signal_table
from connectors.engines.debezium_options import (
    BY_DATABASE,
    READ_TABLES,
    login,
    options_of_all_engines,
    schema_history,
)
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName

_OFFSETS = {"resumableOffsets.type": "io.tributary.connect.binlog.BinlogOffsets"}

READ_DATABASES = "database.include.list"
"""The option with the databases of which a connector keeps the definitions of all tables."""


def render(
    connector_class: str,
    lake: Lake,
    source: BinlogSource,
    deployment: Deployment,
    untaken: Collection[TableName],
    mending: Mapping[str, str],
) -> ConnectorConfig:
    """Return the connector that turns the source's changes into Kafka events, without its password.

    untaken  the tables that the connector does not read, although the source's patterns match them
    mending  options of transforms that correct its rows
    """
    return ConnectorConfig(
        name=lake.source_names(source).connector,
        config={
            "connector.class": connector_class,
            **login(deployment.databases[source.name]),
            "database.server.id": str(server_id(lake, source)),
            **_NO_COLUMN_LEFT_OUT,
            **options_of_all_engines(
                lake, source, deployment, signal_table(lake, source), BY_DATABASE, {**_OFFSETS, **mending}
            ),
            READ_DATABASES: source.patterns.debezium_schema_regex,
            READ_TABLES: source.patterns.debezium_regex_without(
                (table.schema, table.table) for table in untaken
            ),
            **_LOSSLESS,
            **schema_history(lake, source, deployment.kafka),
            # It keeps the definitions of all tables of these databases. Otherwise, it could not read a table
            # that the lake takes only later.
            "schema.history.internal.store.only.captured.databases.ddl": "true",
        },
    )


_NO_COLUMN_LEFT_OUT: Mapping[str, str] = {
    # An online snapshot reads SELECT *, which lacks invisible columns, unless there is a filter of columns.
    # Then it names them all (io.debezium.pipeline.source.snapshot.incremental.AbstractChunkQueryBuilder).
    # This filter matches no column. The list of a lake that leaves columns out replaces it.
    "column.exclude.list": "(?!)",
}

_LOSSLESS: Mapping[str, str] = {
    # A TIME has microseconds and up to 838 hours, which the other mode's milliseconds of a day cannot hold.
    "time.precision.mode": "adaptive_time_microseconds",
    # The default, a Java long, wraps numbers from 2⁶³ on to negative ones.
    "bigint.unsigned.handling.mode": "precise",
    # The default turns the year 1 into 2001.
    "enable.time.adjuster": "false",
    # By default, the drivers fail at the year 0, which is no date.
    "driver.yearIsDateType": "false",
    "inconsistent.schema.handling.mode": "fail",
    # Holds the server's writers back only while the connector reads the tables' definitions.
    "snapshot.locking.mode": "minimal",
}
