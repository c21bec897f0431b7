"""The runs of the contenders become the right figures."""

from __future__ import annotations

from pathlib import Path

from bench import catch_up_memory
from bench.catch_up import Run, figures
from bench.hoodie_streamer import commits

MIB = 1 << 20


def test_each_contender_counts_with_its_best_batch() -> None:
    runs = [
        Run("kafka, bare", 100, events=1_000, seconds=2.0, resident=3 * MIB, heap=MIB),
        Run("kafka, bare", 200, events=1_000, seconds=0.5, resident=5 * MIB, heap=2 * MIB),
        Run("plain app", 100, events=1_000, seconds=1.0, resident=MIB, heap=MIB),
        Run("plain app", 200, events=1_000, seconds=4.0, resident=MIB, heap=MIB),
    ]
    found = figures(runs, events_per_key=5.0)
    (ratio,) = [figure for figure in found if figure.name == "times as fast"]
    assert ratio.value == 2.0
    assert ratio.of == {"of": "kafka, bare", "as": "plain app", "events a key": 5.0}


def test_rounds_are_averaged_and_memory_is_their_maximum() -> None:
    runs = [
        Run("plain app", 100, events=1_000, seconds=1.0, resident=7 * MIB),
        Run("plain app", 100, events=1_000, seconds=0.5, resident=3 * MIB),
    ]
    values = {figure.name: figure.value for figure in figures(runs, events_per_key=1.6)}
    assert values == {"events a second": 1_500, "peak resident memory": 7}


def test_only_commits_that_have_read_files_count_for_the_streamer(tmp_path: Path) -> None:
    timeline = tmp_path / ".hoodie"
    timeline.mkdir()
    for instant, metadata in {
        "20260101000000001": '{"deltastreamer.checkpoint.key": "1700000001000"}',
        "20260101000000002": "{}",
        "20260101000000003": '{"deltastreamer.checkpoint.key": "1700000002000"}',
    }.items():
        (timeline / f"{instant}.deltacommit").write_text(f'{{"extraMetadata": {metadata}}}')
    assert [commit.checkpoint for commit in commits(tmp_path)] == [1_700_000_001_000, 1_700_000_002_000]


def test_the_memory_of_the_largest_backlog_is_compared_with_that_of_the_smallest() -> None:
    peaks = [{"peak heap": 500.0}, {"peak heap": 900.0}, {"peak heap": 600.0}]
    found = list(catch_up_memory.figures((1, 10, 100), {"bronze, bare": peaks}))
    assert [(figure.value, figure.of.get("events")) for figure in found] == [
        (500.0, 1),
        (900.0, 10),
        (600.0, 100),
        (1.2, None),
    ]
