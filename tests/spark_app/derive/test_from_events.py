"""A table derived from events has each of them once, after any crash, and no event that came too late."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.derive.derived_table import DerivedTable
from tests.parameters import first_then_long
from tests.spark_app.derive.derived_lake import DerivedLake
from tributary.contract.derivations import QueryNotUsable

TOPIC = """
[topic.purchases]
columns = { id = "bigint", country = "text", amount = "numeric(9,2)", at = "timestamp with time zone" }
event_time = "at"
watermark = "10m"
"""
WINDOWS = (
    TOPIC
    + """
[derived.by_window]
key = ["window_start", "country"]
sql = '''
SELECT window.start AS window_start, country, count(*) AS purchases, sum(amount) AS total
FROM purchases GROUP BY window(at, '10 minutes', '5 minutes'), country
'''
"""
)
BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
Purchase = Mapping[str, Any]


def purchase(minute: float, country: str, amount: str, number: int = 1) -> Purchase:
    at = BEGIN + timedelta(minutes=minute)
    return {"id": number, "country": country, "amount": Decimal(amount).__float__(), "at": at.isoformat()}


BATCHES: Sequence[Sequence[Purchase]] = (
    [purchase(0, "US", "1.50"), purchase(4, "DE", "2.00"), purchase(4, "US", "1.00")],
    # 25 moves the watermark to 15. In the same batch, 9 is late, but still counts.
    [purchase(25, "US", "4.00"), purchase(9, "DE", "8.00")],
    # Windows that end at 15 or before are closed: 3 is in no open one, 12 is in the one that ends at 20.
    [purchase(3, "US", "16.00"), purchase(12, "DE", "32.00"), purchase(26, "DE", "64.00")],
    [purchase(60, "US", "0.25")],
)


def window_totals(batches: Iterable[Sequence[Purchase]]) -> dict[tuple[datetime, str], tuple[int, Decimal]]:
    """Return the totals by the definition: windows of 10 minutes every 5, with a watermark of 10 minutes.

    A batch's watermark is 10 minutes before the latest event of the batches before it."""
    found: dict[tuple[datetime, str], tuple[int, Decimal]] = {}
    latest: datetime | None = None
    for batch in batches:
        watermark = None if latest is None else latest - timedelta(minutes=10)
        times = []
        for event in batch:
            at = datetime.fromisoformat(event["at"])
            times.append(at)
            first = at - timedelta(minutes=(at - BEGIN).total_seconds() / 60 % 5)
            for start in (first, first - timedelta(minutes=5)):
                if watermark is not None and start + timedelta(minutes=10) <= watermark:
                    continue
                count, total = found.get((start, event["country"]), (0, Decimal(0)))
                found[start, event["country"]] = (count + 1, total + Decimal(str(event["amount"])))
        latest = max([*times, *([] if latest is None else [latest])])
    return found


def stored_totals(lake: DerivedLake) -> dict[tuple[datetime, str], tuple[int, Decimal]]:
    return {
        (start.replace(tzinfo=UTC), country): (count, total)
        for start, country, count, total in lake.rows("by_window")
    }


def test_the_model_knows_late_rows() -> None:
    assert window_totals(BATCHES)[BEGIN, "DE"] == (2, Decimal("10.00")), "9 is in the window from 0"
    assert window_totals(BATCHES)[BEGIN + timedelta(minutes=10), "DE"] == (1, Decimal("32.00"))
    assert window_totals(BATCHES)[BEGIN, "US"] == (2, Decimal("2.50")), "3 came too late"


class Crashed(Exception):
    """Stands for the end of the process."""


def crash_at_next_commit(table: DerivedTable, *, is_written: bool) -> None:
    """Let the next commit of a table fail, before or after it is written."""
    write = table.hudi.write

    def crashing(*arguments: Any) -> None:
        if is_written:
            write(*arguments)
        raise Crashed

    object.__setattr__(table.hudi, "write", crashing)


@pytest.mark.parametrize("is_written", first_then_long([True, False]))
def test_windows_hold_each_event_once_after_a_crash_at_any_batch(
    spark: SparkSession, tmp_path: Path, is_written: bool
) -> None:
    lake = DerivedLake(spark, tmp_path, WINDOWS)
    for batch in BATCHES[:2]:
        lake.send("purchases", batch)
    crashing = lake.from_events("by_window")
    crash_at_next_commit(crashing.table, is_written=is_written)
    with pytest.raises(Crashed):
        crashing.advance()
    opened = lake.from_events("by_window")
    opened.advance()
    assert stored_totals(lake) == window_totals(BATCHES[:2])
    for batch in BATCHES[2:]:
        is_written = not is_written
        lake.send("purchases", batch)
        crash_at_next_commit(opened.table, is_written=is_written)
        with pytest.raises(Crashed):
            opened.advance()
        opened = lake.from_events("by_window")
        opened.advance()
    assert stored_totals(lake) == window_totals(BATCHES)
    assert opened.advance() is None, "there is no new event"
    late = sum(report["late"] for report in lake.reports() if report["event"] == "events_dropped")
    assert late > 0, "the purchase at minute 3 is in no result"


def test_a_batch_that_a_stop_interrupts_is_no_failure_and_is_repeated(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, is_stopped = DerivedLake(spark, tmp_path, WINDOWS), Event()
    lake.send("purchases", BATCHES[0])
    stopped = lake.from_events("by_window")
    stopped.is_stopped = is_stopped.is_set

    def interrupted(*_: Any) -> None:
        is_stopped.set()
        time.sleep(2)
        raise OSError("the shell was interrupted")

    object.__setattr__(stopped.table.hudi, "write", interrupted)
    assert stopped.advance() is None

    lake.from_events("by_window").advance()
    assert stored_totals(lake) == window_totals(BATCHES[:1])


def test_running_totals_leave_out_repeated_and_unreadable_events(spark: SparkSession, tmp_path: Path) -> None:
    text = """
[topic.sales]
columns = { id = "bigint", country = "text", amount = "bigint" }
unique = ["id"]
[derived.totals]
key = ["country"]
sql = "SELECT country, count(*) AS sales, sum(amount) AS total FROM sales GROUP BY country"
console = true
"""
    lake = DerivedLake(spark, tmp_path, text)
    first = {"id": 1, "country": "US", "amount": 5}
    lake.send("sales", [first, {"id": 2, "country": "DE", "amount": 7}, "{no JSON"])
    opened = lake.from_events("totals")
    opened.advance()
    lake.send("sales", [first, {"id": 3, "country": "US", "amount": 1}, {"id": "x"}])
    opened.advance()
    assert lake.rows("totals") == [("DE", 1, 7), ("US", 2, 6)]
    unreadable = [report["unreadable"] for report in lake.reports() if report["event"] == "events_dropped"]
    assert sum(unreadable) == 2
    printed = [report["value"] for report in lake.reports() if report["event"] == "derived_row"]
    assert printed[-1] == '{"country":"US","sales":2,"total":6}'


ENRICHED = """
[topic.sales]
columns = { id = "bigint", product = "bigint", quantity = "integer" }
[derived.enriched]
key = ["id"]
sql = "SELECT s.id AS id, p.name AS product, quantity FROM sales s LEFT JOIN products p ON p.id = s.product"
folder = "FOLDER"
format = "csv"
"""


def test_events_are_joined_with_a_table_as_it_is_when_they_are_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = ENRICHED.replace("FOLDER", f"{tmp_path}/files")
    lake = DerivedLake(spark, tmp_path, text, {"products": "id bigint, name string"})
    lake.write("products", [(1, "pen")])
    lake.send("sales", [{"id": 1, "product": 1, "quantity": 2}, {"id": 2, "product": 2, "quantity": 3}])
    opened = lake.from_events("enriched")
    opened.advance()
    lake.write("products", [(1, "fountain pen"), (2, "ink")])
    lake.send("sales", [{"id": 3, "product": 1, "quantity": 4}, {"id": 2, "product": 2, "quantity": 3}])
    opened.advance()
    assert lake.rows("enriched") == [(1, "pen", 2), (2, "ink", 3), (3, "fountain pen", 4)]
    files = spark.read.option("header", "true").csv(f"{tmp_path}/files/generation=0/batch=*")
    assert sorted(row["id"] for row in files.collect()) == ["1", "2", "2", "3"]


def test_groups_of_events_joined_with_a_table_are_refused_with_a_way_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = """
[topic.sales]
columns = { id = "bigint", product = "bigint", quantity = "integer" }
[derived.totals]
key = ["name"]
sql = "SELECT name, sum(quantity) AS sold FROM sales s JOIN products p ON p.id = s.product GROUP BY name"
"""
    lake = DerivedLake(spark, tmp_path, text, {"products": "id bigint, name string"})
    lake.write("products", [(1, "pen")])
    lake.send("sales", [{"id": 1, "product": 1, "quantity": 2}])
    with pytest.raises(QueryNotUsable, match="groups events and also reads a table"):
        lake.from_events("totals").advance()


def test_another_query_begins_again_at_the_first_event(spark: SparkSession, tmp_path: Path) -> None:
    text = """
[topic.sales]
columns = { id = "bigint", country = "text", amount = "bigint" }
[derived.totals]
key = ["country"]
sql = "SELECT country, sum(amount) AS total FROM sales WHERE amount > LEAST GROUP BY country"
console = true
"""
    lake = DerivedLake(spark, tmp_path, text.replace("LEAST", "0"))
    lake.send("sales", [{"id": 1, "country": "US", "amount": 1}, {"id": 2, "country": "DE", "amount": 7}])
    lake.from_events("totals").advance()
    told: dict[str, str | None] = {}
    for least, expected in (("5", [("DE", 7)]), ("0", [("DE", 7), ("US", 1)])):
        lake.text = text.replace("LEAST", least)
        lake.from_events("totals").advance()
        assert lake.rows("totals") == expected
        told = {one["key"]: one["value"] for one in lake.reports() if one["event"] == "derived_row"}
        assert [key for key, value in sorted(told.items()) if value is not None] == [
            f'{{"country":"{country}"}}' for country, _ in expected
        ], "an output learns which rows are gone"
