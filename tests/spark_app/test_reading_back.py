"""Every earlier state of a table can be read with the SQL of docs/reading.md, and without Spark."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiReadOptions, HudiTableBuilder
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import last_commit
from spark_app.sources.event import OffsetRange
from tests.parameters import first_then_long
from tests.spark_app.debezium import SourceTable, State, event_row
from tests.spark_app.memory_source import table_of_things
from tributary.contract.lake import Storage, TablePolicy

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reading.md").read_text()
NOW, AT_TIME, AT_INSTANT, SINCE, BETWEEN = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)
TABLE = "shop_silver.web_public_orders"
BATCHES = ((0, 5), (5, 10), (10, 12), (12, 15))


@pytest.mark.parametrize("storage", first_then_long(["merge_on_read", "copy_on_write"]))
def test_each_state_and_each_change_between_two_is_read_back(
    spark: SparkSession, tmp_path: Path, storage: Storage
) -> None:
    shop = _history()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(storage=storage))
    table = table_of_things(hudi, rows, tmp_path)
    states: dict[str, State] = {}
    for first, until in BATCHES:
        table.apply((OffsetRange(0, first, until),))
        commit = last_commit(hudi)
        assert commit is not None
        states[commit.instant] = shop.events[until - 1].state
        if storage == "merge_on_read" and until == 10:
            hudi.compact()
        time.sleep(1)

    sql = _session(spark, hudi.path)
    assert _names(sql.sql(NOW).collect()) == _names(shop.rows.values())
    for instant, state in states.items():
        moment = (
            f"{instant[:4]}-{instant[4:6]}-{instant[6:8]} {instant[8:10]}:{instant[10:12]}:{instant[12:14]}"
        )
        assert _names(sql.sql(_with(AT_INSTANT, instant)).collect()) == _names(state.values())
        by_time = AT_TIME.replace("2026-01-02 03:04:05.678", f"{moment}.{instant[14:]}")
        assert _names(sql.sql(by_time).collect()) == _names(state.values())
        assert _names(read_without_spark(hudi.path, instant)) == _names(state.values())

    instants = list(states)
    for number, since in enumerate(instants):
        changed = _changed(states[since], shop.rows)
        assert _names(sql.sql(_with(SINCE, since)).collect()) == changed
        for upto in instants[number + 1 :]:
            changed = _changed(states[since], states[upto])
            assert _names(sql.sql(_with(BETWEEN, since, upto)).collect()) == changed


def _history() -> SourceTable:
    """Every commit gives the rows that it changes another name."""
    shop = SourceTable()
    shop.begin()
    for key in range(5):
        shop.insert(key, "first", None)
    shop.commit()
    shop.begin()
    shop.update(0, "second", None, body_is_unchanged=False)
    shop.update(1, "second", None, body_is_unchanged=False)
    shop.insert(5, "second", None)
    shop.delete(2)
    shop.commit()
    shop.begin()
    shop.update(0, "third", None, body_is_unchanged=False)
    shop.insert(2, "third", None)
    shop.commit()
    shop.begin()
    shop.update(5, "fourth", None, body_is_unchanged=False)
    shop.delete(1)
    shop.commit()
    return shop


def _session(spark: SparkSession, path: str) -> SparkSession:
    """Return a session as a reader sets it up for Hudi."""
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
    session.sql("CREATE DATABASE IF NOT EXISTS shop_silver")
    session.sql(f"DROP TABLE IF EXISTS {TABLE}")
    session.sql(f"CREATE TABLE {TABLE} USING hudi LOCATION '{path}'")
    return session


def _with(statement: str, since: str, until: str = "") -> str:
    return statement.replace("20260102030405678", since).replace("20260102040000000", until)


def read_without_spark(path: str, instant: str) -> list[dict[str, Any]]:
    table = HudiTableBuilder.from_base_uri(path).build()
    batches = table.read(HudiReadOptions().with_as_of_timestamp(instant))
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches).to_pylist()
    return rows


def _names(rows: Any) -> dict[int, str]:
    return {row["id"]: row["name"] for row in rows}


def _changed(before: State, after: State) -> dict[int, str]:
    return {key: row["name"] for key, row in after.items() if before.get(key) != row}
