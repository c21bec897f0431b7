"""The figures of the console are by page, and a first answer is none of a page that was opened again."""

from __future__ import annotations

from bench.console import Observed, figures
from bench.layouts import tables
from bench.results import find_figure

FOUND = {
    "tables": Observed(shown=(2.0, 0.9, 0.7, 0.8), cores=0.08, longest=0.12),
    "none": Observed(shown=(), cores=0.004, longest=0.0),
}


def test_each_page_has_its_figures() -> None:
    found = list(figures(500, FOUND))
    of: dict[str, str | int | float] = {"tables": 500, "page": "tables"}
    assert find_figure(found, "first answer of a new console", of).value == 2.0
    assert find_figure(found, "until it is shown", of).value == 0.7
    assert find_figure(found, "the console's processor time", {**of, "page": "none"}).value == 0.4
    text = tables("console", found, ())
    assert "no page open" in text
    assert "tables open" in text
