"""Recovery: remove files that an ended process can leave in a table and that make Hudi fail."""

from __future__ import annotations

from spark_app.hudi.table_access import TableAccess
from spark_app.hudi.table_files import TEMPORARY, TIMELINE
from spark_app.hudi.timeline import read_timeline


def remove_leftovers(table: TableAccess) -> None:
    """Remove a table's folder if it has no table, and the markers that no pending commit needs.

    Some of these files make Hudi fail at each start:

    - Hudi takes a folder `.hoodie` without a file for a table, and cannot read this table's properties.
    - If the rollback of a commit was interrupted, Hudi repeats it. It then looks in the local file system for
      the log files that the rollback's markers name (DEFAULT_URI of HoodieStorageUtils,
      RollbackHelperV1#addMissingLogFilesAndGetRollbackStats). Without markers it looks for none. Only Hudi's
      metadata table needs these log files.

    A pending commit needs its markers for its rollback. A completed commit no longer needs them."""
    files = table.files
    if not files.has_table():
        if files.exists(TIMELINE) and not files.holds_a_file(TIMELINE):
            files.remove_folder(TIMELINE)
        return
    if files.exists(TEMPORARY):
        for name in set(files.names_in(TEMPORARY)) - _pending_instants(table):
            files.remove_folder(f"{TEMPORARY}/{name}")


def _pending_instants(table: TableAccess) -> frozenset[str]:
    return frozenset(read_timeline(table).pending.writes)
