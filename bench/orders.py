"""The events that Debezium would send for a changing table of orders, and the table's content afterwards."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from pyspark.sql.types import (
    DataType,
    DecimalType,
    LongType,
    StringType,
    TimestampType,
)

KEY = "order_id"
START = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of the first order."""

COLUMNS: Mapping[str, DataType] = {
    KEY: LongType(),
    "customer_id": LongType(),
    "status": StringType(),
    "amount": DecimalType(12, 2),
    "note": StringType(),
    "created_at": TimestampType(),
    "updated_at": TimestampType(),
}

Row = Mapping[str, Any]
Operation = Literal["c", "u", "d", "r"]

_START_LSN = 26_000_000
_STATUSES = ("placed", "paid", "packed", "shipped", "returned")
_SCHEMAS: Mapping[str, Mapping[str, object]] = {
    KEY: {"type": "int64", "optional": False},
    "customer_id": {"type": "int64", "optional": True},
    "status": {"type": "string", "optional": True},
    "amount": {
        "type": "bytes",
        "optional": True,
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2", "connect.decimal.precision": "12"},
    },
    "note": {"type": "string", "optional": True},
    "created_at": {
        "type": "int64",
        "optional": True,
        "name": "io.debezium.time.MicroTimestamp",
        "version": 1,
    },
    "updated_at": {
        "type": "string",
        "optional": True,
        "name": "io.debezium.time.ZonedTimestamp",
        "version": 1,
    },
}
_SOURCE = {
    "version": "string",
    "connector": "string",
    "name": "string",
    "ts_ms": "int64",
    "snapshot": "string",
    "db": "string",
    "sequence": "string",
    "ts_us": "int64",
    "ts_ns": "int64",
    "schema": "string",
    "table": "string",
    "txId": "int64",
    "lsn": "int64",
    "xmin": "int64",
    "origin": "string",
    "origin_lsn": "int64",
}


@dataclass(frozen=True)
class Record:
    """A Kafka record of the topic. `value` is None for a tombstone."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True)
class Mix:
    """The shares of a batch's records that insert and delete. All others update. A delete is two records."""

    inserts: float = 0.25
    deletes: float = 0.10


@dataclass
class OrdersHistory:
    """A table that starts with the orders 0 to `first_orders` - 1, and its changes.

    changed    the changed rows, None for a deleted one. All other rows still equal their `first_row`.
    untouched  this many of the first orders never change
    """

    topic: str
    first_orders: int
    seed: int = 1
    untouched: int = 0
    changed: dict[int, Row | None] = field(default_factory=dict)
    _sent: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._next_order = self.first_orders
        self._key_frame = _frame(_key_schema(self.topic))
        self._value_frame = _frame(_envelope_schema(self.topic))

    def snapshot(self) -> Iterator[Record]:
        """Return the snapshot's read events of all first orders."""
        return (self._record("r", order, first_row(order)) for order in range(self.first_orders))

    def changes(self, records: int, mix: Mix = Mix()) -> list[Record]:
        """Make the next changes. Return them as the given number of records."""
        sent: list[Record] = []
        while len(sent) < records:
            draw = self._random.random()
            if draw < mix.inserts:
                sent.append(self._insert())
            elif draw < mix.inserts + mix.deletes and records - len(sent) > 1:
                sent += self._delete()
            else:
                sent.append(self._update())
        return sent

    @property
    def row_count(self) -> int:
        gone = sum(row is None for order, row in self.changed.items() if order < self.first_orders)
        new = sum(row is not None for order, row in self.changed.items() if order >= self.first_orders)
        return self.first_orders - gone + new

    def _insert(self) -> Record:
        order, self._next_order = self._next_order, self._next_order + 1
        row = self.changed[order] = first_row(order)
        return self._record("c", order, row)

    def _update(self) -> Record:
        order = self._some_order()
        row = self.changed[order] = {
            **(self.changed.get(order) or first_row(order)),
            "status": self._random.choice(_STATUSES),
            "amount": Decimal(self._random.randrange(10_000_000)) / 100,
            "updated_at": START + timedelta(seconds=self._sent),
        }
        return self._record("u", order, row)

    def _delete(self) -> list[Record]:
        order = self._some_order()
        self.changed[order] = None
        record = self._record("d", order, None)
        return [record, Record(record.key, None)]

    def _some_order(self) -> int:
        while True:
            order = self._random.randrange(self.untouched, self._next_order)
            if self.changed.get(order, _UNCHANGED) is not None:
                return order

    def _record(self, op: Operation, order: int, row: Row | None) -> Record:
        self._sent += 1
        is_read = op == "r"
        lsn = _START_LSN + (0 if is_read else 64 * self._sent)
        committed_us = _micros(START) + (0 if is_read else 1_000 * self._sent)
        source = {
            "version": "3.7.0.Final",
            "connector": "postgresql",
            "name": self.topic.rsplit(".", 2)[0],
            "ts_ms": committed_us // 1_000,
            "snapshot": "true" if is_read else "false",
            "db": "shop",
            "sequence": json.dumps([None if is_read else str(lsn - 64), str(lsn)]),
            "ts_us": committed_us,
            "ts_ns": committed_us * 1_000,
            "schema": "public",
            "table": "orders",
            "txId": 700 + self._sent,
            "lsn": lsn,
            "xmin": None,
            "origin": None,
            "origin_lsn": None,
        }
        payload = {
            # Under the default replica identity, a delete carries only the key's real value.
            "before": dict.fromkeys(COLUMNS, None) | {KEY: order} if op == "d" else None,
            "after": None if row is None else _on_the_wire(row),
            "source": source,
            "transaction": None,
            "op": op,
            "ts_ms": committed_us // 1_000,
            "ts_us": committed_us,
            "ts_ns": committed_us * 1_000,
        }
        return Record(
            key=f'{self._key_frame}{{"{KEY}":{order}}}}}'.encode(),
            value=f"{self._value_frame}{_json(payload)}}}".encode(),
        )


_UNCHANGED: Row = {}


def first_row(order: int) -> Row:
    """Return an order as it was placed. bench.orders_table builds the same row in Spark."""
    return {
        KEY: order,
        "customer_id": order % 10_007,
        "status": "placed",
        "amount": Decimal(order % 100_000) / 100,
        "note": f"order {order} of customer {order % 10_007}",
        "created_at": START + timedelta(seconds=order),
        "updated_at": START + timedelta(seconds=order),
    }


def _on_the_wire(row: Row) -> Mapping[str, object]:
    return {
        **row,
        "amount": float(row["amount"]),
        "created_at": _micros(row["created_at"]),
        "updated_at": row["updated_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }


def _micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _key_schema(topic: str) -> Mapping[str, object]:
    return {
        "type": "struct",
        "fields": [{**_SCHEMAS[KEY], "field": KEY}],
        "optional": False,
        "name": f"{topic}.Key",
    }


def _envelope_schema(topic: str) -> Mapping[str, object]:
    row = {
        "type": "struct",
        "fields": [{**schema, "field": name} for name, schema in _SCHEMAS.items()],
        "optional": True,
        "name": f"{topic}.Value",
    }
    source = {
        "type": "struct",
        "fields": [{"type": kind, "optional": True, "field": name} for name, kind in _SOURCE.items()],
        "optional": False,
        "name": "io.debezium.connector.postgresql.Source",
        "field": "source",
    }
    block = {"id": "string", "total_order": "int64", "data_collection_order": "int64"}
    transaction = {
        "type": "struct",
        "fields": [{"type": kind, "optional": False, "field": name} for name, kind in block.items()],
        "optional": True,
        "name": "event.block",
        "version": 1,
        "field": "transaction",
    }
    times = [{"type": "int64", "optional": True, "field": name} for name in ("ts_ms", "ts_us", "ts_ns")]
    return {
        "type": "struct",
        "fields": [
            {**row, "field": "before"},
            {**row, "field": "after"},
            source,
            transaction,
            {"type": "string", "optional": False, "field": "op"},
            *times,
        ],
        "optional": False,
        "name": f"{topic}.Envelope",
        "version": 2,
    }


def _frame(schema: Mapping[str, object]) -> str:
    return f'{{"schema":{_json(schema)},"payload":'


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
