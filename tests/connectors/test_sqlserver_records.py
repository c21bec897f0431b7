"""The records that Debezium's own classes build from SQL Server's rows, and where they resume."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.connectors.sqlserver_records import ALL_TYPES, Debezium, lines, row_of_all_types

pytestmark = pytest.mark.slow

RECORDS = Path(__file__).parents[1] / "spark_app" / "data" / "made_by_debezium_sqlserver.jsonl"
"""What the tests of the Spark app read. `TRIBUTARY_RENEW=1` rewrites it."""

LARGE = ("a_varchar_max", "an_nvarchar_max", "a_varbinary_max", "a_text", "an_ntext", "an_image", "an_xml")


def history(debezium: Debezium) -> str:
    """Return the records of two inserts, an update, a changed key and a delete."""
    first, second = row_of_all_types(debezium.jvm, 1), row_of_all_types(debezium.jvm, 2)
    names = [column.name for column in ALL_TYPES]

    def changed(row: Sequence[Any], **values: Any) -> list[Any]:
        return [values.get(name, value) for name, value in zip(names, row, strict=True)]

    def lsn(number: int) -> str:
        return f"00000027:{number:08x}:0001"

    at = 1_734_382_925_000
    debezium.create(first, lsn(20), lsn(10), at)
    debezium.create([2, *[None] * (len(names) - 1)], lsn(20), lsn(11), at)
    # SQL Server keeps NULL for the large values of a row that an update leaves as they are.
    unchanged = dict.fromkeys(LARGE, debezium.unavailable)
    debezium.update(
        changed(first, **unchanged),
        changed(first, a_varchar="new", **unchanged),
        lsn(30),
        lsn(25),
        at + 1_000,
    )
    # UPDATE all_types SET id = id + 1: it deletes all old rows before it inserts the new ones.
    for row, change in ((first, 31), (second, 32)):
        debezium.delete(row, lsn(40), lsn(change), at + 2_000)
    for row, change in ((changed(first, id=2, a_varchar="new"), 31), (changed(second, id=3), 32)):
        debezium.create(row, lsn(40), lsn(change), at + 2_000)
    debezium.delete(changed(second, id=3), lsn(50), lsn(45), at + 3_000)
    return lines(debezium.records)


def test_the_records_that_the_spark_app_is_tested_with_are_debeziums(sqlserver: Any) -> None:
    made = history(Debezium(sqlserver))
    if os.environ.get("TRIBUTARY_RENEW"):
        RECORDS.write_text(made)
    assert made == RECORDS.read_text()


@dataclass(frozen=True)
class Row:
    """A row of a change table, in the order in which Debezium reads it.

    operation  1: delete, 2: insert, 3 and 4: an update
    """

    commit: int
    change: int
    operation: int
    changes_key: bool = False


@dataclass(frozen=True)
class Change:
    rows: tuple[Row, ...]

    @property
    def records(self) -> int:
        """A changed key is a delete, a tombstone and an insert. (The lake needs no tombstones.)"""
        return 3 if self.rows[0].changes_key else 1


@st.composite
def _transactions(draw: st.DrawFn) -> list[Change]:
    """Draw transactions as SQL Server records them.

    Each change has an LSN of its own. But an update of keys deletes some rows and then inserts them, and the
    delete and the insert of a row share one (issue 2012 of debezium/dbz)."""
    changes: list[Change] = []
    for commit in range(1_000, 1_000 * (draw(st.integers(1, 3)) + 1), 1_000):
        lsn = commit - 500
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.sampled_from(("change", "update", "update of the key", "update of keys")))
            lsn += 10
            if kind == "change":
                changes.append(Change((Row(commit, lsn, draw(st.sampled_from((1, 2)))),)))
            elif kind == "update of keys":
                shared = range(lsn, lsn + draw(st.integers(1, 3)))
                changes += [Change((Row(commit, one, half),)) for half in (1, 2) for one in shared]
            else:
                changes.append(
                    Change(tuple(Row(commit, lsn, half, kind == "update of the key") for half in (3, 4)))
                )
    return changes


MOVED_ALONE = [Change((Row(10, 9, 3, True), Row(10, 9, 4, True)))]
SHIFTED = [Change((Row(10, change, operation),)) for operation in (1, 2) for change in (7, 8)]


@example(MOVED_ALONE, [1])
@example(MOVED_ALONE, [2, 1])
@example([Change((Row(10, 9, 2),)), *MOVED_ALONE], [2])
@example(SHIFTED, [5])
@given(_transactions(), st.lists(st.integers(1, 8), max_size=4))
@settings(deadline=None, max_examples=40)
def test_sqlserver_resumes_without_a_gap_wherever_it_is_stopped(
    sqlserver: Any, log: list[Change], stops: Sequence[int]
) -> None:
    """`stops`: after how many records of each run the connector is stopped, before it runs to the end."""
    debezium = Debezium(sqlserver)
    stored: Mapping[str, Any] | None = None
    sent: set[tuple[int, int]] = set()
    for stop in [*stops, None]:
        for count, (record, offset) in enumerate(_run(debezium, log, stored), 1):
            sent.add(record)
            stored = offset
            if count == stop:
                break
    assert sent == {(number, part) for number, change in enumerate(log) for part in range(change.records)}


def _run(
    debezium: Debezium, log: Sequence[Change], stored: Mapping[str, Any] | None
) -> Iterator[tuple[tuple[int, int], Mapping[str, Any]]]:
    """Yield each record as (number of its change, part), with the offset that Connect stores for it.

    What SqlServerStreamingChangeEventSource.executeIteration does with one table, with Debezium's own offsets
    and positions, and our transform."""
    jvm, sqlserver = debezium.jvm, debezium.jvm.io.debezium.connector.sqlserver
    nothing = sqlserver.TxLogPosition.NULL
    context = sqlserver.SqlServerOffsetContext(debezium.config, nothing, None, False)
    if stored is not None:
        context = sqlserver.SqlServerOffsetContext.Loader(debezium.config).load(
            _offset_json(jvm).toConnectData("offsets", json.dumps(stored).encode()).value()
        )
    on_start, serial_on_start = context.getChangePosition(), context.getEventSerialNo()
    serial, previous, are_monotonic = 1, None, True
    for number, change in enumerate(log):
        rows = list(change.rows)
        while rows:
            row = rows[0]
            position = _position(sqlserver, row)
            if stored is not None:
                if row.commit < _commit_of(stored):
                    break  # It reads from the commit of the offset on.
                if previous is not None and row.commit > previous[1]:
                    are_monotonic = True
                if previous is not None and position.compareTo(previous[0]) < 0:
                    are_monotonic = False
                previous = (position, row.commit)
                order = position.compareTo(on_start)
                if are_monotonic and order < 0:
                    rows.pop(0)
                    continue
                if are_monotonic and order == 0 and serial <= serial_on_start:
                    serial += 1
                    rows.pop(0)
                    continue
            assert row.operation != 4, "an update is skipped as a whole, or not at all"
            context.setChangePosition(position, len(rows))
            for part in range(change.records):
                headers = ["__debezium.newkey"] if row.changes_key and part < 2 else []
                yield (number, part), _resumable(jvm, context.getOffset(), headers)
            break


def _position(sqlserver: Any, row: Row) -> Any:
    return sqlserver.TxLogPosition.valueOf(
        sqlserver.Lsn.valueOf(_lsn(row.commit)), sqlserver.Lsn.valueOf(_lsn(row.change))
    )


def _lsn(number: int) -> str:
    return f"00000027:{number:08x}:0001"


def _commit_of(stored: Mapping[str, Any]) -> int:
    return int(str(stored["commit_lsn"]).split(":")[1], 16)


def _resumable(jvm: Any, offset: Any, headers: Sequence[str]) -> Mapping[str, Any]:
    """Return the offset that Connect stores for a record with this offset and these headers."""
    connect = jvm.org.apache.kafka.connect
    its_headers = connect.header.ConnectHeaders()
    for header in headers:
        its_headers.addString(header, "7")
    copied = jvm.java.util.HashMap(offset)
    record = connect.source.SourceRecord(
        {"server": "shop"}, copied, "topic", None, None, None, None, None, None, its_headers
    )
    mended = jvm.io.tributary.connect.sqlserver.SqlServerOffsets().apply(record).sourceOffset()
    stored: Mapping[str, Any] = json.loads(bytes(_offset_json(jvm).fromConnectData("offsets", None, mended)))
    return stored


def _offset_json(jvm: Any) -> Any:
    """Return the converter with which Connect stores offsets. Its numbers come back as Longs."""
    converter = jvm.org.apache.kafka.connect.json.JsonConverter()
    converter.configure({"schemas.enable": "false"}, False)
    return converter
