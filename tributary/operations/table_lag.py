"""The tables' lag behind their topics."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

from tributary.api.last_commits import LastCommits
from tributary.api.tables import read_table_folders
from tributary.api.timeline import Commit
from tributary.contract.derived import derived_table
from tributary.contract.table_name import TableName
from tributary.operations.kafka_topics import (
    Positions,
    events_behind,
    read_table_topics,
    read_topic_ends,
)
from tributary.operations.workspace import Workspace

_READERS = 8


@dataclass(frozen=True)
class TableLag:
    """A table's lag.

    behind  the number of events in the topic that the table has not applied; None if its stream cannot tell
    commit  the last commit that applied events, if there is one
    ended   the sum of the offsets at which the topic's partitions end; None if it has no topic
    """

    table: TableName
    behind: int | None
    commit: Commit | None = None
    ended: int | None = None

    @property
    def snapshot(self) -> str | None:
        """The id of the last online snapshot that the table has applied."""
        applied = None if self.commit is None else self.commit.ledger.snapshot
        return None if applied is None else applied.id

    def equal_at(self, now: datetime) -> datetime | None:
        """Return until when the table has all changes that its topic had. `now` is when the lag was read.

        This is `now` if its position is the end of the topic. Otherwise it is the completion of its last
        commit, also if its stream cannot tell. None: it has no commit.
        """
        if self.commit is None:
            return None
        return now if self.behind == 0 else self.commit.completed


@dataclass
class QuietTables:
    """The last commits of tables that had applied everything, for the next look at the lake.

    So a look costs a request for each table that has got events, not for each table. A commit without events,
    such as a rebuild's, is seen some seconds later.

    commits  of all tables, read again when their timelines have grown
    """

    commits: LastCommits = field(default_factory=LastCommits)
    seconds: float = 30.0
    _kept: dict[str, tuple[Positions, float, Commit]] = field(default_factory=dict)

    def commit(self, topic: str, ends: Positions) -> Commit | None:
        """Return the table's last commit, if it had applied all events up to these ends lately."""
        kept_ends, until, commit = self._kept.get(topic, ({}, 0.0, None))
        return commit if kept_ends == ends and time.monotonic() < until else None

    def keep(self, topic: str, ends: Positions, commit: Commit | None) -> None:
        """Take note of a commit that was just read."""
        if commit is not None and events_behind(commit.ledger.positions, ends) == 0:
            self._kept[topic] = (ends, time.monotonic() + self.seconds, commit)


def read_lags(workspace: Workspace, quiet: QuietTables | None = None) -> tuple[TableLag, ...]:
    """Return the lag of every table that has a topic, by name. Raises PipelineDown and KafkaUnreachable.

    quiet  what an earlier look has kept

    A stream of items does not tell how many of its records were not read. Its tables are the lake's tables.
    """
    kept = quiet or QuietTables()
    lags = (*_item_lags(workspace, kept.commits), *_kafka_lags(workspace, kept))
    return tuple(sorted(lags, key=lambda one: one.table))


def read_derived(workspace: Workspace, commits: LastCommits | None = None) -> tuple[TableLag, ...]:
    """Return the lake's derived tables. None of them has a topic of its own to be behind of."""
    names, known = workspace.lake.names, commits or LastCommits()
    paths = {
        table: f"{names.silver_bucket}/{names.table_path(table)}"
        for table in (derived_table(name) for name, _ in workspace.lake.derived)
    }
    return tuple(TableLag(table, None, _last_commit(workspace, path, known)) for table, path in paths.items())


def _item_lags(workspace: Workspace, commits: LastCommits) -> tuple[TableLag, ...]:
    sources = {source.name for source in workspace.lake.item_sources}
    if not sources:
        return ()
    opened, filesystem = workspace.open_lake, workspace.files.filesystem
    folders = read_table_folders(filesystem, opened.lake.names, opened.silver)
    places = [place for place in folders if place.name.source in sources]
    with ThreadPoolExecutor(_READERS) as pool:
        found = list(pool.map(lambda place: commits.read(filesystem, place.path), places))
    return tuple(
        TableLag(place.name, None, one.commit)
        for place, one in zip(places, found, strict=True)
        if one is not None
    )


def _last_commit(workspace: Workspace, path: str, commits: LastCommits) -> Commit | None:
    found = commits.read(workspace.files.filesystem, path)
    return None if found is None else found.commit


def _kafka_lags(workspace: Workspace, quiet: QuietTables) -> tuple[TableLag, ...]:
    if not workspace.lake.connected_sources:
        return ()
    workspace.require("kafka", "s3")
    kafka, names = workspace.kafka, workspace.lake.names
    topics = read_table_topics(kafka, workspace.lake)
    ends = read_topic_ends(kafka, topics)

    def lag(topic: str) -> TableLag:
        table = topics[topic]
        commit = quiet.commit(topic, ends[topic])
        if commit is None:
            path = f"{names.silver_bucket}/{names.table_path(table)}"
            commit = _last_commit(workspace, path, quiet.commits)
            quiet.keep(topic, ends[topic], commit)
        positions = {} if commit is None else commit.ledger.positions
        behind = events_behind(positions, ends[topic])
        return TableLag(table, behind, commit, sum(ends[topic].values()))

    with ThreadPoolExecutor(_READERS) as pool:
        return tuple(pool.map(lag, ends))
