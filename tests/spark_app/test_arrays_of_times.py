"""Arrays of timestamps are as readable after many commits as after the first one."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.sources.event import OffsetRange
from tests.spark_app.debezium import SourceTable, event_row
from tests.spark_app.memory_source import table_of_things
from tributary.contract.lake import Storage, TablePolicy

MOMENT = datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize("storage", ["merge_on_read", "copy_on_write"])
def test_arrays_of_timestamps_are_read_after_a_second_commit(
    spark: SparkSession, tmp_path: Path, storage: Storage
) -> None:
    shop, ends = SourceTable(), []
    shop.add_column("moments", "timestamptz[]")
    for key, name in ((1, "first"), (2, "second"), (1, "third"), (2, "fourth")):
        shop.begin()
        shop.insert(key, name, None, moments=[MOMENT.isoformat(), None])
        shop.commit()
        ends.append(len(shop.events))
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(storage=storage, buckets=1))
    table = table_of_things(hudi, rows, tmp_path)
    for begin, end in pairwise([0, *ends]):
        table.apply((OffsetRange(0, begin, end),))
        found = {row["id"]: row["moments"] for row in _read_without_spark(hudi)}
        assert found == {key: [MOMENT, None] for key in found}
    assert {row["id"]: row["name"] for row in _read_without_spark(hudi)} == {1: "third", 2: "fourth"}


def _read_without_spark(table: HudiTable) -> list[dict[str, Any]]:
    batches = HudiTableBuilder.from_base_uri(f"file://{table.path}").build().read()
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches).to_pylist()
    return rows
