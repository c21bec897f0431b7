"""Duration of a small commit to a new table, after many commits, and with a long history."""

from __future__ import annotations

import re
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from bench.driver import driver
from bench.orders_table import OrdersTable, build_orders_table, check_orders, take_turns
from bench.results import Figure, Results
from bench.servers import Storage, storage
from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.instants import instant_of
from spark_app.ledger.commits import commit_metadata
from spark_app.table.services import MOST_COMMITS_BETWEEN_SERVICES
from tributary.contract.lake import TablePolicy, parse_lake
from tributary.local.s3 import s3_client

LAKE = parse_lake(
    """
    [lake]
    name = "age"

    [source.shop]
    engine = "postgres"
    database = "shop"
    tables = ["public.*"]
    """
)
BUCKET = LAKE.names.silver_bucket
_TIMED = (31, 32, 33)
_INSTANT = re.compile(r"_\d{17}")


@dataclass(frozen=True)
class Settings:
    """The settings: measure `commits` of `records` changes into a young and an old table, which take turns.

    orders         rows in each table
    young, old     commits to each table before the first measurement. The old table gets its services as
                   often as in a busy run.
    history_hours  For the second measurement, the old table also has the files of this many hours of constant
                   commits, with `compactions_an_hour`.
    """

    orders: int = 100_000
    records: int = 1_000
    young: int = 10
    old: int = 1_000
    commits: int = 15
    history_hours: int = 24
    compactions_an_hour: int = 15


FULL = Settings()


def run(settings: Settings = FULL) -> Results:
    with (
        tempfile.TemporaryDirectory(prefix="tributary-bench-") as folder,
        storage(LAKE, Path(folder) / "state") as storing,
        driver(LAKE, storing.state, storing.settings) as running,
    ):
        old = _table(running.spark, "old", settings)
        ageing = tuple(_age(old, settings))
        young = _table(running.spark, "young", settings)
        for _ in range(settings.young):
            young.seconds_of_commit(settings.records)
        commit = partial(OrdersTable.seconds_of_commit, records=settings.records)
        after_commits = take_turns((young, old), settings.commits, commit)
        _lay_history(storing, "old/silver", settings)
        beside_history = take_turns((young, old), settings.commits, commit)
    series = {"seconds of a commit by commits before": ageing}
    figures = (
        *_figures(f"after {settings.old:,} commits", after_commits),
        *_figures(f"with {settings.history_hours} h of history", beside_history),
    )
    return Results("flat_age", asdict(settings), figures, series)


def _age(table: OrdersTable, settings: Settings) -> Iterator[tuple[float, float]]:
    """Commit `settings.old` times. Yield each timed commit: the number of commits before it, and its seconds.

    Only the timed commits go through the app. The others are bare Hudi writes of one row.
    """
    for number in range(settings.old):
        if number % 100 in _TIMED:
            yield float(number), round(table.seconds_of_commit(settings.records), 3)
        else:
            table.ingest.hudi.upsert(table.unchanged(1), commit_metadata(table.ingest.ledger.next_commit()))
        is_served = number % MOST_COMMITS_BETWEEN_SERVICES == 0
        if is_served or (number + 1) % 100 in _TIMED:
            # The app keeps working on a table only if it knows all of its commits.
            table.ingest.recover()
        if is_served:
            table.ingest.serve()
    table.ingest.recover()


def _table(spark: SparkSession, name: str, settings: Settings) -> OrdersTable:
    folder = f"s3a://{BUCKET}/{name}"
    hudi = HudiTable(spark, f"{folder}/silver", name, TablePolicy())
    table = build_orders_table(spark, folder, hudi, settings.orders)
    check_orders(hudi, table.history)
    return table


def _lay_history(storing: Storage, path: str, settings: Settings) -> None:
    """Copy a base file and a log file of each file group to older instants.

    The copies' names look like what `HudiTable.clean` leaves.
    """
    server = storing.servers.s3
    client = s3_client(server.endpoint, server.access_key, server.secret_key)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{path}/", Delimiter="/")
    keys = sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))
    base_files = [key for key in keys if key.endswith(".parquet")]
    log_files = [key for key in keys if ".log." in key]
    copies = dict(_copies(_one_of_each_group(base_files) + _one_of_each_group(log_files), settings))
    with ThreadPoolExecutor(8) as threads:
        copy = partial(client.copy_object, Bucket=BUCKET)
        list(
            threads.map(lambda key: copy(Key=key, CopySource={"Bucket": BUCKET, "Key": copies[key]}), copies)
        )


def _one_of_each_group(keys: Iterable[str]) -> list[str]:
    return list({key.rpartition("/")[2].strip(".").partition("_")[0]: key for key in keys}.values())


def _copies(keys: Sequence[str], settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each additional key of the history, and the key to copy it from."""
    apart, now = timedelta(hours=1) / settings.compactions_an_hour, datetime.now(UTC)
    for number in range(1, settings.history_hours * settings.compactions_an_hour + 1):
        instant = instant_of(now - timedelta(hours=1) - number * apart)
        for key in keys:
            name, is_log, _ = _INSTANT.sub(f"_{instant}", key).partition(".log.")
            yield f"{name}.log.0_0-0-0" if is_log else name, key


def _figures(old_is: str, seconds: Sequence[Sequence[float]]) -> Iterator[Figure]:
    young, old = map(statistics.median, seconds)
    of = {"old": old_is}
    yield Figure("seconds p50, young", round(young, 3), "s", of)
    yield Figure("seconds p50, old", round(old, 3), "s", of)
    yield Figure("old to young", round(old / young, 2), "×", of)
