"""Moves without their marks: changes of a primary key whose headers were lost, or cannot be relied on."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_app.positions.source_log import is_known

DELETE, CREATE = "d", "c"


def without_moves(changes: DataFrame) -> DataFrame:
    """Return the changes (`decode.change_type`) with each changed key as a plain delete and a plain create.

    Where other changes share the position of a move, the position cannot tell whether the move was applied
    before. Both halves are then applied again, like any other change at the last applied position."""
    nothing = {name: F.lit(None).cast("string").alias(name) for name in ("moved_to", "moved_from")}
    return changes.select(*[nothing.get(name, F.col(name)) for name in changes.columns])


def with_paired_moves(changes: DataFrame) -> DataFrame:
    """Return the changes (`decode.change_type`) with `moved_to` and `moved_from` filled in for pairs.

    A delete and a create that share a position are one update in the log. Any other two changes have
    different positions. Both halves have to be among the changes. Changes without a position stay as they
    are."""
    same = Window.partitionBy("partition", "position")
    is_good = F.col("reason").isNull() & is_known(F.col("position"))
    old = F.when(is_good & (F.col("op") == DELETE), F.col("key"))
    new = F.when(is_good & (F.col("op") == CREATE), F.col("key"))
    ends = changes.select(
        "*",
        # Debezium can send the pair twice, but never two different pairs at one position.
        *(F.min(old).over(same).alias("old"), F.max(old).over(same).alias("other_old")),
        *(F.min(new).over(same).alias("new"), F.max(new).over(same).alias("other_new")),
    )
    is_pair = (F.col("old") == F.col("other_old")) & (F.col("new") == F.col("other_new"))
    is_move = is_pair & (F.col("old") != F.col("new"))
    paired = {
        "moved_to": F.when(is_move & (F.col("op") == DELETE), F.col("new")),
        "moved_from": F.when(is_move & (F.col("op") == CREATE), F.col("old")),
    }
    return ends.select(
        *[
            F.coalesce(F.col(name), paired[name]).alias(name) if name in paired else F.col(name)
            for name in changes.columns
        ]
    )
