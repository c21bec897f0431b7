"""Decoded changes of a few keys, in any order in which a topic and its reading tasks can deliver them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType

from spark_app.columns.table_columns import TableColumns
from spark_app.wire.decode import change_type
from tests.spark_app.typed_frames import tasks_frame

COLUMNS = TableColumns((("id", StringType()), ("name", LongType()), ("note", LongType())), key=("id",))
TYPE = change_type(COLUMNS)
TASKS = 2
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Change:
    """A change.

    `number` is its place among all sent changes. `source_s` counts seconds from an arbitrary start. `commit`
    numbers the last commit before its transaction, and `logged` is its place in the log."""

    op: str
    key: str
    task: int
    partition: int
    commit: int
    logged: int
    source_s: int | None
    snapshot: str | None = None
    lacks_note: bool = False
    moved_to: str | None = None
    moved_from: str | None = None
    reason: str | None = None
    offset: int = 0
    number: int = 0

    @property
    def is_streamed(self) -> bool:
        return self.reason is None and self.op != "r"

    @property
    def is_snapshot_read(self) -> bool:
        return self.reason is None and self.op == "r" and self.snapshot != "incremental"

    @property
    def position(self) -> bytes:
        return bytes((self.commit, self.logged))

    @property
    def log_position(self) -> bytes:
        return bytes((self.logged,))

    @property
    def source_us(self) -> int | None:
        if self.source_s is None:
            return None
        return round((_BEGIN.timestamp() + self.source_s) * 1_000_000)

    def as_row(self) -> tuple[object, ...]:
        source_ts = None if self.source_s is None else _BEGIN + timedelta(seconds=self.source_s)
        number = None if self.op in ("t", "d") else self.number
        values = {
            "topic": "topic",
            "partition": self.partition,
            "offset": self.offset,
            "op": self.op,
            "key": None if self.op == "t" else self.key,
            "moved_to": self.moved_to,
            "moved_from": self.moved_from,
            "source_ts": source_ts,
            "position": bytearray(self.position),
            "log_position": bytearray(self.log_position),
            "snapshot": self.snapshot,
            "row": (self.key, number, None if self.lacks_note else number),
            "unavailable": ["note"] if self.lacks_note else [],
            "reason": self.reason,
        }
        return tuple(values.get(name) for name in TYPE.fieldNames())


@st.composite
def sent_changes(draw: st.DrawFn, least: int = 0, most: int = 40) -> list[Change]:
    """Return changes whose positions and times mostly rise, but also fall: no order is taken for granted."""
    offsets: Counter[int] = Counter()
    changes: list[Change] = []
    commit, logged = 5, 5
    for number in range(draw(st.integers(least, most))):
        op = draw(st.sampled_from("ccuuuuurrrdt"))
        commit = max(0, commit + draw(_STEPS))
        logged = max(0, logged + draw(_STEPS))
        change = Change(
            op=op,
            key=draw(st.sampled_from("abc")),
            task=draw(st.integers(0, TASKS - 1)),
            partition=draw(st.sampled_from((0, 0, 0, 1))),
            commit=commit,
            logged=logged,
            source_s=draw(st.none() | st.integers(0, 3)),
            snapshot=draw(st.sampled_from((None, "true", "last", "incremental"))) if op == "r" else None,
            lacks_note=op == "u" and draw(st.booleans()),
            reason=draw(st.sampled_from((None,) * 8 + ("mismatch", "unknown_schema"))),
            number=number,
        )
        # Leave gaps: some records of a topic are no changes.
        offsets[change.partition] += draw(st.integers(1, 2))
        changes.append(replace(change, offset=offsets[change.partition]))
    return changes


_STEPS = st.sampled_from((0, 0, 0, 1, 1, -1))


def frame_of(spark: SparkSession, changes: list[Change]) -> DataFrame:
    """Return `decode.change_type` of `COLUMNS`, with each change in its own task."""
    of_tasks = [[change.as_row() for change in changes if change.task == task] for task in range(TASKS)]
    return tasks_frame(spark, of_tasks, TYPE)
