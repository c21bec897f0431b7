"""A deleted item is forgotten: no file of the lake holds its key or an attribute of it afterwards."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.dynamodb import ItemLog
from spark_app.reports import Erased
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import BronzeUpkeep
from spark_app.sources.event import TopicExtent
from spark_app.sources.kinesis import item_tables
from spark_app.sources.kinesis.item_tables import Page
from spark_app.sources.kinesis.lander import Lander
from spark_app.sources.kinesis.landing import Landing
from spark_app.sources.kinesis.recently_landed import RecentlyLanded
from spark_app.sources.kinesis.source import KinesisSource
from spark_app.sources.kinesis.stream import Record, StreamUnreadable
from spark_app.table.deleted_keys import DeletedKeys
from spark_app.table.erase import erase_keys
from spark_app.table.item_keys import ItemKeyEvents
from spark_app.table.key_events import Key, NotErased
from spark_app.table.rebuild import rebuild_table
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.items.item_columns import column_of
from spark_app.wire.items.record import table_of_record
from spark_app.wire.topic_form import TopicForm
from tests.parameters import first_then_long
from tests.spark_app.iceberg_catalog import iceberg_catalog
from tests.spark_app.items.test_lander import FakeLanding, FakeStream
from tributary.contract.item_stream import ItemRules
from tributary.contract.lake import TablePolicy

NAME, TABLE, TOPIC, NAMELESS = "shop.dynamodb.orders", "orders", "shop.shop.dynamodb.orders", "shop.shop"
SECRET = "zaphod-4711"
"""In an attribute of the item, and in its key if the key can hold it."""

DAY = timedelta(days=1)
YEARS = timedelta(days=3650)
"""A time for which the app cannot know yet that no older record comes."""

Item = Mapping[str, Mapping[str, str]]
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A kind of key.

    own      the key of the item to forget
    other    another key, whose item stays
    wanted   the key as a person writes it
    secrets  what the files must not hold
    """

    own: Item
    other: Item
    wanted: Key
    secrets: tuple[bytes, ...]
    policy: Mapping[str, str] = field(default_factory=dict)


BYTES = base64.b64encode(SECRET.encode()).decode()
CASES = {
    "text and number, hard": Case(
        {"a.b": {"S": f'{SECRET} "first"'}, "number": {"N": "7.0"}},
        {"a.b": {"S": f"{SECRET}"[:6]}, "number": {"N": "7"}},
        {column_of("a.b"): f'{SECRET} "first"', "number": "7"},
        (SECRET.encode(),),
    ),
    "number, soft": Case(
        {"id": {"N": "47114711.50"}},
        {"id": {"N": "7.5"}},  # A rebuild takes the types from the items that are left.
        {"": "47114711.5"},
        (b"47114711", SECRET.encode()),
        {"deletes": "soft"},
    ),
    "bytes, copy on write": Case(
        {"id": {"B": BYTES}},
        {"id": {"B": "AP8="}},
        {"id": BYTES},
        (BYTES.encode(), SECRET.encode()),
        {"storage": "copy_on_write"},
    ),
    "text, soft": Case(
        {"id": {"S": SECRET}}, {"id": {"S": "7"}}, {"id": SECRET}, (SECRET.encode(),), {"deletes": "soft"}
    ),
}


@dataclass
class PagedTables:
    """Tables whose items are in pages of one each. As in DynamoDB, the last key says where to read on."""

    items: Sequence[Mapping[str, Any]]
    keys: tuple[str, ...]

    def names(self) -> tuple[str, ...]:
        return (TABLE,)

    def page(self, table: str, begin: str | None) -> Page:
        assert table == TABLE
        keys = [json.dumps({name: item[name] for name in self.keys}) for item in self.items]
        at = 0 if begin is None else keys.index(begin) + 1
        following = keys[at] if at + 1 < len(keys) else None
        return Page(self.items[at : at + 1], self.keys, 1_790_000_000_000, following)


class KeyedStream(FakeStream):
    """A stream whose partition keys follow from the keys of items, as DynamoDB's do."""

    def change(
        self, key: Item, values: Mapping[str, Any] | None, old: Mapping[str, Any] | None = None
    ) -> None:
        self.now_ms += 1
        change: dict[str, Any] = {
            "ApproximateCreationDateTime": self.now_ms,
            "Keys": {name: key[name] for name in sorted(key, reverse=True)},
            **({} if values is None else {"NewImage": {**key, **values}}),
            **({} if old is None else {"OldImage": {**key, **old}}),
        }
        name = "REMOVE" if values is None else "MODIFY"
        self.send(key, json.dumps({"eventName": name, "tableName": TABLE, "dynamodb": change}).encode())

    def send(self, key: Item, data: bytes) -> None:
        self.sequence += 7
        record = Record(str(self.sequence), self.now_ms, partition_key(key), data)
        self.shards_by_id["s0"].records.append(record)


def partition_key(key: Item) -> str:
    return hashlib.md5(json.dumps(key, sort_keys=True).encode(), usedforsecurity=False).hexdigest().upper()


def topic_of(data: bytes) -> str | None:
    return {None: NAMELESS, TABLE: TOPIC}.get(table_of_record(data))


@dataclass
class Lake:
    """A table of items, and all that it has read."""

    landing: Landing
    folder: Path
    policy: TablePolicy
    stream: KeyedStream
    tables: PagedTables

    def source(self) -> KinesisSource:
        lander = Lander("changes", self.stream, self.landing, self.tables, now=lambda: self.stream.now_ms)
        bronze = BronzeSource(self.landing.spark, self.landing.table)
        return KinesisSource(lander, bronze, self.landing.recent, follows=False)

    def table(self, source: KinesisSource | BronzeSource) -> TableIngest:
        return TableIngest(
            name=NAME,
            topic=TOPIC,
            source=source,
            hudi=HudiTable(self.landing.spark, str(self.folder / "silver"), "orders", self.policy),
            quarantine_path=str(self.folder / "quarantine" / "orders"),
            form=TopicForm(ItemLog(), items=ItemRules()),
            deleted_path=str(self.folder / "quarantine" / "_deleted_keys" / "orders"),
        )

    def land(self) -> KinesisSource:
        source = self.source()
        source.topics()
        return source

    def ingest(self) -> TableIngest:
        source = self.land()
        table = self.table(source)
        while ranges := table.pending(source.extents(frozenset({TOPIC}))[TOPIC], 1_000):
            table.apply(ranges)
        return table

    def erase(self, *keys: Key, remembered: timedelta = DAY) -> Erased:
        source = self.land()
        table = self.table(source)
        path = str(self.folder / "quarantine" / "_deleted_keys" / "orders")
        deleted = DeletedKeys(self.landing.spark, path, remembered)
        return erase_keys(table, keys, ItemKeyEvents(NAME, TOPIC, NAMELESS, TABLE, source, deleted))

    def rows(self) -> Rows:
        """Return the rows that are not deleted."""
        rows = self.table(BronzeSource(self.landing.spark, self.landing.table)).hudi.read()
        live = rows.where("NOT _deleted") if "_deleted" in rows.columns else rows
        kept = sorted(name for name in live.columns if not name.startswith("_"))
        return sorted(tuple(str(value) for value in row) for row in live.select(*kept).collect())

    def folders_with(self, *texts: bytes) -> set[str]:
        """Return the top folders with files that hold one of the texts, also compressed."""
        return {
            path.relative_to(self.folder).parts[0]
            for path in self.folder.rglob("*")
            if path.is_file()
            for content in [b"".join(contents(path))]
            if any(text in content for text in texts)
        }


def contents(path: Path) -> Iterator[bytes]:
    """Yield what a file holds: as it is, and uncompressed."""
    content = path.read_bytes()
    yield content
    if path.suffix == ".parquet":
        yield repr(pq.ParquetFile(path).read().to_pylist()).encode()
    if content.startswith(b"Obj\1"):
        for block in content.split(content[-16:])[1:-1]:
            # Two numbers come before the compressed rows: their count and size.
            for start in range(2, 12):
                try:
                    yield zlib.decompress(block[start:], -15)
                except zlib.error:
                    continue


@pytest.fixture
def landing(spark: SparkSession, tmp_path: Path) -> Iterator[Landing]:
    catalog = iceberg_catalog(spark, tmp_path / "bronze")
    table = f"{catalog}.lake.shop_records"
    yield Landing(spark, table, "changes", topic_of)
    spark.sql(f"DROP TABLE IF EXISTS {table}")


def lake_with(landing: Landing, folder: Path, case: Case) -> Lake:
    """Return a lake that has read the items of the table page by page, and some changes of them."""
    stream = KeyedStream()
    own, other = {**case.own, "note": {"S": f"{SECRET} 0"}}, {**case.other, "note": {"S": "stays"}}
    tables = PagedTables([own, other], tuple(case.own))
    lake = Lake(landing, folder, TablePolicy.model_validate({"buckets": 1, **case.policy}), stream, tables)
    with mock.patch.object(item_tables, "BYTES_AT_ONCE", 1):
        lake.land()
    stream.change(case.own, {"note": {"S": f"{SECRET} 1"}, "total": {"N": "1"}}, old={"note": own["note"]})
    stream.change(case.other, {"note": {"S": "stays"}, "total": {"N": "10.5"}})
    keys = json.dumps({"Keys": case.own, "note": SECRET})
    stream.send(case.own, f'{{"eventName":"MODIFY","tableName":"{TABLE}","dynamodb":{keys}'.encode())
    stream.send(case.own, f'{{"userIdentity":{{}},"dynamodb":{keys}'.encode())
    stream.send(case.other, f'{{"eventName":"MODIFY","tableName":"{TABLE}","dynamodb":7'.encode())
    return lake


def _fail(*_: object, **__: object) -> None:
    raise OSError("the process ends here")


INTERRUPTIONS: Sequence[tuple[type, str]] = (
    (DeletedKeys, "_delete"),
    (BronzeUpkeep, "blank"),
    (BronzeUpkeep, "expire_all_snapshots_but_one"),
    (BronzeUpkeep, "remove_earlier_metadata"),
)


@pytest.mark.parametrize("case", first_then_long(CASES.values()), ids=CASES)
def test_a_forgotten_item_is_in_no_file_and_the_table_is_rebuilt_the_same(
    landing: Landing, tmp_path: Path, case: Case
) -> None:
    lake, is_interrupted = lake_with(landing, tmp_path, case), "storage" in case.policy
    assert lake.folders_with(*case.secrets) == {"bronze"}
    lake.ingest()
    with pytest.raises(NotErased, match="still in the source"):
        lake.erase(case.wanted)
    lake.stream.change(case.own, None, old={"note": {"S": SECRET}})
    with pytest.raises(NotErased, match="has not applied all events"):
        lake.erase(case.wanted)
    positions = lake.ingest().ledger.positions
    rows, places = lake.rows(), landing.read_places()
    assert len(rows) == 1
    with pytest.raises(NotErased, match="An older record of a deleted item may still come"):
        lake.erase(case.wanted, remembered=YEARS)
    assert lake.folders_with(*case.secrets) == {"bronze", "silver", "quarantine"}

    for owner, name in INTERRUPTIONS if is_interrupted else ():
        with mock.patch.object(owner, name, _fail), pytest.raises(OSError, match="ends here"):
            lake.erase(case.wanted)
        assert lake.rows() == rows
    erased = lake.erase(case.wanted)
    assert lake.folders_with(*case.secrets, partition_key(case.own).encode()) == set()
    assert erased.in_stream_until is not None
    if not is_interrupted:
        assert (erased.events, erased.quarantined, erased.unknown) == (5, 1, ())
        assert erased.rows == (1 if case.policy.get("deletes") == "soft" else 0)
        at = datetime.fromtimestamp(lake.stream.now_ms / 1000, UTC) + DAY
        assert erased.in_stream_until == at.isoformat(timespec="seconds")

    assert lake.rows() == rows
    table = lake.ingest()
    assert table.ledger.positions == positions
    assert landing.read_places() == places
    instant = table.hudi.timeline().last_instant
    assert lake.erase(case.wanted).rows == 0
    assert table.hudi.timeline().last_instant == instant  # No history was lost for a wrong key.

    rebuild_table(lake.table(BronzeSource(landing.spark, landing.table)), patience_seconds=0)
    assert lake.rows() == rows
    assert lake.ingest().ledger.positions == positions
    lake.stream.change(case.other, {"note": {"S": "later"}})
    lake.ingest()
    assert "later" in str(lake.rows())
    assert lake.folders_with(*case.secrets) == set()


def test_nothing_is_erased_while_the_items_of_the_table_are_read_or_if_the_stream_cannot_be_read() -> None:
    stream, landing = KeyedStream(), FakeLanding()
    tables = PagedTables([{"id": {"S": "a"}}, {"id": {"S": "b"}}], ("id",))
    lander = Lander("changes", stream, landing, tables, now=lambda: stream.now_ms)
    with mock.patch.object(item_tables, "BYTES_AT_ONCE", 1):
        lander.step()
    bronze = mock.Mock(spec=BronzeSource, **{"extents.return_value": {TOPIC: TopicExtent({}, {0: 1})}})
    source = KinesisSource(lander, bronze, RecentlyLanded(), follows=False)
    events = ItemKeyEvents(NAME, TOPIC, NAMELESS, TABLE, source, mock.Mock(spec=DeletedKeys))
    table = mock.Mock(spec=TableIngest, **{"behind.return_value": 0})
    table.name, table.topic, table.ledger.key_columns = NAME, TOPIC, ("id",)
    table.source.extents.return_value = {TOPIC: TopicExtent({0: 0}, {0: 1})}
    with pytest.raises(NotErased, match="The items of the table are still being read"):
        erase_keys(table, [{"": "a"}], events)

    problem = StreamUnreadable(what="The stream cannot be read", where="changes", remedy="Create it.")
    table.source.extents.return_value = {TOPIC: TopicExtent({0: 0}, {0: 1}, problem=problem)}
    with pytest.raises(NotErased, match=r"changes: The stream cannot be read\. Create it\."):
        erase_keys(table, [{"": "a"}], events)
    table.rewrite.assert_not_called()
