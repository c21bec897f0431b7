"""All items of the wanted tables are read, from any page on, and count as older than changes of that time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from spark_app.sources.kinesis.item_tables import MARGIN_MS, ItemReader, ItemTables, shard_of_items
from spark_app.sources.kinesis.places import ShardPlace
from spark_app.sources.kinesis.stream import Record
from spark_app.wire.items.attributes import plain_json
from spark_app.wire.items.record import read_record, table_of_record
from tributary.contract.item_stream import ITEM_SCHEMA, ItemStream
from tributary.contract.patterns import TablePatterns

REGION = "eu-central-1"


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of a test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of a test")
    with mock_aws():
        client = boto3.client("dynamodb", region_name=REGION)
        for name in ("orders", "orders_old", "other"):
            client.create_table(
                TableName=name,
                KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "B"}],
                BillingMode="PAY_PER_REQUEST",
            )
        yield client


def _tables(*patterns: str) -> ItemTables:
    of = ItemStream("changes", REGION)
    return ItemTables(of, TablePatterns.parse(tuple(patterns)), ITEM_SCHEMA)


@pytest.mark.usefixtures("dynamodb")
def test_the_tables_are_those_of_the_patterns_that_exist() -> None:
    assert _tables("dynamodb.orders*", "!dynamodb.*_old").names() == ("orders",)
    assert _tables("dynamodb.orders", "dynamodb.missing").names() == ("orders",)
    assert _tables("dynamodb.*").names() == ("orders", "orders_old", "other")


def test_a_reader_continues_at_the_page_after_the_last_one_that_landed(
    dynamodb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_app.sources.kinesis.item_tables.BYTES_AT_ONCE", 1)
    body = "x" * 400_000
    for number in range(7):
        item = {"id": {"B": bytes([255, number])}, "body": {"S": body}, "n": {"N": "1.50"}}
        dynamodb.put_item(TableName="orders", Item=item)
    place, fetches = ShardPlace(3, shard_of_items("orders").id), 0
    found: list[Record] = []
    while not place.is_over:
        fetched = ItemReader(_tables("dynamodb.orders"), place).fetch()
        assert fetched is not None
        place, fetches = fetched.place, fetches + 1
        found += fetched.records

    assert fetches > 1
    changes = [read_record(record.data) for record in found]
    keys = {plain_json(change.keys["id"]) for change in changes}
    assert len(keys) == len(changes) == 7
    assert {table_of_record(record.data) for record in found} == {"orders"}
    now_us = time.time_ns() // 1000
    for change in changes:
        assert change.image is not None
        assert change.image["n"] == {"N": "1.50"}
        assert 0 < now_us - change.time_us - MARGIN_MS * 1000 < 60_000_000
