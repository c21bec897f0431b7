"""Figures keep their labels, and an earlier run is shown next to a later one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from bench.results import Figure, Results, quantile, write_results
from bench.table import number_text, print_results, read_figures, text_of

RESULTS = Results(
    "flat",
    {"orders": (100, 1_000)},
    (
        Figure("seconds p50", 0.5, "s", {"rows": 100}),
        Figure("seconds p50", 0.55, "s", {"rows": 1_000}),
        Figure("largest to smallest", 1.1, "×"),
    ),
    {"seconds by rows": ((100.0, 0.5), (1_000.0, 0.55))},
)


def test_a_results_file_says_where_and_with_what_it_was_measured(tmp_path: Path) -> None:
    content = json.loads(write_results(RESULTS, tmp_path / "results").read_text())
    assert content["benchmark"] == "flat"
    assert content["settings"] == {"orders": [100, 1_000]}
    assert content["series"] == {"seconds by rows": [[100.0, 0.5], [1_000.0, 0.55]]}
    assert content["machine"]["cores"] > 0
    assert content["versions"].keys() >= {"commit", "python", "pyspark"}


def test_figures_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    assert read_figures(write_results(RESULTS, tmp_path)) == RESULTS.figures


def test_a_figure_is_shown_next_to_its_earlier_value() -> None:
    console = Console(width=120)
    earlier = [Figure("seconds p50", 1.1, "s", {"rows": 1_000}), Figure("seconds p50", 9, "s", {"rows": 1})]
    with console.capture() as captured:
        print_results(RESULTS, console, earlier)
    lines = [line.split("│")[1:-1] for line in captured.get().splitlines() if "seconds p50" in line]
    assert [[cell.strip() for cell in line][1:] for line in lines] == [
        ["rows 100", "0.5", "s", "", ""],
        ["rows 1,000", "0.55", "s", "1.1", "0.50"],
    ]


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([3.0, 1.0, 2.0], 0.5, 2.0), ([1.0, 2.0], 0.5, 1.0), (range(1, 101), 0.95, 95), ([7.0], 0.99, 7.0)],
)
def test_a_quantile_is_the_smallest_value_that_this_share_does_not_exceed(
    values: list[float], share: float, expected: float
) -> None:
    assert quantile(values, share) == expected


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (12, "12"),
        (1_234_567.8, "1,234,568"),
        (0.12345, "0.123"),
        (12.34, "12.3"),
        (543.21, "543.2"),
    ],
)
def test_numbers_are_as_exact_as_a_measurement(number: float, text: str) -> None:
    assert number_text(number) == text


def test_a_figure_s_labels_read_as_words() -> None:
    assert text_of({"of": "commit", "kind": "GET"}) == "commit, kind GET"
