"""The files of a derived table hold its rows, and only the rows of the last run."""

from __future__ import annotations

import io
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pyarrow.csv
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from spark_app.derive.outputs import OutputNotWritten, Outputs
from spark_app.derive.result_rows import table_rows
from spark_app.reports import ProgressWriter
from tributary.contract.derived import Derived

ROWS = [(1, 'ü, "quoted"', date(2026, 3, 1)), (2, None, date(1, 1, 1))]


@pytest.mark.parametrize("written", ["parquet", "csv"])
def test_a_folder_has_all_rows_of_the_last_run_also_with_days_before_1582(
    spark: SparkSession, tmp_path: Path, written: Literal["parquet", "csv"]
) -> None:
    folder = tmp_path / "out"
    entry = Derived(key=("id",), sql="SELECT 1", folder=str(folder), format=written)
    outputs = Outputs("derived.tables.t", entry, None, ProgressWriter(io.StringIO()))
    for rows in (ROWS[:1], ROWS):
        frame = spark.createDataFrame(rows, "id bigint, note string, day date")
        outputs.write_all(table_rows(frame, ["id"], 1))
    (file,) = folder.glob(f"*.{written}")
    found: Any = pyarrow.parquet.read_table(file) if written == "parquet" else _read_csv(file)
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == ROWS


def _outputs(folder: Path, written: Literal["parquet", "csv"]) -> Outputs:
    entry = Derived(key=("id",), sql="SELECT 1", folder=str(folder), format=written)
    return Outputs("derived.tables.t", entry, None, ProgressWriter(io.StringIO()))


def test_a_folder_that_cannot_be_written_is_told_with_its_entry(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    rows = table_rows(spark.createDataFrame(ROWS, "id bigint, note string, day date"), ["id"], 1)
    with pytest.raises(OutputNotWritten) as caught:
        _outputs(tmp_path / "file" / "below", "parquet").write_all(rows)
    assert caught.value.where == "[derived.t].folder"
    assert str(caught.value.found).startswith(f"{tmp_path}/file/below: ")
    assert "\n" not in str(caught.value)


def test_columns_that_the_format_cannot_hold_are_told_with_the_entry(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = table_rows(spark.createDataFrame([(1, [2])], "id bigint, parts array<int>"), ["id"], 1)
    with pytest.raises(OutputNotWritten, match=r"\[derived.t\].folder: .*parts.*columns that csv can hold"):
        _outputs(tmp_path / "out", "csv").write_all(rows)


def _read_csv(file: Path) -> Any:
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True, null_values=[""])
    parsing = pyarrow.csv.ParseOptions(escape_char="\\")
    return pyarrow.csv.read_csv(file, convert_options=options, parse_options=parsing)
