"""Recovery: removes what the end of a process can leave in a table that Hudi does not get over."""

from __future__ import annotations

from spark_app.hudi.table_access import TableAccess
from spark_app.hudi.table_files import TEMPORARY, TIMELINE


def remove_leftovers(table: TableAccess) -> None:
    """Remove a table's folder without a table, and the markers that no pending commit needs.

    Some of these have Hudi fail at each start:

    - A folder `.hoodie` without a file is a table to Hudi, whose properties it cannot read.
    - Where the rollback of a commit was interrupted, Hudi repeats it. It then looks for the log files that
      the rollback's markers name in the local file system (DEFAULT_URI of HoodieStorageUtils,
      RollbackHelperV1#addMissingLogFilesAndGetRollbackStats). Without markers it looks for none; they are
      for its metadata table.

    A pending commit needs its markers for its rollback; a completed commit does not need them any more."""
    files = table.files
    if not files.has_table():
        if files.exists(TIMELINE) and not files.holds_a_file(TIMELINE):
            files.remove_folder(TIMELINE)
        return
    if files.exists(TEMPORARY):
        for name in set(files.names_in(TEMPORARY)) - _pending_instants(table):
            files.remove_folder(f"{TEMPORARY}/{name}")


def _pending_instants(table: TableAccess) -> frozenset[str]:
    active = table.new_meta_client().getActiveTimeline()
    pending = active.getWriteTimeline().filterInflightsAndRequested()
    return frozenset(instant.requestedTime() for instant in pending.getInstants())
