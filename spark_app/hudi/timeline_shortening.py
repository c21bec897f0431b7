"""Shortening: remove the oldest commits from a table's timeline."""

from __future__ import annotations

from collections.abc import Sequence

from spark_app.hudi import timeline
from spark_app.hudi.file_slices import group_of
from spark_app.hudi.table_access import TableAccess
from spark_app.hudi.table_files import TIMELINE
from spark_app.hudi.timeline_files import removal_of_oldest_instants


def shorten_timeline(table: TableAccess) -> None:
    """Remove all commits from the timeline except the last `timeline.ACTIVE_COMMITS`.

    States of the table can be read as before. No commit may be written at the same time. Hudi's archival
    would first write the commits to an archive, which nothing here reads. That takes eight requests to S3 for
    each file, one after the other."""
    names = table.files.names_in(TIMELINE)
    stays_from = _first_needed_by_replacements(table) if _has_replacements(names) else None
    removal = removal_of_oldest_instants(names, timeline.ACTIVE_COMMITS, stays_from)
    table.files.remove(removal.earlier_states, TIMELINE)
    table.files.remove_in_order(removal.completed, TIMELINE)


def _has_replacements(names: Sequence[str]) -> bool:
    return any(".replacecommit" in name for name in names)


def _first_needed_by_replacements(table: TableAccess) -> str | None:
    """Return the first instant that has to stay because the files that it replaced still exist.

    Without the instant in the timeline, these files would count as the table's files."""
    replaced = timeline.replaced_groups(table, timeline.read_timeline(table))
    partitions = {group.partition for groups in replaced.values() for group in groups}
    there = {
        group_of(f"{partition}/{name}".lstrip("/"))
        for partition in partitions
        if table.files.exists(partition)
        for name in table.files.names_in(partition)
    }
    return min((instant for instant, groups in replaced.items() if groups & there), default=None)
