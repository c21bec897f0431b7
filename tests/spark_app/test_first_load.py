"""The first commit of a table has all rows, or does not happen."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.merge import fold
from spark_app.merge.fold import _last_of_key
from spark_app.sources.event import OffsetRange
from spark_app.table.table_ingest import TableIngest
from tests.parameters import first_then_long
from tests.spark_app.debezium import TYPES, ColumnType, SourceTable, event_row
from tests.spark_app.memory_source import table_of_things
from tests.spark_app.table_rows import NOTED, RECORDED, table_rows, upsert_by_hudi
from tributary.contract.lake import Storage, TablePolicy

LONG_AGO = date(1422, 6, 3)
"""A day before 1582."""


@pytest.mark.parametrize("storage", get_args(Storage))
@pytest.mark.parametrize("partition_by", first_then_long([("shelf", "_partition"), (), ("shelf",)]))
def test_a_table_is_made_as_hudis_own_writer_makes_it(
    spark: SparkSession, tmp_path: Path, storage: Storage, partition_by: tuple[str, ...]
) -> None:
    policy = TablePolicy(buckets=2, storage=storage, partition_by=partition_by)
    ours, hudis = (HudiTable(spark, str(tmp_path / name), "things", policy) for name in ("ours", "hudis"))
    rows = table_rows(spark, NOTED, {f"k{n}": (None, f"note {n}") for n in range(10)}, seq=1)
    ours.write(rows, RECORDED)
    upsert_by_hudi(hudis, rows)
    assert _properties(ours) == _properties(hudis) | {"hoodie.bootstrap.index.enable=false"}
    assert ours.read().schema == hudis.read().schema
    assert _committed_schema(ours) == _committed_schema(hudis)


@pytest.mark.parametrize("storage", get_args(Storage))
def test_a_load_that_would_lack_rows_fails_and_is_tried_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: Storage
) -> None:
    monkeypatch.setitem(TYPES, "date", ColumnType({"type": "int32", "name": "io.debezium.time.Date"}))
    source = SourceTable()
    source.add_column("day", "date")
    source.begin()
    source.insert(1, "one", None, day=0)
    source.insert(2, "two", None, day=(LONG_AGO - date(1970, 1, 1)).days)
    source.commit()
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=1, storage=storage))

    def table() -> TableIngest:
        rows = [event_row(event, offset) for offset, event in enumerate(source.events)]
        return table_of_things(hudi, rows, tmp_path)

    # With this, Spark refuses to write such a day, and Hudi's handle leaves its row out.
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "EXCEPTION")
    try:
        for _ in range(2):
            with pytest.raises(Py4JJavaError, match="1 cannot be written"):
                table().apply((OffsetRange(0, 0, 2),))
    finally:
        spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")

    later = table()
    assert later.ledger.positions == {}
    later.apply((OffsetRange(0, 0, 2),))
    days = {
        row["id"]: row["day"] for row in hudi.read().selectExpr("id", "cast(day as string) day").collect()
    }
    assert days == {1: str(date(1970, 1, 1)), 2: str(LONG_AGO)}
    later.apply((OffsetRange(0, 0, 2),))
    assert hudi.read().count() == 2


def test_a_table_is_loaded_once_also_where_the_app_starts_again(spark: SparkSession, tmp_path: Path) -> None:
    source = SourceTable()
    source.begin()
    source.insert(1, "one", None)
    source.insert(2, "two", None)
    source.commit()
    source.begin()
    source.update(1, "changed", None, body_is_unchanged=False)
    source.insert(3, "three", None)
    source.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(source.events)]
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=1))
    for first, end in ((0, 2), (2, 4)):
        table = table_of_things(hudi, rows, tmp_path)
        table.apply((OffsetRange(0, first, end),))
    assert {row["id"]: row["name"] for row in hudi.read().collect()} == {1: "changed", 2: "two", 3: "three"}
    assert hudi.read().count() == 3


@pytest.mark.parametrize("is_repeated", [False, True])
def test_a_large_batch_of_inserts_is_folded_only_where_a_key_is_there_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_repeated: bool
) -> None:
    source = SourceTable()
    source.begin()
    source.insert(1, "one", None)
    source.insert(2, "two", None)
    source.commit()
    source.rows[2]["name"] = "changed meanwhile"
    if is_repeated:
        source.snapshot()
    rows = [event_row(event, offset) for offset, event in enumerate(source.events)]
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=1))
    table = table_of_things(hudi, rows, tmp_path)
    folds: list[DataFrame] = []

    def folded(ordered: DataFrame) -> DataFrame:
        folds.append(ordered)
        return _last_of_key(ordered)

    monkeypatch.setattr(fold, "EVENTS_OF_ONE_TASK", 1)
    monkeypatch.setattr(fold, "_last_of_key", folded)
    table.apply((OffsetRange(0, 0, len(rows)),))
    assert len(folds) == is_repeated
    found = sorted((row["id"], row["name"]) for row in hudi.read().collect())
    assert found == [(1, "one"), (2, "changed meanwhile" if is_repeated else "two")]


def _properties(table: HudiTable) -> set[str]:
    lines = (Path(table.path) / ".hoodie" / "hoodie.properties").read_text().splitlines()
    return {line for line in lines if not line.startswith("#")}


def _committed_schema(table: HudiTable) -> Any:
    (commit,) = (Path(table.path) / ".hoodie").glob("*commit")
    return json.loads(commit.read_text())["extraMetadata"]["schema"]
