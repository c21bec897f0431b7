"""Survey the changes of a batch with an aggregate, and take each change as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from spark_app.steps.found_changes import Applied, Found, FoundSnapshot, FoundTruncate

_SHARES = 20
_ACCURACY = 10_000
_CREATE, _DELETE, _READ, _TRUNCATE = "c", "d", "r", "t"
_UNKNOWN_SCHEMA = "unknown_schema"
_INCREMENTAL = "incremental"
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class AggregatingCounter:
    """Counts changes with a query of their own (`spark_app.steps.found_changes.ChangeCounter`)."""

    applied: Mapping[int, Applied]

    def counted(self, changes: DataFrame) -> DataFrame:
        return changes

    def found(self, held: DataFrame) -> Sequence[Found]:
        """Return a finding for each partition and snapshot. One Spark job, two if there is a snapshot."""
        rows = held.groupBy("partition", _snapshot().alias("snapshot")).agg(*self._facts()).collect()
        found = [_found(row) for row in rows]
        since: dict[int, int] = {}
        for each in found:
            for snapshot in each.snapshots:
                since[each.partition] = max(snapshot.offset, since.get(each.partition, 0))
        return _with_last_since(found, held, since) if since else found

    def found_in(self, changes: DataFrame) -> Sequence[Found]:
        return self.found(changes)

    def _facts(self) -> Sequence[Column]:
        is_good, is_read = F.col("reason").isNull(), F.col("op") == _READ
        is_streamed = is_good & ~is_read
        time_us, position = F.unix_micros("source_ts"), F.col("position")
        truncate = F.struct("offset", "position", "log_position", time_us.alias("source_us"))
        shares = [share / _SHARES for share in range(_SHARES + 1)]
        return (
            F.count("*").alias("changes"),
            F.count_if(~is_good).alias("bad"),
            F.count_if(F.col("reason") == _UNKNOWN_SCHEMA).alias("of_unknown_schema"),
            F.count_if(is_good & F.col("op").isin(_CREATE, _READ)).alias("inserted"),
            F.count_if(is_good & (F.col("op") == _DELETE)).alias("deletes"),
            F.bool_or(F.size("unavailable") > 0).alias("has_unavailable"),
            F.bool_or(F.col("moved_to").isNotNull() | F.col("moved_from").isNotNull()).alias("has_moved"),
            F.min(F.when(is_good, F.col("log_position"))).alias("first_log_position"),
            F.min(F.when(is_streamed, position)).alias("first_position"),
            F.min(F.when(is_streamed & self._is_rewound(time_us), F.col("offset"))).alias("first_rewound"),
            F.min("offset").alias("first_offset"),
            F.collect_list(F.when(is_streamed & (F.col("op") == _TRUNCATE), truncate)).alias("truncates"),
            F.max(F.when(is_streamed, position)).alias("highest_position"),
            F.max(F.when(is_streamed, time_us)).alias("latest_time"),
            F.max(F.when(is_streamed, F.col("offset"))).alias("last_offset"),
            F.count_if(is_streamed & time_us.isNotNull()).alias("timed"),
            F.percentile_approx(F.when(is_streamed, time_us), shares, _ACCURACY).alias("times"),
        )

    def _is_rewound(self, time_us: Column) -> Column:
        is_rewound = F.lit(False)
        for partition, applied in self.applied.items():
            is_before = F.col("position") < F.lit(applied.position)
            is_later = time_us > applied.source_us
            is_rewound |= (F.col("partition") == partition) & is_before & is_later
        return F.coalesce(is_rewound, F.lit(False))


def partial_fold(changes: DataFrame) -> DataFrame:
    """Return all changes: the fold of the whole batch needs no help."""
    return changes


def _snapshot() -> Column:
    """Return what all reads of a snapshot have in common; null for any other change."""
    is_online = F.coalesce(F.col("snapshot") == _INCREMENTAL, F.lit(False))
    is_snapshot_read = (F.col("op") == _READ) & ~is_online
    began_us = F.coalesce(F.unix_micros("source_ts"), F.lit(0))
    return F.when(
        F.col("reason").isNull() & is_snapshot_read,
        F.struct(began_us.alias("source_us"), "log_position"),
    )


def _found(row: Row) -> Found:
    snapshot = row["snapshot"]
    return Found(
        partition=row["partition"],
        changes=row["changes"],
        bad=row["bad"],
        of_unknown_schema=row["of_unknown_schema"],
        inserted=row["inserted"],
        deletes=row["deletes"],
        has_unavailable=bool(row["has_unavailable"]),
        has_moved=bool(row["has_moved"]),
        first_log_position=_bytes(row["first_log_position"]),
        first_position=_bytes(row["first_position"]),
        first_rewound=row["first_rewound"],
        snapshots=()
        if snapshot is None
        else (FoundSnapshot(snapshot["source_us"], bytes(snapshot["log_position"]), row["first_offset"]),),
        truncates=tuple(
            FoundTruncate(t["offset"], bytes(t["position"]), bytes(t["log_position"]), t["source_us"])
            for t in row["truncates"]
        ),
        highest_positions=_at(row["last_offset"], _bytes(row["highest_position"])),
        latest_times=_at(row["last_offset"], row["latest_time"]),
        timed=row["timed"],
        times=tuple(row["times"] or ()),
    )


def _with_last_since(found: Sequence[Found], held: DataFrame, since: Mapping[int, int]) -> Sequence[Found]:
    """Return the findings with the last position and time since the last snapshot of each partition."""
    is_since = F.lit(False)
    for partition, offset in since.items():
        is_since |= (F.col("partition") == partition) & (F.col("offset") >= offset)
    is_streamed = F.col("reason").isNull() & (F.col("op") != _READ)
    rows = (
        held.where(is_since & is_streamed)
        .groupBy("partition")
        .agg(F.max("position").alias("position"), F.max(F.unix_micros("source_ts")).alias("time_us"))
        .collect()
    )
    last = {row["partition"]: row for row in rows}
    changed = []
    for each in found:
        if each.partition in since and each.highest_positions:
            row, offset = last.get(each.partition), since[each.partition]
            position = None if row is None else _bytes(row["position"])
            time_us = None if row is None else row["time_us"]
            changed.append(
                replace(each, highest_positions=_at(offset, position), latest_times=_at(offset, time_us))
            )
        else:
            changed.append(each)
    return changed


def _at(offset: int | None, value: _Value | None) -> Mapping[int, _Value]:
    return {} if offset is None or value is None else {offset: value}


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
