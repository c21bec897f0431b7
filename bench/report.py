"""Knows which results docs/performance.md shows: `python -m bench.report` writes its tables and pictures anew
from bench/results, those in `before` beside those of now."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.goals import GOALS, goals_table
from bench.plots import Plot, Points, svg
from bench.results import RESULTS, Figure
from bench.table import identity, number_text, text_of

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "performance.md"
BEFORE = RESULTS / "before"

FRESHNESS_SECONDS = 5.0
"""What 95 of 100 rows have to reach."""

PICTURES = {
    "freshness": ("freshness.svg",),
    "endurance": ("hour-freshness.svg", "hour-memory.svg", "hour-disk.svg"),
    "flat": ("commit-by-rows.svg",),
    "flat_age": ("commit-by-age.svg",),
}
"""Those above a benchmark's table."""

_TABLE = re.compile(r"<!-- figures of (\w+) -->\n.*?<!-- end of figures of \1 -->", re.DOTALL)
_GOALS = re.compile(r"<!-- goals -->\n.*?<!-- end of goals -->", re.DOTALL)
_MOST_ROWS, _ROWS_SHOWN = 24, 12
"""Of a longer table the rest is shown on demand."""

_LEAST = 20
_MOST_CURVES = 4


@dataclass(frozen=True)
class Recorded:
    """A results file."""

    figures: tuple[Figure, ...]
    series: Mapping[str, Points]


def read_recorded(benchmark: str, folder: Path = RESULTS) -> Recorded | None:
    """What was last measured; None where nothing was."""
    path = folder / f"{benchmark}.json"
    if not path.exists():
        return None
    content: Mapping[str, Any] = json.loads(path.read_text())
    return Recorded(
        figures=tuple(Figure(**figure) for figure in content["figures"]),
        series={name: [(x, y) for x, y in curve] for name, curve in content["series"].items()},
    )


def with_tables(page: str) -> str:
    """The page with every table as the results are now."""
    return _TABLE.sub(lambda found: _section(found.group(1)), _GOALS.sub(lambda _: _goals(), page))


def pictures() -> Mapping[str, str]:
    """Each picture's file name and content, of those whose results there are."""
    plots: dict[str, Sequence[Plot]] = {}
    if (freshness := read_recorded("freshness")) is not None:
        plots["freshness"] = (_freshness_plot(freshness),)
    if (endurance := read_recorded("endurance")) is not None:
        plots["endurance"] = _endurance_plots(endurance)
    for benchmark, series, x, is_log in (
        ("flat", "seconds of a commit by rows", "rows of the table", True),
        ("flat_age", "seconds of a commit by commits before", "commits before", False),
    ):
        recorded = {"now": read_recorded(benchmark), "before": read_recorded(benchmark, BEFORE)}
        curves = {when: of.series[series] for when, of in recorded.items() if of is not None}
        if curves:
            plots[benchmark] = (Plot("Seconds of a commit of 1,000 events", x, "s", curves, is_log=is_log),)
    return {
        name: svg(plot)
        for benchmark, drawn in plots.items()
        for name, plot in zip(PICTURES[benchmark], drawn, strict=True)
    }


def markdown(figures: Iterable[Figure], before: Iterable[Figure]) -> str:
    """A table of the figures; where there are some from before, with those and the ratio."""
    then = {identity(figure): figure.value for figure in before}
    heads = ["what", "of", *(["before"] if then else []), "now", "unit", *(["now to before"] if then else [])]
    rows = [
        [
            figure.name,
            text_of(figure.of),
            *([_then(figure, then)] if then else []),
            number_text(figure.value),
            figure.unit,
            *([_ratio(figure, then)] if then else []),
        ]
        for figure in figures
    ]
    aligned = ["---", "---", *(["--:"] if then else []), "--:", "---", *(["--:"] if then else [])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, aligned, *rows)) + "\n"


def _goals() -> str:
    recorded = {goal.benchmark: read_recorded(goal.benchmark) for goal in GOALS}
    figures = {benchmark: of.figures for benchmark, of in recorded.items() if of is not None}
    return f"<!-- goals -->\n{goals_table(GOALS, figures)}<!-- end of goals -->"


def _section(benchmark: str) -> str:
    now, before = read_recorded(benchmark), read_recorded(benchmark, BEFORE)
    content = "Not measured yet.\n"
    if now is not None:
        drawn = "".join(f"![{benchmark}]({name})\n\n" for name in PICTURES.get(benchmark, ()))
        content = drawn + _folded(now.figures, before.figures if before else ())
    return f"<!-- figures of {benchmark} -->\n{content}<!-- end of figures of {benchmark} -->"


def _folded(figures: Sequence[Figure], before: Sequence[Figure]) -> str:
    if len(figures) <= _MOST_ROWS:
        return markdown(figures, before)
    first, others = figures[:_ROWS_SHOWN], figures[_ROWS_SHOWN:]
    return (
        f"{markdown(first, before)}\n<details><summary>{len(others)} more figures</summary>\n\n"
        f"{markdown(others, before)}\n</details>\n"
    )


def _then(figure: Figure, then: Mapping[str, float]) -> str:
    value = then.get(identity(figure))
    return "" if value is None else number_text(value)


def _ratio(figure: Figure, then: Mapping[str, float]) -> str:
    value = then.get(identity(figure))
    return f"{figure.value / value:.2f}" if value else ""


def _freshness_plot(freshness: Recorded) -> Plot:
    return Plot(
        "From a row's commit in the database to its being read in the lake",
        "seconds of the run",
        "s",
        {"rows of the probe": freshness.series["freshness"]},
        dots=len(freshness.series["freshness"]) > _LEAST,
        limit=(FRESHNESS_SECONDS, "95 of 100 rows have to be below"),
    )


def _endurance_plots(endurance: Recorded) -> tuple[Plot, ...]:
    def curves(kind: str) -> Mapping[str, Points]:
        found = {
            name.removeprefix(kind): of for name, of in endurance.series.items() if name.startswith(kind)
        }
        return dict(sorted(found.items(), key=lambda one: -one[1][-1][1])[:_MOST_CURVES])

    run = "seconds of the run"
    return (
        _freshness_plot(endurance),
        Plot("Resident memory", run, "MiB", curves("resident memory ")),
        Plot("On disk", run, "MiB", curves("on disk ")),
    )


def main() -> None:
    """Writes the page and its pictures."""
    PAGE.write_text(with_tables(PAGE.read_text()))
    for name, content in pictures().items():
        (DOCS / name).write_text(content)


if __name__ == "__main__":
    main()
