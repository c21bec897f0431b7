"""The catalog's entry of a table has what Athena and Spark need to read the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_app.catalog.catalog_table import (
    CatalogTable,
    NotInCatalog,
    catalog_table,
    hive_type,
    partition_inputs,
    partition_values,
    table_inputs,
)
from spark_app.columns.table_columns import TableColumns
from tributary.contract.lake import Deletes, Storage, TablePolicy

POINT = StructType([StructField("X", DoubleType()), StructField("y", DecimalType(5, 0))])
COLUMNS = TableColumns(
    row=(
        ("Id", LongType()),
        ("region", StringType()),
        ("placed", TimestampType()),
        ("amount", DecimalType(5, 2)),
        ("where", POINT),
    ),
    key=("Id",),
)
REALTIME = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
PLAIN = "org.apache.hudi.hadoop.HoodieParquetInputFormat"


def entry(policy: TablePolicy, columns: TableColumns = COLUMNS) -> CatalogTable:
    return catalog_table("orders", "s3a://silver/shop/public/orders", "shop.public.orders", columns, policy)


@pytest.mark.parametrize(
    ("data_type", "expected"),
    [
        (BooleanType(), "boolean"),
        (IntegerType(), "int"),
        (LongType(), "bigint"),
        (FloatType(), "float"),
        (DoubleType(), "double"),
        (StringType(), "string"),
        (BinaryType(), "binary"),
        (DateType(), "date"),
        (TimestampType(), "timestamp"),
        (DecimalType(38, 9), "decimal(38,9)"),
        (ArrayType(ArrayType(DateType())), "array<array<date>>"),
        (MapType(StringType(), IntegerType()), "map<string,int>"),
        (ArrayType(POINT), "array<struct<x:double,y:decimal(5,0)>>"),
    ],
)
def test_a_type_is_written_as_hive_writes_it(data_type: DataType, expected: str) -> None:
    assert hive_type(data_type) == expected


def test_a_type_that_hive_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(NotInCatalog, match="void"):
        hive_type(ArrayType(NullType()))


def test_a_merge_on_read_table_has_three_names_and_one_reads_only_base_files() -> None:
    found = {
        table["Name"]: (
            table["StorageDescriptor"]["InputFormat"],
            table["StorageDescriptor"]["SerdeInfo"]["Parameters"]["hoodie.query.as.ro.table"],
        )
        for table in table_inputs(entry(TablePolicy(storage="merge_on_read")))
    }
    assert found == {
        "orders": (REALTIME, "false"),
        "orders_ro": (PLAIN, "true"),
        "orders_rt": (REALTIME, "false"),
    }


def test_a_copy_on_write_table_has_one_name() -> None:
    (table,) = table_inputs(entry(TablePolicy(storage="copy_on_write")))
    assert (table["Name"], table["StorageDescriptor"]["InputFormat"]) == ("orders", PLAIN)
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["StorageDescriptor"]["Location"] == "s3://silver/shop/public/orders"
    serde = table["StorageDescriptor"]["SerdeInfo"]
    assert serde["SerializationLibrary"] == "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
    assert serde["Parameters"]["path"] == "s3://silver/shop/public/orders"


@pytest.mark.parametrize(
    ("storage", "deletes", "partition_by"),
    list(
        product(("merge_on_read", "copy_on_write"), ("hard", "soft"), ((), ("region",), ("amount", "region")))
    ),
)
def test_every_column_is_either_a_partition_key_or_a_column_and_in_the_schema_for_spark(
    storage: Storage, deletes: Deletes, partition_by: tuple[str, ...]
) -> None:
    policy = TablePolicy(storage=storage, deletes=deletes, partition_by=partition_by)
    for table in table_inputs(entry(policy)):
        columns = [column["Name"] for column in table["StorageDescriptor"]["Columns"]]
        keys = [key["Name"] for key in table["PartitionKeys"]]
        assert keys == list(partition_by)
        assert columns[:7] == [
            "_hoodie_commit_time",
            "_hoodie_commit_seqno",
            "_hoodie_record_key",
            "_hoodie_partition_path",
            "_hoodie_file_name",
            "_key",
            "_op",
        ]
        assert ("_deleted" in columns) == (deletes == "soft")
        assert set(columns + keys) >= {"id", "region", "placed", "where"}
        assert len(set(columns + keys)) == len(columns + keys)
        schema = spark_schema(table["Parameters"])
        assert [name.lower() for name in schema.fieldNames()] == columns + keys
        assert schema["where"].dataType == POINT


def test_keys_and_the_apps_columns_are_explained() -> None:
    (table,) = table_inputs(entry(TablePolicy(storage="copy_on_write")))
    comments = {column["Name"]: column["Comment"] for column in table["StorageDescriptor"]["Columns"]}
    assert comments["id"] == "Part of the primary key"
    assert comments["region"] == ""
    assert all(comments[name] for name in comments if name.startswith("_"))
    assert table["Description"] == "shop.public.orders"


def test_a_schema_that_is_longer_than_a_parameter_is_cut() -> None:
    wide = TableColumns(tuple((f"column_{n}", LongType()) for n in range(200)), ("column_0",))
    (table,) = table_inputs(entry(TablePolicy(storage="copy_on_write"), wide))
    assert int(table["Parameters"]["spark.sql.sources.schema.numParts"]) > 1
    assert all(len(value) <= 4_000 for value in table["Parameters"].values())
    assert "column_199" in spark_schema(table["Parameters"]).fieldNames()


def test_a_partition_key_whose_values_are_no_literals_of_its_type_is_a_string() -> None:
    partitioned = entry(TablePolicy(partition_by=("amount", "Id", "region")))
    assert [key.hive_type for key in partitioned.partition_keys] == ["string", "bigint", "string"]


def test_a_part_of_the_key_is_a_partition_key_beside_the_sources_columns() -> None:
    partitioned = entry(TablePolicy(partition_by=("hash(Id, 16)", "right(Id, 1)")))
    keys = [(key.name, key.hive_type) for key in partitioned.partition_keys]
    assert keys == [("id__hash_16", "int"), ("id__right_1", "string")]
    assert partitioned.partition_keys[1].comment == "right(Id, 1), to find rows in fewer files"
    assert "id" in [column.name for column in partitioned.columns]
    (table, *_) = table_inputs(partitioned)
    assert spark_schema(table["Parameters"]).fieldNames()[-2:] == ["Id__hash_16", "Id__right_1"]
    assert table["Parameters"]["spark.sql.sources.schema.partCol.1"] == "Id__right_1"


def test_columns_whose_names_differ_in_case_only_are_refused_together() -> None:
    both = TableColumns((("id", LongType()), ("Name", StringType()), ("name", StringType())), ("id",))
    with pytest.raises(NotInCatalog, match="Name and name"):
        entry(TablePolicy(), both)


@given(st.lists(st.tuples(st.text(min_size=1), st.text()), min_size=1, max_size=3))
def test_the_values_of_a_partition_are_read_back_from_its_escaped_path(pairs: list[tuple[str, str]]) -> None:
    path = "/".join(f"{escaped(column)}={escaped(value)}" for column, value in pairs)
    assert partition_values(path) == tuple(value for _, value in pairs)


def test_a_partition_is_where_its_path_says_in_each_of_the_tables_names() -> None:
    table = entry(TablePolicy(partition_by=("region",)))
    for view in table.view_names:
        eu, us = partition_inputs(table, view, {"region=us", "region=e%2Fu"})
        assert (eu["Values"], us["Values"]) == (["e/u"], ["us"])
        assert eu["StorageDescriptor"]["Location"] == "s3://silver/shop/public/orders/region=e%2Fu"
        assert (eu["StorageDescriptor"]["InputFormat"] == PLAIN) == view.endswith("_ro")


def escaped(text: str) -> str:
    """Escape every byte, as Hive does with some characters of a partition's path."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


def spark_schema(parameters: Mapping[str, str]) -> StructType:
    prefix = "spark.sql.sources.schema."
    count = int(parameters[f"{prefix}numParts"])
    text = "".join(parameters[f"{prefix}part.{number}"] for number in range(count))
    return StructType.fromJson(json.loads(text))
