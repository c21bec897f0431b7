"""The start, the first minute and later times of an app have figures of their own."""

from __future__ import annotations

import pytest

from bench.cold import Observed, Reading, figures
from bench.freshness import Commit
from bench.processor_time import ProcessorTimes, kind_of_thread
from bench.results import find_figure


def _reading(at: float, cpu: float, compiling: float) -> Reading:
    return Reading(
        at, ProcessorTimes(at, {"spark": cpu}, {("spark", kind_of_thread("C2 CompilerThre0")): compiling})
    )


def _commit(ended: float, events: int, p50: float, p95: float) -> Commit:
    return Commit("orders_1", ended - 1.0, ended, events, 0, {}, (p50, p95))


OBSERVED = Observed(
    (_reading(100.0, 0.0, 0.0), _reading(110.0, 15.0, 8.0), _reading(130.0, 45.0, 18.0)),
    (_commit(109.0, 1_000, 20.0, 30.0), _commit(115.0, 90, 2.0, 3.0), _commit(120.0, 10, 5.0, 6.0)),
)


@pytest.mark.parametrize(
    ("when", "name", "value"),
    [
        ("start", "seconds", 10.0),
        ("start", "a commit", 15.0),
        ("start", "busy", 1.5),
        ("start", "compilers", 0.8),
        ("0 to 20 s", "commits", 2),
        ("0 to 20 s", "a commit", 15.0),
        ("0 to 20 s", "compilers", 0.5),
        ("0 to 20 s", "freshness p50", 2.0),
        ("0 to 20 s", "freshness p95", 6.0),
    ],
)
def test_each_time_has_its_own_figures(when: str, name: str, value: float) -> None:
    assert find_figure(list(figures(OBSERVED)), name, {"when": when}).value == value


def test_a_time_without_a_commit_has_no_cost_of_one() -> None:
    idle = Observed((*OBSERVED.readings, _reading(140.0, 46.0, 18.0)), OBSERVED.commits)
    names = {figure.name for figure in figures(idle) if figure.of["when"] == "20 to 30 s"}
    assert names == {"seconds", "commits", "busy", "compilers"}
