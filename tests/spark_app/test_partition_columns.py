"""A table is partitioned only by columns that give each row the same partition with every writer."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_app.columns.app_columns import RECORD_KEY
from spark_app.columns.partition_columns import (
    NotAPartitionColumn,
    check_no_column_is_a_key_part,
    check_partition_columns,
)
from spark_app.columns.table_columns import APP_COLUMNS, TableColumns
from spark_app.hudi.hudi_table import HudiTable
from spark_app.sources.event import OffsetRange
from tests.parameters import first_then_long
from tests.spark_app.debezium import SourceTable, event_row
from tests.spark_app.memory_source import table_of_things
from tests.spark_app.table_rows import RECORDED, table_rows, upsert_by_hudi
from tributary.contract.lake import Storage, TablePolicy
from tributary.contract.partitions import KeyPart, SourceColumn

VALUES: tuple[tuple[DataType, tuple[Any, ...]], ...] = (
    (IntegerType(), (-1, 0, 2**31 - 1)),
    (LongType(), (-(2**63), 7)),
    (FloatType(), (1.5, -0.0, 2.0**66)),
    (DoubleType(), (1.5, -0.0, 1e20)),
    (DecimalType(5, 2), (Decimal("1.50"), Decimal("0.00"), Decimal("-999.99"))),
    (DecimalType(38, 10), (Decimal("1E-10"), Decimal("1.5"), Decimal(10**27))),
    (StringType(), (" ", "a/b=c", "50% &+ä")),
    (DateType(), (date(1, 1, 1), date(1969, 7, 20), date(9999, 12, 31))),
    (BooleanType(), (True, False)),
)


@pytest.mark.parametrize("storage", first_then_long(get_args(Storage)))
def test_hudi_finds_a_row_by_each_type_that_is_taken(
    spark: SparkSession, tmp_path: Path, storage: Storage
) -> None:
    for number, (data_type, values) in enumerate(VALUES):
        columns = TableColumns((("id", LongType()), ("of", data_type)), ("id",))
        check_partition_columns((SourceColumn("of"),), columns)
        policy = TablePolicy(buckets=1, partition_by=("of",), storage=storage)
        table = HudiTable(spark, f"{tmp_path}/{number}", "things", policy)
        schema = StructType([*APP_COLUMNS.fields, StructField("of", data_type)])
        rows = {f"k{place}": (value,) for place, value in enumerate((*values, None))}
        table.write(table_rows(spark, schema, rows, seq=1), RECORDED)
        upsert_by_hudi(table, table_rows(spark, schema, rows, seq=2))
        table.upsert(table_rows(spark, schema, rows, seq=3), RECORDED)
        found = table.read().select(RECORD_KEY, "_seq", "of").collect()
        assert sorted((row[RECORD_KEY], row["_seq"], row["of"]) for row in found) == [
            (key, 3, value) for key, (value,) in sorted(rows.items())
        ]


@pytest.mark.parametrize(
    "data_type", [TimestampType(), TimestampNTZType(), BinaryType(), ArrayType(LongType()), StructType([])]
)
def test_a_type_on_which_hudis_writers_disagree_is_refused(data_type: DataType) -> None:
    columns = TableColumns((("id", LongType()), ("of", data_type)), ("id",))
    with pytest.raises(
        NotAPartitionColumn, match=r"column of: .* of this type: .* set partition_by to another"
    ):
        check_partition_columns((SourceColumn("id"), SourceColumn("of")), columns)


@pytest.mark.parametrize(
    ("part", "found"),
    [
        (
            KeyPart("left", "note", 1),
            "a part of a key column only.*: found column note, expected a column of ",
        ),
        (KeyPart("right", "at", 1), r"a part of a column of this type: found timestamp, expected text"),
        (KeyPart("hash", "ratio", 8), "of this type: found double"),
        (KeyPart("hash", "missing", 8), "a column that it does not have: found columns id, "),
    ],
)
def test_a_part_that_a_row_can_lose_is_refused(part: KeyPart, found: str) -> None:
    types: dict[str, DataType] = {
        "id": StringType(),
        "at": TimestampType(),
        "ratio": DoubleType(),
        "note": StringType(),
    }
    columns = TableColumns(tuple(types.items()), ("id", "at", "ratio"))
    with pytest.raises(NotAPartitionColumn, match=found):
        check_partition_columns((part,), columns)
    check_partition_columns((KeyPart(part.function, "id", part.number),), columns)


def test_a_column_with_the_name_of_a_partition_column_is_refused_before_it_replaces_it() -> None:
    columns = TableColumns((("id", StringType()), ("id__right_1", StringType())), ("id",))
    with pytest.raises(
        NotAPartitionColumn, match=r"right\(id, 1\) in partition_by: .*: found column id__right_1"
    ):
        check_no_column_is_a_key_part((KeyPart("right", "id", 1),), columns)
    check_no_column_is_a_key_part((KeyPart("right", "id", 2),), columns)


def test_a_table_that_cannot_be_partitioned_so_is_not_made(spark: SparkSession, tmp_path: Path) -> None:
    source = SourceTable()
    source.begin()
    source.insert(1, "one", None)
    source.commit()
    rows = [event_row(sent, offset) for offset, sent in enumerate(source.events)]
    policy = TablePolicy(partition_by=("region",))
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", policy)
    table = table_of_things(hudi, rows, tmp_path)
    with pytest.raises(NotAPartitionColumn, match=r"column region: .* does not have: found columns id, "):
        table.apply((OffsetRange(0, 0, 1),))
    assert not hudi.exists()
