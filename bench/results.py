"""Results: figures with the settings, versions and machine of their measurement."""

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
"""A point of a curve, which `json.dumps` spreads over four lines."""


class WrongResult(TributaryError):
    """A benchmark's result is wrong, so its timing is worthless."""


@dataclass(frozen=True)
class Figure:
    """One number. `of` says what was measured: the contender, the table's rows, the batch size…"""

    name: str
    value: float
    unit: str
    of: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """The figures of one run of a benchmark, with the run's settings by name."""

    benchmark: str
    settings: Mapping[str, Any]
    figures: tuple[Figure, ...]
    series: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Curves by name: (x, y), sorted by x."""


def write_results(results: Results, folder: Path = RESULTS) -> Path:
    """Write `BENCHMARK.json` to the folder, replacing an earlier run's file. Return its path."""
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
    """Return the one figure with this name and at least these labels.

    Raises `ValueError` if there is none or more than one.
    """
    (found,) = (each for each in figures if each.name == name and of.items() <= each.of.items())
    return found


def quantile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
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
