"""A table's position is found in any timeline that services, a rebuild and a crash leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyarrow.fs import LocalFileSystem
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_app.columns.table_columns import APP_COLUMNS
from spark_app.hudi import timeline as hudi_timeline
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import commit_metadata
from spark_app.sources.event import OffsetRange
from spark_app.table import services
from spark_app.table.rebuild import rebuild_table
from spark_app.table.table_ingest import TableIngest
from tests.spark_app.debezium import SourceTable, event_row
from tests.spark_app.memory_source import MemorySource, table_of_things
from tributary.api.tables import LakeTable
from tributary.api.time_travel import OutOfHistory, check_readable
from tributary.api.timeline import read_earliest_retained, read_last_commit
from tributary.contract.lake import TablePolicy
from tributary.contract.table_name import TableName

COMMITS = 8


def test_the_ledger_is_found_past_all_that_services_a_rebuild_and_a_crash_leave(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "COMMITS_BETWEEN_SERVICES", 2)
    monkeypatch.setattr(services, "SECONDS_BETWEEN_CLEANINGS", 0.0)
    monkeypatch.setattr(hudi_timeline, "ACTIVE_COMMITS", 3)
    shop = SourceTable()
    shop.begin()
    shop.insert(0, "first", None)
    for number in range(1, COMMITS):
        shop.update(0, f"change {number}", None, body_is_unchanged=False)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    policy = TablePolicy(buckets=1, history=timedelta(0), longest_query=timedelta(0))
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", policy)
    table = table_of_things(hudi, rows, tmp_path)

    first_instant = last_instant = ""
    for number in range(COMMITS):
        table.apply((OffsetRange(0, number, number + 1),))
        first_instant = first_instant or str(hudi.timeline().last_instant)
        table.maintain()
        if number == 2:
            _rebuild(table, rows[:3])
        if number == COMMITS - 3:
            _fail_a_commit(table)
        table.forget()
        assert table.ledger.positions == {0: number + 1}
        commit = read_last_commit(_FILES, hudi.path)
        assert commit is not None
        assert commit.ledger == table.ledger
        last_instant = commit.instant

    timeline = tmp_path / "silver" / ".hoodie"
    assert {path.suffix for path in timeline.glob("[0-9]*")} >= {
        *(".deltacommit", ".commit", ".rollback", ".clean")
    }
    assert not list(timeline.parent.rglob(f"*{first_instant}*"))
    assert [row["name"] for row in hudi.read().collect()] == [f"change {COMMITS - 1}"]

    retained = read_earliest_retained(_FILES, hudi.path)
    assert retained is not None
    assert first_instant < retained <= last_instant
    lake_table = LakeTable(TableName("shop", "public", "things"), hudi.path)
    check_readable(_FILES, lake_table, retained)
    with pytest.raises(OutOfHistory, match=f"expected {retained} or later"):
        check_readable(_FILES, lake_table, str(int(retained) - 1))


_FILES: Any = LocalFileSystem()


def _rebuild(table: TableIngest, rows: Sequence[tuple[object, ...]]) -> None:
    source, table.parts.reader.source = table.source, MemorySource(table.hudi.spark, rows)
    rebuild_table(table)
    table.parts.reader.source = source


def _fail_a_commit(table: TableIngest) -> None:
    """Leave a commit that has begun but is not complete."""
    rows = table.hudi.read().select(*APP_COLUMNS.fieldNames(), "id", "name", "body")
    broken = rows.withColumn("name", F.raise_error(F.lit("as if the disk were full")).cast("string"))
    with pytest.raises(Py4JError, match="as if the disk were full"):
        table.hudi.write(broken, commit_metadata(table.ledger))
