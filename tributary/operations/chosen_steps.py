"""The steps that the Spark app's last ingest has chosen, from the file that it leaves in the lake."""

from __future__ import annotations

from tributary.contract.acceleration import CHOSEN_STEPS_FILE, ChosenSteps
from tributary.operations.text_files import read_text
from tributary.operations.workspace import Workspace


def read_chosen_steps(workspace: Workspace) -> ChosenSteps | None:
    """Return the choice, or None before the first ingest. Raises PipelineDown."""
    lake = workspace.open_lake
    text = read_text(lake.files.filesystem, f"{lake.quarantine}/{CHOSEN_STEPS_FILE}")
    return None if text is None else ChosenSteps.from_json(text)
