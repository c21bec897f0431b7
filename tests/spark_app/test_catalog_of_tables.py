"""The catalog shows of real tables what Spark reads from them, in any course of their ingestion."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlparse

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, DecimalType, IntegerType, StringType, StructField, StructType

from spark_app.catalog.catalog_table import catalog_table
from spark_app.catalog.glue import GlueCatalog
from spark_app.catalog.sync import CatalogSync
from spark_app.columns.table_columns import APP_COLUMNS, TableColumns
from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.reports import ProgressWriter
from spark_app.run.loop import Ingest
from spark_app.run.outcome_files import OutcomeFiles
from spark_app.run.table_runs import TableRuns
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.parameters import first_then_long
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.glue import DATABASE, FAST, Glue
from tests.spark_app.memory_source import MemorySource
from tributary.contract.lake import Storage, TablePolicy


@pytest.mark.parametrize("partition_by", first_then_long([("name",), ()]))
@pytest.mark.parametrize("storage", ["merge_on_read", "copy_on_write"])
def test_a_run_commits_all_and_shows_its_table_though_glue_was_away(
    spark: SparkSession, tmp_path: Path, glue: Glue, storage: Storage, partition_by: tuple[str, ...]
) -> None:
    policy = TablePolicy(storage=storage, partition_by=partition_by, buckets=1)
    hudi = HudiTable(spark, f"{tmp_path}/silver", "things", policy)
    shop = SourceTable()
    shop.begin()
    shop.insert(1, "a/b", None)
    glue.fail(2)
    assert ingest(hudi, shop, glue)
    shown_at_first = glue.columns("things")

    shop.add_column("added", "text")
    shop.insert(2, "c=d", None)
    shop.commit()
    assert ingest(hudi, shop, glue)

    assert {row["id"] for row in hudi.read().collect()} == {1, 2}
    assert glue.columns("things").keys() - shown_at_first.keys() == {"added"}
    table = glue.client.get_table(DatabaseName=DATABASE, Name="things")["Table"]
    shown = [*table["StorageDescriptor"]["Columns"], *table["PartitionKeys"]]
    read = [(field.name, field.dataType.simpleString()) for field in hudi.read().schema.fields]
    assert sorted((column["Name"], column["Type"]) for column in shown) == sorted(read)
    assert [key["Name"] for key in table["PartitionKeys"]] == list(partition_by)
    views = ("", "_ro", "_rt") if storage == "merge_on_read" else ("",)
    assert {f"things{view}" for view in views} == {
        table["Name"] for table in glue.client.get_tables(DatabaseName=DATABASE)["TableList"]
    }
    for view in views if partition_by else ():
        assert glue.partitions(f"things{view}").keys() == {("a/b",), ("c=d",)}


def ingest(hudi: HudiTable, shop: SourceTable, glue: Glue) -> bool:
    """Run once over all events that have been sent so far."""
    source = MemorySource(hudi.spark, [event_row(event, n) for n, event in enumerate(shop.events)])
    table = TableIngest("things", TOPIC, source, hudi, f"{hudi.path}-quarantine", TopicForm(PostgresLog()))
    progress = ProgressWriter(io.StringIO())
    catalog = CatalogSync(GlueCatalog(glue.client, DATABASE), lambda name: name, progress, FAST)
    outcomes = OutcomeFiles(hudi.spark)
    tables = TableRuns(source, lambda _: table, progress, outcomes, follow=False)
    return Ingest(hudi.spark, tables, catalog=catalog).run()


def test_the_values_of_a_partition_are_literals_of_its_keys_types(
    spark: SparkSession, tmp_path: Path, glue: Glue
) -> None:
    keys = [
        StructField("number", IntegerType()),
        StructField("day", DateType()),
        StructField("amount", DecimalType(5, 2)),
        StructField("text", StringType()),
    ]
    columns = TableColumns(tuple((key.name, key.dataType) for key in keys), ("number",))
    policy = TablePolicy(partition_by=columns.names, buckets=1)
    hudi = HudiTable(spark, f"{tmp_path}/silver", "things", policy)
    at = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
    app = ("1", "c", 1, at, TOPIC, 0, 1, bytearray(8))
    rows = [(*app, -7, date(1969, 7, 20), Decimal("1.50"), "a b"), ("2", *app[1:], None, None, None, None)]
    hudi.write(spark.createDataFrame(rows, StructType([*APP_COLUMNS.fields, *keys])), {})

    table = catalog_table("things", hudi.path, "things", columns, policy)
    GlueCatalog(glue.client, DATABASE).show_table(table, hudi.partitions())
    partitions = glue.client.get_partitions(DatabaseName=DATABASE, TableName="things")["Partitions"]
    values = {tuple(partition["Values"]) for partition in partitions}
    null = "__HIVE_DEFAULT_PARTITION__"
    assert values == {("-7", "1969-07-20", "1.50", "a b"), (null, null, null, null)}
    assert [key.hive_type for key in table.partition_keys] == ["int", "date", "string", "string"]
    for partition in partitions:
        location = urlparse(partition["StorageDescriptor"]["Location"]).path
        assert [path for path in Path(location).iterdir() if not path.name.startswith(".hoodie")]
