"""A table's timeline: its completed commits and compactions, and the metadata of a commit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from spark_app.hudi.file_slices import FileGroup
from spark_app.hudi.instants import CompletedInstant, completed_instants
from spark_app.hudi.table_access import TableAccess
from spark_app.hudi.table_files import TIMELINE
from spark_app.hudi.timeline_files import PendingInstants, pending_instants
from tributary.contract.lake import Storage

ACTIVE_COMMITS = 20
"""How many commits a shortened timeline has.

Every commit lists the timeline eight times, with three files per commit."""


@dataclass(frozen=True)
class Timeline:
    """The completed commits and compactions in a table's active timeline at the moment of reading.

    `instants` are in the order in which they were requested."""

    storage: Storage
    instants: tuple[CompletedInstant, ...] = ()
    pending: PendingInstants = field(default_factory=PendingInstants)

    @property
    def commits(self) -> tuple[CompletedInstant, ...]:
        """The instants that are not compactions."""
        return tuple(i for i in self.instants if i.action != "commit" or self.storage != "merge_on_read")

    @property
    def requested(self) -> frozenset[str]:
        """The names of the commits."""
        return frozenset(commit.requested for commit in self.commits)

    @property
    def early_compactions(self) -> tuple[CompletedInstant, ...]:
        """The compactions that, by their times, completed before they were requested."""
        compactions = set(self.instants).difference(self.commits)
        return tuple(sorted(i for i in compactions if i.completed < i.requested))

    @property
    def last_instant(self) -> str | None:
        """The name of the commit or compaction that was requested last; None if there is none."""
        return self.instants[-1].requested if self.instants else None

    @property
    def commits_since_services(self) -> int:
        """How many commits came after the last table services.

        For a merge-on-read table, this is the last compaction. For a copy-on-write table, it is the last time
        that the timeline was shortened."""
        if self.storage == "copy_on_write":
            return max(0, len(self.instants) - ACTIVE_COMMITS)
        return len(list(takewhile(lambda instant: instant.action == "deltacommit", reversed(self.instants))))

    def first_after_replacement(self, before: str, commits: int) -> str | None:
        """Return the name of the instant after the last commit that replaced files.

        Only commits count that were requested before the instant `before` and that more than `commits` others
        have followed. Returns None if there is no such commit."""
        old = self.instants[: max(0, len(self.instants) - commits - 1)]
        replacements = [n for n, i in enumerate(old) if i.action == "replacecommit" and i.requested < before]
        return self.instants[replacements[-1] + 1].requested if replacements else None


@dataclass(frozen=True)
class HudiCommit:
    """A completed commit: its instant, a text from its metadata, and the number of rows written.

    `partitions` are the paths of the partitions that it wrote to; empty for an unpartitioned table."""

    instant: str
    text: str
    rows_upserted: int
    rows_deleted: int
    partitions: frozenset[str]


def read_timeline(table: TableAccess) -> Timeline:
    """Read the timeline of a table that exists. Takes one listing."""
    written_ms = {entry.name: entry.written_ms for entry in table.files.list(TIMELINE)}
    return Timeline(table.policy.storage, completed_instants(written_ms), pending_instants(written_ms))


def commits_with(
    key: str, table: TableAccess, timeline: Timeline, known: Set[str] = frozenset()
) -> Iterator[HudiCommit]:
    """Read the commits whose metadata has the key, except the `known` instants.

    The commit that completed last comes first. A commit's file is read only when the caller asks for the
    commit."""
    for instant in sorted(timeline.commits, reverse=True):
        if instant.requested in known:
            continue
        metadata = _metadata(table, instant)
        text = (metadata.get("extraMetadata") or {}).get(key)
        if text is not None:
            written: Mapping[str, Any] = metadata.get("partitionToWriteStats") or {}
            yield HudiCommit(
                instant=instant.requested,
                text=text,
                rows_upserted=_sum(written, "numInserts") + _sum(written, "numUpdateWrites"),
                rows_deleted=_sum(written, "numDeletes"),
                partitions=frozenset(written) if table.policy.partition_by else frozenset(),
            )


def content_of(table: TableAccess, instant: CompletedInstant) -> bytes:
    """Read the content of the instant's file."""
    return table.files.read(f"{TIMELINE}/{instant.file}")


def replaced_groups(
    table: TableAccess, timeline: Timeline, until: str | None = None
) -> Mapping[str, frozenset[FileGroup]]:
    """Read which file groups commits have replaced, up to the instant `until`, by the commit.

    Commits that the timeline no longer has do not count."""
    replacing = (
        instant
        for instant in timeline.instants
        if instant.action == "replacecommit" and (until is None or instant.requested <= until)
    )
    return {
        instant.requested: frozenset(
            FileGroup(partition, file_id)
            for partition, file_ids in (
                _metadata(table, instant).get("partitionToReplaceFileIds") or {}
            ).items()
            for file_id in file_ids
        )
        for instant in replacing
    }


def _metadata(table: TableAccess, instant: CompletedInstant) -> Mapping[str, Any]:
    """Return the metadata of a commit, which table version 6 keeps as JSON (HoodieCommitMetadata)."""
    found: Mapping[str, Any] = json.loads(content_of(table, instant))
    return found


def _sum(written: Mapping[str, Any], name: str) -> int:
    return sum(int(stat.get(name) or 0) for stats in written.values() for stat in stats)
