"""Say that the Spark app runs without its Java."""

from __future__ import annotations

from tributary.cli.rendering import output
from tributary.contract.acceleration import ChosenSteps


def print_steps(steps: ChosenSteps | None) -> None:
    """Print a paragraph if the app runs in plain PySpark although the lake file allows Java."""
    if steps is not None and steps.warning is not None:
        output.print(f"\n{steps.warning}", markup=False, highlight=False, soft_wrap=True)
