"""A table in a source database, and the events that Debezium would send of what happens to it.

Shares no code with the app: it is the reference that the app is held against.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

TOPIC = "lake.source.public.things"
PLACEHOLDER = "__debezium_unavailable_value"
START_US = 1_700_000_000_000_000

Row = dict[str, Any]
State = dict[int, Row]


@dataclass(frozen=True, repr=False)
class SentEvent:
    """An event as it is in Kafka but for its offset. `state`: the table after it; `deleted`: the last values
    of the rows that are gone. `what` is for the reader of a failure."""

    what: str
    key: bytes | None
    value: bytes | None
    moved_to: bytes | None
    moved_from: bytes | None
    state: State
    deleted: State

    def __repr__(self) -> str:
        return self.what


@dataclass
class SourceTable:
    """`things(id bigint primary key, name text, body text)`, whose body is large enough for TOAST."""

    rows: State = field(default_factory=dict)
    deleted: State = field(default_factory=dict)
    columns: list[str] = field(default_factory=lambda: ["id", "name", "body"])
    events: list[SentEvent] = field(default_factory=list)
    lsn: int = 1_000
    last_commit_lsn: int = 1_000
    tx_id: int = 1
    is_first_read: bool = True

    def begin(self) -> None:
        self.tx_id += 1

    def commit(self) -> None:
        self.lsn += 10
        self.last_commit_lsn = self.lsn

    def read(self, key: int) -> None:
        """A snapshot's read of a row, as it is now."""
        snapshot = "first" if self.is_first_read else "true"
        self.is_first_read = False
        self._send("r", key, after=self.rows[key], snapshot=snapshot)

    def insert(self, key: int, name: str, body: str | None) -> None:
        self.rows[key] = self._row(key, name, body)
        self.deleted.pop(key, None)
        self._next_lsn()
        self._send("c", key, after=self.rows[key])

    def update(self, key: int, name: str, body: str | None, *, body_is_unchanged: bool) -> None:
        before = self.rows[key]
        self.rows[key] = self._row(key, name, before["body"] if body_is_unchanged else body)
        self._next_lsn()
        self._send("u", key, after=self._as_sent(self.rows[key], body_is_unchanged))

    def delete(self, key: int) -> None:
        self.deleted[key] = self.rows.pop(key)
        self._next_lsn()
        self._send("d", key)
        self._send_tombstone(key)

    def move(self, old: int, new: int) -> None:
        """`UPDATE things SET id = new WHERE id = old`: PostgreSQL logs nothing of the unchanged TOAST
        value."""
        row = self.rows.pop(old)
        self.deleted[old] = dict(row)
        self._next_lsn()
        self._send("d", old, moved_to=new)
        self._send_tombstone(old, moved_to=new)
        self.rows[new] = {**self._row(new, row["name"], row["body"])}
        self.deleted.pop(new, None)
        has_toast = row["body"] is not None
        self._send("c", new, after=self._as_sent(self.rows[new], has_toast), moved_from=old)

    def truncate(self) -> None:
        self.deleted |= self.rows
        self.rows = {}
        self._next_lsn()
        self._send("t", None)

    def add_column(self, name: str) -> None:
        self.columns.append(name)
        self.rows = {key: {**row, name: None} for key, row in self.rows.items()}

    def _row(self, key: int, name: str, body: str | None) -> Row:
        added = {column: f"{column} of {name}" for column in self.columns[3:]}
        return {"id": key, "name": name, "body": body, **added}

    def _as_sent(self, row: Row, body_is_unchanged: bool) -> Row:
        return {**row, "body": PLACEHOLDER} if body_is_unchanged and row["body"] is not None else row

    def _next_lsn(self) -> None:
        self.lsn += 1

    def _send(
        self,
        op: str,
        key: int | None,
        *,
        after: Row | None = None,
        snapshot: str = "false",
        moved_to: int | None = None,
        moved_from: int | None = None,
    ) -> None:
        invented_before = {"id": key, "name": "invented", "body": ""} if op == "d" else None
        commit_lsn = None if op == "r" else str(self.last_commit_lsn)
        committed_us = START_US + self.last_commit_lsn * 1_000
        payload = {
            "before": invented_before,
            "after": after,
            "source": {
                "version": "3.6.3.Final",
                "ts_ms": committed_us // 1_000,
                "snapshot": snapshot,
                "sequence": json.dumps([commit_lsn, str(self.lsn)]),
                "ts_us": committed_us,
                "txId": self.tx_id,
                "lsn": self.lsn,
            },
            "op": op,
            "ts_ms": committed_us // 1_000,
        }
        value = _json({"schema": _envelope_schema(self.columns), "payload": payload})
        self._append(f"{op} {key} {after} at {commit_lsn}/{self.lsn}", _key(key), value, moved_to, moved_from)

    def _send_tombstone(self, key: int, moved_to: int | None = None) -> None:
        self._append(f"tombstone {key}", _key(key), None, moved_to, None)

    def _append(
        self, what: str, key: bytes | None, value: bytes | None, moved_to: int | None, moved_from: int | None
    ) -> None:
        self.events.append(
            SentEvent(
                what,
                key,
                value,
                None if moved_to is None else _json({"id": moved_to}),
                None if moved_from is None else _json({"id": moved_from}),
                {k: dict(row) for k, row in self.rows.items()},
                {k: dict(row) for k, row in self.deleted.items() if k not in self.rows},
            )
        )


def event_row(event: SentEvent, offset: int) -> tuple[object, ...]:
    """The event as a row of `spark_app.event.EVENT`."""
    timestamp = datetime.fromtimestamp(START_US / 1_000_000, UTC)

    def binary(found: bytes | None) -> bytearray | None:
        return None if found is None else bytearray(found)

    return (
        TOPIC,
        0,
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


def _envelope_schema(columns: list[str]) -> Mapping[str, object]:
    types = {"id": "int64"}
    row_fields = [
        {"type": types.get(column, "string"), "optional": column != "id", "field": column}
        for column in columns
    ]
    row = {"type": "struct", "fields": row_fields, "optional": True, "name": f"{TOPIC}.Value"}
    source = [
        {"type": "string", "optional": False, "field": "version"},
        {"type": "int64", "optional": False, "field": "ts_ms"},
        {"type": "string", "optional": True, "field": "snapshot"},
        {"type": "string", "optional": True, "field": "sequence"},
        {"type": "int64", "optional": True, "field": "ts_us"},
        {"type": "int64", "optional": True, "field": "txId"},
        {"type": "int64", "optional": True, "field": "lsn"},
    ]
    return {
        "type": "struct",
        "fields": [
            {**row, "field": "before"},
            {**row, "field": "after"},
            {"type": "struct", "fields": source, "optional": False, "field": "source"},
            {"type": "string", "optional": False, "field": "op"},
            {"type": "int64", "optional": True, "field": "ts_ms"},
        ],
        "optional": False,
        "name": f"{TOPIC}.Envelope",
    }


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
