"""The figures of a table are the difference between the lake with it and the lake without."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.many_tables import Observed, figures
from bench.results import find_figure

FEW = Observed(
    tables=20,
    load=20.0,
    rest=0.1,
    commit=0.5,
    fresh=(1.0, 2.0, 4.0),
    restart=10.0,
    commands={"tables": 1.0},
    resident=1_000_000_000,
)
MANY = replace(FEW, tables=220, load=220.0, rest=0.3, fresh=(1.0, 5.0), resident=1_300_000_000)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("first load of a table", 1.0),
        ("first load against a small commit", 2.0),
        ("an idle table", 0.1),
        ("memory of a table", 1.5),
        ("freshness p95 with idle tables against without", 1.25),
    ],
)
def test_the_cost_of_a_table_is_told(name: str, value: float) -> None:
    assert find_figure(list(figures(FEW, MANY)), name, {}).value == value


def test_each_lake_has_its_own_figures() -> None:
    found = list(figures(FEW, MANY))
    assert find_figure(found, "at rest", {"tables": 20}).value == 0.1
    assert find_figure(found, "at rest", {"tables": 220}).value == 0.3
    assert find_figure(found, "command", {"tables": 220, "command": "tables"}).value == 1.0
