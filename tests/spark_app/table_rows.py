"""Rows in the form in which a table holds them, and Hudi's own writer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from spark_app.columns.table_columns import APP_COLUMNS
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import commit_metadata
from spark_app.ledger.ledger import Ledger
from tests.spark_app.typed_frames import typed_frame

TOPIC = "things"
RECORDED = commit_metadata(Ledger(TOPIC))
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
NOTED = StructType(
    [*APP_COLUMNS.fields, StructField("shelf", StringType()), StructField("note", StringType())]
)


def table_rows(
    spark: SparkSession,
    schema: StructType,
    rows: Mapping[str, tuple[Any, ...]],
    *,
    seq: int,
    operation: str = "u",
) -> DataFrame:
    """Return rows by record key. `schema` is `APP_COLUMNS` and the columns of the values in `rows`."""
    app = (operation, seq, MOMENT, TOPIC, 0, seq, bytearray(seq.to_bytes(8)))
    return typed_frame(spark, [(key, *app, *row) for key, row in rows.items()], schema)


def upsert_by_hudi(table: HudiTable, rows: DataFrame) -> None:
    """Upsert the rows with Hudi's data source. The table need not exist yet."""
    rows.write.format("hudi").options(**table.access.options).mode("append").save(table.path)
