"""All steps in plain PySpark, as an implementation of `spark_app.steps.steps.Steps`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, SparkSession

from spark_app.plain.bronze import offsets_in_metadata as offsets_in_metadata
from spark_app.plain.bronze import read_bronze_events as read_bronze_events
from spark_app.plain.bronze import topics_in_metadata as topics_in_metadata
from spark_app.plain.changes import AggregatingCounter
from spark_app.plain.changes import partial_fold as partial_fold
from spark_app.plain.inflated import inflated as inflated
from spark_app.plain.kafka_events import read_kafka_events as read_kafka_events
from spark_app.plain.payloads import canonical as canonical
from spark_app.plain.payloads import read_payload as read_payload
from spark_app.plain.payloads import read_shape as read_shape
from spark_app.plain.payloads import schema_and_payload as schema_and_payload
from spark_app.plain.projections import Selects
from spark_app.plain.usual_payloads import open_payload as open_payload
from spark_app.plain.usual_payloads import open_shape as open_shape
from spark_app.steps.found_changes import Applied, ChangeCounter

name: Final = "plain"
projections = Selects.of


def limited_avro(avro: Column) -> Column:
    """Return the bytes. `run/session.py` has set the limits in the driver's JVM."""
    return avro


def change_counter(applied: Mapping[int, Applied]) -> ChangeCounter:
    return AggregatingCounter(applied)


def buckets(_spark: SparkSession, _hash_field: str, _buckets: int, _tasks: int, /) -> None:
    """Return None: Spark and Hudi shuffle the rows as they need them."""


def row_upsert(_spark: SparkSession, _table: str, /) -> None:
    """Return None: Hudi's own data source writes the rows."""
