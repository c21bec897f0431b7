"""The tables that a lake leaves out: at the last start on this machine, and at later looks."""

from __future__ import annotations

from collections.abc import Mapping

from tributary.contract.table_name import TableName
from tributary.local.left_out import LeftOutTable, read_left_out
from tributary.local.running import PipelineDown
from tributary.operations.snapshots.keeper import record_files
from tributary.operations.snapshots.record_files import LeftOutNote
from tributary.operations.workspace import Workspace


def left_out_tables(workspace: Workspace) -> Mapping[TableName, LeftOutTable]:
    """Return the tables that the lake cannot take, by name, as far as the servers that run can tell."""
    at_start = read_left_out(workspace.state, workspace.lake)
    try:
        later = record_files(workspace).read_left_out(workspace.lake)
    except PipelineDown:
        later = {}
    return dict(sorted({**named(later), **at_start}.items()))


def named(notes: Mapping[TableName, LeftOutNote]) -> Mapping[TableName, LeftOutTable]:
    """Return the tables of these notes, in the order of their names."""
    return {
        table: LeftOutTable(table=str(table), reasons=note.reasons, remedies=note.remedies)
        for table, note in sorted(notes.items())
    }
