"""Cleaning: remove the files that no state within a table's history needs.

Hudi's own cleaner relies on the commits in the active timeline. It would need the whole history there, and
every commit lists the timeline. Every commit also lists the table's files, most of which are log files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice

from spark_app.hudi.file_slices import LogMerge, log_merges, outdated_files, partition_of
from spark_app.hudi.instants import instant_of
from spark_app.hudi.table_access import TableAccess
from spark_app.hudi.table_files import TEMPORARY
from spark_app.hudi.timeline import read_timeline, replaced_groups

MOST_COMMITS_AFTER_A_REPLACEMENT = 1_000
"""After this many commits, files that an earlier commit replaced are removed, whatever the history is.

As long as they exist, that commit and all later ones have to stay in the timeline."""

_THREADS = 16
_MOST_MERGES = 4 * _THREADS
_PLAN_VERSION = 2


@dataclass(frozen=True)
class _Bounds:
    """The instant of the oldest state to keep, and an instant before which no query is still running."""

    oldest: str
    settled: str


def clean(table: TableAccess, oldest: str | None = None) -> None:
    """Remove outdated files, merge old log files, and record in the timeline which states are still whole.

    `oldest` is the instant of the oldest state to keep; None: the table's `history` decides.

    A file is outdated if only states before the table's `history` need it. After many commits, the files that
    one of them replaced are outdated, too. If a file slice was superseded longer ago than a query may run,
    its log files are merged into one."""
    timeline = read_timeline(table)
    if timeline.pending.writes:
        # An unfinished commit's files would look like a state of the table. The next commit removes them.
        return
    bounds = _bounds(table) if oldest is None else _Bounds(oldest, oldest)
    with _threads() as threads:
        files = _all_files(table, threads)
        replaced = replaced_groups(table, timeline, bounds.oldest)
        outdated = outdated_files(files, bounds.oldest, frozenset(chain.from_iterable(replaced.values())))
        # Hudi would remove a plan's files one by one. So its plan gets one file per partition, the smallest
        # possible plan, and the other files are removed here.
        recorded = {partition_of(file): file for file in outdated}
        table.files.remove(set(outdated) - set(recorded.values()))
        # An incremental query of a commit in the active timeline opens exactly the commit's files.
        if timeline.instants:
            superseded_before = min(bounds.settled, timeline.instants[0].requested)
            merges = islice(log_merges(files.difference(outdated), superseded_before), _MOST_MERGES)
            merged = threads.map(lambda merge: _merge_log_files(table, merge), merges)
            table.files.remove(list(chain.from_iterable(merged)))
    # Last, because a commit stays in the timeline until the timeline says that its files are cleaned.
    if recorded:
        _record_cleaning(table, str(timeline.last_instant), bounds.oldest, recorded)


def _bounds(table: TableAccess) -> _Bounds:
    now = datetime.now(UTC)
    settled = instant_of(now - table.policy.longest_query)
    oldest = min(settled, instant_of(now - table.policy.history))
    replaced = read_timeline(table).first_after_replacement(settled, MOST_COMMITS_AFTER_A_REPLACEMENT)
    return _Bounds(oldest if replaced is None else max(oldest, replaced), settled)


@contextmanager
def _threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="clean") as threads:
        yield threads


def _all_files(table: TableAccess, threads: Executor) -> frozenset[str]:
    """List the folders of all partitions, several at a time."""

    def files_in(partition: str) -> list[str]:
        return [f"{partition}/{name}".lstrip("/") for name in table.files.names_in(partition)]

    return frozenset(chain.from_iterable(threads.map(files_in, table.partitions() or {""})))


def _merge_log_files(table: TableAccess, merge: LogMerge) -> Sequence[str]:
    """Merge the log files of a slice, unless that is done. Return the files that can be removed then.

    A log file is a sequence of blocks, each with its commit's instant. It may hold the blocks of many
    commits, as Hudi writes it wherever it can append to files. The draft's name is one that readers do not
    look for, so they never find a partly merged file."""
    if not merge.is_written:
        table.files.concatenate(merge.log_files, merge.merged, draft=f"{TEMPORARY}/{merge.merged}")
    return merge.log_files


def _record_cleaning(table: TableAccess, last: str, oldest: str, files: Mapping[str, str]) -> None:
    """Write a clean instant that removes the files, one per partition, and names the oldest state kept.

    Hudi's SQL procedure `run_clean` would decide by itself which files to remove."""
    java = table.java
    removed = {
        partition: [java.clean_file(f"{table.path}/{file}", False)] for partition, file in files.items()
    }
    plan = java.clean_plan(
        java.action_instant(oldest, "commit", "COMPLETED"),
        last,
        "KEEP_LATEST_BY_HOURS",
        {},
        _PLAN_VERSION,
        removed,
        [],
        {},
    )
    with table.write_client({}) as client:
        instant = client.createNewInstantTime()
        meta_client = table.new_meta_client()
        requested = meta_client.getInstantGenerator().getCleanRequestedInstant(instant)
        meta_client.getActiveTimeline().saveToCleanRequested(requested, java.option.of(plan))
        client.clean(instant, False)
