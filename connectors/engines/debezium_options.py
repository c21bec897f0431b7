"""The options that Debezium's connectors share, with the values that lose no change and no value."""

from __future__ import annotations

import re
from collections.abc import Mapping

from connectors.avro_converter import avro_options
from connectors.deployment import DatabaseAccess, Deployment, Kafka, SecretReference, TopicPolicy
from tributary.contract.column_names import is_column_name
from tributary.contract.lake import Lake
from tributary.contract.naming import topic_escape
from tributary.contract.patterns import OWN_SCHEMA
from tributary.contract.source import Source
from tributary.contract.table_name import TableName

SNAPSHOT_CHUNK_ROWS = 8192
"""How many rows an incremental snapshot reads with one query. Debezium holds them in memory."""

READ_TABLES = "table.include.list"
"""The option with the expression for the tables that a connector reads."""

BY_SCHEMA = "io.debezium.schema.SchemaUnicodeTopicNamingStrategy"
BY_DATABASE = "io.debezium.schema.DefaultUnicodeTopicNamingStrategy"
"""Debezium's strategies for names of topics, which `naming.topic_escape` repeats: for engines with schemas in
a database, and for those without. Its defaults map several tables to one topic."""

MASKED_COLUMNS = "io.tributary.connect.MaskedColumns"
"""Our own transform, which masks and hashes columns."""

EVENT_ROUTER = "io.debezium.transforms.outbox.EventRouter"
"""Debezium's transform that sends the rows of an outbox to a topic for each type of event."""

KEPT_NULLS = "io.tributary.connect.KeptNulls"
"""Our own transform, with which no Avro converter writes a column's default where a row has NULL."""

_MASKING = "maskedColumns"

_OWN_TOPICS = "own"
"""The group of topics that Connect creates for the connector itself."""
_IS_SIGNAL, _IS_OUTBOX, _IS_ROUTED = "isSignal", "isOutbox", "isRouted"
"""Predicates of transforms."""

_LOSSLESS: Mapping[str, str] = {
    "tombstones.on.delete": "true",
    # The default skips truncates.
    "skipped.operations": "none",
    # Precision and scale of a number, which is sent as text.
    "column.propagate.source.type": ".*",
    # The default would stop the connector at a NaN or an infinity, which no decimal can hold.
    "decimal.handling.mode": "string",
    "binary.handling.mode": "bytes",
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
}

_JSON_HEADERS: Mapping[str, str] = {
    # __debezium.newkey and __debezium.oldkey are rows; the default would write them as Java prints them.
    "header.converter": "org.apache.kafka.connect.json.JsonConverter",
    "header.converter.schemas.enable": "false",
    "header.converter.decimal.format": "NUMERIC",
}


def options_of_all_engines(
    lake: Lake,
    source: Source,
    deployment: Deployment,
    signal_table: str,
    topic_names: str,
    transforms: Mapping[str, str],
) -> dict[str, str]:
    """Return the options that every source's connector has.

    topic_names   the strategy that names the topics: BY_SCHEMA or BY_DATABASE
    signal_table  asks Debezium to read tables again, in the schema `OWN_SCHEMA`
    transforms    options of the engine's own transforms, which see a record before all others. One of them
                  lets Debezium resume without a gap from the offset of any record (ResumableOffsets.java).
    """
    return {
        "tasks.max": "1",
        "snapshot.mode": "initial",
        "topic.prefix": lake.source_names(source).topic_prefix,
        "topic.naming.strategy": topic_names,
        **_keys(lake, source),
        **_LOSSLESS,
        **(_JSON_WITH_SCHEMAS if source.format == "json" else avro_options(deployment)),
        **_JSON_HEADERS,
        **_pace(deployment.topics),
        **_topics(lake, source, deployment.topics),
        "heartbeat.interval.ms": "5000",
        **_snapshots_on_demand(lake, source, signal_table),
        **_left_out_columns(lake, source),
        **_transforms(lake, source, deployment.hash_salt, transforms),
        **_predicates(lake, source, signal_table),
        # By default, headers of each record hold the connector's name, task and run.
        "extended.headers.enabled": "false",
        # Otherwise MSK Connect keeps restarting a connector that uses a configuration provider.
        "config.action.reload": "none",
        "errors.log.enable": "true",
    }


def login(access: DatabaseAccess) -> dict[str, str]:
    """Return how the connector logs in, without its password."""
    return {
        "database.hostname": access.host,
        "database.port": str(access.port),
        "database.user": access.user,
        "database.password": access.password.placeholder,
        **access.options,
    }


def schema_history(lake: Lake, source: Source, kafka: Kafka) -> dict[str, str]:
    """Return where Debezium keeps the tables' definitions, for an engine whose log has none."""
    clients = {
        f"schema.history.internal.{client}.{option}": value
        for client in ("producer", "consumer")
        for option, value in kafka.client_config.items()
        if option != "bootstrap.servers"
    }
    return {
        "schema.history.internal.kafka.bootstrap.servers": kafka.client_config["bootstrap.servers"],
        "schema.history.internal.kafka.topic": lake.source_names(source).history_topic,
        # The default is three seconds, which a busy broker can take.
        "schema.history.internal.kafka.query.timeout.ms": "30000",
        **clients,
    }


def _keys(lake: Lake, source: Source) -> dict[str, str]:
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


def _left_out_columns(lake: Lake, source: Source) -> dict[str, str]:
    """Return `column.exclude.list`: regular expressions of `schema.table.column`, separated by commas.

    Debezium does not even read these columns in a snapshot."""
    left_out = [
        f"(?-i){_literally(table.schema)}\\.{_literally(table.table)}\\.{_literally(column)}"
        for table, policy in lake.tables
        if table.source == source.name
        for column in sorted(policy.hidden.left_out)
    ]
    return {"column.exclude.list": ",".join(left_out)} if left_out else {}


def _transforms(
    lake: Lake, source: Source, salt: SecretReference | None, of_engine: Mapping[str, str]
) -> dict[str, str]:
    """Return the transforms, in the order in which a record passes through them."""
    of_all = {
        # Connect stores the offsets of dropped records, too.
        "dropSignals.type": "org.apache.kafka.connect.transforms.Filter",
        "dropSignals.predicate": _IS_SIGNAL,
    }
    of_avro = {} if source.format == "json" else {"keptNulls.type": KEPT_NULLS}
    options = {**of_engine, **of_all, **_masking(lake, source, salt), **_routing(lake, source), **of_avro}
    names = dict.fromkeys(option.partition(".")[0] for option in options)
    return {
        "transforms": ",".join(names),
        **{f"transforms.{option}": value for option, value in options.items()},
    }


def _routing(lake: Lake, source: Source) -> dict[str, str]:
    """Return the transforms that turn a row of the outbox into an unwrapped row in the topic of its type."""
    if (outbox := source.routed_events) is None:
        return {}
    topics = f"{lake.source_names(source).table_topics}.{topic_escape(outbox.lake_schema)}"
    return {
        "routeEvents.type": EVENT_ROUTER,
        "routeEvents.predicate": _IS_OUTBOX,
        "routeEvents.table.field.event.id": outbox.id,
        "routeEvents.table.field.event.key": outbox.key,
        "routeEvents.table.field.event.payload": outbox.payload,
        # With a field beside the payload, the value is a row. Otherwise it would be the payload alone.
        "routeEvents.table.fields.additional.placement": ",".join(
            f"{column}:envelope" for column in outbox.lake_columns
        ),
        "routeEvents.route.by.field": outbox.type,
        "routeEvents.route.topic.replacement": f"{topics}.${{routedByValue}}",
        # An update of an outbox is a mistake of its application. It must not stop the other tables.
        "routeEvents.table.op.invalid.behavior": "error",
        # The router drops deletes, so each row that it sends was inserted.
        "tellOperation.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "tellOperation.predicate": _IS_ROUTED,
        "tellOperation.static.field": "__op",
        "tellOperation.static.value": "c",
    }


def _masking(lake: Lake, source: Source, salt: SecretReference | None) -> dict[str, str]:
    """Return the options of the transform that masks and hashes columns. It knows a table by its topic."""
    names, options = lake.source_names(source), dict[str, str]()
    for table, policy in lake.tables:
        if table.source != source.name:
            continue
        topic = names.topic(table.schema, table.table)
        for option, columns in {
            "mask": policy.mask,
            "hash": policy.hash,
            # The lake file cannot see all keys. Names with other characters are no columns of a lake's key.
            "key": tuple(filter(is_column_name, sorted(policy.hidden.left_out))),
        }.items():
            if columns:
                options[f"{_MASKING}.{option}.{topic}"] = ",".join(columns)
    if lake.hashes_columns_of(source):
        assert salt is not None, "a deployment of a lake that hashes columns has a salt"
        options[f"{_MASKING}.salt.password"] = salt.placeholder
    return {f"{_MASKING}.type": MASKED_COLUMNS, **options} if options else {}


def _literally(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z]", lambda character: f"\\x{{{ord(character[0]):x}}}", name)


def _snapshots_on_demand(lake: Lake, source: Source, signal_table: str) -> dict[str, str]:
    """Return the options for requests to read a table again, and for Debezium's reports of what it has read.

    The signals are rows of a table, because only those reach Debezium at a place of the stream: all earlier
    changes are in Kafka by then. Debezium would also send the signal table's own changes to a topic.
    """
    names = lake.source_names(source)
    return {
        # Otherwise, Debezium cannot read a table that it has not met yet. It would first send the table's
        # definition to a topic, and fails because that needs a name that it does not know here.
        "include.schema.changes": "false",
        "signal.data.collection": f"{OWN_SCHEMA}.{signal_table}",
        # Debezium deletes the rows with which it marks a chunk.
        "incremental.snapshot.watermarking.strategy": "insert_delete",
        "incremental.snapshot.chunk.size": str(SNAPSHOT_CHUNK_ROWS),
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": names.notification_topic,
    }


def _predicates(lake: Lake, source: Source, signal_table: str) -> dict[str, str]:
    """Return the predicates of the transforms, by which they know the topics that they are for."""
    names = lake.source_names(source)
    patterns = {_IS_SIGNAL: re.escape(names.topic_name(OWN_SCHEMA, signal_table))}
    if (outbox := source.routed_events) is not None:
        patterns[_IS_OUTBOX] = re.escape(names.topic_name(*outbox.schema_and_table))
        routed = f"{names.table_topics}.{topic_escape(outbox.lake_schema)}."
        patterns[_IS_ROUTED] = f"{re.escape(routed)}.*"
    return {
        "predicates": ",".join(patterns),
        **{
            f"predicates.{name}.{option}": value
            for name, pattern in patterns.items()
            for option, value in (
                ("type", "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"),
                ("pattern", pattern),
            )
        },
    }


def reads(config: Mapping[str, str], table: TableName) -> bool:
    """Return whether a connector with this config reads the table."""
    return re.fullmatch(config[READ_TABLES], f"{table.schema}.{table.table}") is not None


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


def _topics(lake: Lake, source: Source, topics: TopicPolicy) -> dict[str, str]:
    """Return how Kafka Connect creates a topic when the first record for it comes.

    A table's topic has the source's number of partitions. A topic of the connector itself has one, since
    its records are only in order within a partition. A replication factor of -1 is the broker's default.
    """
    names = lake.source_names(source)
    own = "|".join(map(re.escape, (names.heartbeat_topic, names.notification_topic)))
    made = {"replication.factor": "-1", **topics.config}
    groups = {
        "default": {**made, "partitions": str(source.partitions)},
        _OWN_TOPICS: {**made, "partitions": "1", "include": own},
    }
    return {
        "topic.creation.groups": _OWN_TOPICS,
        **{
            f"topic.creation.{group}.{option}": value
            for group, options in groups.items()
            for option, value in options.items()
        },
    }
