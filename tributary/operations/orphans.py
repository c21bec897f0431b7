"""Tables that their source no longer has: a person decides whether the lake keeps or removes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tributary.api.tables import read_table_folders, resolve_names
from tributary.api.timeline import read_last_commit
from tributary.contract.errors import TributaryError
from tributary.contract.item_stream import DELETED_KEYS_FOLDER
from tributary.contract.lake import Lake
from tributary.contract.naming import LakeNames
from tributary.contract.online_snapshot import record_name
from tributary.contract.orphan import DecidedOrphan, Decision
from tributary.contract.pause import pause_name
from tributary.contract.remedies import BringUp, StopRun
from tributary.contract.table_name import TableName
from tributary.local import spark
from tributary.local.left_out import read_left_out
from tributary.local.process import read_process
from tributary.operations.kafka_topics import delete_topic, read_table_topics
from tributary.operations.orphan_files import OrphanFiles, why_orphan
from tributary.operations.snapshots.keeper import notice_changes, record_files
from tributary.operations.sourced_lake import OpenedLake, SourcedLake
from tributary.operations.text_files import delete_file
from tributary.operations.verify.record import verification_name
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem


class NotAnOrphan(TributaryError):
    """The lake still follows a table that was to be removed or kept."""


class IngestRuns(TributaryError):
    """A table cannot be removed while an ingest may write to it."""


@dataclass(frozen=True)
class Orphan:
    """A table that its source no longer has.

    reason     why it is one, as the rest of a sentence that begins with the table's name
    is_stored  the lake has files of it
    decision   what somebody has decided about it; None: nothing yet
    """

    table: TableName
    reason: str
    is_stored: bool
    decision: DecidedOrphan | None = None

    @property
    def state(self) -> str:
        """The state in a word or two."""
        if self.decision is None:
            return "orphan"
        if self.decision.decision == "removed" and self.is_stored:
            return "removal interrupted"
        return self.decision.decision

    @property
    def is_gone(self) -> bool:
        """Return whether it was removed to its end, so that nobody has to see it any more."""
        return self.state == "removed"


def _nothing(_: TableName) -> None:
    pass


@dataclass(frozen=True)
class LakeWithOrphans:
    """A lake about whose orphans somebody decides, on this machine or on AWS.

    check_no_run  raises IngestRuns if a run may write to the lake's tables
    left_out      the tables that the last start left out. They come in once they are mended
    uncatalog     removes a table from the catalog in which other programs find it
    """

    lake: SourcedLake
    check_no_run: Callable[[], None]
    left_out: Collection[TableName] = frozenset()
    uncatalog: Callable[[TableName], None] = _nothing

    @property
    def storage(self) -> Storage:
        return storage_of(self.lake)


@dataclass(frozen=True)
class Contents:
    """How much of a table the lake's storage holds."""

    files: int
    size: int


@dataclass(frozen=True)
class Storage:
    """The places of a lake's tables. The paths are a bucket, or a bucket and a prefix."""

    filesystem: S3FileSystem
    names: LakeNames
    silver: str
    quarantine: str

    @property
    def decisions(self) -> OrphanFiles:
        return OrphanFiles(self.filesystem, self.names, self.quarantine)

    def contents(self, table: TableName) -> Contents:
        """Return how much there is of the table in silver and in quarantine."""
        from pyarrow.fs import FileSelector

        # The timeline's folder is also in the table's.
        files = {
            info.path: info.size or 0
            for folder in self._folders(table)
            for info in self.filesystem.get_file_info(
                FileSelector(folder, recursive=True, allow_not_found=True)
            )
            if info.is_file
        }
        return Contents(len(files), sum(files.values()))

    def remove(self, orphan: DecidedOrphan) -> None:
        """Remove everything of a table from the lake. After an interruption, it can be repeated.

        The decision comes first, so that no later ingest makes the table again from its topic. The table's
        timeline comes before its other files, so that no reader sees a table with a part of its rows."""
        self.decisions.write(orphan)
        path = self.names.table_path(orphan.table)
        for record in (pause_name(path), record_name(path), verification_name(path)):
            delete_file(self.filesystem, f"{self.quarantine}/{record}")
        for folder in self._folders(orphan.table):
            _delete_folder(self.filesystem, folder)

    def _folders(self, table: TableName) -> tuple[str, ...]:
        """Return the table's folders in the order in which they go."""
        path = self.names.table_path(table)
        return (
            f"{self.quarantine}/{path}",
            f"{self.quarantine}/{DELETED_KEYS_FOLDER}/{path}",
            f"{self.silver}/{path}/.hoodie",
            f"{self.silver}/{path}",
        )


def orphans_among(
    tables: Iterable[TableName],
    lake: Lake,
    gone: Collection[TableName],
    stored: Collection[TableName],
    decided: Mapping[TableName, DecidedOrphan],
) -> Mapping[TableName, Orphan]:
    """Return the orphans among the tables. `stored` are the tables of which the lake has files."""
    reasons = {table: why_orphan(lake, gone, table) for table in tables}
    return {
        table: Orphan(table, reason, table in stored, decided.get(table))
        for table, reason in sorted(reasons.items())
        if reason is not None
    }


def orphans_here(workspace: Workspace) -> LakeWithOrphans:
    """Return the lake of this machine, whose servers must run. Raises PipelineDown."""
    servers = ("kafka", "connect") if workspace.lake.connected_sources else ()
    workspace.require("s3", *servers)

    def check_no_run() -> None:
        if read_process(spark.SERVICE, workspace.state.run) is not None:
            raise IngestRuns(
                "A table cannot be removed while an ingest runs",
                where=str(workspace.state.path),
                remedy=StopRun(),
            )

    return LakeWithOrphans(workspace, check_no_run, read_left_out(workspace.state, workspace.lake).keys())


def storage_of(opened: OpenedLake) -> Storage:
    """Return the places of the lake's tables. Raises PipelineDown."""
    lake = opened.open_lake
    return Storage(lake.files.filesystem, lake.lake.names, lake.silver, lake.quarantine)


def read_orphans(workspace: Workspace, followed: Iterable[TableName]) -> Mapping[TableName, Orphan]:
    """Return the orphans of the lake on this machine, as far as they are known. Raises PipelineDown."""
    return _known(workspace, read_left_out(workspace.state, workspace.lake).keys(), followed)


def _known(
    opened: OpenedLake, left_out: Collection[TableName], followed: Iterable[TableName]
) -> Mapping[TableName, Orphan]:
    """Return the orphans among the tables with a topic, with files, or with a decision about them."""
    lake, storage = opened.open_lake.lake, storage_of(opened)
    gone, decided = record_files(opened).read_gone(lake), storage.decisions.read()
    stored = frozenset(
        place.name for place in read_table_folders(storage.filesystem, storage.names, storage.silver)
    )
    tables = {*followed, *stored, *decided} - set(left_out)
    return orphans_among(tables, lake, gone, stored, decided)


def look_for_orphans(of: LakeWithOrphans) -> Mapping[TableName, Orphan]:
    """Look at the sources as they are now, and return the lake's orphans.

    Raises the errors of the databases, Kafka and S3."""
    notice_changes(of.lake)
    return _known(of.lake, of.left_out, _topics(of.lake).values())


def keep(of: LakeWithOrphans, tables: Sequence[str]) -> tuple[TableName, ...]:
    """Keep orphans as they are, and return those that were not kept before.

    Raises UnknownTable, NotAnOrphan and the errors of `look_for_orphans`."""
    orphans = chosen(look_for_orphans(of), tables, _all_names(of))
    new = [one for one in orphans if one.state != "kept"]
    if interrupted := [one for one in new if one.decision is not None]:
        raise NotAnOrphan(
            "The removal of a table has begun, so it cannot be kept",
            where=str(interrupted[0].table),
            remedy="Remove the orphan again, so that its removal ends.",
        )
    for one in new:
        of.storage.decisions.write(_decided(of, one, "kept"))
    return tuple(one.table for one in new)


def chosen(
    orphans: Mapping[TableName, Orphan], texts: Sequence[str], known: Collection[TableName]
) -> tuple[Orphan, ...]:
    """Return the orphans that names or patterns mean. Raises UnknownTable, or NotAnOrphan for another table.

    A pattern means orphans only, and a name any of the `known` tables."""
    found: set[TableName] = set()
    for text in texts:
        among = orphans if any(wildcard in text for wildcard in "*?") else {*known, *orphans}
        found |= {*resolve_names([text], sorted(among))}
    if followed := sorted(found - orphans.keys()):
        raise NotAnOrphan(
            "A table is no orphan: the lake follows it",
            where=", ".join(map(str, followed)),
            expected="a table that its source no longer has, or that the lake file excludes",
            remedy=[
                "Drop the table in its source, or exclude it in the lake file, for example with "
                f'"!{followed[0].schema}.{followed[0].table}".',
                BringUp(),
            ],
        )
    return tuple(orphans[table] for table in sorted(found))


def choose_for_removal(of: LakeWithOrphans, tables: Sequence[str]) -> tuple[Orphan, ...]:
    """Return the orphans to remove.

    Raises UnknownTable, NotAnOrphan, IngestRuns and the errors of `look_for_orphans`."""
    of.check_no_run()
    return chosen(look_for_orphans(of), tables, _all_names(of))


def remove(of: LakeWithOrphans, orphan: Orphan) -> DecidedOrphan:
    """Remove everything of an orphan from the lake. Its events stay in Kafka and bronze.

    After an interruption, it can be repeated. Raises IngestRuns and the errors of Kafka, S3 and Glue."""
    decided = _decided(of, orphan, "removed")
    of.storage.decisions.write(decided)
    # An ingest that starts from here on leaves the table alone.
    of.check_no_run()
    of.uncatalog(orphan.table)
    of.storage.remove(decided)
    return decided


def remove_topic(lake: SourcedLake, orphan: DecidedOrphan) -> bool:
    """Delete the table's topic in Kafka, if there is one that the lake's own connectors have made."""
    is_own = orphan.topic is not None and orphan.topic.startswith(f"{lake.lake.name}.")
    if orphan.topic is None or not is_own or not lake.lake.connected_sources:
        return False
    return delete_topic(lake.kafka, orphan.topic)


def _decided(of: LakeWithOrphans, orphan: Orphan, decision: Decision) -> DecidedOrphan:
    topic = None if orphan.decision is None else orphan.decision.topic
    if topic is None:
        storage = of.storage
        path = f"{storage.silver}/{storage.names.table_path(orphan.table)}"
        commit = read_last_commit(storage.filesystem, path) if orphan.is_stored else None
        topic = None if commit is None else commit.topic
    if topic is None:
        topic = {table: topic for topic, table in _topics(of.lake).items()}.get(orphan.table)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return DecidedOrphan(orphan.table, decision, topic, now)


def _topics(lake: SourcedLake) -> Mapping[str, TableName]:
    if not lake.lake.connected_sources:
        return {}
    return read_table_topics(lake.kafka, lake.lake)


def _all_names(of: LakeWithOrphans) -> frozenset[TableName]:
    storage = of.storage
    folders = read_table_folders(storage.filesystem, storage.names, storage.silver)
    return frozenset({*(place.name for place in folders), *_topics(of.lake).values()})


def _delete_folder(filesystem: S3FileSystem, path: str) -> None:
    from pyarrow.fs import FileType

    if filesystem.get_file_info(path).type == FileType.Directory:
        filesystem.delete_dir(path)
