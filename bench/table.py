"""Print a benchmark's results as a table, compared with an earlier run's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.results import Figure, Results


def read_figures(path: Path) -> tuple[Figure, ...]:
    """Read the figures of a file from `write_results`."""
    return tuple(Figure(**figure) for figure in json.loads(path.read_text())["figures"])


def print_results(results: Results, console: Console, earlier: Iterable[Figure] = ()) -> None:
    """Print one line a figure. If the earlier run has the same figure, add it and the ratio."""
    before = {identity(figure): figure.value for figure in earlier}
    columns = ["what", "of", "value", "unit", *(["earlier", "ratio"] if before else [])]
    table = Table(*columns, title=results.benchmark, title_justify="left")
    for figure in results.figures:
        row = [figure.name, text_of(figure.of), number_text(figure.value), figure.unit]
        if before:
            row += _beside(figure.value, before.get(identity(figure)))
        table.add_row(*row)
    console.print(table)


def text_of(of: Mapping[str, Any]) -> str:
    """Return the properties as text, such as `rows 1,000,000, what commit`."""
    parts = (f"{name} {number_text(value)}" for name, value in of.items())
    return ", ".join(part.removeprefix("of ") for part in parts)


def number_text(value: str | float) -> str:
    """Return the number with at most four significant digits, but with all digits before the point."""
    if isinstance(value, str):
        return value
    if abs(value) >= 1_000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def identity(figure: Figure) -> str:
    """Return a text that is equal for the same figure of two runs."""
    content = asdict(figure)
    return json.dumps([content["name"], content["unit"], content["of"]], sort_keys=True)


def _beside(value: float, before: float | None) -> list[str]:
    if before is None:
        return ["", ""]
    return [number_text(before), f"{value / before:.2f}" if before else ""]
