"""Histories of a source table, and the ways in which a broker can deliver them, as Hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import event
from hypothesis import strategies as st

from tests.spark_app.debezium import Row, SentEvent, SourceTable

KEYS = range(1, 6)
TEMPORARY_KEY = 9
NAMES = st.text(alphabet='aé😀"\\,{}', max_size=4)
GARBAGE = (b"\x80\x81 not utf-8", b"not json", b'{"a":1}')
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "real": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(width=64, allow_nan=False, allow_infinity=False),
    "numeric(8,2)": st.decimals(-999_999, 999_999, places=2),
    "numeric(12,4)": st.decimals(-9_999_999, 9_999_999, places=4),
    "text": st.text(alphabet="xyz", min_size=1, max_size=3),
    "jsonb": st.sampled_from(['{"a": 1}', "[]", '"text"']),
    "bytea": st.binary(max_size=3),
    "text[]": st.lists(st.none() | st.text(alphabet='a",', max_size=2), max_size=2),
    "uuid[]": st.lists(st.uuids().map(str), max_size=2),
    "int[]": st.lists(st.none() | st.integers(0, 255), max_size=2),
    "bigint[]": st.lists(st.integers(0, 2**62), max_size=2),
}
LARGE = ("jsonb", "bytea", "text[]", "uuid[]", "int[]", "bigint[]")
WIDER = {"int": "bigint", "real": "double", "numeric(8,2)": "numeric(12,4)"}


@dataclass(frozen=True)
class Delivery:
    """The contents of a topic: at each partition and offset, the event `logs[partition][offset]`."""

    logs: tuple[tuple[int, ...], ...]

    @property
    def is_repeated(self) -> bool:
        return any(len(set(log)) < len(log) for log in self.logs)


@st.composite
def histories(draw: st.DrawFn, transactions: int = 8) -> list[SentEvent]:
    """The history of a table with few keys.

    It starts with a snapshot. Transactions with every kind of change, changes of columns and further
    snapshots follow."""
    table = SourceTable(identity=draw(st.sampled_from(["default", "full", "index"])))
    for data_type in draw(st.lists(st.sampled_from(LARGE), max_size=2, unique=True)):
        table.add_column(f"large_{data_type.removesuffix('[]')}_{len(data_type)}", data_type)
    for key in draw(st.sets(st.sampled_from(KEYS), max_size=3)):
        table.rows[key] = {"id": key, **draw(values_of(table))}
    table.snapshot()
    for _ in range(draw(st.integers(1, transactions))):
        between = draw(st.sampled_from(BETWEEN))
        between(draw, table)
        table.begin()
        for _ in range(draw(st.integers(1, 4))):
            draw(st.sampled_from(CHANGES))(draw, table)
        table.commit()
    for kind in {sent.kind for sent in table.events}:
        event(f"history: {kind}")
    event(f"replica identity: {table.identity}")
    return table.events


@st.composite
def deliveries(draw: st.DrawFn, events: list[SentEvent], most_partitions: int = 3) -> Delivery:
    """A delivery of the events.

    The events of a key are in order in one partition. Events without a key are in any partition. Some
    streamed events are sent again after a crash of the sender, and some partitions had not got the last of
    them before the crash."""
    partitions = draw(st.integers(1, most_partitions))
    partition_of = {key: draw(st.integers(0, partitions - 1)) for key in (*KEYS, TEMPORARY_KEY)}
    logs: list[list[int]] = [[] for _ in range(partitions)]

    def send(number: int) -> None:
        key = events[number].of_key
        logs[draw(st.integers(0, partitions - 1)) if key is None else partition_of[key]].append(number)

    streamed_from = 0
    for number, sent in enumerate(events):
        send(number)
        if sent.kind.startswith("read"):
            # A snapshot starts again after a crash, and an incremental one reads the chunk again.
            streamed_from = number + 1
        elif number > streamed_from and draw(st.integers(0, 9)) == 0:
            again_from = draw(st.integers(streamed_from, number))
            for log in logs:
                is_behind = partitions > 1 and draw(st.booleans())
                while is_behind and log and log[-1] >= again_from:
                    log.pop()
            for repeated in range(again_from, number + 1):
                send(repeated)
    found = Delivery(tuple(map(tuple, logs)))
    event(f"partitions: {partitions}")
    event(f"delivery: sent again after a crash: {found.is_repeated}")
    return found


def values_of(table: SourceTable) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries(
        {
            name: NAMES
            if name == "name"
            else VALUES[data_type]
            if name in table.required
            else st.none() | VALUES[data_type]
            for name, data_type in table.columns.items()
            if name != "id"
        }
    )


Act = Callable[[st.DrawFn, SourceTable], None]


def _insert(draw: st.DrawFn, table: SourceTable) -> None:
    if absent := _absent(table):
        table.insert(draw(st.sampled_from(absent)), **draw(values_of(table)))


def _update(draw: st.DrawFn, table: SourceTable) -> None:
    if table.rows:
        table.change(draw(st.sampled_from(sorted(table.rows))), draw(values_of(table)), frozenset())


def _update_part(draw: st.DrawFn, table: SourceTable) -> None:
    """Update a row, but leave some large values as they are."""
    if table.rows:
        others = sorted(table.columns.keys() - {"id", "name"})
        unchanged = frozenset(draw(st.sets(st.sampled_from(others), min_size=1)) if others else ())
        table.change(draw(st.sampled_from(sorted(table.rows))), draw(values_of(table)), unchanged)


def _delete(draw: st.DrawFn, table: SourceTable) -> None:
    if table.rows:
        table.delete(draw(st.sampled_from(sorted(table.rows))))


def _delete_and_insert(draw: st.DrawFn, table: SourceTable) -> None:
    if table.rows:
        key = draw(st.sampled_from(sorted(table.rows)))
        table.delete(key)
        table.insert(key, **draw(values_of(table)))


def _move(draw: st.DrawFn, table: SourceTable) -> None:
    if table.rows and (absent := _absent(table)):
        table.move(draw(st.sampled_from(sorted(table.rows))), draw(st.sampled_from(absent)))


def _swap(draw: st.DrawFn, table: SourceTable) -> None:
    """Swap the keys of two rows by way of a third key, because PostgreSQL checks keys row by row."""
    if len(table.rows) > 1 and TEMPORARY_KEY not in table.rows:
        one, other = draw(st.permutations(sorted(table.rows)))[:2]
        for old, new in ((one, TEMPORARY_KEY), (other, one), (TEMPORARY_KEY, other)):
            table.move(old, new)


def _shift(_: st.DrawFn, table: SourceTable) -> None:
    """Run `UPDATE things SET id = id + 1`, in an order that PostgreSQL accepts."""
    for key in sorted(table.rows, reverse=True):
        if key + 1 in KEYS and key + 1 not in table.rows:
            table.move(key, key + 1)


def _truncate(draw: st.DrawFn, table: SourceTable) -> None:
    if draw(st.integers(0, 2)) == 0:
        table.truncate()


def _read_incrementally(draw: st.DrawFn, table: SourceTable) -> None:
    if table.rows:
        table.read_incrementally(draw(st.sampled_from(sorted(table.rows))))


def _nothing(_: st.DrawFn, __: SourceTable) -> None:
    pass


def _add_column(draw: st.DrawFn, table: SourceTable) -> None:
    """Add a column. Its name can be that of an earlier column of the same type."""
    name, data_type = draw(st.sampled_from(sorted(EVOLVING.items())))
    if name not in table.columns:
        table.add_column(name, data_type)
        event("columns: added")


def _drop_column(draw: st.DrawFn, table: SourceTable) -> None:
    if name := _one_of_the_evolving(draw, table):
        table.drop_column(name)
        event("columns: dropped")


def _rename_column(draw: st.DrawFn, table: SourceTable) -> None:
    """Rename a column. Events have its values under the new name only when their rows change."""
    if name := _one_of_the_evolving(draw, table):
        renamed = f"{name}_renamed"
        if renamed not in table.columns:
            table.add_column(renamed, table.columns[name])
            table.drop_column(name)
            event("columns: renamed")


def _widen_column(draw: st.DrawFn, table: SourceTable) -> None:
    name = _one_of_the_evolving(draw, table)
    if name and table.columns[name] in WIDER:
        table.columns[name] = WIDER[table.columns[name]]
        event(f"columns: widened to {table.columns[name]}")


def _make_nullable(draw: st.DrawFn, table: SourceTable) -> None:
    if name := _one_of_the_evolving(draw, table):
        table.required ^= {name}
        event("columns: made nullable or not")


def _snapshot_again(_: st.DrawFn, table: SourceTable) -> None:
    table.snapshot()


def _send_garbage(draw: st.DrawFn, table: SourceTable) -> None:
    table.send_garbage(draw(st.sampled_from(GARBAGE)))


EVOLVING = {"count": "int", "ratio": "real", "price": "numeric(8,2)", "note": "text"}
CHANGES: tuple[Act, ...] = (
    _insert,
    _insert,
    _update,
    _update_part,
    _update_part,
    _delete,
    _delete_and_insert,
    _move,
    _swap,
    _shift,
    _truncate,
    _read_incrementally,
)
CHANGES_OF_NO_KEY = tuple(change for change in CHANGES if change not in (_move, _swap, _shift))
BETWEEN: tuple[Act, ...] = (
    *(_nothing,) * 8,
    _add_column,
    _add_column,
    _drop_column,
    _rename_column,
    _widen_column,
    _make_nullable,
    _snapshot_again,
    _send_garbage,
)


def _absent(table: SourceTable) -> list[int]:
    return [key for key in KEYS if key not in table.rows]


def _one_of_the_evolving(draw: st.DrawFn, table: SourceTable) -> str | None:
    found = [name for name in table.columns if name.removesuffix("_renamed") in EVOLVING]
    return draw(st.sampled_from(found)) if found else None
