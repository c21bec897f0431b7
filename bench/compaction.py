"""How long compaction blocks a table, by the table's size."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from bench.flat import table_session
from bench.orders_table import build_orders_table, check_orders
from bench.results import Figure, Results
from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.instants import instant_of
from tributary.contract.lake import TablePolicy


@dataclass(frozen=True)
class Settings:
    """The settings of a measurement.

    orders            table sizes in rows
    orders_of_bucket  rows in a bucket. A table has at least two buckets.
    warm_up, commits  Each table is compacted after `warm_up` commits, and again after `commits` more. The
                      second compaction is measured.
    """

    orders: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    orders_of_bucket: int = 1_000_000
    records: int = 1_000
    warm_up: int = 2
    commits: int = 20


FULL = Settings()
QUICK = Settings(orders=(20_000, 200_000), orders_of_bucket=50_000, warm_up=1, commits=5)


def run(settings: Settings = FULL) -> Results:
    figures: list[Figure] = []
    with table_session() as (spark, folder):
        for orders in settings.orders:
            buckets = max(2, orders // settings.orders_of_bucket)
            of = {"rows": orders, "buckets": buckets}
            path = folder / f"orders_{orders}"
            hudi = HudiTable(spark, str(path / "silver"), path.name, TablePolicy(buckets=buckets))
            table = build_orders_table(spark, path, hudi, orders)
            for commits in (settings.warm_up, settings.commits):
                for _ in range(commits):
                    table.seconds_of_commit(settings.records)
                parts = list(_seconds_of_parts(hudi))
            check_orders(hudi, table.history)
            figures.append(Figure("parts", len(parts), "", of))
            figures.append(Figure("longest part", round(max(parts), 2), "s", of))
            figures.append(Figure("all parts", round(sum(parts), 2), "s", of))
    return Results("compaction", asdict(settings), tuple(figures))


def _seconds_of_parts(hudi: HudiTable) -> Iterator[float]:
    begun, is_more = instant_of(datetime.now(UTC)), True
    while is_more:
        began = time.perf_counter()
        is_more = hudi.compact_part(begun)
        yield time.perf_counter() - began
