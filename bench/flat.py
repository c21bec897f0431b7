"""Whether a small commit takes as long into a large table as into a small one, and as long after many commits
as after a few."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.driver import driver
from bench.orders_table import OrdersTable, build_orders_table, check_orders, turns
from bench.results import Figure, Results
from contract.lake import TablePolicy, parse_lake
from local.state import StateFolder, settle
from spark_app.hudi import HudiTable
from spark_app.table_ingest import MOST_COMMITS_BETWEEN_SERVICES

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
    """`name`: that of the results. `commits` of `records` each into tables of each size, taking turns;
    then as many again of what the app hands to Hudi alone. A table of `aged_orders` is timed around its
    commits number `young` and `old`; it gets its services as often as a busy run gives them."""

    name: str = "flat"
    orders: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    records: int = 1_000
    warm_up: int = 5
    commits: int = 15
    aged_orders: int = 0
    young: int = 10
    old: int = 1_000


FULL = Settings()
QUICK = Settings(orders=(20_000, 200_000), warm_up=1, commits=5)
AGED = Settings("flat_age", orders=(), warm_up=20, aged_orders=100_000)


@dataclass
class _Times:
    """Seconds of each commit, in turn."""

    app: list[float] = field(default_factory=list)
    write: list[float] = field(default_factory=list)


def run(settings: Settings = FULL) -> Results:
    figures: list[Figure] = []
    series: dict[str, tuple[tuple[float, float], ...]] = {}
    with _session() as (spark, folder):
        if settings.orders:
            times = _by_size(spark, folder, settings)
            figures += _size_figures(settings, times)
            series["seconds of a commit by rows"] = tuple(
                (float(orders), round(statistics.median(of.app), 4))
                for orders, of in zip(settings.orders, times, strict=True)
            )
        if settings.aged_orders:
            seconds = _by_age(spark, folder, settings)
            figures += _age_figures(settings, seconds)
            series["seconds of a commit by commits before"] = tuple(
                (float(number), round(of, 3)) for number, of in seconds.items()
            )
    return Results(settings.name, asdict(settings), tuple(figures), series)


def _by_size(spark: SparkSession, folder: Path, settings: Settings) -> Sequence[_Times]:
    tables = [_table(spark, folder / f"orders_{orders}", orders) for orders in settings.orders]
    for table in tables:
        for _ in range(settings.warm_up):
            _seconds_of_commit(table, settings.records)
    times = [_Times() for _ in tables]
    for turn in turns(settings.commits, len(tables)):
        for place in turn:
            times[place].app.append(_seconds_of_commit(tables[place], settings.records))
    for table in tables:
        check_orders(table.ingest.hudi, table.history)
    for turn in turns(settings.commits, len(tables)):
        for place in turn:
            times[place].write.append(_seconds_of_write(tables[place], settings.records))
    for table in tables:
        check_orders(table.ingest.hudi, table.history)
    return times


def _by_age(spark: SparkSession, folder: Path, settings: Settings) -> Mapping[int, float]:
    """The seconds of the app's commits, by how many came before. Between those that are timed, Hudi alone
    writes a row."""
    other = _table(spark, folder / "warm_up", settings.aged_orders)
    for _ in range(settings.warm_up):
        _seconds_of_commit(other, settings.records)
    table = _table(spark, folder / "aged", settings.aged_orders)
    half, seconds = settings.commits // 2, {}
    for number in range(settings.old + half + 1):
        if _is_timed(number, settings):
            seconds[number] = _seconds_of_commit(table, settings.records)
        else:
            table.ingest.hudi.write(_some_rows(table, 1), table.ingest.ledger.next_commit())
        if number % MOST_COMMITS_BETWEEN_SERVICES == 0:
            table.ingest.serve()
    check_orders(table.ingest.hudi, table.history)
    return seconds


def _is_timed(number: int, settings: Settings) -> bool:
    """Around the two ages, and a few in each hundred for the picture."""
    half = settings.commits // 2
    return (
        abs(number - settings.young) <= half
        or abs(number - settings.old) <= half
        or number % 100 in (31, 32, 33)
    )


def _table(spark: SparkSession, folder: Path, orders: int) -> OrdersTable:
    hudi = HudiTable(spark, str(folder / "silver"), folder.name, TablePolicy())
    table = build_orders_table(spark, folder, hudi, orders)
    check_orders(hudi, table.history)
    return table


def _seconds_of_commit(table: OrdersTable, records: int) -> float:
    table.send(records)
    began = time.perf_counter()
    table.commit()
    return time.perf_counter() - began


def _seconds_of_write(table: OrdersTable, records: int) -> float:
    """Of one commit of rows that need no work before Hudi."""
    rows = _some_rows(table, records)
    began = time.perf_counter()
    table.ingest.hudi.write(rows, table.ingest.ledger.next_commit())
    return time.perf_counter() - began


def _some_rows(table: OrdersTable, number: int) -> DataFrame:
    """So many rows that never change, as the table holds them: to write them again changes nothing. They are
    read once."""
    if number not in table.some_rows:
        stored = table.ingest.hudi.read()
        names = [name for name in stored.columns if not name.startswith("_hoodie_")]
        some = stored.where(F.col("order_id") < number).select(*names)
        table.some_rows[number] = some.sparkSession.createDataFrame(some.collect(), some.schema).coalesce(1)
    return table.some_rows[number]


def _size_figures(settings: Settings, times: Sequence[_Times]) -> Iterable[Figure]:
    for name, chosen in (("commit", [of.app for of in times]), ("write alone", [of.write for of in times])):
        medians = [statistics.median(seconds) for seconds in chosen]
        for orders, seconds, median in zip(settings.orders, chosen, medians, strict=True):
            of: Mapping[str, str | int] = {"rows": orders, "what": name}
            yield Figure("seconds p50", round(median, 3), "s", of)
            yield Figure("seconds min", round(min(seconds), 3), "s", of)
            yield Figure("seconds max", round(max(seconds), 3), "s", of)
        yield Figure("largest to smallest", round(medians[-1] / medians[0], 2), "×", {"what": name})


def _age_figures(settings: Settings, seconds: Mapping[int, float]) -> Iterable[Figure]:
    half = settings.commits // 2
    medians = []
    for number in (settings.young, settings.old):
        median = statistics.median(of for before, of in seconds.items() if abs(before - number) <= half)
        medians.append(median)
        yield Figure("seconds p50", round(median, 3), "s", {"commits before": number})
    yield Figure("old to young", round(medians[1] / medians[0], 2), "×")


@contextmanager
def _session() -> Iterator[tuple[SparkSession, Path]]:
    """A session as the app has it, and a folder for its tables; no server is needed."""
    with tempfile.TemporaryDirectory(prefix="tributary-bench-") as folder:
        state = StateFolder(Path(folder) / "state")
        state.create()
        with driver(LAKE, state, settle(state, LAKE.name, {}, frozenset())) as running:
            yield running.spark, Path(folder)
