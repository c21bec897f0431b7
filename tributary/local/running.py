"""Check that the servers of a state folder run, before a command uses them."""

from __future__ import annotations

from collections.abc import Sequence

from tributary.contract.errors import TributaryError
from tributary.contract.remedies import BringUp
from tributary.local.process import read_process
from tributary.local.state import LocalSettings, StateFolder


class PipelineDown(TributaryError):
    """A required server of the pipeline is not running."""


def read_started_settings(state: StateFolder) -> LocalSettings:
    """Return the settings of a started pipeline. Raises `PipelineDown` and StateFolderUnfit."""
    settings = state.read_settings()
    if settings is None:
        raise PipelineDown(
            "The pipeline was never started here",
            where=str(state.path),
            remedy=[BringUp(), "If it runs elsewhere, name its state folder."],
        )
    return settings


def read_running_settings(state: StateFolder, *services: str) -> LocalSettings:
    """Return the settings if all the services run. Raises `PipelineDown` and StateFolderUnfit."""
    settings = read_started_settings(state)
    if down := [service for service in services if read_process(service, state.run) is None]:
        raise PipelineDown(
            f"The pipeline is not up: {_listed(down)} not running", where=str(state.path), remedy=BringUp()
        )
    return settings


def _listed(services: Sequence[str]) -> str:
    return f"{' and '.join(services)} {'is' if len(services) == 1 else 'are'}"
