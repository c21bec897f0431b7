"""The benchmarks over Kinesis compare the lake with what their records say, and tell what they measured."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from bench.freshness import Commit
from bench.kinesis import Items, Observed, catch_up_figures, steady_figures
from bench.processor_time import ProcessorTimes
from bench.results import find_figure
from spark_app.wire.items.record import read_record


def test_the_items_are_what_their_records_say() -> None:
    items = Items(random.Random(3), keys=20)
    found: dict[str, Any] = {}
    names = set()
    for _ in range(300):
        data = items.change()["Data"]
        names.add(json.loads(data)["eventName"])
        change = read_record(data)
        key = change.keys["id"]["S"]
        if change.image is None:
            del found[key]
        else:
            found[key] = change.image
    assert found == items.there
    assert names == {"INSERT", "MODIFY", "REMOVE"}


def _commit(ended: float, events: int, p50: float, p95: float) -> Commit:
    return Commit("customers", ended - 2.0, ended, events, 0, {"write": 0.5}, (p50, p95))


OBSERVED = Observed(
    commits=(_commit(90.0, 500, 50.0, 60.0), _commit(110.0, 30, 2.0, 3.0), _commit(120.0, 10, 4.0, 8.0)),
    read_seconds=11.0,
    began=100.0,
    ended=130.0,
    changes=40,
    processors=ProcessorTimes(30.0, {"spark": 15.0, "s3": 3.0}),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [("freshness p50", 2.0), ("freshness p95", 8.0), ("commits", 2), ("commit p50", 2.0), ("a commit", 7.5)],
)
def test_a_steady_load_is_told_without_what_came_before(name: str, value: float) -> None:
    assert find_figure(list(steady_figures(OBSERVED)), name, {}).value == value


def test_the_rate_of_catching_up_lasts_from_the_session_to_the_last_commit() -> None:
    found = list(catch_up_figures(replace(OBSERVED, began=10.0), 2_200))
    assert find_figure(found, "events a second", {"of": "ingest"}).value == 20
    assert find_figure(found, "events a second", {"of": "plain read"}).value == 200
    assert find_figure(found, "share of a plain read", {}).value == 0.1
