"""Recorded events of MySQL 9.7 and MariaDB 11.4, as Debezium sent them, are applied as they came."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.binlog import BinaryLog
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.spark_app.memory_source import MemorySource
from tests.spark_app.test_recorded_events import apply_all
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events

FOLDER = Path(__file__).parent / "data"
SERVERS = ("mysql", "mariadb")
each_server = pytest.mark.parametrize("server", SERVERS)


Change = Callable[[dict[str, Any]], None]


def as_it_is(_: dict[str, Any]) -> None: ...


def ingest_of(
    spark: SparkSession,
    folder: Path,
    server: str,
    table: str,
    policy: TablePolicy,
    change: Change = as_it_is,
) -> TableIngest:
    """Return the ingest of a table's recorded events, each of them changed."""
    rows = []
    for line in (FOLDER / f"recorded_{server}.jsonl").read_text().splitlines():
        event = json.loads(line)
        change(event)
        if not event["topic"].endswith(f".{table}"):
            continue
        headers = dict(event["headers"])
        texts = (event["key"], event["value"], *map(headers.get, ("__debezium.newkey", "__debezium.oldkey")))
        binaries = [None if text is None else bytearray(text.encode()) for text in texts]
        sent = datetime.fromtimestamp(event["ts"] / 1000, UTC)
        rows.append((event["topic"], event["partition"], event["offset"], sent, *binaries))
    return TableIngest(
        name=table,
        topic=str(rows[0][0]),
        source=MemorySource(spark, rows),
        hudi=HudiTable(spark, str(folder / "silver"), table, policy),
        quarantine_path=str(folder / "quarantine"),
        form=TopicForm(BinaryLog(), written=Events(decimals="base64")),
        # The recording connectors wrote the numbers of a `bigint unsigned` like this.
    )


def rows_after_all(ingest: TableIngest, at_once: int, key: str) -> dict[int, dict[str, Any]]:
    apply_all(ingest, at_once)
    assert not Path(ingest.quarantine_path).exists()
    return {row[key]: row.asDict(recursive=True) for row in ingest.hudi.read().collect()}


@each_server
@pytest.mark.parametrize(
    ("policy", "at_once"),
    [
        pytest.param(TablePolicy(), 3, id="cut into batches", marks=pytest.mark.long),
        pytest.param(TablePolicy(storage="copy_on_write"), 1000, id="at once"),
    ],
)
def test_a_snapshot_transactions_a_moved_key_and_ddl_leave_the_rows_that_the_server_had(
    spark: SparkSession, tmp_path: Path, server: str, policy: TablePolicy, at_once: int
) -> None:
    ingest = ingest_of(spark, tmp_path, server, "orders", policy)

    rows = rows_after_all(ingest, at_once, "order_id")

    compared = ("customer_id", "amount", "channel")
    assert {key: tuple(row[name] for name in compared) for key, row in rows.items()} == {
        1: (1, Decimal("99.990000"), None),
        33: (1, Decimal("1.500000"), None),
        4: (2, Decimal("7.000000"), "app"),
        5: (2, Decimal("8.123456"), "web"),
    }


@pytest.mark.parametrize("at_once", [3, 1000])
def test_changes_from_a_promoted_replica_with_lower_files_follow_those_of_the_old_server(
    spark: SparkSession, tmp_path: Path, at_once: int
) -> None:
    def number(event: dict[str, Any]) -> None:
        """Number the transactions, and take the second half from another server's log."""
        value = json.loads(event["value"]) if event["value"] else None
        if value is None:
            return
        source = value["payload"]["source"]
        place = 1000 * int(source["file"].rpartition(".")[2]) + source["pos"]
        source["sequence"] = f"{place}:{source['row']}"
        if event["offset"] >= 6:
            source |= {"file": "binlog.000001", "pos": 4 + event["offset"]}
        event["value"] = json.dumps(value)

    ingest = ingest_of(spark, tmp_path, "mysql", "orders", TablePolicy(), number)
    plain = ingest_of(spark, tmp_path / "plain", "mysql", "orders", TablePolicy())

    found = rows_after_all(ingest, at_once, "order_id")

    expected = rows_after_all(plain, 1000, "order_id")
    compared = ("customer_id", "amount", "channel")
    assert {key: [row[name] for name in compared] for key, row in found.items()} == {
        key: [row[name] for name in compared] for key, row in expected.items()
    }


@each_server
def test_each_type_becomes_the_lake_type_that_holds_it_exactly(
    spark: SparkSession, tmp_path: Path, server: str
) -> None:
    ingest = ingest_of(spark, tmp_path, server, "customers", TablePolicy())

    rows = rows_after_all(ingest, 1000, "id")

    second = rows[2]
    assert second["credit"] == Decimal("-0.01")
    assert (rows[1]["big"], second["big"]) == (Decimal(2**64 - 1), Decimal(0))
    assert (rows[1]["t"], second["t"]) == ("-12:34:56.789000", "838:59:59.000000")
    assert (rows[1]["flags"], rows[1]["yr"], rows[1]["tags"]) == (b"\x15", 2024, "a,c")
    assert (second["tier"], second["pic"], second["note"]) == ("silver", b"", None)
    assert rows[1]["credit"] is None


@each_server
def test_positions_follow_the_log_and_are_known(spark: SparkSession, tmp_path: Path, server: str) -> None:
    ingest = ingest_of(spark, tmp_path, server, "orders", TablePolicy())
    apply_all(ingest, 1000)

    found = {row["order_id"]: bytes(row["_log_position"]) for row in ingest.hudi.read().collect()}

    assert all(len(position) == 20 for position in found.values())
    assert found[1] < found[33] < found[4] < found[5]
