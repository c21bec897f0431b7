"""The local Kinesis behaves as the app expects: shards end, children follow, and sequence numbers resume."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from spark_app.sources.kinesis.lander import Lander
from spark_app.sources.kinesis.stream import Stream, StreamUnreadable
from tests.spark_app.items.test_lander import FakeLanding
from tributary.contract.item_stream import ItemStream
from tributary.local.kinesis import (
    KinesisServer,
    create_streams,
    kinesis_client,
)
from tributary.local.server_files import fetch_item_servers
from tributary.local.state import StateFolder, choose_ports

pytestmark = pytest.mark.slow

NAME = "changes"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KinesisServer]:
    files, state = fetch_item_servers(), StateFolder(tmp_path_factory.mktemp("kinesis"))
    state.create()
    port = choose_ports({}, None, frozenset()).kinesis
    assert port is not None
    server = KinesisServer(files.node, files.kinesalite, state.kinesis, state.log("kinesis"), state.run, port)
    try:
        server.start(threading.Event())
        yield server
    finally:
        server.stop(state.run)


def test_every_record_lands_once_and_in_order_while_shards_split_and_merge(
    server: KinesisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    of = ItemStream(NAME, "us-east-1", server.endpoint)
    create_streams(server, [of])
    client, bronze, chance = kinesis_client(server.endpoint), FakeLanding(), random.Random(5)
    sent = 0

    def put(records: int) -> None:
        nonlocal sent
        for _ in range(records):
            key = chance.choice("abcdefgh")
            client.put_record(StreamName=NAME, PartitionKey=key, Data=f"a {key} {sent}".encode())
            sent += 1

    def land() -> None:
        lander = Lander(NAME, Stream(of), bronze)
        deadline = time.monotonic() + 30
        while not lander.is_at_end:
            lander.step()
            assert time.monotonic() < deadline
            time.sleep(0.1)

    put(40)
    land()
    _reshard(client, chance, "split")
    put(40)
    _reshard(client, chance, "merge")
    put(40)
    land()
    land()

    values = [row.record.data.decode() for row in bronze.rows]
    assert len(values) == len(set(values)) == sent
    for key in "abcdefgh":
        numbers = [int(value.split()[2]) for value in values if value.startswith(f"a {key} ")]
        assert numbers == sorted(numbers)
    assert sum(place.is_over for place in bronze.places.shards) >= 2
    sequences = [row.record.sequence for row in bronze.rows]
    assert all(len(sequence) == 56 for sequence in sequences)


def test_a_stream_that_does_not_exist_is_named(
    server: KinesisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    stream = Stream(ItemStream("missing", "us-east-1", server.endpoint))
    with pytest.raises(StreamUnreadable, match="Kinesis stream missing"):
        Lander("missing", stream, FakeLanding()).step()


def test_a_stream_is_the_same_one_in_every_time_zone(
    server: KinesisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    of = ItemStream("zoned", "us-east-1", server.endpoint)
    create_streams(server, [of])
    found = set()
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        with monkeypatch.context() as here:
            here.setenv("TZ", zone)
            time.tzset()
            found.add(Stream(of).facts())
    time.tzset()
    assert len(found) == 1
    assert abs(datetime.fromisoformat(found.pop().created).timestamp() - time.time()) < 60


def test_the_records_survive_a_restart(server: KinesisServer) -> None:
    client = kinesis_client(server.endpoint)
    create_streams(server, [ItemStream("kept", "us-east-1", server.endpoint)])
    put = client.put_record(StreamName="kept", PartitionKey="a", Data=b"kept")
    server.stop(server.run)
    server.start(threading.Event())

    at = client.get_shard_iterator(
        StreamName="kept", ShardId=put["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )
    records = client.get_records(ShardIterator=at["ShardIterator"])["Records"]
    assert [record["Data"] for record in records] == [b"kept"]


def _reshard(client: Any, chance: random.Random, how: str) -> None:
    shards = [
        shard
        for shard in client.list_shards(StreamName=NAME)["Shards"]
        if "EndingSequenceNumber" not in shard["SequenceNumberRange"]
    ]
    ordered = sorted(shards, key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))
    if how == "split":
        shard = chance.choice(ordered)
        ends = shard["HashKeyRange"]
        middle = (int(ends["StartingHashKey"]) + int(ends["EndingHashKey"])) // 2
        client.split_shard(StreamName=NAME, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(middle))
    else:
        one, other = (shard["ShardId"] for shard in ordered[:2])
        client.merge_shards(StreamName=NAME, ShardToMerge=one, AdjacentShardToMerge=other)
    client.get_waiter("stream_exists").wait(StreamName=NAME, WaiterConfig={"Delay": 1})
