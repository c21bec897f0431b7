"""Pause and resume tables. A running ingest obeys within seconds, and the next one does, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tributary.api.tables import resolve_names
from tributary.contract.naming import LakeNames
from tributary.contract.pause import PAUSES_FOLDER, Pause, from_json, pause_name, to_json
from tributary.contract.table_name import TableName
from tributary.operations.known_tables import known_tables
from tributary.operations.sourced_lake import OpenedLake
from tributary.operations.text_files import read_texts, write_text

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

    from tributary.operations.workspace import Workspace


@dataclass(frozen=True)
class PauseFiles:
    """The files below `location`, the quarantine bucket, or bucket and prefix."""

    filesystem: S3FileSystem
    names: LakeNames
    location: str

    def read(self) -> Mapping[TableName, Pause]:
        """Return the pauses by their tables."""
        pauses = map(from_json, read_texts(self.filesystem, f"{self.location}/{PAUSES_FOLDER}"))
        return {pause.table: pause for pause in pauses if pause is not None}

    def write(self, pause: Pause) -> None:
        write_text(self.filesystem, self._path(pause.table), to_json(pause))

    def remove(self, table: TableName) -> None:
        self.filesystem.delete_file(self._path(table))

    def _path(self, table: TableName) -> str:
        return f"{self.location}/{pause_name(self.names.table_path(table))}"


def pause_files(opened: OpenedLake) -> PauseFiles:
    """Return the lake's pauses. Raises PipelineDown."""
    lake = opened.open_lake
    return PauseFiles(lake.files.filesystem, lake.lake.names, lake.quarantine)


def pause(workspace: Workspace, tables: Sequence[str]) -> tuple[TableName, ...]:
    """Pause the tables, and return those that were not paused yet. Raises UnknownTable and PipelineDown."""
    workspace.require("s3")
    files = pause_files(workspace)
    known = known_tables(workspace)
    wanted, paused = resolve_names(tables, known), files.read()
    new = tuple(table for table in wanted if table not in paused)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for table in new:
        files.write(Pause(table, now))
    return new


def resume(workspace: Workspace, tables: Sequence[str]) -> tuple[TableName, ...]:
    """Resume the tables, and return those that were paused. Raises UnknownTable and PipelineDown."""
    workspace.require("s3")
    files = pause_files(workspace)
    paused = files.read()
    known = {*known_tables(workspace), *paused}
    wanted = tuple(table for table in resolve_names(tables, sorted(known)) if table in paused)
    for table in wanted:
        files.remove(table)
    return wanted
