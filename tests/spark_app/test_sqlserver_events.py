"""Events of SQL Server are applied as they came: a recorded one, and those that Debezium's classes make."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.sqlserver import ChangeTables
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.spark_app.memory_source import MemorySource
from tests.spark_app.test_recorded_events import apply_all
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events

FOLDER = Path(__file__).parent / "data"
MADE = FOLDER / "made_by_debezium_sqlserver.jsonl"
RECORDED = FOLDER / "recorded_sqlserver.jsonl"

Sent = tuple[str | None, str | None]
"""The key and the value of a record."""


def ingest_of(spark: SparkSession, folder: Path, sent: Iterable[Sent], policy: TablePolicy) -> TableIngest:
    def binary(text: str | None) -> bytearray | None:
        return None if text is None else bytearray(text.encode())

    rows = [
        ("lake.source.shop.dbo.things", 0, offset, datetime.now(UTC), binary(key), binary(value), None, None)
        for offset, (key, value) in enumerate(sent)
    ]
    return TableIngest(
        name="things",
        topic="lake.source.shop.dbo.things",
        source=MemorySource(spark, rows),
        hudi=HudiTable(spark, str(folder / "silver"), "things", policy),
        quarantine_path=str(folder / "quarantine"),
        form=TopicForm(ChangeTables(), written=Events()),
    )


def rows_of(ingest: TableIngest, at_once: int = 1000) -> dict[int, dict[str, Any]]:
    apply_all(ingest, at_once)
    assert not Path(ingest.quarantine_path).exists()
    return {row["id"]: row.asDict() for row in ingest.hudi.read().collect()}


def made() -> list[Sent]:
    found = map(json.loads, MADE.read_text().splitlines())
    return [(record["key"], record["value"]) for record in found]


TYPES = {
    "id": "int",
    "a_bit": "boolean",
    "a_tinyint": "int",
    "a_smallint": "int",
    "an_int": "int",
    "a_bigint": "bigint",
    "a_real": "float",
    "a_float": "double",
    "a_decimal": "decimal(38,10)",
    "a_numeric": "decimal(18,0)",
    "an_identity": "decimal(20,0)",
    "a_smallmoney": "decimal(10,4)",
    "a_money": "decimal(19,4)",
    **dict.fromkeys(("a_char", "a_varchar", "a_varchar_max", "a_text"), "string"),
    **dict.fromkeys(("an_nchar", "an_nvarchar", "an_nvarchar_max", "an_ntext", "an_xml"), "string"),
    "a_uniqueidentifier": "string",
    **dict.fromkeys(("a_binary", "a_varbinary", "a_varbinary_max", "an_image", "a_rowversion"), "binary"),
    "a_date": "date",
    **dict.fromkeys(("a_time_0", "a_time_7"), "string"),
    **dict.fromkeys(("a_smalldatetime", "a_datetime", "a_datetime2_3", "a_datetime2_7"), "timestamp"),
    "a_datetimeoffset": "timestamp",
}
VALUES = {
    "a_bit": True,
    "a_tinyint": 255,
    "a_smallint": -32_768,
    "an_int": -(2**31),
    "a_bigint": 2**63 - 1,
    "a_real": 1.1754943508222875e-38,
    "a_float": 0.1,
    "a_decimal": Decimal("-9999999999999999999999999999.9999999999"),
    "a_numeric": Decimal(999999999999999999),
    "an_identity": Decimal(12345678901234567890),
    "a_smallmoney": Decimal("-214748.3648"),
    "a_money": Decimal("922337203685477.5807"),
    "a_char": "ab   ",
    "a_varchar_max": "vär" * 5,
    "a_text": "text",
    "an_nchar": "çé   ",
    "an_nvarchar": "😀 ñ",
    "an_nvarchar_max": "😀" * 5,
    "an_ntext": "ntext",
    "an_xml": '<a b="1">c</a>',
    "a_uniqueidentifier": "0E984725-C51C-4BF4-9960-E1C80E27ABA0",
    "a_binary": b"\x00\xff\x01",
    "a_varbinary": b"",
    "a_varbinary_max": b"\x01" * 9,
    "an_image": b"\x02",
    "a_rowversion": b"\x00\x00\x00\x00\x00\x00\x07\xd1",
    "a_date": date(1, 1, 1),
    "a_time_0": "23:59:59.000000",
    # The lake has six decimal places of a second.
    "a_time_7": "12:34:56.123456",
    "a_smalldatetime": datetime(2079, 6, 6, 23, 59),
    "a_datetime": datetime(1753, 1, 1, 0, 0, 0, 3_000),
    "a_datetime2_3": datetime(2024, 2, 29, 12, 0, 0, 123_000),
    "a_datetime2_7": datetime(9999, 12, 31, 23, 59, 59, 999_999),
    "a_datetimeoffset": datetime(2024, 12, 16, 23, 59, 59, 999_999),
}


def test_each_type_becomes_the_lake_type_that_holds_it_exactly(spark: SparkSession, tmp_path: Path) -> None:
    ingest = ingest_of(spark, tmp_path, made()[:2], TablePolicy())

    rows = rows_of(ingest)

    found = {field.name: field.dataType.simpleString() for field in ingest.hudi.read().schema.fields}
    assert {name: found[name] for name in TYPES} == TYPES
    assert {name: plain(rows[1][name]) for name in VALUES} == VALUES
    assert {name: rows[2][name] for name in VALUES} == dict.fromkeys(VALUES)


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.parametrize(
    ("policy", "at_once"),
    [
        pytest.param(TablePolicy(), 1, id="one by one", marks=pytest.mark.long),
        pytest.param(TablePolicy(), 3, id="cut into batches"),
        pytest.param(TablePolicy(storage="copy_on_write", deletes="soft"), 1000, id="at once"),
    ],
)
def test_unchanged_large_values_stay_and_keys_that_move_on_are_no_deletes(
    spark: SparkSession, tmp_path: Path, policy: TablePolicy, at_once: int
) -> None:
    rows = rows_of(ingest_of(spark, tmp_path, made(), policy), at_once)

    present = {key: row for key, row in rows.items() if not row.get("_deleted")}
    # After UPDATE all_types SET id = id + 1, and a DELETE of the second row.
    assert sorted(present) == [2]
    assert present[2]["a_varchar"] == "new"
    assert {name: plain(present[2][name]) for name in VALUES} == VALUES


def test_positions_follow_the_log(spark: SparkSession, tmp_path: Path) -> None:
    ingest = ingest_of(spark, tmp_path, made()[:3], TablePolicy())

    found = {key: bytes(row["_log_position"]) for key, row in rows_of(ingest).items()}

    def position(commit: int, change: int, count: int) -> bytes:
        lsns = (f"00000027{number:08x}0001" for number in (commit, change))
        return b"".join(map(bytes.fromhex, lsns)) + count.to_bytes(8, "big")

    assert found == {1: position(30, 25, 2), 2: position(20, 11, 1)}
    assert found[2] < found[1]


NUMBERS = {"f1": "boolean", **{f"f{number}": "bigint" for number in range(2, 16)}}
DECLARED = {
    "id": "integer",
    **NUMBERS,
    **{f"f{number}": "text" for number in range(16, 29)},
    **{f"f{number}": "bytea" for number in range(29, 35)},
    "f35": "date",
    # Nanoseconds, which the names of PostgreSQL's types cannot tell of.
    "f36": "bigint",
    "f37": "time(3)",
    "f38": "timestamp(3)",
    "f39": "bigint",
    "f40": "timestamp(3)",
    "f41": "timestamp with time zone",
    "f42": "timestamp with time zone",
    "f43": "timestamp(3)",
}


def test_a_recorded_row_of_all_types_without_a_schema_is_read_as_the_lake_file_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    policy = TablePolicy.model_validate({"key": ("id",), "columns": DECLARED})

    row = rows_of(ingest_of(spark, tmp_path, [(None, RECORDED.read_text().strip())], policy))[1]

    assert [row[name] for name in NUMBERS] == [True, *[1] * 14]
    assert {row[f"f{number}"] for number in range(16, 29)} == {"1"}
    assert {bytes(row[f"f{number}"]) for number in range(29, 35)} == {b"\x01"}
    assert (row["f35"], row["f37"]) == (date(2024, 12, 16), "21:02:04.000000")
    assert row["f36"] == 75_723 * 10**9
    assert (row["f38"], row["f40"]) == (
        datetime(2024, 12, 16, 21, 2, 5),
        datetime(2024, 12, 16, 21, 2, 8),
    )
    assert row["f39"] == 1_734_382_927 * 10**9
    assert row["f41"] == datetime(2024, 12, 16, 21, 2, 9, 799_000)
    assert row["f43"] == datetime(2024, 12, 16, 21, 2)
    # The event's LSN is none: "00".
    assert bytes(row["_log_position"]) == b""
