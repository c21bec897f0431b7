"""Build a table of orders of any size, keep it current with the app, and compare it with its history."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.orders import COLUMNS, KEY, START, OrdersHistory, Record
from bench.results import WrongResult
from spark_app.columns.table_columns import APP_COLUMNS
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import commit_metadata
from spark_app.ledger.ledger import Ledger
from spark_app.positions.postgres import PostgresLog
from spark_app.reports import Committed
from spark_app.sources.event import EVENT, OffsetRange, TopicExtent
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm

TOPIC = "bench.shop.public.orders"


@dataclass
class Topic:
    """A topic in memory, with one partition that starts at the offset `first`."""

    keeps_headers: ClassVar[bool] = True

    spark: SparkSession
    first: int
    records: list[Record] = field(default_factory=list)

    def topics(self) -> frozenset[str]:
        return frozenset({TOPIC})

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        extent = TopicExtent({0: self.first}, {0: self.first + len(self.records)})
        return dict.fromkeys(topics, extent)

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        at = datetime.now(UTC)
        rows = [
            (topic, 0, offset, at, bytearray(record.key), _binary(record.value), None, None)
            for wanted in ranges
            for offset, record in enumerate(
                self.records[wanted.first - self.first : wanted.until - self.first], wanted.first
            )
        ]
        return self.spark.createDataFrame(rows, EVENT)


@dataclass
class OrdersTable:
    """A silver table of a history's orders. The app has applied every record of the history so far."""

    history: OrdersHistory
    topic: Topic
    ingest: TableIngest
    _unchanged: dict[int, DataFrame] = field(default_factory=dict)

    def send(self, records: int) -> None:
        """Add the history's next changes to the topic."""
        self.topic.records += self.history.changes(records)

    def commit(self) -> Committed:
        """Apply everything that waits in the topic as one commit, through all stages of the app."""
        return apply_pending(self.ingest, self.topic)

    def seconds_of_commit(self, records: int) -> float:
        """Send `records` changes and return the seconds that the app takes to commit them."""
        self.send(records)
        began = time.perf_counter()
        self.commit()
        return time.perf_counter() - began

    def unchanged(self, number: int) -> DataFrame:
        """Return `number` rows that never change. Writing them again leaves the table's content unchanged.

        The rows are read from the table once and kept.
        """
        if number not in self._unchanged:
            stored = self.ingest.hudi.read()
            names = [name for name in stored.columns if not name.startswith("_hoodie_")]
            some = stored.where(F.col(KEY) < number).select(*names)
            self._unchanged[number] = some.sparkSession.createDataFrame(some.collect(), some.schema).coalesce(
                1
            )
        return self._unchanged[number]


def build_orders_table(spark: SparkSession, folder: str | Path, hudi: HudiTable, orders: int) -> OrdersTable:
    """Write a table of the given number of orders in one commit, as if the app had read their snapshot.

    A tenth of the orders will never change.
    """
    ledger = Ledger(
        TOPIC,
        positions={0: orders},
        applied={0: bytes(16)},
        applied_ts_us={0: 0},
        key_columns=(KEY,),
        events=orders,
    )
    hudi.write(_snapshot_rows(spark, orders), commit_metadata(ledger))
    topic = Topic(spark, first=orders)
    ingest = TableIngest(
        "shop.public.orders", TOPIC, topic, hudi, f"{folder}/quarantine", TopicForm(PostgresLog())
    )
    ingest.recover()
    return OrdersTable(OrdersHistory(TOPIC, orders, untouched=orders // 10), topic, ingest)


def apply_pending(ingest: TableIngest, source: Any) -> Committed:
    """Apply everything that the source has for the table as one commit."""
    extent = source.extents(frozenset({ingest.topic}))[ingest.topic]
    committed = ingest.apply(ingest.pending(extent, limit=1_000_000))
    assert committed is not None
    return committed


def check_orders(hudi: HudiTable, history: OrdersHistory) -> None:
    """Raise `WrongResult` if the table differs from its history."""
    table = hudi.read()
    count = table.count()
    if count != history.row_count:
        raise WrongResult(
            "the table has lost or invented rows",
            where=hudi.path,
            found=f"{count:,} rows",
            expected=f"{history.row_count:,}",
        )
    keys = hudi.spark.createDataFrame([(order,) for order in history.changed], f"{KEY} bigint")
    found = {row[KEY]: row.asDict() for row in table.join(F.broadcast(keys), KEY).select(*COLUMNS).collect()}
    expected = {order: _as_read(row) for order, row in history.changed.items() if row is not None}
    wrong = [order for order in found.keys() | expected.keys() if found.get(order) != expected.get(order)]
    if wrong:
        raise WrongResult(
            f"{len(wrong):,} rows are not what their last change made them",
            where=f"{hudi.path}, {KEY} {wrong[0]}",
            found=str(found.get(wrong[0])),
            expected=str(expected.get(wrong[0])),
        )


def _as_read(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert timestamps as PySpark returns them: in the local zone and without its name."""
    return {
        name: value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value
        for name, value in row.items()
    }


def _snapshot_rows(spark: SparkSession, orders: int) -> DataFrame:
    """Return the rows of `bench.orders.first_row` as the app would write them."""
    order = F.col("id")
    at = F.timestamp_seconds(F.lit(int(START.timestamp())) + order)
    columns: dict[str, Column] = {
        "_key": F.to_json(F.struct(order.alias(KEY))),
        "_op": F.lit("r"),
        "_seq": order,
        "_source_ts": F.timestamp_seconds(F.lit(int(START.timestamp()))),
        "_topic": F.lit(TOPIC),
        "_partition": F.lit(0),
        "_offset": order,
        "_log_position": F.lit(bytes(8)),
        KEY: order,
        "customer_id": order % 10_007,
        "status": F.lit("placed"),
        "amount": (order % 100_000) / 100,
        "note": F.format_string("order %d of customer %d", order, order % 10_007),
        "created_at": at,
        "updated_at": at,
    }
    types = {app.name: app.dataType for app in APP_COLUMNS} | dict(COLUMNS)
    return spark.range(orders).select(
        *[column.cast(types[name]).alias(name) for name, column in columns.items()]
    )


def _binary(value: bytes | None) -> bytearray | None:
    return None if value is None else bytearray(value)


def take_turns(
    tables: Sequence[OrdersTable], rounds: int, seconds_of: Callable[[OrdersTable], float]
) -> Sequence[Sequence[float]]:
    """Return the seconds of each round, by table. Raise `WrongResult` if a table ends up wrong."""
    seconds: Sequence[list[float]] = [[] for _ in tables]
    for turn in turns(rounds, len(tables)):
        for place in turn:
            seconds[place].append(seconds_of(tables[place]))
    for table in tables:
        check_orders(table.ingest.hudi, table.history)
    return seconds


def turns(rounds: int, number: int) -> Sequence[Sequence[int]]:
    """Return the order of the contenders in each round. Each is first and last equally often."""
    return [[(turn + place) % number for place in range(number)] for turn in range(rounds)]
