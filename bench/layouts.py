"""The layout of each benchmark's figures as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.results import Figure
from bench.table import identity, number_text, text_of

Place = tuple[str, str]
"""The headings of a row and of a column."""


@dataclass(frozen=True)
class Grid:
    """A table with rows and columns.

    head   the heading above the names of the rows
    place  returns where a figure goes, or None if the table does not show it
    """

    head: str
    place: Callable[[Figure], Place | None]

    def table(self, figures: Iterable[Figure], before: Iterable[Figure]) -> str:
        """Return the rows and columns in the order of the figures. A cell shows `before → now`."""
        then = {identity(figure): figure.value for figure in before}
        placed = {place: figure for figure in figures if (place := self.place(figure)) is not None}
        rows, columns = (dict.fromkeys(place[axis] for place in placed) for axis in (0, 1))
        units = {name: {of.unit for (_, column), of in placed.items() if column == name} for name in columns}
        lines = [
            [self.head, *(_heading(name, units[name]) for name in columns)],
            ["---", *("--:" for _ in columns)],
        ]
        lines += [
            [row, *(_cell(placed.get((row, name)), then, has_unit=len(units[name]) > 1) for name in columns)]
            for row in rows
        ]
        return "".join("| " + " | ".join(line) + " |\n" for line in lines)


@dataclass(frozen=True)
class Listing:
    """A table with a line for each figure whose name is listed."""

    names: frozenset[str]

    def table(self, figures: Iterable[Figure], before: Iterable[Figure]) -> str:
        return markdown([figure for figure in figures if figure.name in self.names], before)


def tables(benchmark: str, figures: Sequence[Figure], before: Sequence[Figure]) -> str:
    """Return the benchmark's tables, with each figure next to that of an earlier run."""
    return "\n".join(layout.table(figures, before) for layout in LAYOUTS[benchmark])


def markdown(figures: Iterable[Figure], before: Iterable[Figure]) -> str:
    """Return a table with a line for each figure. Earlier figures add their own column and the ratio."""
    then = {identity(figure): figure.value for figure in before}
    heads = [
        "Figure",
        "Of",
        *(["Before"] if then else []),
        "Now",
        "Unit",
        *(["Now / before"] if then else []),
    ]
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


def _cell(figure: Figure | None, then: Mapping[str, float], *, has_unit: bool) -> str:
    if figure is None:
        return ""
    before, now = then.get(identity(figure)), number_text(figure.value)
    unit = f" {figure.unit}" if has_unit and figure.unit else ""
    return f"{now}{unit}" if before is None else f"{number_text(before)} → {now}{unit}"


def _heading(column: str, units: set[str]) -> str:
    """Return the column's heading, with the unit if all figures share one."""
    (unit,) = units if len(units) == 1 else ("",)
    return f"{column} ({unit})" if unit and unit not in column else column


def _then(figure: Figure, then: Mapping[str, float]) -> str:
    value = then.get(identity(figure))
    return "" if value is None else number_text(value)


def _ratio(figure: Figure, then: Mapping[str, float]) -> str:
    value = then.get(identity(figure))
    return f"{figure.value / value:.2f}" if value else ""


_PERCENTILE = ("p50", "p95", "p99", "max")
_KNOWN_AS = {"plain app": "the tutorials' app"}


def _duration(figure: Figure) -> Place | None:
    """Place freshness, its stages, the commits and their phases, by percentile."""
    base, _, percentile = figure.name.rpartition(" ")
    if percentile not in _PERCENTILE or base not in ("freshness", "stage", "commit", "phase"):
        return None
    if "quarter" in figure.of:
        return None
    row = {
        "freshness": f"**until {figure.of.get('until')}**",
        "stage": f"stage: {figure.of.get('stage')}",
        "commit": "a commit",
        "phase": f"phase of a commit: {figure.of.get('phase')}",
    }[base]
    return row, percentile


def _processor(figure: Figure) -> Place | None:
    return (str(figure.of["process"]), "busy cores") if figure.name == "processor" else None


def _quarter(figure: Figure) -> Place | None:
    base, _, percentile = figure.name.rpartition(" ")
    return (str(figure.of["quarter"]), percentile) if base == "freshness" and "quarter" in figure.of else None


def _held(figure: Figure) -> Place | None:
    """Place a process's resources in the first and the last quarter."""
    if figure.name not in ("resident memory", "threads", "open files"):
        return None
    return str(figure.of["process"]), f"{figure.name}, {figure.of['quarter']} quarter"


def _on_disk(figure: Figure) -> Place | None:
    return (str(figure.of["folder"]), f"{figure.of['quarter']} quarter") if figure.name == "on disk" else None


def _contender(figure: Figure) -> str:
    name = str(figure.of["of"])
    return _KNOWN_AS.get(name, name)


def _rate(figure: Figure) -> Place | None:
    """Place events per second and memory, for a contender and its batch size."""
    if figure.name == "times as fast":
        return None
    measure = "rate" if figure.name == "events a second" else figure.name
    return f"{_contender(figure)}, batches of {number_text(figure.of['batch'])}", measure


def _rate_and_size(figure: Figure) -> Place | None:
    """Place events per second, memory, and the size of an event, for one batch size."""
    measure = "rate" if figure.name == "events a second" else figure.name
    return _contender(figure), measure


def _times(figure: Figure) -> Place | None:
    """Place a contender's speed-up, each at its best batch size."""
    if figure.name != "times as fast":
        return None
    other = str(figure.of["as"])
    return _contender(figure), f"compared with {_KNOWN_AS.get(other, other)}"


def _memory(figure: Figure) -> Place | None:
    if figure.name == "largest backlog to smallest":
        return f"{_contender(figure)}, {figure.of['what']}", "largest / smallest"
    return f"{_contender(figure)}, {figure.name}", f"{number_text(figure.of['events'])} events"


def _load(figure: Figure) -> Place | None:
    if figure.name == "share of its rate":
        return str(figure.of["as"]), "Tributary's rate / this rate"
    return _contender(figure), "rate"


def _by_rows(figure: Figure) -> Place | None:
    rows = figure.of.get("rows")
    row = "largest / smallest" if rows is None else f"{number_text(rows)} rows"
    measure = "p50" if rows is None else figure.name.removeprefix("seconds ")
    return row, f"{figure.of['what']}, {measure}"


def _by_age(figure: Figure) -> Place | None:
    column = {"old to young": "old / young"}.get(figure.name, figure.name.removeprefix("seconds "))
    return str(figure.of["old"]), column


def _compaction(figure: Figure) -> Place | None:
    return text_of(figure.of), figure.name


def _cost(figure: Figure) -> Place | None:
    kind = figure.of.get("kind")
    return f"{figure.name}, {kind}" if kind else figure.name, str(figure.of["of"])


def _verify(figure: Figure) -> Place | None:
    return (str(figure.of["round"]), figure.name)


def _mixture(figure: Figure) -> Place | None:
    return str(figure.of["plain"]), figure.name


def _start(figure: Figure) -> Place | None:
    return str(figure.of["what"]), figure.name.removeprefix("seconds ")


_FRESHNESS = (
    Grid("Time", _duration),
    Listing(frozenset({"measured", "rows of the probe", "changes", "commits", "events of a commit p50"})),
    Grid("Process", _processor),
)
_CATCH_UP = (Grid("Contender", _rate), Grid("Times as fast", _times))


def _lake(figure: Figure) -> Place | None:
    if "tables" not in figure.of:
        return None
    column = f"{figure.of['tables']} tables"
    label = figure.of.get("command")
    if label is None:
        return f"{figure.name} ({figure.unit})", column
    command, comma, which = str(label).partition(",")
    return f"`tributary {command}`{comma}{which} (s)", column


_MANY_TABLES = (
    Grid("Figure", _lake),
    Listing(
        frozenset(
            {
                "first load of a table",
                "first load against a small commit",
                "an idle table",
                "memory of a table",
                "freshness p95 with idle tables against without",
            }
        )
    ),
)


def _page(figure: Figure) -> Place | None:
    page = figure.of["page"]
    return figure.name, "no page open" if page == "none" else f"{page} open"


def _phase(figure: Figure) -> Place | None:
    return (f"phase of a commit: {figure.of['phase']}", "p50") if figure.name == "phase p50" else None


_FRESHNESS_KINESIS = (
    Listing(
        frozenset(
            {"freshness p50", "freshness p95", "changes", "commits", "commit p50", "a commit", "busy cores"}
        )
    ),
    Grid("Time", _phase),
)
_CATCH_UP_KINESIS = (Listing(frozenset({"events a second", "share of a plain read", "CPU time"})),)


def _cold(figure: Figure) -> Place | None:
    return (str(figure.of["when"]), figure.name)


LAYOUTS: Mapping[str, tuple[Grid | Listing, ...]] = {
    "freshness": _FRESHNESS,
    "freshness_idle_tables": _FRESHNESS,
    "freshness_backfill": _FRESHNESS,
    "freshness_kinesis": _FRESHNESS_KINESIS,
    "catch_up_kinesis": _CATCH_UP_KINESIS,
    "many_tables": _MANY_TABLES,
    "many_tables_thousand": _MANY_TABLES,
    "console": (Grid("Figure", _page),),
    "endurance": (
        Grid("Quarter of the hour", _quarter),
        Grid("Process", _held),
        Grid("Folder on disk", _on_disk),
    ),
    "catch_up": _CATCH_UP,
    "catch_up_dense": _CATCH_UP,
    "catch_up_large": _CATCH_UP,
    "catch_up_large_dense": _CATCH_UP,
    "catch_up_batches": _CATCH_UP,
    "catch_up_avro": (Grid("Events", _rate_and_size),),
    "each_step": (Grid("In plain PySpark", _mixture),),
    "catch_up_memory": (Grid("Source", _memory),),
    "initial_load": (Grid("Way", _load),),
    "flat": (Grid("Table", _by_rows),),
    "flat_age": (Grid("Old table", _by_age),),
    "compaction": (Grid("Table", _compaction),),
    "commit_cost": (Grid("Figure", _cost),),
    "commit_cost_at_pace_of_s3": (Grid("Figure", _cost),),
    "cold": (Grid("Time", _cold),),
    "start": (Grid("Start of", _start),),
    "verify": (Grid("Rounds in which", _verify),),
}
"""The tables of each benchmark, by its name."""
