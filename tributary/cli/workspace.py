"""What one call of the command works on: the lake of a lake file, and the state folder that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tributary.api.lake_files import LakeFiles
from tributary.api.open_lake import OpenLake, open_local
from tributary.contract.lake import Lake, read_lake
from tributary.local.running import read_running_settings, read_started_settings
from tributary.local.state import LocalSettings, StateFolder


@dataclass(frozen=True)
class Workspace:
    """`lake_file` is the file that `lake` was read from."""

    lake_file: Path
    lake: Lake
    state: StateFolder

    @classmethod
    def open(cls, lake_file: Path, state_folder: Path) -> Workspace:
        """Raises LakeFileError."""
        return cls(lake_file, read_lake(lake_file), StateFolder(state_folder))

    @cached_property
    def settings(self) -> LocalSettings:
        """Raises PipelineDown where nothing was ever started, and StateFolderUnfit."""
        return read_started_settings(self.state)

    @cached_property
    def open_lake(self) -> OpenLake:
        """The lake to read. Raises PipelineDown where its S3 server is not running."""
        return open_local(self.lake, self.state)

    @property
    def files(self) -> LakeFiles:
        """The lake's buckets. Raises PipelineDown where their server is not running."""
        return self.open_lake.files

    def require(self, *services: str) -> None:
        """Raises PipelineDown where one of the servers is not running."""
        read_running_settings(self.state, *services)
