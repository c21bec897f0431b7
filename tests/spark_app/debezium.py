"""A table in a source database, and the events that Debezium would send for its changes.

This model shares no code with the app, because it is the reference for the app's results."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar, Literal

TOPIC = "lake.source.public.things"
PLACEHOLDER = "__debezium_unavailable_value"
START_US = 1_700_000_000_000_000

Row = dict[str, Any]
State = dict[int, Row]
Identity = Literal["default", "full", "index"]


@dataclass(frozen=True)
class ColumnType:
    """How Debezium describes and sends a type, and what it sends for an unchanged TOAST value."""

    schema: Mapping[str, object]
    placeholder: object = None


def _array_of(items: Mapping[str, object], placeholder: object) -> ColumnType:
    return ColumnType({"type": "array", "items": {**items, "optional": True}}, placeholder)


def _decimal(precision: int, scale: int) -> ColumnType:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return ColumnType(
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}
    )


_BASE64 = base64.b64encode(PLACEHOLDER.encode()).decode()
_UUID = str(uuid.UUID(bytes=hashlib.md5(PLACEHOLDER.encode()).digest(), version=3))
TYPES: Mapping[str, ColumnType] = {
    "int": ColumnType({"type": "int32"}),
    "bigint": ColumnType({"type": "int64"}),
    "real": ColumnType({"type": "float"}),
    "double": ColumnType({"type": "double"}),
    "numeric(8,2)": _decimal(8, 2),
    "numeric(12,4)": _decimal(12, 4),
    "text": ColumnType({"type": "string"}, PLACEHOLDER),
    "jsonb": ColumnType({"type": "string", "name": "io.debezium.data.Json"}, PLACEHOLDER),
    "bytea": ColumnType({"type": "bytes"}, _BASE64),
    "text[]": _array_of({"type": "string"}, [PLACEHOLDER]),
    "uuid[]": _array_of({"type": "string", "name": "io.debezium.data.Uuid"}, [_UUID]),
    "int[]": _array_of({"type": "int32"}, list(PLACEHOLDER.encode())),
    "bigint[]": _array_of({"type": "int64"}, list(PLACEHOLDER.encode())),
    "timestamptz[]": _array_of({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, []),
}


@dataclass(frozen=True, repr=False)
class SentEvent:
    """An event as it is in Kafka, without its partition and offset.

    `of_key`: the key of its row, None for a truncate and for garbage. `state`: the table after it; `deleted`:
    the last values of the rows that are gone. `what` is for the reader of a failure."""

    what: str
    kind: str
    of_key: int | None
    key: bytes | None
    value: bytes | None
    moved_to: bytes | None
    moved_from: bytes | None
    state: State
    deleted: State

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        printer.text(self.what)


@dataclass
class SourceTable:
    """`things(id bigint primary key, name text, body text, …)`, whose values can be large enough for TOAST.

    A row holds what its last event reported, including the values of columns that were dropped since then."""

    POSITION: ClassVar[Sequence[Mapping[str, object]]] = (
        {"type": "string", "optional": True, "field": "sequence"},
        {"type": "int64", "optional": True, "field": "txId"},
        {"type": "int64", "optional": True, "field": "lsn"},
    )
    """The fields of `source` that `_position` fills."""

    identity: Identity = "default"
    rows: State = field(default_factory=dict)
    deleted: State = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=lambda: {"id": "bigint", "name": "text", "body": "text"})
    required: set[str] = field(default_factory=lambda: {"id"})
    events: list[SentEvent] = field(default_factory=list)
    lsn: int = 1_000
    last_commit_lsn: int | None = None
    tx_id: int = 1
    snapshot_lsn: int = 1_000

    def begin(self) -> None:
        self.tx_id += 1

    def commit(self) -> None:
        self.lsn += 10
        self.last_commit_lsn = self.lsn

    def snapshot(self) -> None:
        """Read all rows, and then begin to stream again. The table is the first one of several."""
        self.begin()
        self.lsn += 10
        self.snapshot_lsn, self.last_commit_lsn = self.lsn, None
        marks = ["first", *["true"] * (len(self.rows) - 2), "last_in_data_collection"]
        for key, mark in zip(sorted(self.rows), marks, strict=False):
            self._read(key, mark)

    def read_incrementally(self, key: int) -> None:
        """Send a read of a row as it is now, among the streamed changes."""
        self.lsn += 1
        self._read(key, "incremental")

    def insert(self, key: int, name: str, body: str | None, **others: Any) -> None:
        self.rows[key] = self._row(key, {"name": name, "body": body, **others})
        self.deleted.pop(key, None)
        self.lsn += 1
        self._send("c", key, after=self.rows[key])

    def update(self, key: int, name: str, body: str | None, *, body_is_unchanged: bool) -> None:
        unchanged = frozenset({"body"}) if body_is_unchanged else frozenset()
        self.change(key, {"name": name, "body": body}, unchanged)

    def change(self, key: int, values: Row, unchanged: frozenset[str]) -> None:
        before = self._now(key)
        self.rows[key] = self._row(key, values | {name: before[name] for name in unchanged})
        self.lsn += 1
        self._send("u", key, after=self._as_sent(self.rows[key], unchanged), old=before)

    def delete(self, key: int) -> None:
        old = self._now(key)
        self.deleted[key] = self.rows.pop(key)
        self.lsn += 1
        self._send("d", key, old=old)
        self._send_tombstone(key)

    def move(self, old: int, new: int) -> None:
        """Run `UPDATE things SET id = new WHERE id = old`. PostgreSQL logs no unchanged TOAST values."""
        row = self._now(old)
        self.deleted[old] = self.rows.pop(old)
        self.lsn += 1
        self._send("d", old, moved_to=new, old=row)
        self._send_tombstone(old, moved_to=new)
        self.rows[new] = {**row, "id": new}
        self.deleted.pop(new, None)
        self._send("c", new, after=self._as_sent(self.rows[new], self.columns.keys()), moved_from=old)

    def truncate(self) -> None:
        self.deleted |= self.rows
        self.rows = {}
        self.lsn += 1
        self._send("t", None)

    def send_garbage(self, value: bytes) -> None:
        self._append("garbage", "garbage", None, value=value)

    def add_column(self, name: str, data_type: str) -> None:
        """Add a column without a default.

        If a dropped column had this name, the lake keeps its values until the row changes."""
        self.columns[name] = data_type

    def drop_column(self, name: str) -> None:
        del self.columns[name]
        self.required.discard(name)

    def _read(self, key: int, snapshot: str) -> None:
        """Send the row without the values of dropped columns."""
        self.rows[key] = self._now(key)
        self._send("r", key, after=self.rows[key], snapshot=snapshot)

    def _row(self, key: int, values: Row) -> Row:
        return {name: values.get(name) for name in self.columns} | {"id": key}

    def _now(self, key: int) -> Row:
        return {name: self.rows[key].get(name) for name in self.columns}

    def _as_sent(self, row: Row, unchanged: frozenset[str] | Any) -> Row:
        """Return the row without its unchanged large values.

        They are in the log only if the whole old row is."""
        if self.identity == "full":
            return row
        placeholders = {
            name: TYPES[data_type].placeholder
            for name, data_type in self.columns.items()
            if name in unchanged and name not in ("id", "name") and row[name] is not None
        }
        return row | {name: sent for name, sent in placeholders.items() if sent is not None}

    def _send(
        self,
        op: str,
        key: int | None,
        *,
        after: Row | None = None,
        old: Row | None = None,
        snapshot: str = "false",
        moved_to: int | None = None,
        moved_from: int | None = None,
    ) -> None:
        committed_us = START_US + self.tx_id * 1_000_000
        position = self._position(op, is_snapshot=op == "r" and snapshot != "incremental")
        payload = {
            "before": self._before(op, key, old),
            "after": None if after is None else self._on_the_wire(after),
            "source": {
                "version": "3.7.0.Final",
                "ts_ms": committed_us // 1_000,
                "snapshot": snapshot,
                "ts_us": committed_us,
                **position,
            },
            "op": op,
            "ts_ms": committed_us // 1_000,
        }
        value = _json({"schema": self._envelope_schema(), "payload": payload})
        kinds = {"c": "create", "u": "update", "d": "delete", "r": f"read ({snapshot})", "t": "truncate"}
        kind = "key change" if moved_to or moved_from else kinds[op]
        what = f"{op} {key} {payload['after']} at {position}"
        self._append(what, kind, key, value=value, moved_to=moved_to, moved_from=moved_from)

    def _position(self, op: str, *, is_snapshot: bool) -> Mapping[str, object]:  # noqa: ARG002
        """Return where the change is in the source's log, as the envelope's `source` says it."""
        lsn = self.snapshot_lsn if is_snapshot else self.lsn
        commit_lsn = None if is_snapshot or self.last_commit_lsn is None else str(self.last_commit_lsn)
        return {"sequence": json.dumps([commit_lsn, str(lsn)]), "txId": self.tx_id, "lsn": lsn}

    def _before(self, op: str, key: int | None, old: Row | None) -> Row | None:
        """Return `before`: the whole old row under FULL.

        Otherwise, it has the key and, for a delete, values that nobody ever wrote."""
        if op not in ("u", "d") or (op == "u" and self.identity != "full") or old is None:
            return None
        if self.identity == "full":
            return self._on_the_wire(old)
        return dict.fromkeys(self.columns) | {"id": key, "name": "invented"}

    def _on_the_wire(self, row: Row) -> Row:
        def sent(value: Any) -> Any:
            if isinstance(value, Decimal):
                return float(value)
            return base64.b64encode(value).decode() if isinstance(value, bytes) else value

        return {name: sent(row.get(name)) for name in self.columns}

    def _send_tombstone(self, key: int, moved_to: int | None = None) -> None:
        self._append(f"tombstone {key}", "tombstone", key, value=None, moved_to=moved_to)

    def _append(
        self,
        what: str,
        kind: str,
        key: int | None,
        *,
        value: bytes | None,
        moved_to: int | None = None,
        moved_from: int | None = None,
    ) -> None:
        self.events.append(
            SentEvent(
                what,
                kind,
                key,
                _key(key),
                value,
                None if moved_to is None else _json({"id": moved_to}),
                None if moved_from is None else _json({"id": moved_from}),
                {k: dict(row) for k, row in self.rows.items()},
                {k: dict(row) for k, row in self.deleted.items() if k not in self.rows},
            )
        )

    def _envelope_schema(self) -> Mapping[str, object]:
        row_fields = [
            {**TYPES[data_type].schema, "optional": column not in self.required, "field": column}
            for column, data_type in self.columns.items()
        ]
        row = {"type": "struct", "fields": row_fields, "optional": True, "name": f"{TOPIC}.Value"}
        return {
            "type": "struct",
            "fields": [
                {**row, "field": "before"},
                {**row, "field": "after"},
                {
                    "type": "struct",
                    "fields": [*_SOURCE, *self.POSITION],
                    "optional": False,
                    "field": "source",
                },
                {"type": "string", "optional": False, "field": "op"},
                {"type": "int64", "optional": True, "field": "ts_ms"},
            ],
            "optional": False,
            "name": f"{TOPIC}.Envelope",
        }


_SOURCE = [
    {"type": "string", "optional": False, "field": "version"},
    {"type": "int64", "optional": False, "field": "ts_ms"},
    {"type": "string", "optional": True, "field": "snapshot"},
    {"type": "int64", "optional": True, "field": "ts_us"},
]


def event_row(event: SentEvent, offset: int, partition: int = 0) -> tuple[object, ...]:
    """Return the event as a row of `spark_app.event.EVENT`."""
    timestamp = datetime.fromtimestamp(START_US / 1_000_000, UTC)

    def binary(found: bytes | None) -> bytearray | None:
        return None if found is None else bytearray(found)

    return (
        TOPIC,
        partition,
        offset,
        timestamp,
        binary(event.key),
        binary(event.value),
        binary(event.moved_to),
        binary(event.moved_from),
    )


def _key(key: int | None) -> bytes | None:
    if key is None:
        return None
    schema = {
        "type": "struct",
        "fields": [{"type": "int64", "optional": False, "field": "id"}],
        "optional": False,
        "name": f"{TOPIC}.Key",
    }
    return _json({"schema": schema, "payload": {"id": key}})


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
