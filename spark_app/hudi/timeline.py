"""A table's timeline: its completed commits and compactions, and the metadata of a commit."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from spark_app.hudi.file_slices import FileGroup
from spark_app.hudi.instants import CompletedInstant, parse_completed_instants
from spark_app.hudi.table_access import TableAccess
from tributary.contract.lake import Storage

ACTIVE_COMMITS = 20
"""How many commits a shortened timeline has.

Every commit lists the timeline eight times, with three files per commit."""


@dataclass(frozen=True)
class Timeline:
    """The completed commits and compactions in a table's active timeline at the moment of reading.

    `instants` are in the order in which they were requested. `of_hudi` is Hudi's own object, with the same
    instants in the same order."""

    storage: Storage
    instants: tuple[CompletedInstant, ...] = ()
    of_hudi: Any = None

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
    active = table.kept_meta_client.reloadActiveTimeline()
    completed = active.getCommitsTimeline().filterCompletedInstants()
    texts = table.java.texts(completed.getInstants())
    return Timeline(table.policy.storage, parse_completed_instants(texts), completed)


def commits_with(
    key: str, table: TableAccess, timeline: Timeline, known: Set[str] = frozenset()
) -> Iterator[HudiCommit]:
    """Read the commits whose metadata has the key, except the `known` instants.

    The commit that completed last comes first. A commit's file is read only when the caller asks for the
    commit."""
    for instant in sorted(timeline.commits, reverse=True):
        if instant.requested in known:
            continue
        metadata = table.java.timeline_utils.getCommitMetadata(
            _instant_of_hudi(timeline, instant), timeline.of_hudi
        )
        text = metadata.getMetadata(key)
        if text is not None:
            yield HudiCommit(
                instant=instant.requested,
                text=text,
                rows_upserted=metadata.fetchTotalInsertRecordsWritten()
                + metadata.fetchTotalUpdateRecordsWritten(),
                rows_deleted=metadata.getTotalRecordsDeleted(),
                partitions=frozenset(metadata.getPartitionToWriteStats().keySet())
                if table.policy.partition_by
                else frozenset(),
            )


def content_of(timeline: Timeline, instant: CompletedInstant) -> bytes:
    """Read the content of the instant's file."""
    content: bytes = timeline.of_hudi.getInstantDetails(_instant_of_hudi(timeline, instant)).get()
    return content


def replaced_groups(table: TableAccess, active: Any, until: str) -> frozenset[FileGroup]:
    """Read which file groups commits have replaced, up to the instant `until`.

    `active` is Hudi's active timeline. Commits that it no longer has do not count."""
    replacing = active.getCompletedReplaceTimeline().findInstantsBeforeOrEquals(until)
    return frozenset(
        FileGroup(partition, file_id)
        for commit in replacing.getInstants()
        for partition, file_ids in table.java.timeline_utils.getCommitMetadata(commit, active)
        .getPartitionToReplaceFileIds()
        .items()
        for file_id in file_ids
    )


def _instant_of_hudi(timeline: Timeline, instant: CompletedInstant) -> Any:
    return timeline.of_hudi.getInstants().get(timeline.instants.index(instant))
