"""The few figures that docs/performance.md shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.results import Figure, find_figure

_THREE_DIGITS_FROM = 100
_DECIMALS = ((10, 0), (1, 1))


@dataclass(frozen=True)
class Found:
    """The one figure of a benchmark with this name and at least these labels."""

    name: str
    of: Mapping[str, str | int]


@dataclass(frozen=True)
class Headline:
    """A line of the page's table. `text` has a `{}` for each figure, which is shown rounded."""

    what: str
    benchmark: str
    text: str
    figures: tuple[Found, ...]


def headlines_table(headlines: Iterable[Headline], recorded: Mapping[str, Iterable[Figure]]) -> str:
    """Return a Markdown table. `recorded` has the figures by benchmark."""
    lines = ["| What | Measured |", "| --- | --- |"]
    for headline in headlines:
        values = [
            rounded(find_figure(recorded[headline.benchmark], found.name, found.of).value)
            for found in headline.figures
        ]
        lines.append(f"| {headline.what} | {headline.text.format(*values)} |")
    return "\n".join(lines) + "\n"


def rounded(value: float) -> str:
    """Return about two significant digits below 100, and three above."""
    if value == 0:
        return "0"
    if abs(value) >= _THREE_DIGITS_FROM:
        return f"{float(f'{value:.3g}'):,.0f}"
    decimals = next((digits for limit, digits in _DECIMALS if abs(value) >= limit), 2)
    return f"{value:.{decimals}f}"


def _times(contender: str, other: str) -> Found:
    return Found("times as fast", {"of": contender, "as": other})


def _backlog(contender: str) -> tuple[Found, ...]:
    return (
        Found("events a second", {"of": contender}),
        _times(contender, "HoodieStreamer"),
        _times(contender, "plain app"),
    )


_RATES = "{} events/s: {}× HoodieStreamer, {}× the tutorials' app"
_READABLE = {"until": "readable"}

HEADLINES = (
    Headline(
        "From the commit in the database until the row is readable, p50 and p95",
        "freshness",
        "{} s and {} s",
        (Found("freshness p50", _READABLE), Found("freshness p95", _READABLE)),
    ),
    Headline(
        "… with 16 additional idle tables, p95",
        "freshness_idle_tables",
        "{} s",
        (Found("freshness p95", _READABLE),),
    ),
    Headline(
        "… while another table loads 2 million rows, p95",
        "freshness_backfill",
        "{} s",
        (Found("freshness p95", _READABLE),),
    ),
    Headline(
        "Draining a backlog of 1 million events from Kafka", "catch_up", _RATES, _backlog("kafka, bare")
    ),
    Headline("… from bronze", "catch_up", _RATES, _backlog("bronze, bare")),
    Headline(
        "Peak memory, with a heap of 1 GB, for 500,000 events in Kafka and for 5 million",
        "catch_up_memory",
        "{} MiB and {} MiB",
        (
            Found("peak resident memory", {"of": "kafka, bare", "events": 500_000}),
            Found("peak resident memory", {"of": "kafka, bare", "events": 5_000_000}),
        ),
    ),
    Headline(
        "First load of 5 million rows",
        "initial_load",
        "{} rows/s: {}× Spark's from_json and a plain Parquet write",
        (
            Found("rows a second", {"of": "Tributary"}),
            Found("share of its rate", {"as": "from_json and Parquet"}),
        ),
    ),
    Headline(
        "A commit of 1,000 events into 100,000 rows, and into 10 million",
        "flat",
        "{} s and {} s",
        (
            Found("seconds p50", {"rows": 100_000, "what": "commit"}),
            Found("seconds p50", {"rows": 10_000_000, "what": "commit"}),
        ),
    ),
    Headline(
        "… if each S3 request takes 20 ms longer",
        "commit_cost_at_pace_of_s3",
        "{} s",
        (Found("seconds p50", {"of": "commit"}),),
    ),
    Headline(
        "Longest pause of a 10-million-row table for compaction (10 buckets)",
        "compaction",
        "{} s",
        (Found("longest part", {"rows": 10_000_000}),),
    ),
    Headline(
        "Ten seconds without an event",
        "commit_cost",
        "{} Spark jobs, {} S3 requests",
        (Found("jobs", {"of": "idle"}), Found("requests", {"of": "idle"})),
    ),
    Headline(
        "From spark-submit to the first commit",
        "start",
        "{} s",
        (Found("seconds p50", {"what": "spark-submit to the first commit"}),),
    ),
)
