"""A table's items come from its export to S3, each once, and only if the stream has all later changes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from spark_app.sources.kinesis import item_export
from spark_app.sources.kinesis.item_export import ItemExport
from spark_app.sources.kinesis.item_tables import MARGIN_MS, ItemReader, ItemTables, shard_of_items
from spark_app.sources.kinesis.places import ShardPlace
from spark_app.sources.kinesis.stream import Record, StreamFacts, StreamUnreadable
from spark_app.wire.items.record import read_record
from tributary.contract.item_stream import ITEM_SCHEMA, ItemStream
from tributary.contract.patterns import TablePatterns

BUCKET, FOLDER = "exports", "daily/AWSDynamoDB/01764-ab"
HOUR_MS = 3_600_000
AT_MS = 1_764_000_000_000
FACTS = StreamFacts("2025-11-24T00:00:00+00:00", 24 * HOUR_MS)


@dataclass
class Export:
    """An export in a bucket, as DynamoDB writes it."""

    s3: Any
    files: Sequence[Sequence[int]] = ((0, 1, 2), (), (3, 4))
    summary: dict[str, str] = field(default_factory=dict)

    def write(self) -> ItemExport:
        lines = []
        for number, items in enumerate(self.files):
            text = "".join(json.dumps({"Item": _item(each)}) + "\n" for each in items)
            self._put(f"data/f{number}.json.gz", gzip.compress(text.encode()) if items else b"")
            key = f"AWSDynamoDB/01764-ab/data/f{number}.json.gz"
            lines.append(json.dumps({"itemCount": len(items), "dataFileS3Key": key}))
        self._put("manifest-files.json", "\n".join(lines).encode())
        summary = {
            "tableArn": "arn:aws:dynamodb:eu-central-1:123456789012:table/orders",
            "exportTime": "2025-11-24T16:00:00.000Z",
            "outputFormat": "DYNAMODB_JSON",
            **self.summary,
        }
        self._put("manifest-summary.json", json.dumps(summary).encode())
        return ItemExport("orders", f"s3://{BUCKET}/{FOLDER}", lambda: FACTS, lambda: AT_MS + HOUR_MS)

    def _put(self, name: str, data: bytes) -> None:
        self.s3.put_object(Bucket=BUCKET, Key=f"{FOLDER}/{name}", Body=data)


def _item(number: int) -> dict[str, Any]:
    return {"id": {"N": str(number)}, "raw": {"B": "AP8="}, "tags": {"SS": ["b", "a"]}}


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "of a test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET)
        yield client


def _numbers(export: ItemExport, restarts: bool) -> list[int]:
    found, begin = [], None
    while True:
        # A new process has only the place.
        reader = replace(export) if restarts else export
        page = reader.page(begin)
        found += [int(item["id"]["N"]) for item in page.items]
        if page.next is None:
            return found
        begin = page.next


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_every_item_comes_once_also_after_restarts(
    s3: Any, monkeypatch: pytest.MonkeyPatch, at_once: int, restarts: bool
) -> None:
    monkeypatch.setattr(item_export, "ITEMS_AT_ONCE", at_once)
    assert _numbers(Export(s3).write(), restarts) == [0, 1, 2, 3, 4]
    assert _numbers(Export(s3, files=((), ())).write(), restarts) == []


def test_a_place_in_a_scan_or_another_export_is_none_in_this_one(s3: Any) -> None:
    export = Export(s3).write()
    first = export.page(None).items
    assert export.page('{"id":{"N":"3"}}').items == first
    assert export.page('["another", 2, 1]').items == first


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ({"exportType": "INCREMENTAL_EXPORT"}, "found INCREMENTAL_EXPORT in DYNAMODB_JSON"),
        ({"outputFormat": "ION"}, "found FULL_EXPORT in ION"),
        ({"tableArn": "arn:aws:dynamodb:eu-central-1:1:table/other"}, "an export of the table other"),
        ({"exportTime": "2025-11-23T16:59:59Z"}, "found items of 2025-11-23T16:59:59Z"),
        ({"exportTime": "2025-11-23T23:59:59Z"}, "expected a time after 2025-11-24T00:00:00Z"),
    ],
)
def test_an_export_that_the_stream_does_not_continue_or_of_another_kind_is_refused(
    s3: Any, summary: dict[str, str], message: str
) -> None:
    with pytest.raises(StreamUnreadable) as caught:
        Export(s3, summary=summary).write().page(None)
    assert message in str(caught.value)
    assert "exports.orders" in str(caught.value)


def test_a_lost_file_or_item_is_told_and_never_passed_over(s3: Any) -> None:
    export = Export(s3).write()
    s3.put_object(
        Bucket=BUCKET, Key=f"{FOLDER}/data/f0.json.gz", Body=gzip.compress(b'{"Item":{"id":{"N":"0"}}}\n')
    )
    with pytest.raises(StreamUnreadable, match=r"found 1 items in data/f0.json.gz, expected 3"):
        export.page(None)
    s3.delete_object(Bucket=BUCKET, Key=f"{FOLDER}/data/f0.json.gz")
    with pytest.raises(StreamUnreadable, match=r"NoSuchKey.*the file data/f0.json.gz"):
        replace(export).page(None)
    s3.put_object(Bucket=BUCKET, Key=f"{FOLDER}/data/f0.json.gz", Body=gzip.compress(b"no item"))
    with pytest.raises(StreamUnreadable, match=r"in data/f0.json.gz, expected lines with"):
        replace(export).page(None)
    s3.put_object(Bucket=BUCKET, Key=f"{FOLDER}/data/f0.json.gz", Body=gzip.compress(b"x" * 99)[:-9])
    with pytest.raises(OSError, match=r"while data/f0.json.gz was read"):
        replace(export).page(None)


def test_the_items_count_as_older_than_changes_of_the_exports_time(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb = boto3.client("dynamodb")
    dynamodb.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.put_item(TableName="orders", Item={"id": {"N": "99"}})
    export = Export(s3).write()
    of = ItemStream("changes", "us-east-1", exports=(("orders", export.address),))
    tables = ItemTables(of, TablePatterns.parse(("dynamodb.orders",)), ITEM_SCHEMA)
    monkeypatch.setitem(tables._exports, "orders", export)
    fetched = ItemReader(tables, ShardPlace(0, shard_of_items("orders").id)).fetch()
    assert fetched is not None
    assert fetched.place.is_over
    assert [_change(record) for record in fetched.records] == [
        (str(number), export.time_ms - MARGIN_MS) for number in range(5)
    ]
    assert export.time_ms == AT_MS
    assert {json.loads(record.data)["eventSource"] for record in fetched.records} == {"tributary:export"}


def test_a_database_that_stands_for_aws_s_own_is_scanned(s3: Any) -> None:
    address = Export(s3).write().address
    of = ItemStream(
        "changes", "us-east-1", database_endpoint="http://127.0.0.1:1", exports=(("orders", address),)
    )
    assert not ItemTables(of, TablePatterns.parse(("dynamodb.orders",)), ITEM_SCHEMA)._exports


def _change(record: Record) -> tuple[str, int]:
    change = read_record(record.data)
    assert change.image is not None
    assert change.image["raw"] == {"B": "AP8="}
    return change.keys["id"]["N"], change.time_us // 1000
