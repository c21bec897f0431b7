"""Which steps of the Spark app the benchmarks measure: `python -m bench --acceleration off`."""

from __future__ import annotations

import os

_VARIABLE = "TRIBUTARY_BENCH_ACCELERATION"


def measure_with(acceleration: str) -> None:
    """Let this process and its child processes measure with this `[lake].acceleration`."""
    os.environ[_VARIABLE] = acceleration


def lake_entry() -> str:
    """Return the entry of a benchmark's lake file."""
    return f'acceleration = "{os.environ.get(_VARIABLE, "auto")}"'
