"""What a person reads at the end of an example."""

from __future__ import annotations

from pathlib import Path

from tributary.cli.demo_steps import Phases
from tributary.cli.rendering import output, print_table


def print_times(phases: Phases) -> None:
    """Print how long each phase took."""
    output.print()
    times = [(name, f"{seconds:.1f} s") for name, seconds in phases.seconds.items()]
    print_table(("phase", "time"), times, (False, True))


def print_what_runs(lake_file: Path, state: Path) -> None:
    """Say that the servers still run, how to see the board, and how to stop the servers."""
    text = (
        f"All servers are still running. To see the board, run tributary console --lake {lake_file} "
        f"--state {state}. tributary down --state {state} stops the servers."
    )
    output.print(f"\n{text}", markup=False, highlight=False, soft_wrap=True)
