"""Set events aside: put them into quarantine, but no more of them than the table's limit allows."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.sources.event import OffsetRange
from spark_app.table.quarantine import quarantined, write_quarantine
from spark_app.table.quarantine_limit import LATEST_EVENTS, LatestEvents, QuarantineLimitReached
from tributary.contract.lake import TablePolicy
from tributary.contract.remedies import EditLakeFile


@dataclass
class SettingAside:
    """Puts the bad events of one topic below `path`, within the limit of the `policy`."""

    topic: str
    path: str
    policy: TablePolicy
    _latest: LatestEvents = field(default_factory=LatestEvents, init=False)

    def check_limit(self, bad: DataFrame, events: int, set_aside: int) -> None:
        """Raise `QuarantineLimitReached` if a batch has too many bad events to set aside.

        bad        `topic, partition, offset, reason, message`
        events     the number of the batch's events, including bad ones
        set_aside  how many of them are bad
        """
        if self._latest.has_room_for(events, set_aside, self.policy):
            return
        first = F.min(F.struct("topic", "partition", "offset"))
        reasons = bad.groupBy("reason").agg(F.count("*").alias("events"), first)
        found = ", ".join(
            f"{row[1]:,} {row[0]} (the first at {row[2]['partition']}:{row[2]['offset']})"
            for row in sorted(reasons.collect(), key=lambda row: -row[1])
        )
        raise QuarantineLimitReached(
            what="More events cannot be read than may be set aside, so the table stops before them",
            where=f"topic {self.topic}",
            found=f"{found}; of the {self._latest.events + events:,} latest events "
            f"{self._latest.set_aside + set_aside:,} cannot be read",
            expected=f"at most {self.policy.quarantine_limit} of the latest {LATEST_EVENTS:,}",
            remedy=[
                "Correct what writes to the topic.",
                EditLakeFile("raise the table's quarantine_limit to set these events aside all the same"),
            ],
        )

    def write(
        self,
        events: DataFrame,
        bad: DataFrame,
        epoch: int,
        ranges: tuple[OffsetRange, ...],
        unfilled: DataFrame | None = None,
    ) -> str:
        """Write the bad events of a batch before its commit (`quarantined`). Return the folder."""
        return write_quarantine(quarantined(events, bad, unfilled), self.path, epoch, ranges)

    def count(self, events: int, set_aside: int) -> None:
        """Count an applied batch towards the limit."""
        self._latest.add(events, set_aside)
