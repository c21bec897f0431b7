"""Changes of a primary key that a batch holds only half of."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_app.ledger.ledger import Ledger
from spark_app.merge.by_partition import is_at, is_before
from spark_app.positions.source_log import is_known


def first_halved_moves(changes: DataFrame, ledger: Ledger, *, is_partitioned: bool) -> Mapping[int, int]:
    """Return by partition the offset of the first half of a key change whose other half is missing.

    The halves are a delete and a create at the same position. In a single partition Debezium sends the delete
    right before the create. In a partitioned topic, either half can come first. Halves that were applied
    before do not count. One Spark job."""
    is_away, is_arrival = F.col("moved_to").isNotNull(), F.col("moved_from").isNotNull()
    same_position = Window.partitionBy("position")
    has_position = F.col("reason").isNull() | is_known(F.col("position"))
    is_applied = is_before(ledger.applied) | is_at(ledger.applied)
    # A half that cannot be decoded has come as well. Waiting for it would never end.
    halves = changes.where((is_away | is_arrival) & has_position & ~is_applied).select(
        "partition",
        "offset",
        is_away.alias("is_away"),
        F.max(is_away).over(same_position).alias("has_away"),
        F.max(is_arrival).over(same_position).alias("has_arrival"),
    )
    is_halved = ~F.col("has_arrival")
    if is_partitioned:
        is_halved = is_halved | ~F.col("has_away")
    halved = halves.where(is_halved).groupBy("partition").agg(F.min("offset").alias("offset"))
    return {row["partition"]: row["offset"] for row in halved.collect()}
