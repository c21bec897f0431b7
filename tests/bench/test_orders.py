"""The orders' records are what Debezium would send, and their history equals the table's content."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from bench.orders import COLUMNS, KEY, Mix, OrdersHistory, Record, first_row
from bench.orders_table import TOPIC, turns

ORDERS = 50


def payload(record: Record) -> Any:
    assert record.value is not None
    return json.loads(record.value)["payload"]


def test_a_snapshot_reads_every_order_once_at_one_log_position() -> None:
    reads = [payload(record) for record in OrdersHistory(TOPIC, ORDERS).snapshot()]
    assert [read["after"][KEY] for read in reads] == list(range(ORDERS))
    assert {read["op"] for read in reads} == {"r"}
    assert len({(read["source"]["lsn"], read["source"]["ts_us"]) for read in reads}) == 1


def test_a_key_s_last_record_equals_its_row_in_the_history() -> None:
    history = OrdersHistory(TOPIC, ORDERS)
    last = {json.loads(r.key)["payload"][KEY]: r for r in history.changes(400) if r.value is not None}
    assert last.keys() == history.changed.keys()
    for order, record in last.items():
        row, sent = history.changed[order], payload(record)["after"]
        assert (row is None) == (sent is None)
        if row is not None:
            assert sent.keys() == COLUMNS.keys()
            assert sent["status"] == row["status"]
            assert sent["amount"] == float(row["amount"])


def test_only_existing_rows_are_changed_and_a_delete_is_two_records() -> None:
    history = OrdersHistory(TOPIC, ORDERS)
    there = set(range(ORDERS))
    records = history.changes(600, Mix(inserts=0.3, deletes=0.3))
    assert len(records) == 600
    for record, following in zip(records, [*records[1:], None], strict=True):
        if record.value is None:
            continue
        change, order = payload(record), json.loads(record.key)["payload"][KEY]
        if change["op"] == "c":
            assert order not in there
            there.add(order)
        else:
            assert order in there
        if change["op"] == "d":
            there.remove(order)
            assert following == Record(record.key, None)
    assert history.row_count == len(there)


def test_the_source_log_never_goes_back() -> None:
    history = OrdersHistory(TOPIC, ORDERS)
    sources = [payload(record)["source"] for record in history.changes(100) if record.value is not None]
    assert sources == sorted(sources, key=lambda source: source["lsn"])
    assert all(json.loads(source["sequence"])[1] == str(source["lsn"]) for source in sources)


def test_the_same_seed_gives_the_same_history() -> None:
    assert OrdersHistory(TOPIC, ORDERS).changes(50) == OrdersHistory(TOPIC, ORDERS).changes(50)


def test_an_order_s_number_gives_its_time() -> None:
    assert first_row(60)["created_at"] == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def test_every_contender_is_first_and_last_equally_often() -> None:
    taken = turns(6, 3)
    assert all(sorted(turn) == [0, 1, 2] for turn in taken)
    assert (
        Counter(turn[0] for turn in taken)
        == Counter(turn[-1] for turn in taken)
        == dict.fromkeys(range(3), 2)
    )
