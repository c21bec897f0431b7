"""The pages that show the recorded results. `python -m bench.report` renews their tables and pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.goals import GOALS, goals_table
from bench.headlines import HEADLINES, headlines_table
from bench.layouts import tables
from bench.plots import Plot, Points, svg
from bench.results import RESULTS, Figure

_ROOT = Path(__file__).parent.parent
GUIDE = _ROOT / "docs" / "performance.md"
RECORD = _ROOT / "bench" / "RESULTS.md"
PAGES = (GUIDE, RECORD)
BEFORE = RESULTS / "before"
"""The results of the same benchmarks on an early version of the code."""

FRESHNESS_SECONDS = 5.0
"""The goal for 95 % of the rows."""

PICTURES = {
    "freshness": ("freshness.svg",),
    "endurance": ("hour-freshness.svg", "hour-memory.svg", "hour-disk.svg"),
    "flat": ("commit-by-rows.svg",),
    "flat_age": ("commit-by-age.svg",),
}
"""The files in bench/results that show a benchmark's curves."""

_FIGURES = re.compile(r"<!-- figures of (\w+) -->\n.*?<!-- end of figures of \1 -->", re.DOTALL)
_GOALS = re.compile(r"<!-- goals -->\n.*?<!-- end of goals -->", re.DOTALL)
_HEADLINES = re.compile(r"<!-- headlines -->\n.*?<!-- end of headlines -->", re.DOTALL)
_MOST_CURVES = 4
_DOTS_FROM = 20
"""A curve with more points than this is drawn as dots."""


@dataclass(frozen=True)
class Recorded:
    """The content of a results file."""

    figures: tuple[Figure, ...]
    series: Mapping[str, Points]


def read_recorded(benchmark: str, folder: Path = RESULTS) -> Recorded | None:
    """Return the last recorded results of a benchmark, or None if it has never been measured."""
    path = folder / f"{benchmark}.json"
    if not path.exists():
        return None
    content: Mapping[str, Any] = json.loads(path.read_text())
    return Recorded(
        figures=tuple(Figure(**figure) for figure in content["figures"]),
        series={name: [(x, y) for x, y in curve] for name, curve in content["series"].items()},
    )


def with_tables(page: str) -> str:
    """Return the page with every marked table renewed from the recorded results."""
    page = _FIGURES.sub(lambda found: _figures(found.group(1)), page)
    page = _GOALS.sub(lambda _: _marked("goals", goals_table(GOALS, _recorded_figures())), page)
    return _HEADLINES.sub(
        lambda _: _marked("headlines", headlines_table(HEADLINES, _recorded_figures())), page
    )


def pictures() -> Mapping[str, str]:
    """Return each picture's file name and content, for the benchmarks that have results."""
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


def _figures(benchmark: str) -> str:
    now, before = read_recorded(benchmark), read_recorded(benchmark, BEFORE)
    content = "Not measured yet.\n"
    if now is not None:
        drawn = "".join(f"![{benchmark}]({RESULTS.name}/{name})\n\n" for name in PICTURES.get(benchmark, ()))
        content = drawn + tables(benchmark, now.figures, before.figures if before else ())
    return _marked(f"figures of {benchmark}", content)


def _marked(name: str, content: str) -> str:
    return f"<!-- {name} -->\n{content}<!-- end of {name} -->"


def _recorded_figures() -> Mapping[str, tuple[Figure, ...]]:
    names = {goal.benchmark for goal in GOALS} | {headline.benchmark for headline in HEADLINES}
    recorded = {name: read_recorded(name) for name in names}
    return {name: of.figures for name, of in recorded.items() if of is not None}


def _freshness_plot(freshness: Recorded) -> Plot:
    return Plot(
        "From a row's commit in the database to its reader",
        "seconds of the run",
        "s",
        {"rows of the probe": freshness.series["freshness"]},
        dots=len(freshness.series["freshness"]) > _DOTS_FROM,
        limit=(FRESHNESS_SECONDS, "goal for 95 % of the rows"),
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
    """Write the pages and the pictures."""
    for page in PAGES:
        page.write_text(with_tables(page.read_text()))
    for name, content in pictures().items():
        (RESULTS / name).write_text(content)


if __name__ == "__main__":
    main()
