"""docs/performance.md and bench/RESULTS.md show the last recorded results, and so do their pictures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.benchmarks import BENCHMARKS
from bench.goals import Goal, goals_table
from bench.headlines import Found, Headline, headlines_table, rounded
from bench.layouts import LAYOUTS, Grid, markdown
from bench.plots import Plot, svg, ticks
from bench.report import PAGES, RECORD, pictures, with_tables
from bench.results import RESULTS, Figure

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_shows_the_recorded_figures(path: Path) -> None:
    page = path.read_text()
    assert with_tables(page) == page, "renew it with: python -m bench.report"


def test_the_record_shows_every_benchmark() -> None:
    page = RECORD.read_text()
    assert [name for name in BENCHMARKS if f"<!-- figures of {name} -->" not in page] == []
    assert LAYOUTS.keys() == BENCHMARKS.keys()


def test_the_pictures_show_the_recorded_figures_and_are_on_the_page() -> None:
    page = RECORD.read_text()
    for name, content in pictures().items():
        assert (RESULTS / name).read_text() == content, "renew it with: python -m bench.report"
        assert f"(results/{name})" in page


def test_a_grid_has_its_rows_and_columns_in_the_order_of_the_figures() -> None:
    grid = Grid("Table", lambda figure: (f"{figure.of['rows']} rows", figure.name) if figure.of else None)
    now = [
        Figure("p50", 0.5, "s", {"rows": 10}),
        Figure("jobs", 3, "", {"rows": 10}),
        Figure("p50", 2, "s", {"rows": 20}),
        Figure("left out", 1, ""),
    ]
    assert grid.table(now, [Figure("p50", 1.0, "s", {"rows": 10})]).splitlines() == [
        "| Table | p50 (s) | jobs |",
        "| --- | --: | --: |",
        "| 10 rows | 1 → 0.5 | 3 |",
        "| 20 rows | 2 |  |",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.572, "0.57"), (1.404, "1.4"), (2.96, "3.0"), (10.24, "10"), (178_404.4, "178,000")],
)
def test_a_headline_rounds_its_figures(value: float, text: str) -> None:
    assert rounded(value) == text


def test_a_headline_finds_its_figure_by_labels() -> None:
    headline = Headline("Fresh", "a", "{} s, or {} s", (Found("p95", {"until": "read"}), Found("p50", {})))
    figures = [Figure("p95", 6.04, "s", {"until": "read"}), Figure("p50", 4, "s", {"until": "readable"})]
    assert headlines_table([headline], {"a": figures}).splitlines()[2:] == ["| Fresh | 6.0 s, or 4.0 s |"]
    with pytest.raises(ValueError, match="too many"):
        headlines_table([headline], {"a": [*figures, *figures]})


def test_an_earlier_figure_is_shown_next_to_the_current_one() -> None:
    now = [Figure("seconds", 0.5, "s", {"rows": 1_000}), Figure("jobs", 3, "")]
    before = [Figure("seconds", 2.0, "s", {"rows": 1_000})]
    assert markdown(now, before).splitlines()[2:] == [
        "| seconds | rows 1,000 | 2 | 0.5 | s | 0.25 |",
        "| jobs |  |  | 3 |  |  |",
    ]
    assert markdown(now, []).splitlines()[2] == "| seconds | rows 1,000 | 0.5 | s |"


def test_each_goal_shows_whether_it_is_reached() -> None:
    goals = [
        Goal("Fresh", "a", "p95", "at most", 5, {"until": "read"}),
        Goal("As fast", "b", "times", "at least", 2),
        Goal("Just as fast", "b", "times", "at least", 0.5),
    ]
    recorded = {
        "a": [Figure("p95", 6, "s", {"until": "read"}), Figure("p95", 4, "s", {"until": "readable"})],
        "b": [Figure("times", 0.5, "×")],
    }
    assert goals_table(goals, recorded).splitlines()[2:] == [
        "| Fresh | at most 5 s | 6 s | **no** |",
        "| As fast | at least 2 × | 0.5 × | **no** |",
        "| Just as fast | at least 0.5 × | 0.5 × | yes |",
    ]


@pytest.mark.parametrize("is_log", [False, True])
def test_twice_as_long_is_drawn_twice_as_high(is_log: bool) -> None:
    curves = {"now": [(100.0, 1.0), (1_000.0, 2.0), (10_000.0, 4.0)]}
    drawing = ElementTree.fromstring(svg(Plot("Seconds", "rows", "s", curves, is_log=is_log)))
    line = drawing.find(f"{SVG}polyline")
    assert line is not None
    (x1, y1), (x2, y2), (x3, y3) = ([float(n) for n in at.split(",")] for at in line.attrib["points"].split())
    zero = 2 * y1 - y2
    assert zero - y3 == pytest.approx(4 * (zero - y1), abs=0.5)
    assert x1 < x2 < x3
    assert (x2 - x1 == pytest.approx(x3 - x2, abs=0.2)) == is_log


def test_points_of_dots_are_not_joined_and_a_limit_is_a_line() -> None:
    plot = Plot("Fresh", "s", "s", {"a < b": [(0, 1), (10, 2)]}, dots=True, limit=(5.0, "most"))
    drawing = ElementTree.fromstring(svg(plot))
    assert len(drawing.findall(f"{SVG}circle")) == 2
    assert drawing.find(f"{SVG}polyline") is None
    assert "most" in [text.text for text in drawing.findall(f"{SVG}text")]


@pytest.mark.parametrize(
    ("highest", "expected"),
    [(5.25, [0, 1, 2, 3, 4, 5]), (0.63, [0, 0.2, 0.4, 0.6]), (600, [0, 100, 200, 300, 400, 500, 600])],
)
def test_an_axis_is_marked_at_round_numbers(highest: float, expected: list[float]) -> None:
    assert ticks(highest) == expected
