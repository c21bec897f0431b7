"""Results: figures with the settings, versions and machine that they were measured with."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from tributary.contract.errors import TributaryError

RESULTS = Path(__file__).parent / "results"

_PACKAGES = ("pyspark", "hudi", "duckdb")
_POINT = re.compile(r"\[\s+([-+.\w]+),\s+([-+.\w]+)\s+\]")
"""Of a curve, as JSON on four lines."""


class WrongResult(TributaryError):
    """A benchmark's result is not what it has to be, so that how long it took says nothing."""


@dataclass(frozen=True)
class Figure:
    """One number. `of` says what it was measured of: the contender, the table's rows, the batch size…"""

    name: str
    value: float
    unit: str
    of: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """What one run of a benchmark measured. `settings` are those of the run, by name."""

    benchmark: str
    settings: Mapping[str, Any]
    figures: tuple[Figure, ...]
    series: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Curves, by name: (x, y) in the order of x."""


def write_results(results: Results, folder: Path = RESULTS) -> Path:
    """`BENCHMARK.json` in the folder, over that of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{results.benchmark}.json"
    content = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": _machine(),
        "versions": _versions(),
        **asdict(results),
    }
    path.write_text(_POINT.sub(r"[\1, \2]", json.dumps(content, indent=1)) + "\n")
    return path


def find_figure(figures: Iterable[Figure], name: str, of: Mapping[str, str | int | float]) -> Figure:
    """Return the one figure with this name and, among others, these labels. Raise `ValueError` if it is not
    exactly one."""
    (found,) = (each for each in figures if each.name == name and of.items() <= each.of.items())
    return found


def quantile(values: Iterable[float], share: float) -> float:
    """The smallest of the values that at least this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def _machine() -> Mapping[str, Any]:
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "architecture": platform.machine(),
        "system": platform.system(),
    }


def _versions() -> Mapping[str, str]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {"commit": commit, "python": platform.python_version(), **{p: version(p) for p in _PACKAGES}}
