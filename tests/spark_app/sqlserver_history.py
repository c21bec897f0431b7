"""Histories of a SQL Server table, as Hypothesis strategies: changes, and the events that Debezium sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import event
from hypothesis import strategies as st

from tests.spark_app.debezium import TYPES, Identity, Row, SentEvent, SourceTable
from tests.spark_app.history import (
    BETWEEN,
    CHANGES,
    KEYS,
    Act,
    values_of,
)

_LSNS_OF_A_TRANSACTION = 1_000


@dataclass
class SqlServerTable(SourceTable):
    """The same table in SQL Server, as its change tables have it.

    The commit of a transaction has a higher LSN than its changes. A changed key is a delete and an insert
    with one LSN; a statement that changes several keys deletes all rows first. An update has NULL, which
    Debezium turns into its placeholder, for the large values that it leaves as they are."""

    POSITION: ClassVar[Sequence[Mapping[str, object]]] = (
        {"type": "string", "optional": True, "field": "change_lsn"},
        {"type": "string", "optional": True, "field": "commit_lsn"},
        {"type": "int64", "optional": True, "field": "event_serial_no"},
    )

    identity: Identity = "full"
    commit_lsn: int = 1_000

    def begin(self) -> None:
        super().begin()
        self.commit_lsn = self.lsn + _LSNS_OF_A_TRANSACTION

    def commit(self) -> None:
        self.lsn = self.last_commit_lsn = self.commit_lsn

    def snapshot(self) -> None:
        super().snapshot()
        self.commit_lsn = self.snapshot_lsn

    def move(self, old: int, new: int) -> None:
        self.change_keys({old: new})

    def change_keys(self, changed: Mapping[int, int]) -> None:
        """Give rows other keys in one statement."""
        rows = {new: {**self._now(old), "id": new} for old, new in changed.items()}
        first = self.lsn
        for old in changed:
            self.delete(old)
        self.lsn = first
        for new, row in rows.items():
            self.rows[new] = row
            self.deleted.pop(new, None)
            self.lsn += 1
            self._send("c", new, after=row)

    def truncate(self) -> None:
        raise NotImplementedError("SQL Server refuses to truncate a table with change data capture")

    def _as_sent(self, row: Row, unchanged: frozenset[str] | Any) -> Row:
        placeholders = {
            name: TYPES[data_type].placeholder
            for name, data_type in self.columns.items()
            if name in unchanged and name not in ("id", "name") and row[name] is not None
        }
        return row | {name: sent for name, sent in placeholders.items() if sent is not None}

    def _position(self, op: str, *, is_snapshot: bool) -> Mapping[str, object]:
        if is_snapshot:
            return {"commit_lsn": _written(self.snapshot_lsn), "change_lsn": None, "event_serial_no": None}
        return {
            "commit_lsn": _written(self.commit_lsn),
            "change_lsn": _written(self.lsn),
            "event_serial_no": 2 if op == "u" else 1,
        }


@st.composite
def sqlserver_histories(draw: st.DrawFn, transactions: int = 8) -> list[SentEvent]:
    """The history of a table with few keys. It starts with a snapshot."""
    table = SqlServerTable()
    for data_type in draw(st.lists(st.sampled_from(("text", "bytea")), max_size=2, unique=True)):
        table.add_column(f"large_{data_type}", data_type)
    for key in draw(st.sets(st.sampled_from(KEYS), max_size=3)):
        table.rows[key] = {"id": key, **draw(values_of(table))}
    table.snapshot()
    for _ in range(draw(st.integers(1, transactions))):
        draw(st.sampled_from(BETWEEN))(draw, table)
        table.begin()
        for _ in range(draw(st.integers(1, 4))):
            draw(st.sampled_from(_CHANGES))(draw, table)
        table.commit()
    for kind in {sent.kind for sent in table.events}:
        event(f"history: {kind}")
    return table.events


def _rotate(draw: st.DrawFn, table: SourceTable) -> None:
    """Give some rows each other's keys, which SQL Server checks only at the end of the statement."""
    assert isinstance(table, SqlServerTable)
    if len(table.rows) > 1:
        keys = draw(st.lists(st.sampled_from(sorted(table.rows)), min_size=2, unique=True))
        table.change_keys(dict(zip(keys, [*keys[1:], keys[0]], strict=True)))
        event("history: rotated keys")


def _shift(_: st.DrawFn, table: SourceTable) -> None:
    """Run `UPDATE things SET id = id + 1`."""
    assert isinstance(table, SqlServerTable)
    if table.rows and max(table.rows) + 1 in KEYS:
        table.change_keys({key: key + 1 for key in sorted(table.rows)})
        event("history: shifted keys")


_OTHERS = ("_truncate", "_swap", "_shift")
_CHANGES: tuple[Act, ...] = (
    *(act for act in CHANGES if act.__name__ not in _OTHERS),
    _rotate,
    _shift,
)


def _written(lsn: int) -> str:
    return f"00000027:{lsn:08x}:0001"
