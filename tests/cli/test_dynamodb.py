"""Items of DynamoDB pass through the whole pipeline: late, twice, and while shards split and merge."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.cli.test_whole_pipeline import Tributary
from tests.spark_app.items.generated import attribute
from tributary.contract.lake import read_lake
from tributary.local.dynamodb import dynamodb_client
from tributary.local.items.dynamodb_server import with_bytes
from tributary.local.kinesis import kinesis_client
from tributary.local.pipeline import down, up
from tributary.local.state import StateFolder

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

LAKE = """
[lake]
name = "items"

[source.shop]
engine = "dynamodb"
tables = ["orders", "notes"]
stream = "shop-changes"
types = { notes = { size = "numeric(10,2)" } }

[local]
item_disorder = true

[table."shop.dynamodb.notes"]
deletes = "soft"
"""
VALUES: dict[str, tuple[Any, ...]] = {
    "total": (Decimal("10.50"), Decimal(7), Decimal("-0.000001"), Decimal("12345678901234567890.5")),
    "huge": (Decimal("12345678901234567890123456789012345678"),),
    "flag": (True, False),
    "text": ("", "😀 a,b:c\"'", "é"),
    "raw": (b"\0\xff", b"a"),
    "tags": (frozenset({"b", "a"}),),
    "sizes": (frozenset({Decimal("1.5"), Decimal(20)}),),
    "blobs": (frozenset({b"\1", b"\2"}),),
    "lines": ([{"sku": "x", "count": Decimal(2)}, None, True],),
    "address": ({"city": "Köln", "zip": Decimal(50667)},),
    "nothing": (None,),
    "ship-to": ("a name that no column can have",),
}


@dataclass
class Database:
    """The local DynamoDB and Kinesis."""

    dynamodb: Any
    kinesis: Any
    chance: random.Random

    def create(self, table: str, key: dict[str, str]) -> None:
        kinds = zip(key, ("HASH", "RANGE"), strict=False)
        self.dynamodb.create_table(
            TableName=table,
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in kinds],
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, t in key.items()],
            BillingMode="PAY_PER_REQUEST",
        )

    def change_some(self, changes: int) -> None:
        """Insert, change and delete orders with random values."""
        for number in range(changes):
            key = {"customer": {"S": self.chance.choice("abcde")}, "number": {"N": str(number % 7)}}
            if self.chance.random() < 0.3:
                self.dynamodb.delete_item(TableName="orders", Key=key)
            else:
                names = self.chance.sample(sorted(VALUES), 5)
                values = {name: attribute(self.chance.choice(VALUES[name])) for name in names}
                self.dynamodb.put_item(TableName="orders", Item={**key, **with_bytes(values)})
            if self.chance.random() < 0.5:
                note = {"id": {"B": bytes([number % 5])}, "size": {"N": f"{number}.25"}}
                self.dynamodb.put_item(TableName="notes", Item=note)

    def split(self) -> None:
        first = self._open_shards()[0]
        hashes = [int(first["HashKeyRange"][end]) for end in ("StartingHashKey", "EndingHashKey")]
        middle = str(sum(hashes) // 2)
        self.kinesis.split_shard(
            StreamName="shop-changes", ShardToSplit=first["ShardId"], NewStartingHashKey=middle
        )
        self.wait()

    def merge(self) -> None:
        shards = sorted(self._open_shards(), key=lambda s: int(s["HashKeyRange"]["StartingHashKey"]))
        one, other = (shard["ShardId"] for shard in shards[:2])
        self.kinesis.merge_shards(StreamName="shop-changes", ShardToMerge=one, AdjacentShardToMerge=other)
        self.wait()

    def wait(self) -> None:
        self.kinesis.get_waiter("stream_exists").wait(StreamName="shop-changes", WaiterConfig={"Delay": 1})

    def _open_shards(self) -> list[dict[str, Any]]:
        shards = self.kinesis.list_shards(StreamName="shop-changes")["Shards"]
        return [each for each in shards if "EndingSequenceNumber" not in each["SequenceNumberRange"]]


@pytest.fixture(scope="module")
def tributary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tributary]:
    folder = tmp_path_factory.mktemp("items")
    lake_file, state = folder / "lake.toml", StateFolder(folder / "state")
    lake_file.write_text(LAKE)
    try:
        up(read_lake(lake_file), state)
        yield Tributary(lake_file, state.path)
    finally:
        down(state)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def database(tributary: Tributary) -> Database:
    settings = tributary.workspace.settings
    found = Database(
        dynamodb_client(settings.dynamodb_endpoint),
        kinesis_client(settings.kinesis_endpoint),
        random.Random(7),
    )
    found.create("orders", {"customer": "S", "number": "N"})
    found.create("notes", {"id": "B"})
    return found


def test_a_lake_of_items_alone_starts_and_is_looked_over_without_kafka(tributary: Tributary) -> None:
    assert tributary.json("up")["read_again"] == []
    assert tributary.json("orphans", "list") == []


def test_the_lake_equals_the_database_while_shards_split_and_merge(
    tributary: Tributary, database: Database
) -> None:
    database.change_some(40)
    database.split()
    database.change_some(40)
    _wait_for_relay()
    tributary.run("ingest")
    assert _is_identical(tributary)

    database.merge()
    database.change_some(40)
    _wait_for_relay()
    tributary.run("ingest")
    assert _is_identical(tributary)

    assert {one["table"] for one in tributary.json("status")["tables"]} == {
        "shop.dynamodb.orders",
        "shop.dynamodb.notes",
    }

    database.dynamodb.put_item(TableName="notes", Item={"id": {"B": b"new"}})
    found = tributary.json("reconcile", "--wait", "0", status=1)
    assert not found["identical"]


def _wait_for_relay() -> None:
    """Wait until the local DynamoDB has sent all changes, also the delayed ones."""
    time.sleep(4)


def _is_identical(tributary: Tributary) -> bool:
    found = tributary.json("reconcile", "--wait", "0", status=None)
    assert found["identical"], found
    return bool(sum(table["rows"] for table in found["tables"]) > 10)
