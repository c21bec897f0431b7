"""The decisions about orphans, kept next to the lake, and which tables are orphans at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tributary.contract.derived import DERIVED_SOURCE
from tributary.contract.lake import Lake
from tributary.contract.naming import LakeNames
from tributary.contract.orphan import ORPHANS_FOLDER, DecidedOrphan, from_json, orphan_name, to_json
from tributary.contract.table_name import TableName

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem


def why_orphan(lake: Lake, gone: Collection[TableName], table: TableName) -> str | None:
    """Return why a table is an orphan; None if the lake follows it.

    The text completes a sentence about the table. `gone` are the tables that their source did not have at
    the last look."""
    source = next((one for one in lake.sources if one.name == table.source), None)
    if source is None and table.source == DERIVED_SOURCE:
        is_there = table.table in dict(lake.derived)
        return None if is_there else f"the lake file has no [derived.{table.table}]"
    if source is None:
        return f"the lake file has no [source.{table.source}]"
    if source.routes_to(table.schema):
        return None
    if not source.matches(table.schema, table.table):
        return f"[source.{source.name}].tables does not take it"
    return "its source no longer has it" if table in gone else None


@dataclass(frozen=True)
class OrphanFiles:
    """The decisions below `location`, the quarantine bucket, or bucket and prefix."""

    filesystem: S3FileSystem
    names: LakeNames
    location: str

    def read(self) -> Mapping[TableName, DecidedOrphan]:
        """Return the decisions by their tables."""
        from pyarrow.fs import FileSelector, FileType

        folder = FileSelector(f"{self.location}/{ORPHANS_FOLDER}", recursive=True, allow_not_found=True)
        decided = {}
        for info in self.filesystem.get_file_info(folder):
            if info.type != FileType.File:
                continue
            try:
                with self.filesystem.open_input_stream(info.path) as stream:
                    orphan = from_json(stream.read().decode())
            except FileNotFoundError:
                continue  # Somebody has forgotten the decision meanwhile.
            if orphan is not None:
                decided[orphan.table] = orphan
        return decided

    def write(self, orphan: DecidedOrphan) -> None:
        path = self._path(orphan.table)
        # A file system with real folders needs them first.
        self.filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        with self.filesystem.open_output_stream(path) as stream:
            stream.write(to_json(orphan).encode())

    def forget(self, table: TableName) -> None:
        """Remove the decision about a table, if there is one."""
        delete_file(self.filesystem, self._path(table))

    def _path(self, table: TableName) -> str:
        return f"{self.location}/{orphan_name(self.names.table_path(table))}"


def delete_file(filesystem: S3FileSystem, path: str) -> None:
    """Delete a file, if there is one."""
    if filesystem.get_file_info(path).is_file:
        filesystem.delete_file(path)
