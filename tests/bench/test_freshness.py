"""The freshness benchmark computes the right figures from its observations, and its workload is valid."""

from __future__ import annotations

import os
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from bench import workload
from bench.endurance import quarter_of
from bench.freshness import (
    Commit,
    Observed,
    Record,
    Settings,
    commit_of,
    probe_key,
    results_of,
    ways,
)
from bench.probe import Sighting, instant_at, latest_commit
from bench.processor_time import ProcessorTimes, kind_of_thread
from bench.resources import sampled
from bench.results import Results

TABLES = ("orders_1", "orders_2")
START = 1_000.0


def test_the_workload_changes_only_existing_rows() -> None:
    held = {table: set(range(1, 21)) for table in TABLES}
    for change in islice(workload.changes(TABLES, rows=20, seed=3), 5_000):
        keys = held[change.table]
        assert (change.key in keys) == (change.kind != "insert")
        if change.kind == "insert":
            keys.add(change.key)
        elif change.kind == "delete":
            keys.remove(change.key)


def test_the_workload_has_the_shares_that_it_states() -> None:
    kinds = Counter(change.kind for change in islice(workload.changes(TABLES, 1_000, seed=1), 20_000))
    for kind, share in workload.SHARES:
        assert kinds[kind] / 20_000 == pytest.approx(share, abs=0.02)


def test_the_same_seed_makes_the_same_changes() -> None:
    one, other = (list(islice(workload.changes(TABLES, 50, seed=7), 500)) for _ in range(2))
    assert one == other


def test_only_a_completed_commit_counts() -> None:
    names = [
        "20261121224229817.deltacommit",
        "20261121224233001.deltacommit.requested",
        "20261121224233001.deltacommit.inflight",
        "20261121224240000.clean",
        "hoodie.properties",
    ]
    assert latest_commit(names) == "20261121224229817.deltacommit"
    assert latest_commit(names[1:]) is None


def test_an_instant_is_named_in_utc_to_the_millisecond() -> None:
    assert instant_at(0.5) == "19700101000000500"


def test_a_row_s_way_goes_through_the_first_commit_that_has_its_offset() -> None:
    (way,) = ways(_observed())
    assert way.at == 1.0
    assert way.stages == {
        "commit in the database": pytest.approx(0.01),
        "to Kafka": pytest.approx(0.09),
        "wait": pytest.approx(0.4),
        "commit in the lake": pytest.approx(1.0),
        "read": pytest.approx(0.2),
    }
    assert sum(way.stages.values()) == pytest.approx(way.read)
    assert way.readable == pytest.approx(1.5)
    assert way.read == pytest.approx(1.7)


def test_a_row_from_before_the_measurement_does_not_count() -> None:
    observed = _observed(began=START + 2)
    assert ways(observed) == []


def test_the_rate_is_that_of_the_measured_seconds() -> None:
    figures = _figures(results_of(_observed(), Settings(tables=1)))
    assert figures["changes"] == 200
    assert figures["commits"] == 24


def test_the_commit_of_a_report_begins_when_its_work_began() -> None:
    commit = commit_of(
        {
            "event": "commit",
            "table": "shop.public.orders_1",
            "at": "1970-01-01T00:00:10.000+00:00",
            "seconds": 1.5,
            "events": 7,
            "positions": {"0": 12},
            "freshness_ms": {"p50": 1000, "p95": 2000, "max": 3000},
        }
    )
    assert (commit.table, commit.began, commit.ended, commit.until) == ("orders_1", 8.5, 10.0, 12)
    assert commit.freshness == (1.0, 2.0)


def test_only_the_probe_s_rows_are_taken_from_kafka() -> None:
    schema = '{"schema":{"type":"struct"},"payload":{"id":%d}}'
    assert probe_key((schema % -12).encode()) == -12
    assert probe_key((schema % 12).encode()) is None


def test_threads_of_a_pool_are_one_kind() -> None:
    kinds = {kind_of_thread(name) for name in ("Executor task l", "GC Thread#0", "GC Thread#1", "Thread-12")}
    assert kinds == {"Executor task l", "GC Thread", "Thread"}
    assert kind_of_thread("12") == "12"


def test_processor_times_cover_the_time_between_two_readings() -> None:
    before = ProcessorTimes(100.0, {"spark": 50.0}, {("spark", "GC Thread"): 1.0})
    after = ProcessorTimes(110.0, {"spark": 60.0, "probe": 1.0}, {("spark", "GC Thread"): 2.0})
    taken = after.since(before)
    assert taken.shares == {"spark": 1.0, "probe": 0.1}
    assert taken.threads == {("spark", "GC Thread"): 1.0}


def _observed(began: float = START) -> Observed:
    """Return five seconds in which a probe row takes 1.7 s: at offset 10, in the second commit."""
    sighting = Sighting("orders_1", -1, START + 1, START + 1.01, START + 2.5, START + 2.7)
    return Observed(
        began=began,
        ended=START + 5,
        sightings=(sighting,),
        commits=(_commit(until=10, began=START + 0.5), _commit(until=11, began=START + 1.5)),
        records=(Record("orders_1", -1, START + 1.1, 10),),
        changes={int(START) - 1: 500, **{int(START) + second: 200 for second in range(5)}},
        latest_seconds=0.0,
        processors=ProcessorTimes(5.0, {"spark": 2.0}),
    )


def _commit(until: int, began: float) -> Commit:
    return Commit("orders_1", began, began + 1.1, 5, until, {}, (1.0, 1.5))


def _figures(results: Results) -> dict[str, float]:
    return {figure.name: figure.value for figure in results.figures}


def test_a_moment_falls_into_one_quarter_of_the_run() -> None:
    assert [quarter_of(at, began=100.0, ended=140.0) for at in (100, 109, 110, 129, 130, 140)] == [
        *(0, 0, 1, 2, 3, 3)
    ]


def test_resources_of_processes_and_folders_are_sampled_repeatedly(tmp_path: Path) -> None:
    (tmp_path / "kafka" / "data").mkdir(parents=True)
    (tmp_path / "kafka" / "data" / "log").write_bytes(bytes(1 << 20))
    with sampled({"benchmark": os.getpid()}, tmp_path, seconds=0.01) as samples:
        while len(samples) < 3:
            time.sleep(0.01)
    held = samples[-1].processes["benchmark"]
    assert held.resident > 1 << 20
    assert held.threads > 1
    assert held.open_files > 2
    assert 1 << 20 <= samples[-1].folders["kafka"] < 1 << 22
    assert [one.at for one in samples] == sorted(one.at for one in samples)
