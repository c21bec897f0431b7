"""The steps that the Spark app's last ingest has chosen, from the file that it leaves in the lake."""

from __future__ import annotations

from tributary.contract.acceleration import CHOSEN_STEPS_FILE, ChosenSteps
from tributary.operations.workspace import Workspace


def read_chosen_steps(workspace: Workspace) -> ChosenSteps | None:
    """Return the choice, or None before the first ingest. Raises PipelineDown."""
    lake = workspace.open_lake
    try:
        with lake.files.filesystem.open_input_stream(f"{lake.quarantine}/{CHOSEN_STEPS_FILE}") as stream:
            return ChosenSteps.from_json(stream.read().decode())
    except FileNotFoundError:
        return None
