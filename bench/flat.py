"""Duration of a small commit, by the size of its table."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from bench.driver import driver
from bench.orders_table import OrdersTable, build_orders_table, check_orders, take_turns
from bench.results import Figure, Results
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import commit_metadata
from tributary.contract.lake import TablePolicy, parse_lake
from tributary.local.state import StateFolder, choose_settings

LAKE = parse_lake(
    """
    [lake]
    name = "flat"

    [source.shop]
    engine = "postgres"
    database = "shop"
    tables = ["public.*"]

    [local]
    spark_memory = "4g"
    """
)


@dataclass(frozen=True)
class Settings:
    """The settings: measure `commits` of `records` changes into a table of each size. The tables take turns.

    The same number of bare Hudi writes follows, without the app's own work.
    """

    orders: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    records: int = 1_000
    warm_up: int = 5
    commits: int = 15


FULL = Settings()
QUICK = Settings(orders=(10_000, 100_000), warm_up=1, commits=3)


@dataclass(frozen=True)
class _Times:
    """Seconds of each commit, by table: of the app's commits, and of bare Hudi writes."""

    commit: Sequence[Sequence[float]]
    write: Sequence[Sequence[float]]


def run(settings: Settings = FULL) -> Results:
    with table_session() as (spark, folder):
        times = _by_size(spark, folder, settings)
    medians = tuple(
        (float(orders), round(statistics.median(seconds), 4))
        for orders, seconds in zip(settings.orders, times.commit, strict=True)
    )
    series = {"seconds of a commit by rows": medians}
    return Results("flat", asdict(settings), tuple(_figures(settings, times)), series)


def _by_size(spark: SparkSession, folder: Path, settings: Settings) -> _Times:
    tables = [_table(spark, folder / f"orders_{orders}", orders) for orders in settings.orders]
    for table in tables:
        for _ in range(settings.warm_up):
            table.seconds_of_commit(settings.records)
    commit = partial(OrdersTable.seconds_of_commit, records=settings.records)
    write = partial(_seconds_of_write, records=settings.records)
    return _Times(take_turns(tables, settings.commits, commit), take_turns(tables, settings.commits, write))


def _table(spark: SparkSession, folder: Path, orders: int) -> OrdersTable:
    hudi = HudiTable(spark, str(folder / "silver"), folder.name, TablePolicy())
    table = build_orders_table(spark, folder, hudi, orders)
    check_orders(hudi, table.history)
    return table


def _seconds_of_write(table: OrdersTable, records: int) -> float:
    """Time one bare Hudi write of rows that are ready for it."""
    rows = table.unchanged(records)
    began = time.perf_counter()
    table.ingest.hudi.upsert(rows, commit_metadata(table.ingest.ledger.next_commit()))
    return time.perf_counter() - began


def _figures(settings: Settings, times: _Times) -> Iterable[Figure]:
    for name, chosen in (("commit", times.commit), ("write alone", times.write)):
        medians = [statistics.median(seconds) for seconds in chosen]
        for orders, seconds, median in zip(settings.orders, chosen, medians, strict=True):
            of: Mapping[str, str | int] = {"rows": orders, "what": name}
            yield Figure("seconds p50", round(median, 3), "s", of)
            yield Figure("seconds min", round(min(seconds), 3), "s", of)
            yield Figure("seconds max", round(max(seconds), 3), "s", of)
        yield Figure("largest to smallest", round(medians[-1] / medians[0], 2), "×", {"what": name})


@contextmanager
def table_session() -> Iterator[tuple[SparkSession, Path]]:
    """Start a session like the app's, with a folder for its tables. No server is needed."""
    with tempfile.TemporaryDirectory(prefix="tributary-bench-") as folder:
        state = StateFolder(Path(folder) / "state")
        state.create()
        with driver(LAKE, state, choose_settings(state, LAKE.name, {}, frozenset())) as running:
            yield running.spark, Path(folder)
