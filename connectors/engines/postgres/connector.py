"""The Debezium connector of a PostgreSQL source, with the settings that lose no change and no value."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from connectors.deployment import (
    ConnectorConfig,
    DatabaseAccess,
    Deployment,
    SecretReference,
    TopicPolicy,
)
from connectors.engines.postgres.names import (
    HEARTBEAT_SCHEMA,
    publication,
    replication_slot,
    replication_user,
    signal_table,
)
from connectors.engines.postgres.preparation import heartbeat_query
from tributary.contract.engines.postgres import PostgresSource, SslMode
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName

PLUGIN = "debezium-connector-postgres"
CONNECTOR_CLASS = "io.debezium.connector.postgresql.PostgresConnector"
SLOT_OPTION = "slot.name"

SNAPSHOT_CHUNK_ROWS = 8192
"""How many rows an incremental snapshot reads with one query. Debezium holds them in memory."""

TOPIC_NAMING_STRATEGY = "io.debezium.schema.SchemaUnicodeTopicNamingStrategy"
"""Debezium's strategy, which `naming.topic_escape` repeats. Its default maps several tables to one topic."""


def render(
    lake: Lake, source: PostgresSource, deployment: Deployment, untaken: Collection[TableName] = ()
) -> ConnectorConfig:
    """Return the connector that turns the source's changes into Kafka events, without its password.

    The connector does not read the tables in `untaken`, although the source's patterns match them.
    """
    names = lake.source_names(source)
    return ConnectorConfig(
        name=names.connector,
        config={
            "connector.class": CONNECTOR_CLASS,
            "tasks.max": "1",
            **_database(source, deployment.databases[source.name]),
            "plugin.name": "pgoutput",
            SLOT_OPTION: replication_slot(lake, source),
            # A connector with a backlog finds its place in the log and then opens the slot again, often
            # before PostgreSQL has closed it. The default wait is 10 seconds, up to 6 times.
            "slot.retry.delay.ms": "1000",
            "slot.max.retries": "60",
            "publication.name": publication(lake, source),
            "publication.autocreate.mode": "disabled",
            "snapshot.mode": "initial",
            "topic.prefix": names.topic_prefix,
            "topic.naming.strategy": TOPIC_NAMING_STRATEGY,
            "table.include.list": source.patterns.debezium_regex_without(
                (table.schema, table.table) for table in untaken
            ),
            **_keys(lake, source),
            **_LOSSLESS,
            **_JSON_WITH_SCHEMAS,
            **_pace(deployment.topics),
            **_topics(source, deployment.topics),
            "heartbeat.interval.ms": "5000",
            "heartbeat.action.query": heartbeat_query(lake, source),
            **_snapshots_on_demand(lake, source),
            # By default, headers of each record hold the connector's name, task and run.
            "extended.headers.enabled": "false",
            # A logical message, from an application's own pg_logical_emit_message, is not a row.
            "message.prefix.exclude.list": ".*",
            # Otherwise MSK Connect keeps restarting a connector that uses a configuration provider.
            "config.action.reload": "none",
            "errors.log.enable": "true",
        },
    )


def access_at(
    lake: Lake, source: PostgresSource, host: str, port: int, password: SecretReference
) -> DatabaseAccess:
    """Return the access to the database at this address. Tributary's own local server has no encryption."""
    connection = source.connection
    encryption = (
        encrypted("disable") if connection is None else encrypted(connection.sslmode, connection.sslrootcert)
    )
    return DatabaseAccess(host, port, replication_user(lake, source), password, encryption)


def encrypted(sslmode: SslMode, sslrootcert: str | None = None) -> Mapping[str, str]:
    """Return the connector's options that encrypt its connections."""
    certificates = {} if sslrootcert is None else {"database.sslrootcert": sslrootcert}
    return {"database.sslmode": sslmode, **certificates}


_LOSSLESS: Mapping[str, str] = {
    "tombstones.on.delete": "true",
    # The default skips truncates.
    "skipped.operations": "none",
    # The default would stop the connector at NaN and infinities, which no decimal can hold.
    "decimal.handling.mode": "string",
    # Precision and scale of a numeric, which is sent as text.
    "column.propagate.source.type": ".*",
    "time.precision.mode": "adaptive",
    # The default counts a month as 30.4 days.
    "interval.handling.mode": "string",
    "hstore.handling.mode": "json",
    "binary.handling.mode": "bytes",
    # The default leaves columns of a type that Debezium does not know out of the event.
    "include.unknown.datatypes": "true",
    # The default writes null for a value that cannot be converted, and continues.
    "event.converting.failure.handling.mode": "fail",
    "event.processing.failure.handling.mode": "fail",
}

_JSON_WITH_SCHEMAS: Mapping[str, str] = {
    f"{part}.{option}": value
    for part in ("key.converter", "value.converter")
    for option, value in {
        "schemas.enable": "true",
        "decimal.format": "NUMERIC",
        # The default turns an explicit NULL into the column's default.
        "replace.null.with.default": "false",
    }.items()
} | {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    # __debezium.newkey and __debezium.oldkey are rows; the default would write them as Java prints them.
    "header.converter": "org.apache.kafka.connect.json.JsonConverter",
    "header.converter.schemas.enable": "false",
    "header.converter.decimal.format": "NUMERIC",
}


def _database(source: PostgresSource, access: DatabaseAccess) -> dict[str, str]:
    return {
        "database.hostname": access.host,
        "database.port": str(access.port),
        "database.user": access.user,
        "database.password": access.password.placeholder,
        "database.dbname": source.database,
        **access.options,
    }


def _keys(lake: Lake, source: PostgresSource) -> dict[str, str]:
    """Return `message.key.columns` for the tables whose key the lake file names.

    Its form is `table:column,column;…`. Debezium joins the table to each column with a dot and reads the
    result as a regular expression (io.debezium.relational.Key.CustomKeyMapper). So all other characters than
    letters and digits are escaped.
    """
    keys = [
        f"(?-i){_literally(table.schema)}\\.{_literally(table.table)}:{','.join(map(_literally, entry.key))}"
        for table, entry in lake.tables
        if table.source == source.name and entry.key is not None
    ]
    return {"message.key.columns": ";".join(keys)} if keys else {}


def _literally(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z]", lambda character: f"\\x{{{ord(character[0]):x}}}", name)


def _snapshots_on_demand(lake: Lake, source: PostgresSource) -> dict[str, str]:
    """Return how Debezium is told to read a table again, and how it tells what it has read.

    The signals are rows of a table, because only those reach Debezium at a place of the stream: all changes
    of before are in Kafka by then. Debezium would also send the signal table's own changes to a topic.
    """
    names, table = lake.source_names(source), signal_table(lake, source)
    return {
        # Otherwise, Debezium cannot read a table that it has not met yet. It would first send the table's
        # definition to a topic, and fails because that needs a name that it does not know here.
        "include.schema.changes": "false",
        "signal.data.collection": f"{HEARTBEAT_SCHEMA}.{table}",
        # Debezium deletes the rows with which it marks a chunk.
        "incremental.snapshot.watermarking.strategy": "insert_delete",
        "incremental.snapshot.chunk.size": str(SNAPSHOT_CHUNK_ROWS),
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": names.notification_topic,
        "predicates": "isSignal",
        "predicates.isSignal.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.isSignal.pattern": re.escape(names.topic_name(HEARTBEAT_SCHEMA, table)),
        "transforms": "dropSignals",
        "transforms.dropSignals.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.dropSignals.predicate": "isSignal",
    }


def _pace(topics: TopicPolicy) -> dict[str, str]:
    return {
        # Changes read from the database wait this long. At 25 ms they reach Kafka 0.07 s sooner, but the
        # connector and Kafka take more processor time.
        "poll.interval.ms": "100",
        "max.batch.size": "8192",
        "max.queue.size": "32768",
        "max.queue.size.in.bytes": str(4 * topics.max_event_bytes),
        # All events of a table hold the same inline schema. Compression nearly removes it.
        "producer.override.compression.type": "zstd",
        "producer.override.batch.size": "262144",
        "producer.override.linger.ms": "10",
        "producer.override.max.request.size": str(topics.max_event_bytes),
    }


def _topics(source: PostgresSource, topics: TopicPolicy) -> dict[str, str]:
    """Return how Debezium creates the topic of a table that it meets for the first time.

    A replication factor of -1 is the broker's default.
    """
    made = {"replication.factor": "-1", "partitions": str(source.partitions), **topics.config}
    return {f"topic.creation.default.{option}": value for option, value in made.items()}
