"""A whole pipeline over Kinesis under fault injection: changes of items, and an ingest that follows."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from tests.cli.test_whole_pipeline import Tributary
from tests.faults.item_history import ItemHistory, Sight
from tests.faults.processes import kill_family, paused_family
from tests.local.landed import wait_until
from tributary.contract.errors import TributaryError
from tributary.local import spark
from tributary.local.dynamodb import dynamodb_client
from tributary.local.kinesis import kinesis_client
from tributary.local.pipeline import down
from tributary.local.state import StateFolder
from tributary.operations.runs.ingest_run import IngestFailed, IngestRun, start_ingest

STREAM = "shop-changes"
CUSTOMERS, NOTES = "customers", "notes"
TABLES = (CUSTOMERS, NOTES)
LAKE = f"""
[lake]
name = "soak"

[source.shop]
engine = "dynamodb"
tables = ["{CUSTOMERS}", "{NOTES}"]
stream = "{STREAM}"
initial_load = false                       # each record in the lake comes from the stream

[table."shop.dynamodb.{CUSTOMERS}"]
partition_by = ["right(id, 1)"]
buckets = 1

[table."shop.dynamodb.{NOTES}"]
storage = "copy_on_write"
deletes = "soft"

[local]
item_disorder = true
"""
MOST_SHARDS = 6
SECONDS_BETWEEN_LOOKS = 2.0
_ITEMS = 150
_PATIENCE_SECONDS = 1800
"""How long the lake may take to catch up. Several killed apps in turn leave it far behind."""

_SECONDS_FOR_A_COMMIT = 300


@dataclass
class ItemsAtWork:
    """A running pipeline.

    looks  how often a reader saw which table, or why it could not
    wrong  what readers saw that no state of the items explains
    """

    tributary: Tributary
    histories: Mapping[str, ItemHistory]
    looks: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, Sight]] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    pauses: int = 0
    splits: int = 0
    merges: int = 0
    starts: int = 0
    _ingest: IngestRun | None = None

    @property
    def state(self) -> StateFolder:
        return StateFolder(self.tributary.state)

    @cached_property
    def dynamodb(self) -> Any:
        return dynamodb_client(self.tributary.workspace.settings.dynamodb_endpoint)

    @cached_property
    def kinesis(self) -> Any:
        return kinesis_client(self.tributary.workspace.settings.kinesis_endpoint)

    def create_tables(self) -> None:
        for table in TABLES:
            self.dynamodb.create_table(
                TableName=table,
                KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )

    def follow(self) -> None:
        """Start an ingest that follows, if none is running."""
        if self._ingest is None or self._ingest.is_over():
            self.starts += 1
            self._ingest = start_ingest(self.tributary.workspace, Console(quiet=True), follow=True)

    def end_ingest(self) -> None:
        if self._ingest is not None:
            self._ingest.kill()

    def kill(self, process: str) -> None:
        """Kill the process and all its children with SIGKILL, and do what a person does who finds that."""
        self.follow()  # An app that could not bear an earlier harm has ended.
        kill_family(process, self.state)
        self.kills[process] += 1
        if process == spark.SERVICE:
            assert self._ingest is not None
            with suppress(IngestFailed):
                self._ingest.wait()
        else:
            self.tributary.run("up")
        self.follow()

    def wait_for_commit(self) -> None:
        """Wait until some table has a new commit, or for long enough if the app was killed meanwhile."""
        before, deadline = self._all_applied(), time.monotonic() + _SECONDS_FOR_A_COMMIT
        while self._all_applied() == before and time.monotonic() < deadline:
            time.sleep(1)

    @contextmanager
    def paused(self, process: str) -> Iterator[None]:
        with paused_family(process, self.state):
            yield
        self.pauses += 1

    def reshard(self, chance: random.Random) -> None:
        """Split a random shard, or merge two neighbors."""
        shards = self._open_shards()
        if len(shards) < 2 or (len(shards) < MOST_SHARDS and chance.random() < 0.5):
            self._split(chance.choice(shards))
            self.splits += 1
        else:
            first = chance.randrange(len(shards) - 1)
            one, other = (shard["ShardId"] for shard in shards[first : first + 2])
            self.kinesis.merge_shards(StreamName=STREAM, ShardToMerge=one, AdjacentShardToMerge=other)
            self.merges += 1
        self.kinesis.get_waiter("stream_exists").wait(StreamName=STREAM, WaiterConfig={"Delay": 1})

    def _split(self, shard: Mapping[str, Any]) -> None:
        ends = [int(shard["HashKeyRange"][end]) for end in ("StartingHashKey", "EndingHashKey")]
        self.kinesis.split_shard(
            StreamName=STREAM, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(sum(ends) // 2)
        )

    def _open_shards(self) -> list[Mapping[str, Any]]:
        """Return the open shards, each beside its neighbors."""
        shards = self.kinesis.list_shards(StreamName=STREAM)["Shards"]
        opened = [each for each in shards if "EndingSequenceNumber" not in each["SequenceNumberRange"]]
        return sorted(opened, key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))

    def look(self) -> None:
        """Read all rows as any reader does, and note what is wrong with them."""
        for table, history in self.histories.items():
            try:
                rows = self.tributary.workspace.open_lake.table(f"shop.dynamodb.{table}").arrow()
            except TributaryError as error:
                self.looks[f"{table}: {type(error).__name__}"] += 1
                continue
            self.looks[table] += 1
            there = [(row["id"], int(row["version"])) for row in rows.to_pylist() if not row.get("_deleted")]
            sight = history.see(there)
            if not sight.is_fine:
                self.wrong.append((table, sight))

    def check(self) -> None:
        """Check that no reader saw anything wrong, and that the lake equals the database."""
        assert not self.wrong, self.wrong[:5]
        self.follow()
        found = self.tributary.json("reconcile", "--wait", str(_PATIENCE_SECONDS), status=None)
        assert found["identical"], found
        self.look()
        for table, history in self.histories.items():
            there = {item for item, state in history.last().items() if state is not None}
            rows = {one["table"]: one["rows"] for one in found["tables"]}
            assert rows[f"shop.dynamodb.{table}"] == len(there)
        assert not self.wrong, self.wrong[:5]

    def check_records(self) -> None:
        """Check that each record of the stream got one offset, so that none was lost or landed twice."""
        sent: Counter[str] = Counter()

        def are_equal() -> bool:
            # The local DynamoDB may hold some records back for a while.
            sent.clear()
            sent.update(json.loads(record["Data"])["tableName"] for record in self._records())
            return sent == {table: self._applied(table) for table in TABLES}

        wait_until(are_equal, "equal number of records in the stream and in the lake", 120, 2)

    def summary(self, changes: int) -> str:
        """Return what has happened so far."""
        counts = [
            (changes, "changes"),
            *((count, f"kills of {process}") for process, count in sorted(self.kills.items())),
            *((self.splits, "splits"), (self.merges, "merges"), (self.pauses, "pauses of Kinesis")),
            (self.starts, "starts of the app"),
            *((count, f"looks at {what}") for what, count in sorted(self.looks.items())),
            (len(self.wrong), "wrong looks"),
        ]
        return ", ".join(f"{count:,} {what}" for count, what in counts)

    def _applied(self, table: str) -> int:
        commit = self.tributary.workspace.open_lake.table(f"shop.dynamodb.{table}").last_commit()
        return 0 if commit is None else sum(commit.ledger.positions.values())

    def _all_applied(self) -> dict[str, int]:
        """Return how many records each table has, as far as it can be read now."""
        found: dict[str, int] = {}
        for table in TABLES:
            with suppress(TributaryError):
                found[table] = self._applied(table)
        return found

    def _records(self) -> Iterator[Mapping[str, Any]]:
        """Return all records of all shards, also of the closed ones."""
        kinesis = self.kinesis
        for shard in kinesis.list_shards(StreamName=STREAM)["Shards"]:
            begin = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
            at = kinesis.get_shard_iterator(StreamName=STREAM, **begin)["ShardIterator"]
            while at is not None:
                answer = kinesis.get_records(ShardIterator=at, Limit=10_000)
                yield from answer["Records"]
                at = answer.get("NextShardIterator") if answer["Records"] else None


@dataclass
class Changes:
    """Random puts and deletes at a steady rate, and a reader that looks at the lake."""

    pipeline: ItemsAtWork
    chance: random.Random
    per_second: float
    done: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Change items and look at the lake within the context. Raise what failed meanwhile."""
        self._stop.clear()
        with ThreadPoolExecutor(2) as threads:
            changing = threads.submit(self._until_stopped, self._change, 1 / self.per_second)
            looking = threads.submit(self._until_stopped, self.pipeline.look, SECONDS_BETWEEN_LOOKS)
            try:
                yield
            finally:
                self._stop.set()
        changing.result()
        looking.result()

    def _until_stopped(self, act: Callable[[], None], seconds: float) -> None:
        while not self._stop.wait(seconds):
            act()

    def _change(self) -> None:
        table, item = self.chance.choice(TABLES), str(self.chance.randrange(_ITEMS))
        history, dynamodb = self.pipeline.histories[table], self.pipeline.dynamodb
        self.done += 1
        if history.last().get(item) is not None and self.chance.random() < 0.3:
            history.will_be(item, None)
            self._ask(lambda: dynamodb.delete_item(TableName=table, Key={"id": {"S": item}}))
            return
        history.will_be(item, self.done)
        values = {
            "id": {"S": item},
            "version": {"N": str(self.done)},
            "text": {"S": "x" * self.chance.randrange(200)},
            "mixed": self.chance.choice(({"S": "text"}, {"N": "1.5"}, {"BOOL": True}, {"L": [{"N": "1"}]})),
            "amount": {"N": str(self.chance.randrange(10**6) / 100)},
        }
        self._ask(lambda: dynamodb.put_item(TableName=table, Item=values))

    def _ask(self, request: Callable[[], object]) -> None:
        """Make a request until it succeeds. To make it again changes nothing."""
        while True:
            try:
                request()
                return
            except (BotoCoreError, ClientError):
                time.sleep(1)


@contextmanager
def items_at_work(folder: Path) -> Iterator[ItemsAtWork]:
    """Start a pipeline with empty tables, and an ingest that follows."""
    tributary = Tributary(folder / "lake.toml", folder / "state")
    tributary.lake_file.write_text(LAKE)
    try:
        tributary.run("up")
        pipeline = ItemsAtWork(tributary, {table: ItemHistory() for table in TABLES})
        pipeline.create_tables()
        pipeline.follow()
        try:
            yield pipeline
        finally:
            pipeline.end_ingest()
    finally:
        down(StateFolder(tributary.state))
