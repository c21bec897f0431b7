"""Decode keys and values of events that a test has written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from spark_app.columns.table_columns import merge
from spark_app.positions.postgres import PostgresLog
from spark_app.wire import decode
from spark_app.wire.schema_version import columns_of
from spark_app.wire.schema_versions import SchemaVersions
from tests.spark_app.typed_frames import event_frame
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events


def decoded(
    spark: SparkSession, topic: str, sent: Sequence[tuple[bytes | None, bytes]], policy: TablePolicy
) -> tuple[DataFrame, DataFrame]:
    """Return the events with these keys and values, in the order of their offsets, and their changes."""
    rows = [
        (topic, 0, offset, None, key and bytearray(key), bytearray(value), None, None)
        for offset, (key, value) in enumerate(sent)
    ]
    events = event_frame(spark, rows)
    versions = SchemaVersions(policy, Events(), PostgresLog())
    versions.learn(events)
    columns = merge(None, [columns_of(version) for version in versions.known])
    assert columns is not None
    return events, decode.decode(events, versions.known, columns, PostgresLog())
