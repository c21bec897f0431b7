"""The goals of Tributary on two cores, and the check of the recorded results against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bench.results import Figure, find_figure
from bench.table import number_text


@dataclass(frozen=True)
class Goal:
    """A limit for one figure of a benchmark. `of` holds the labels that identify the figure."""

    what: str
    benchmark: str
    figure: str
    is_to_be: Literal["at least", "at most"]
    limit: float
    of: Mapping[str, str] = field(default_factory=dict)

    def is_reached_by(self, figure: Figure) -> bool:
        return figure.value >= self.limit if self.is_to_be == "at least" else figure.value <= self.limit


def goals_table(goals: Iterable[Goal], recorded: Mapping[str, Iterable[Figure]]) -> str:
    """Return a Markdown table. `recorded` has the figures by benchmark."""
    lines = ["| Goal | Limit | Measured | Reached |", "| --- | --- | --: | --- |"]
    for goal in goals:
        figure = find_figure(recorded[goal.benchmark], goal.figure, goal.of)
        limit, value = (
            f"{number_text(number)} {figure.unit}".strip() for number in (goal.limit, figure.value)
        )
        is_reached = "yes" if goal.is_reached_by(figure) else "**no**"
        lines.append(f"| {goal.what} | {goal.is_to_be} {limit} | {value} | {is_reached} |")
    return "\n".join(lines) + "\n"


_HOODIE_STREAMER, _PLAIN_APP = ("HoodieStreamer", "HoodieStreamer"), ("plain app", "the tutorials' app")


def _freshness(what: str, benchmark: str, figure: str, seconds: float) -> Goal:
    return Goal(what, benchmark, figure, "at most", seconds, {"until": "readable"})


def _as_long(what: str, benchmark: str, figure: str, of: Mapping[str, str]) -> Goal:
    return Goal(what, benchmark, figure, "at most", 1.3, of)


def _twice_as_fast(what: str, benchmark: str, contender: str, baseline: tuple[str, str]) -> Goal:
    name, shown = baseline
    of = {"of": contender, "as": name}
    return Goal(f"{what}, compared with {shown}", benchmark, "times as fast", "at least", 2, of)


GOALS = (
    _freshness("Freshness, p50", "freshness", "freshness p50", 2.5),
    _freshness("Freshness, p95", "freshness", "freshness p95", 5),
    _freshness("Freshness with 16 idle tables, p95", "freshness_idle_tables", "freshness p95", 8),
    _freshness("Freshness during a backfill, p95", "freshness_backfill", "freshness p95", 8),
    _as_long(
        "Small commit: into 10 million rows, compared with 100,000",
        "flat",
        "largest to smallest",
        {"what": "commit"},
    ),
    _as_long(
        "Small commit: after 1,000 commits, compared with after 10",
        "flat_age",
        "old to young",
        {"old": "after 1,000 commits"},
    ),
    _as_long(
        "Small commit: with a day of history, compared with none",
        "flat_age",
        "old to young",
        {"old": "with 24 h of history"},
    ),
    Goal("Spark jobs in ten seconds without an event", "commit_cost", "jobs", "at most", 0, {"of": "idle"}),
    *(
        _twice_as_fast(what, benchmark, contender, baseline)
        for what, benchmark, contender in (
            ("Backlog in Kafka", "catch_up", "kafka, bare"),
            ("Backlog in bronze", "catch_up", "bronze, bare"),
            ("Backlog in bronze, events with schemas", "catch_up", "bronze, schemas"),
            ("Backlog in Kafka, 5 events per key", "catch_up_dense", "kafka, bare"),
            ("Backlog in bronze, 5 events per key", "catch_up_dense", "bronze, bare"),
            ("Backlog in Kafka, 5 million events", "catch_up_large", "kafka, bare"),
            ("Backlog in bronze, 5 million events", "catch_up_large", "bronze, bare"),
            ("Backlog in Kafka, 5 million events, 5 per key", "catch_up_large_dense", "kafka, bare"),
            ("Backlog in bronze, 5 million events, 5 per key", "catch_up_large_dense", "bronze, bare"),
        )
        for baseline in (_HOODIE_STREAMER, _PLAIN_APP)
    ),
    *(
        Goal(
            f"Memory for a backlog of 5 million events in {origin}, compared with 500,000",
            "catch_up_memory",
            "largest backlog to smallest",
            "at most",
            1.2,
            {"of": contender, "what": "peak resident memory"},
        )
        for origin, contender in (("Kafka", "kafka, bare"), ("bronze", "bronze, bare"))
    ),
    *(
        Goal(
            f"First load: rate divided by that of {what}",
            "initial_load",
            "share of its rate",
            "at least",
            0.6,
            {"as": way},
        )
        for what, way in (
            ("Tributary's decoding and a plain Parquet write", "decode and Parquet"),
            ("Spark's from_json and a plain Parquet write", "from_json and Parquet"),
            ("a plain Parquet write of rows that are already decoded", "Parquet"),
        )
    ),
)
