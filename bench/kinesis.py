"""The way over Kinesis: freshness under a steady load, and the rate of catching up with a full stream.

The records are DynamoDB's, written to the local Kinesis without a DynamoDB, so that the machine's cores serve
the pipeline. The lake is compared with the generator's own items at the end.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.freshness import (
    CATCH_UP_SECONDS,
    Commit,
    NoResult,
    following_app,
    pids_of_services,
    reported_freshness,
    running_pipeline,
    wait_while_running,
)
from bench.processor_time import ProcessorTimes, read_processor_times
from bench.results import Figure, Results, quantile
from tributary.api.open_lake import open_local
from tributary.contract.item_stream import ITEM_SCHEMA
from tributary.contract.table_name import TableName
from tributary.local.dynamodb import dynamodb_client
from tributary.local.kinesis import kinesis_client
from tributary.local.spark import SERVICE as SPARK
from tributary.operations.workspace import Workspace

STREAM, SOURCE, TABLE = "changes", "shop", "customers"
LAKE = f"""\
[lake]
name = "kinesis"
{{acceleration}}

[source.{SOURCE}]
engine = "dynamodb"
tables = ["{TABLE}"]
stream = "{STREAM}"
"""
_RECORDS_AT_ONCE = 500


@dataclass(frozen=True)
class Settings:
    """The settings of a run.

    backlog  records that wait in the stream when the app starts. They make the first items.
    seconds  how long changes come then, after `warm_up_seconds` of the same. 0: none come
    """

    name: str = "freshness_kinesis"
    shards: int = 4
    keys: int = 2_000
    backlog: int = 2_000
    seconds: float = 180.0
    warm_up_seconds: float = 120.0
    changes_per_second: float = 100.0
    seed: int = 1


FULL = Settings()
QUICK = Settings(keys=200, backlog=200, seconds=20.0, warm_up_seconds=5.0)
CATCH_UP = Settings("catch_up_kinesis", keys=50_000, backlog=400_000, seconds=0.0)
QUICK_CATCH_UP = Settings("catch_up_kinesis", keys=2_000, backlog=20_000, seconds=0.0)


@dataclass
class Items:
    """Changes of items, as records of Kinesis Data Streams for DynamoDB. `there` are the present items."""

    chance: random.Random
    keys: int
    there: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _last_us: int = 0

    def change(self) -> Mapping[str, Any]:
        """Put, update or delete one item, and return the request for its record."""
        key = f"{self.chance.randrange(self.keys):09d}"
        before = self.there.pop(key, None)
        after = None if before is not None and self.chance.random() < 0.15 else self._item(key, before)
        if after is not None:
            self.there[key] = after
        name = "INSERT" if before is None else "REMOVE" if after is None else "MODIFY"
        images = {"NewImage": after, "OldImage": before}
        self._last_us = max(self._last_us + 1, time.time_ns() // 1_000)
        change = {
            "awsRegion": "us-east-1",
            "eventID": f"{self.chance.getrandbits(128):032x}",
            "eventName": name,
            "userIdentity": None,
            "recordFormat": "application/json",
            "tableName": TABLE,
            "dynamodb": {
                "ApproximateCreationDateTime": self._last_us,
                "Keys": {"id": {"S": key}},
                **{image: item for image, item in images.items() if item is not None},
                "SizeBytes": 200,
                "ApproximateCreationDateTimePrecision": "MICROSECOND",
            },
            "eventSource": "aws:dynamodb",
        }
        return {"Data": json.dumps(change).encode(), "PartitionKey": key}

    def _item(self, key: str, before: Mapping[str, Any] | None) -> Mapping[str, Any]:
        orders = 0 if before is None else int(before["orders"]["N"]) + 1
        return {
            "id": {"S": key},
            "name": {"S": f"customer {self.chance.getrandbits(64):016x}"},
            "spent": {"N": f"{self.chance.randrange(10_000_000) / 100}"},
            "orders": {"N": str(orders)},
            "is_new": {"BOOL": before is None},
            "address": {"M": {"city": {"S": "Lund"}, "zip": {"N": str(self.chance.randrange(99_999))}}},
        }


@dataclass(frozen=True)
class Observed:
    """What was seen. Moments are in seconds since 1970.

    commits       all commits of the app
    read_seconds  how long a plain read of the backlog took, all shards at once
    began, ended  the measured part of a steady load; without one, from when the app had its Spark session
                  until its last commit
    changes       records written meanwhile
    processors    the CPU time used meanwhile
    """

    commits: Sequence[Commit]
    read_seconds: float
    began: float
    ended: float
    changes: int
    processors: ProcessorTimes


def run(settings: Settings = FULL) -> Results:
    """Start everything, measure, compare the lake with the items, and stop everything. Raises NoResult."""
    observed = observe(settings)
    figures = steady_figures(observed) if settings.seconds else catch_up_figures(observed, settings.backlog)
    return Results(settings.name, asdict(settings), tuple(figures))


def observe(settings: Settings) -> Observed:
    """Do what `run` does, but return the single observations."""
    with running_pipeline(LAKE) as workspace:
        return _observe(workspace, settings)


def _observe(workspace: Workspace, settings: Settings) -> Observed:
    kinesis = _prepared(workspace, settings.shards)
    items = Items(random.Random(settings.seed), settings.keys)
    for begin in range(0, settings.backlog, _RECORDS_AT_ONCE):
        _put(kinesis, [items.change() for _ in range(min(_RECORDS_AT_ONCE, settings.backlog - begin))])
    read_seconds = _seconds_of_plain_read(kinesis, settings.backlog)
    with following_app(workspace) as (app, commits):
        wait_while_running(app, CATCH_UP_SECONDS, lambda: app.progress.steps is not None)
        pids = pids_of_services(workspace, (SPARK, "kinesis", "s3"))
        before, began = read_processor_times(time.time(), pids), time.time()
        wait_while_running(app, CATCH_UP_SECONDS, lambda: _applied(commits) >= settings.backlog)
        written = first = 0
        if settings.seconds:
            with _changing(kinesis, items, settings.changes_per_second) as changes:
                wait_while_running(app, settings.warm_up_seconds)
                before, began, first = read_processor_times(time.time(), pids), time.time(), changes.written
                wait_while_running(app, settings.seconds)
                written = changes.written
        after, ended = read_processor_times(time.time(), pids), time.time()
        if settings.seconds:
            total = settings.backlog + changes.written
            wait_while_running(app, CATCH_UP_SECONDS, lambda: _applied(commits) >= total)
    _check(workspace, items)
    return Observed(tuple(commits), read_seconds, began, ended, written - first, after.since(before))


def _prepared(workspace: Workspace, shards: int) -> Any:
    """Give the lake an empty table and an empty stream with so many shards. Return the client of Kinesis."""
    dynamodb_client(workspace.settings.dynamodb_endpoint).create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    kinesis = kinesis_client(workspace.settings.kinesis_endpoint)
    kinesis.delete_stream(StreamName=STREAM)
    kinesis.get_waiter("stream_not_exists").wait(StreamName=STREAM, WaiterConfig={"Delay": 1})
    kinesis.create_stream(StreamName=STREAM, ShardCount=shards)
    kinesis.get_waiter("stream_exists").wait(StreamName=STREAM, WaiterConfig={"Delay": 1})
    return kinesis


def _put(kinesis: Any, records: Sequence[Mapping[str, Any]]) -> None:
    answer = kinesis.put_records(StreamName=STREAM, Records=records)
    if answer["FailedRecordCount"]:
        # A second attempt would change the order of an item's records.
        raise NoResult("Kinesis has refused records", found=str(answer["FailedRecordCount"]))


@dataclass
class _Changes:
    """The number of records that were written so far."""

    written: int = 0


@contextmanager
def _changing(kinesis: Any, items: Items, rate: float) -> Iterator[_Changes]:
    """Write records at the rate within the context."""
    done = _Changes()
    stopped = threading.Event()

    def change() -> None:
        began = time.monotonic()
        while not stopped.wait(0.1):
            due = min(int((time.monotonic() - began) * rate) - done.written, _RECORDS_AT_ONCE)
            if due > 0:
                _put(kinesis, [items.change() for _ in range(due)])
                done.written += due

    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(change)
        try:
            yield done
        finally:
            stopped.set()
        changing.result()


def _seconds_of_plain_read(kinesis: Any, expected: int) -> float:
    """Read all shards at once, and return how long that takes."""
    shards = [shard["ShardId"] for shard in kinesis.list_shards(StreamName=STREAM)["Shards"]]
    began = time.monotonic()
    with ThreadPoolExecutor(len(shards)) as pool:
        found = sum(pool.map(lambda shard: _records_in(kinesis, shard), shards))
    if found != expected:
        raise NoResult("A plain read does not find all records", found=str(found), expected=str(expected))
    return time.monotonic() - began


def _records_in(kinesis: Any, shard: str) -> int:
    begin = {"StreamName": STREAM, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    at, count = kinesis.get_shard_iterator(**begin)["ShardIterator"], 0
    while True:
        answer = kinesis.get_records(ShardIterator=at, Limit=10_000)
        count += len(answer["Records"])
        at = answer["NextShardIterator"]
        if not answer["Records"]:
            return count


def _applied(commits: Sequence[Commit]) -> int:
    return sum(commit.events for commit in list(commits))


def _check(workspace: Workspace, items: Items) -> None:
    """Raise NoResult if the table differs from the items."""
    table = open_local(workspace.lake, workspace.state).table(str(TableName(SOURCE, ITEM_SCHEMA, TABLE)))
    rows = {
        row["id"]: (row["name"], int(row["orders"]), float(row["spent"])) for row in table.arrow().to_pylist()
    }
    expected = {
        key: (item["name"]["S"], int(item["orders"]["N"]), float(item["spent"]["N"]))
        for key, item in items.there.items()
    }
    if rows != expected:
        wrong = sum(rows.get(key) != value for key, value in expected.items())
        raise NoResult(
            "The lake differs from the items", found=f"{len(rows)} rows, {wrong} of {len(expected)} wrong"
        )


def steady_figures(observed: Observed) -> Iterator[Figure]:
    """Yield the figures of the steady load. A commit counts if it ended within the measured time."""
    done = [one for one in observed.commits if observed.began <= one.ended < observed.ended]
    if not done:
        raise NoResult("No commit came within the measured time")
    yield from reported_freshness(done)
    seconds = [one.ended - one.began for one in done]
    yield Figure("commits", len(done), "")
    yield Figure("commit p50", round(quantile(seconds, 0.5), 2), "s")
    yield Figure("changes", observed.changes, "")
    for phase in sorted({phase for one in done for phase in one.phases}):
        taken = [one.phases.get(phase, 0.0) for one in done]
        yield Figure("phase p50", round(quantile(taken, 0.5), 3), "s", {"phase": phase})
    for process, busy in observed.processors.shares.items():
        yield Figure("busy cores", round(busy, 2), "cores", {"process": process})
    spark = observed.processors.processes[SPARK]
    yield Figure("a commit", round(spark / len(done), 2), "CPU s")


def catch_up_figures(observed: Observed, backlog: int) -> Iterator[Figure]:
    """Yield the rate until the last commit, and that of a plain read of the same records."""
    seconds = max(one.ended for one in observed.commits) - observed.began
    yield Figure("events a second", round(backlog / seconds), "events/s", {"of": "ingest"})
    plain = backlog / observed.read_seconds
    yield Figure("events a second", round(plain), "events/s", {"of": "plain read"})
    yield Figure("share of a plain read", round(observed.read_seconds / seconds, 2), "x")
    yield Figure("CPU time", round(observed.processors.processes[SPARK], 1), "CPU s", {"process": SPARK})
