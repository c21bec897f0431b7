"""The ledger: how far a table has read. The Hudi commit that holds the rows also holds the ledger.

This module imports no PySpark, so that a reader of the timeline does not need it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tributary.contract.errors import TributaryError
from tributary.contract.remedies import RebuildTable

LEDGER_KEY = "_ledger"
RETYPED_KEY = f"{LEDGER_KEY}.retyped"
"""The metadata key, in a commit that replaces all files, for a JSON array of the columns with new types.

Such a commit also has `LEDGER_KEY`."""

FORMAT_VERSION = 3
"""Version 1 had record keys with commas. Version 2 had positions of PostgreSQL only."""

EPOCH_SHIFT = 48
"""`_seq` = epoch · 2^48 + offset. So a recreated topic, whose offsets start at 0, can follow the old one."""


class LedgerError(TributaryError):
    """A ledger that this version cannot read."""


@dataclass(frozen=True)
class Truncate:
    """A truncate of the whole table, and where it happened.

    `position` and `log_position` are those of its change. `source_us`: when the source committed it, in
    microseconds since 1970; None if its event did not tell."""

    partition: int
    offset: int
    position: bytes
    log_position: bytes
    source_us: int | None


@dataclass(frozen=True)
class AppliedSnapshot:
    """An online snapshot that the table has applied to its end.

    A row without a later change than `began` is gone from the source, and was removed.

    id            of its request
    began         by partition, the offset of the first event that may belong to it. If it has removed no row,
                  the offsets of the last snapshot that has; empty if there is none.
    began_us      when that snapshot was asked for, in microseconds since 1970
    quarantined   how many of its events are in quarantine; if there are any, it has removed no row
    """

    id: str
    began: Mapping[int, int]
    began_us: int
    quarantined: int = 0


@dataclass(frozen=True)
class SourceTimes:
    """When the source committed a commit's streamed changes, in microseconds since 1970."""

    min: int
    p05: int
    p50: int
    max: int


@dataclass(frozen=True)
class Ledger:
    """What a commit records about the events it applied.

    topic_id       the id of the topic that the positions belong to; None if no source has reported it
    positions      by partition, the next offset to read
    applied        by partition, the highest position of an applied streamed change
    applied_ts_us  when the source committed that change, or later, in microseconds since 1970
    truncate       the last applied truncate: a partition that is behind can still bring earlier changes
    snapshot       the last applied online snapshot
    buckets        the number of buckets that hold the rows; None in tables of earlier versions
    events, deletes, quarantined, source_times
                   of this commit alone; `deletes` are part of `events`, and tombstones are not
    """

    topic: str
    epoch: int = 0
    topic_id: str | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    applied: Mapping[int, bytes] = field(default_factory=dict)
    applied_ts_us: Mapping[int, int] = field(default_factory=dict)
    truncate: Truncate | None = None
    snapshot: AppliedSnapshot | None = None
    key_columns: tuple[str, ...] = ()
    buckets: int | None = None
    events: int = 0
    deletes: int = 0
    quarantined: int = 0
    source_times: SourceTimes | None = None

    def next_commit(self) -> Ledger:
        """Return the same positions, with the counts of a commit that has applied nothing yet."""
        return replace(self, events=0, deletes=0, quarantined=0, source_times=None)

    def next_epoch(self, topic_id: str | None) -> Ledger:
        """Return a ledger at the beginning of a recreated topic.

        The new topic's events are later than all events of the old one."""
        return replace(
            self.next_commit(), epoch=self.epoch + 1, topic_id=topic_id, positions={}, snapshot=None
        )

    def to_json(self) -> str:
        return json.dumps(
            {
                "version": FORMAT_VERSION,
                "topic": self.topic,
                "epoch": self.epoch,
                "topic_id": self.topic_id,
                "positions": {str(partition): offset for partition, offset in sorted(self.positions.items())},
                "applied": {
                    str(partition): position.hex() for partition, position in sorted(self.applied.items())
                },
                "applied_ts_us": {str(partition): ts for partition, ts in sorted(self.applied_ts_us.items())},
                "truncate": None
                if self.truncate is None
                else {
                    "partition": self.truncate.partition,
                    "offset": self.truncate.offset,
                    "position": self.truncate.position.hex(),
                    "log_position": self.truncate.log_position.hex(),
                    "source_us": self.truncate.source_us,
                },
                "snapshot": None
                if self.snapshot is None
                else {
                    "id": self.snapshot.id,
                    "began": {
                        str(partition): offset for partition, offset in sorted(self.snapshot.began.items())
                    },
                    "began_us": self.snapshot.began_us,
                    "quarantined": self.snapshot.quarantined,
                },
                "key_columns": list(self.key_columns),
                "buckets": self.buckets,
                "events": self.events,
                "deletes": self.deletes,
                "quarantined": self.quarantined,
                "source_ts_us": None
                if self.source_times is None
                else {
                    "min": self.source_times.min,
                    "p05": self.source_times.p05,
                    "p50": self.source_times.p50,
                    "max": self.source_times.max,
                },
            },
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(text: str) -> Ledger:
        """Read a ledger. Raises `LedgerError` if it has another format version."""
        found = json.loads(text)
        if found.get("version") != FORMAT_VERSION:
            raise LedgerError(
                what="The table was written by another version of Tributary",
                where=f"commit metadata, key {LEDGER_KEY}",
                found=f"ledger version {found.get('version')!r}",
                expected=f"version {FORMAT_VERSION}",
                remedy=[
                    "Use the version of Tributary that wrote the table, or rebuild the table from bronze.",
                    RebuildTable(),
                ],
            )
        times, truncate = found["source_ts_us"], found.get("truncate")
        snapshot = found.get("snapshot")
        return Ledger(
            topic=found["topic"],
            epoch=found["epoch"],
            topic_id=found.get("topic_id"),
            positions=_by_partition(found["positions"]),
            applied={
                int(partition): bytes.fromhex(position) for partition, position in found["applied"].items()
            },
            applied_ts_us=_by_partition(found["applied_ts_us"]),
            truncate=None
            if truncate is None
            else Truncate(
                truncate["partition"],
                truncate["offset"],
                bytes.fromhex(truncate["position"]),
                bytes.fromhex(truncate["log_position"]),
                truncate["source_us"],
            ),
            snapshot=None
            if snapshot is None
            else AppliedSnapshot(**{**snapshot, "began": _by_partition(snapshot["began"])}),
            key_columns=tuple(found["key_columns"]),
            buckets=found.get("buckets"),
            events=found["events"],
            deletes=found["deletes"],
            quarantined=found["quarantined"],
            source_times=None if times is None else SourceTimes(**times),
        )


def _by_partition(found: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): number for partition, number in found.items()}
