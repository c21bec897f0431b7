"""What one call of the command works on: the lake of a lake file, and the state folder that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake, read_lake
from tributary.contract.remedies import BringUp
from tributary.lake.files import LakeFiles
from tributary.lake.tables import LakeTable, find_table, read_silver_tables
from tributary.local.process import read_process
from tributary.local.state import LocalSettings, StateFolder


class PipelineDown(TributaryError):
    """A command needs a server of the pipeline that is not running."""


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
        """Raises `PipelineDown` where nothing was ever started, and StateFolderUnfit."""
        settings = self.state.read_settings()
        if settings is None:
            raise PipelineDown(
                "The pipeline was never started here",
                where=str(self.state.path),
                remedy=[BringUp(), "If it runs elsewhere, name its state folder with --state."],
            )
        return settings

    @cached_property
    def files(self) -> LakeFiles:
        """The lake's buckets. Raises `PipelineDown` where their server is not running."""
        self.require("s3")
        secrets = self.settings.secrets
        return LakeFiles(
            self.settings.s3_endpoint,
            secrets.s3_access_key.get_secret_value(),
            secrets.s3_secret_key.get_secret_value(),
        )

    def require(self, *services: str) -> None:
        """Raises `PipelineDown` where one of the servers is not running."""
        down = [service for service in services if self._is_down(service)]
        if down:
            raise PipelineDown(
                f"The pipeline is not up: {_listed(down)} not running",
                where=str(self.state.path),
                remedy=BringUp(),
            )

    def silver_tables(self) -> tuple[LakeTable, ...]:
        return read_silver_tables(self.files.filesystem, self.lake.names)

    def silver_table(self, name: str) -> LakeTable:
        """The table that a person calls so. Raises UnknownTable."""
        return find_table(self.silver_tables(), name)

    def quarantine_path(self, table: LakeTable) -> str:
        return f"{self.lake.names.quarantine_bucket}/{self.lake.names.table_path(table.name)}"

    def _is_down(self, service: str) -> bool:
        self.settings  # noqa: B018  Where nothing was ever started, that is what has to be said.
        return read_process(service, self.state.run) is None


def _listed(services: Sequence[str]) -> str:
    return f"{' and '.join(services)} {'is' if len(services) == 1 else 'are'}"
