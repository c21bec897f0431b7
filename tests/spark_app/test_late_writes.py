"""The version of a row with the later event stays, in any order of the writes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StructField, StructType

from spark_app.columns.app_columns import ORDERING, RECORD_KEY
from spark_app.columns.table_columns import APP_COLUMNS, DELETED
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import commit_metadata
from spark_app.ledger.ledger import Ledger
from tests.spark_app.table_rows import TOPIC, table_rows
from tributary.contract.lake import Deletes, Storage, TablePolicy

COLUMNS = StructType([*APP_COLUMNS.fields, StructField(DELETED, BooleanType())])


@pytest.mark.parametrize(
    ("storage", "deletes"), [("merge_on_read", "hard"), ("merge_on_read", "soft"), ("copy_on_write", "soft")]
)
def test_a_late_write_brings_back_neither_a_deleted_row_nor_an_older_version(
    spark: SparkSession, tmp_path: Path, storage: Storage, deletes: Deletes
) -> None:
    policy = TablePolicy(storage=storage, deletes=deletes)
    table = HudiTable(spark, str(tmp_path / "silver"), "things", policy)

    def write(versions: Mapping[str, tuple[str, int]]) -> None:
        frames = [
            table_rows(spark, COLUMNS, {key: (operation == "d",)}, seq=seq, operation=operation)
            for key, (operation, seq) in versions.items()
        ]
        table.write(reduce(DataFrame.unionByName, frames), commit_metadata(Ledger(TOPIC)))

    write({"deleted": ("c", 1), "changed": ("c", 2), "untouched": ("c", 3)})
    write({"deleted": ("d", 30), "changed": ("u", 31)})
    write({"deleted": ("u", 20), "changed": ("u", 21)})

    live = table.read().where(f"not coalesce({DELETED}, false)").select(RECORD_KEY, ORDERING).collect()
    assert {row[RECORD_KEY]: row[ORDERING] for row in live} == {"changed": 31, "untouched": 3}
