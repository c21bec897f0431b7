"""What is to be reached on two cores, and whether the recorded results reach it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bench.results import Figure
from bench.table import number_text


@dataclass(frozen=True)
class Goal:
    """For the one figure of the benchmark that has the name and, among others, what `of` says."""

    what: str
    benchmark: str
    figure: str
    is_to_be: Literal["at least", "at most"]
    limit: float
    of: Mapping[str, str] = field(default_factory=dict)

    def is_reached_by(self, figure: Figure) -> bool:
        return figure.value >= self.limit if self.is_to_be == "at least" else figure.value <= self.limit

    def found_in(self, figures: Iterable[Figure]) -> Figure:
        """Raises `ValueError` where there is not exactly one."""
        (found,) = (
            figure
            for figure in figures
            if figure.name == self.figure and self.of.items() <= figure.of.items()
        )
        return found


def goals_table(goals: Iterable[Goal], recorded: Mapping[str, Iterable[Figure]]) -> str:
    """A Markdown table; `recorded` are the figures by benchmark."""
    lines = ["| what | goal | measured | reached |", "| --- | --- | --: | --- |"]
    for goal in goals:
        figure = goal.found_in(recorded[goal.benchmark])
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
    return Goal(f"{what}, times the rate of {shown}", benchmark, "times as fast", "at least", 2, of)


GOALS = (
    _freshness("Freshness, half of the rows", "freshness", "freshness p50", 2.5),
    _freshness("Freshness, 95 of 100 rows", "freshness", "freshness p95", 5),
    _freshness("… with sixteen idle tables beside", "freshness_idle_tables", "freshness p95", 8),
    _freshness("… with a backfill beside", "freshness_backfill", "freshness p95", 8),
    _as_long(
        "A small commit, into 10 million rows to into 100,000",
        "flat",
        "largest to smallest",
        {"what": "commit"},
    ),
    _as_long("… after 1,000 commits to after 10", "flat_age", "old to young", {"old": "after 1,000 commits"}),
    _as_long("… beside the history of a day", "flat_age", "old to young", {"old": "with 24 h of history"}),
    Goal("Spark jobs in ten seconds without an event", "commit_cost", "jobs", "at most", 0, {"of": "idle"}),
    *(
        _twice_as_fast(what, benchmark, contender, baseline)
        for what, benchmark, contender in (
            ("Catch-up from Kafka", "catch_up", "kafka, bare"),
            ("Catch-up from bronze", "catch_up", "bronze, bare"),
            ("… of events with schemas, to theirs without", "catch_up", "bronze, schemas"),
            ("Catch-up from Kafka, five events a key", "catch_up_dense", "kafka, bare"),
            ("Catch-up from bronze, five events a key", "catch_up_dense", "bronze, bare"),
            ("Catch-up from Kafka, five million events", "catch_up_large", "kafka, bare"),
            ("Catch-up from bronze, five million events", "catch_up_large", "bronze, bare"),
            ("… from Kafka, five events a key", "catch_up_large_dense", "kafka, bare"),
            ("… from bronze, five events a key", "catch_up_large_dense", "bronze, bare"),
        )
        for baseline in (_HOODIE_STREAMER, _PLAIN_APP)
    ),
    *(
        Goal(
            f"Memory of a catch-up from {origin} of five million events, to that of 500,000",
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
            f"First load, share of the rate of {what}",
            "initial_load",
            "share of its rate",
            "at least",
            0.6,
            {"as": way},
        )
        for what, way in (
            ("Tributary's decoding and a plain Parquet write of the same rows", "decode and Parquet"),
            ("Spark's from_json of the events and a plain Parquet write", "from_json and Parquet"),
            ("a plain Parquet write of rows decoded before", "Parquet"),
        )
    ),
)
