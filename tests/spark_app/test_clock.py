"""After a clock was set back, a table waits until its last commit is in the past, and nothing breaks."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.instants import instant_of
from spark_app.sources.event import OffsetRange
from spark_app.table import known_commits, services
from spark_app.table.known_commits import ClockIsBehind
from tests.spark_app.debezium import SourceTable, event_row
from tests.spark_app.memory_source import table_of_things
from tributary.contract.lake import TablePolicy


def test_nothing_is_written_before_the_last_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = SourceTable()
    shop.begin()
    shop.insert(1, "first", None)
    shop.update(1, "second", None, body_is_unchanged=False)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=1))
    table = table_of_things(hudi, rows, tmp_path)
    table.apply((OffsetRange(0, 0, 1),))
    table.services.commits = services.COMMITS_BETWEEN_SERVICES
    before = hudi.timeline().instants

    with monkeypatch.context() as set_back:
        set_back.setattr(known_commits, "instant_of", lambda now: instant_of(now - timedelta(hours=1)))
        with pytest.raises(ClockIsBehind, match="set it right, or wait"):
            table.apply((OffsetRange(0, 1, 2),))
        with pytest.raises(ClockIsBehind):
            table.maintain()
        table.forget()
        assert table.ledger.positions == {0: 1}
    assert hudi.timeline().instants == before

    table.apply((OffsetRange(0, 1, 2),))
    assert [row["name"] for row in hudi.read().collect()] == ["second"]
