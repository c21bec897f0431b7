"""The context of one command: the lake of a lake file, and the state folder that runs it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tributary.api.lake_files import LakeFiles
from tributary.api.open_lake import OpenLake, open_local
from tributary.contract.lake import Lake, read_lake
from tributary.local.running import read_running_settings, read_started_settings
from tributary.local.state import LocalSettings, StateFolder
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.keeping import alone

if TYPE_CHECKING:
    from tributary.operations.reconcile.proof import SourceLink


@dataclass(frozen=True)
class Workspace:
    """A lake and its state folder. `lake_file` is the file that `lake` was read from."""

    lake_file: Path
    lake: Lake
    state: StateFolder

    @classmethod
    def open(cls, lake_file: Path, state_folder: Path) -> Workspace:
        """Read the lake file, and return the workspace. Raises LakeFileError."""
        return cls(lake_file, read_lake(lake_file), StateFolder(state_folder))

    @cached_property
    def settings(self) -> LocalSettings:
        """The state folder's settings. Raises StateFolderUnfit, or PipelineDown before the first start."""
        return read_started_settings(self.state)

    @cached_property
    def open_lake(self) -> OpenLake:
        """Open the lake to read it. Raises PipelineDown if its S3 server is not running."""
        return open_local(self.lake, self.state)

    @property
    def files(self) -> LakeFiles:
        """The lake's buckets. Raises PipelineDown if their server is not running."""
        return self.open_lake.files

    @property
    def kafka(self) -> KafkaCluster:
        """The Kafka of this machine, into which nobody has to log in. Raises PipelineDown."""
        self.require("kafka")
        return KafkaCluster(self.settings.kafka_bootstrap)

    def links(self) -> tuple[SourceLink, ...]:
        """Return a link for each source that Debezium reads. Raises PipelineDown."""
        # It loads the drivers of all engines, which few commands need.
        from tributary.operations.source_links import source_links

        return source_links(self) if self.lake.connected_sources else ()

    def alone(self, work: str) -> AbstractContextManager[bool]:
        """Return a context that tells whether no other process does this work."""
        return alone(self.state, work)

    def require(self, *services: str) -> None:
        """Raise PipelineDown if one of the servers is not running."""
        read_running_settings(self.state, *services)
