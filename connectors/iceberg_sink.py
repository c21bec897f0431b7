"""The configuration of a lake's Iceberg sink, which appends the unchanged bytes of every event to bronze."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.deployment import ConnectorConfig, Deployment
from tributary.contract.lake import Lake


def render(lake: Lake, deployment: Deployment) -> ConnectorConfig:
    """Return the connector that appends the events of all the lake's tables to one Iceberg table.

    The table has one row for each record, including tombstones. Its columns are value, key, moved_to and
    moved_from (binary), k_topic, k_partition, k_offset and k_timestamp (ms). The first change of a primary
    key adds moved_to and moved_from.
    """
    names = lake.names
    return ConnectorConfig(
        name=names.bronze_connector,
        config={
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "tasks.max": "1",
            "topics.regex": lake.table_topics_regex,
            **_RAW_BYTES,
            **_EVENT_AS_ROW,
            "iceberg.tables": names.bronze_table,
            "iceberg.tables.default-partition-by": "k_topic",
            **_TABLE,
            # Unique to the lake, because two sinks that share one of these would commit each other's files.
            "iceberg.control.topic": names.bronze_control_topic,
            "iceberg.control.group-id-prefix": names.bronze_control_group_prefix,
            "iceberg.coordinator.transactional.prefix": names.bronze_transactional_prefix,
            # Only a rebuild reads bronze, so it can lag. Each commit costs files, requests and a snapshot.
            "iceberg.control.commit.interval-ms": "10000",
            "iceberg.catalog": names.bronze_catalog,
            **_with_prefix("iceberg.catalog.", _catalog(deployment)),
            **_with_prefix("iceberg.kafka.", deployment.kafka.client_config),
            "consumer.override.max.poll.records": "5000",
            # The consumer finds a new topic when it refreshes its metadata, every 5 minutes by default.
            "consumer.override.metadata.max.age.ms": "5000",
            "consumer.override.auto.offset.reset": "earliest",
        },
    )


_RAW_BYTES: Mapping[str, str] = {
    f"{part}.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"
    for part in ("key", "value", "header")
}

_CONNECT = "org.apache.kafka.connect.transforms"
_DEBEZIUM = "io.debezium.transforms.HeaderToValue"

# HeaderToValue with several headers fails on a record without one of them. So each header has its own
# transform with a predicate.
_EVENT_AS_ROW: Mapping[str, str] = {
    "transforms": "hoistKey,keyToHeader,hoistValue,keyToValue,movedTo,movedFrom,meta",
    "transforms.hoistKey.type": f"{_CONNECT}.HoistField$Key",
    "transforms.hoistKey.field": "key",
    "transforms.keyToHeader.type": f"{_CONNECT}.HeaderFrom$Key",
    "transforms.keyToHeader.fields": "key",
    "transforms.keyToHeader.headers": "event.key",
    "transforms.keyToHeader.operation": "copy",
    "transforms.hoistValue.type": f"{_CONNECT}.HoistField$Value",
    "transforms.hoistValue.field": "value",
    "transforms.keyToValue.type": _DEBEZIUM,
    "transforms.keyToValue.headers": "event.key",
    "transforms.keyToValue.fields": "key",
    "transforms.keyToValue.operation": "copy",
    "transforms.movedTo.type": _DEBEZIUM,
    "transforms.movedTo.headers": "__debezium.newkey",
    "transforms.movedTo.fields": "moved_to",
    "transforms.movedTo.operation": "copy",
    "transforms.movedTo.predicate": "hasNewKey",
    "transforms.movedFrom.type": _DEBEZIUM,
    "transforms.movedFrom.headers": "__debezium.oldkey",
    "transforms.movedFrom.fields": "moved_from",
    "transforms.movedFrom.operation": "copy",
    "transforms.movedFrom.predicate": "hasOldKey",
    "predicates": "hasNewKey,hasOldKey",
    "predicates.hasNewKey.type": f"{_CONNECT}.predicates.HasHeaderKey",
    "predicates.hasNewKey.name": "__debezium.newkey",
    "predicates.hasOldKey.type": f"{_CONNECT}.predicates.HasHeaderKey",
    "predicates.hasOldKey.name": "__debezium.oldkey",
    "transforms.meta.type": "org.apache.iceberg.connect.transforms.KafkaMetadataTransform",
    "transforms.meta.nested": "false",
    "transforms.meta.field_name": "k",
}

_TABLE: Mapping[str, str] = {
    "iceberg.tables.auto-create-enabled": "true",
    "iceberg.tables.evolve-schema-enabled": "true",
    # Otherwise every commit, a few seconds apart, would leave a metadata file behind.
    "iceberg.tables.auto-create-props.write.metadata.delete-after-commit.enabled": "true",
    "iceberg.tables.auto-create-props.write.metadata.previous-versions-max": "20",
    "iceberg.tables.auto-create-props.write.parquet.compression-codec": "zstd",
    # The sink has a file open for each table that gets events, and a buffer of this size for each file
    # (parquet-hadoop, CodecFactory.HeapBytesCompressor). The default of 1 MiB fills the heap at 500 tables.
    "iceberg.tables.write-props.write.parquet.page-size-bytes": "65536",
}


def _catalog(deployment: Deployment) -> dict[str, str]:
    endpoint = {} if deployment.s3_endpoint is None else deployment.s3_endpoint.config
    return {
        **deployment.catalog.config,
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "warehouse": f"s3://{deployment.bronze_bucket}",
        **endpoint,
    }


def _with_prefix(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}{option}": value for option, value in config.items()}
