"""An item's records are found in the files of bronze by its key, in the order of the changes."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from tests.spark_app.items.generated import Sent, item
from tributary.api.item_events import read_item_events
from tributary.api.open_lake import OpenLake
from tributary.api.row_events import RowEvent, row_at
from tributary.contract.lake import parse_lake
from tributary.contract.table_name import TableName

AT = 1_790_000_000_000_000
TOPIC, RECORDS = "shop.web.dynamodb.orders", "shop_bronze/web_records"
DIGITS = Decimal("12345678901234567890.123456789012345678")


def _row(offset: int, data: bytes, partition: int = 0) -> dict[str, Any]:
    return {
        "k_topic": TOPIC,
        "k_partition": partition,
        "k_offset": offset,
        "k_timestamp": AT // 1000 + 5,
        "key": str(offset).encode(),
        "value": data,
        "sequence_number": str(10**55 + offset),
    }


def _changed(sent: Sent, name: str, before: dict[str, Any] | None = None, **more: Any) -> bytes:
    record = json.loads(sent.data)
    if before is not None:
        record["dynamodb"]["OldImage"] = item(before)
    return json.dumps({**record, "eventName": name, **more}).encode()


@pytest.fixture
def bronze(tmp_path: Path) -> SubTreeFileSystem:
    values = {"total": DIGITS, "half": Decimal("0.5"), "tags": frozenset({"b", "a"}), "raw": b"\1"}
    first = {"id": "7", **values}
    rows = [
        _row(0, _changed(Sent("7", AT + 20, None), "REMOVE", {"id": "7", "state": "paid"})),
        _row(1, _changed(Sent("7", AT + 10, {"state": "paid"}), "MODIFY", first)),
        _row(2, _changed(Sent("71", AT + 10, {}), "INSERT")),
        _row(3, b"no record"),
        _row(4, _changed(Sent("7", AT - 60_000_000, values), "INSERT", eventSource="tributary:scan")),
        _row(0, _changed(Sent("7", AT + 10, {"state": "late"}), "MODIFY"), partition=1),
    ]
    for partition in (0, 1):
        place = tmp_path / "bronze" / RECORDS / "data" / f"k_topic={TOPIC}" / f"k_partition={partition}"
        place.mkdir(parents=True)
        of_partition = [row for row in rows if row["k_partition"] == partition]
        parquet.write_table(pa.Table.from_pylist(of_partition), place / "1.parquet")
        parquet.write_table(pa.Table.from_pylist(of_partition[:1]), place / "of a failed commit.parquet")
    return SubTreeFileSystem(str(tmp_path), LocalFileSystem())


def _events(bronze: SubTreeFileSystem, key: Any) -> tuple[RowEvent, ...]:
    return read_item_events(bronze, "bronze", RECORDS, TOPIC, key)


def test_the_changes_of_an_item_are_in_their_order_each_once(bronze: SubTreeFileSystem) -> None:
    found = _events(bronze, "7")
    assert [(one.partition, one.offset, one.kind) for one in found] == [
        (0, 4, "read by a snapshot"),
        (1, 0, "updated"),
        (0, 1, "updated"),
        (0, 0, "deleted"),
    ]
    assert found == _events(bronze, {"id": "7"})
    assert not _events(bronze, "8")
    assert not _events(bronze, {"name": "7"})


def test_values_are_plain_and_exact(bronze: SubTreeFileSystem) -> None:
    first = _events(bronze, "7")[0]
    assert first.after == {
        "id": "7",
        "total": str(DIGITS),
        "half": 0.5,
        "tags": ["a", "b"],
        "raw": "AQ==",
    }
    assert json.dumps(dict(first.after))


def test_a_change_says_what_it_changed_and_a_delete_ends_the_row(bronze: SubTreeFileSystem) -> None:
    found = _events(bronze, "7")
    assert found[2].changed == {"state": (None, "paid")}
    assert found[3].after is None
    assert found[3].before == {"id": "7", "state": "paid"}
    at_end = row_at(found, found[3].committed)
    assert at_end is not None
    assert at_end.values is None


def test_an_open_lake_finds_them_in_the_records_of_their_source(bronze: SubTreeFileSystem) -> None:
    lake = parse_lake(
        '[lake]\nname = "shop"\n[source.web]\nengine = "dynamodb"\ntables = ["orders"]\nstream = "s"\n'
    )
    opened = OpenLake(lake, "silver", "quarantine", "bronze", mock.Mock(filesystem=bronze))
    table = mock.Mock()
    table.name = TableName("web", "dynamodb", "orders")
    with mock.patch.object(OpenLake, "table", return_value=table):
        assert opened.row_events("orders", "7") == _events(bronze, "7")
