"""All steps in Java, as an implementation of `spark_app.steps.steps.Steps`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spark_app.jvm.bronze_events import read_bronze_events as read_bronze_events
from spark_app.jvm.bronze_metadata import offsets_in_metadata as offsets_in_metadata
from spark_app.jvm.bronze_metadata import topics_in_metadata as topics_in_metadata
from spark_app.jvm.buckets import JavaBuckets
from spark_app.jvm.change_survey import JavaChangeCounter
from spark_app.jvm.inflated import inflated as inflated
from spark_app.jvm.kafka_events import read_kafka_events as read_kafka_events
from spark_app.jvm.limited_avro import limited_avro as limited_avro
from spark_app.jvm.partial_fold import partial_fold as partial_fold
from spark_app.jvm.payload_reader import open_payload as open_payload
from spark_app.jvm.payload_reader import open_shape as open_shape
from spark_app.jvm.payload_reader import read_payload as read_payload
from spark_app.jvm.payload_reader import read_shape as read_shape
from spark_app.jvm.projections import JavaProjections
from spark_app.jvm.row_upsert import JavaRowUpsert
from spark_app.jvm.schema_and_payload import canonical as canonical
from spark_app.jvm.schema_and_payload import schema_and_payload as schema_and_payload
from spark_app.steps.found_changes import Applied, ChangeCounter

name: Final = "accelerated"
projections = JavaProjections.of
buckets = JavaBuckets.of
row_upsert = JavaRowUpsert.of


def change_counter(applied: Mapping[int, Applied]) -> ChangeCounter:
    return JavaChangeCounter.beside(applied)
