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
from tributary.operations.text_files import delete_file, read_texts, write_text

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
        decided = map(from_json, read_texts(self.filesystem, f"{self.location}/{ORPHANS_FOLDER}"))
        return {orphan.table: orphan for orphan in decided if orphan is not None}

    def write(self, orphan: DecidedOrphan) -> None:
        write_text(self.filesystem, self._path(orphan.table), to_json(orphan))

    def forget(self, table: TableName) -> None:
        """Remove the decision about a table, if there is one."""
        delete_file(self.filesystem, self._path(table))

    def _path(self, table: TableName) -> str:
        return f"{self.location}/{orphan_name(self.names.table_path(table))}"
