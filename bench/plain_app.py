"""The baseline: the streaming app of tutorials on CDC with Spark, configured as Hudi's tuning guide advises.

In foreachBatch: Kafka → from_json → last change of each key by a window → Hudi upsert. The app trusts every
event. It handles no unreadable or repeated events, truncates, key changes or unchanged TOAST values.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from bench.events import KEY, WIRE_ROW, lake_columns

ENVELOPE = (
    f"before struct<{WIRE_ROW.replace(' ', ':').replace(',:', ',')}>, "
    f"after struct<{WIRE_ROW.replace(' ', ':').replace(',:', ',')}>, "
    "source struct<ts_ms:bigint,lsn:bigint>, op string, ts_ms bigint"
)
"""The envelope's schema for `from_json`."""

_HUDI = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.precombine.field": "_offset",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.hash.field": KEY,
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.compact.inline": "false",
}


@dataclass(frozen=True)
class PlainApp:
    """The app for one topic. `path` is the Hudi table's, `checkpoint` the stream's checkpoint folder."""

    spark: SparkSession
    bootstrap_servers: str
    topic: str
    path: str
    checkpoint: str
    events_per_batch: int
    buckets: int

    def catch_up(self) -> None:
        """Apply all events of the topic that are not in the checkpoint yet."""
        events = (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("subscribe", self.topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self.events_per_batch)
            # Otherwise a topic with one partition would use only one core.
            .option("minPartitions", self.spark.sparkContext.defaultParallelism)
            .load()
        )
        query = (
            events.writeStream.foreachBatch(lambda batch, _: self.write(last_of_each_key(changes(batch))))
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def write(self, rows: DataFrame) -> None:
        options = {**_HUDI, "hoodie.bucket.index.num.buckets": str(self.buckets)}
        rows.write.format("hudi").options(**options).mode("append").save(self.path)


def changes(events: DataFrame) -> DataFrame:
    parsed = events.where(F.col("value").isNotNull()).select(
        "offset", F.from_json(F.col("value").cast("string"), ENVELOPE).alias("event")
    )
    is_delete = F.col("event.op") == "d"
    row = F.when(is_delete, F.col("event.before")).otherwise(F.col("event.after"))
    return (
        parsed.select("offset", is_delete.alias("_hoodie_is_deleted"), row.alias("row"))
        .select("offset", "_hoodie_is_deleted", "row.*")
        .select(*columns())
    )


def columns() -> list[Column]:
    """Return the table's columns, built from `offset`, `_hoodie_is_deleted` and the row as on the wire."""
    return [F.col("offset").alias("_offset"), F.col("_hoodie_is_deleted"), *lake_columns()]


def last_of_each_key(changed: DataFrame) -> DataFrame:
    latest_first = Window.partitionBy(KEY).orderBy(F.col("_offset").desc())
    ranked = changed.withColumn("_rank", F.row_number().over(latest_first))
    return ranked.where(F.col("_rank") == 1).drop("_rank")
