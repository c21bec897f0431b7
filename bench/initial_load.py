"""Speed of a table's first load, compared with Spark's own Parquet write of the same rows.

Spark writes rows that it parses from the same events, and rows that are already decoded.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench import events
from bench.catch_up import (
    CATALOG,
    apply_all,
    as_on_the_wire,
    bronze_of,
    lake_of,
    policy_of,
    session_options,
)
from bench.driver import driver
from bench.events import SPARSE, TABLE, TOPIC, Summary, Workload
from bench.plain_app import ENVELOPE
from bench.results import Figure, Results, WrongResult
from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.run.pace import Pace
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.event import OffsetRange
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.decode import decode
from spark_app.wire.json_with_schemas import read_schema_version
from spark_app.wire.schema_version import SchemaTexts, columns_of
from spark_app.wire.topic_form import TopicForm
from tributary.local.state import StateFolder, choose_settings


@dataclass(frozen=True)
class Settings:
    """The settings: measure a snapshot of `rows` in events with schemas, in commits of `batch` events.

    `batch` is the app's default. The ways take turns, for `rounds` rounds after `warm_ups`.
    """

    rows: int = 5_000_000
    batch: int = Pace.events_per_load
    rounds: int = 1
    warm_ups: int = 1
    memory: str = "5g"


FULL = Settings()
QUICK = Settings(rows=100_000, warm_ups=0)


def run(settings: Settings = FULL) -> Results:
    folder = Path(tempfile.mkdtemp(prefix="tributary-initial-load-"))
    try:
        with _session(settings, folder) as spark:
            load = _Load(spark, folder, settings, _snapshot(spark, folder, settings))
            ways = {
                "Tributary": load.ours,
                "decode and Parquet": load.decoded,
                "from_json and Parquet": load.parsed,
                "Parquet": load.parquet,
            }
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            for number in range(settings.warm_ups + settings.rounds):
                for way, write in list(ways.items())[:: 1 if number % 2 else -1]:
                    taken = load.checked(way, write)
                    if number >= settings.warm_ups:
                        seconds[way].append(taken)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rates = {way: settings.rows / statistics.mean(of) for way, of in seconds.items()}
    of_rows = {"rows": settings.rows}
    return Results(
        "initial_load",
        asdict(settings),
        (
            *(
                Figure("rows a second", round(rate), "rows/s", {"of": w, **of_rows})
                for w, rate in rates.items()
            ),
            *(
                Figure("share of its rate", round(rates["Tributary"] / rates[w], 2), "", {"as": w, **of_rows})
                for w in list(ways)[1:]
            ),
        ),
    )


@dataclass(frozen=True)
class _Load:
    """The ways to load the snapshot. Each must result in the snapshot's rows."""

    spark: SparkSession
    folder: Path
    settings: Settings
    source: BronzeSource

    def checked(self, way: str, write: Callable[[Path], DataFrame]) -> float:
        """Run one way and return its seconds. Raise `WrongResult` if the rows differ."""
        target = self.folder / "target"
        shutil.rmtree(target, ignore_errors=True)
        started = time.monotonic()
        rows = write(target)
        seconds = time.monotonic() - started
        found = events.summary(rows)
        if found != self._expected:
            raise WrongResult(
                what="The loaded rows differ from the snapshot's rows",
                where=way,
                found=str(found),
                expected=str(self._expected),
            )
        return seconds

    def ours(self, target: Path) -> DataFrame:
        hudi = HudiTable(self.spark, str(target), "orders", policy_of("schemas", buckets=4))
        table = TableIngest(
            TABLE, TOPIC, self.source, hudi, str(self.folder / "quarantine"), TopicForm(PostgresLog())
        )
        apply_all(table, self.settings.batch)
        return as_on_the_wire(hudi.read())

    def decoded(self, target: Path) -> DataFrame:
        """Decode with the app's own code, but write plain Parquet instead of a table."""
        version = read_schema_version(SchemaTexts(events.KEY_SCHEMA, events.VALUE_SCHEMA))
        landed = self.source.read(TOPIC, (OffsetRange(0, 0, self.settings.rows),))
        changes = decode(landed, (version,), columns_of(version), PostgresLog())
        changes.select("key", "op", "offset", "source_ts", "row.*").write.parquet(str(target))
        return as_on_the_wire(self.spark.read.parquet(str(target)))

    def parsed(self, target: Path) -> DataFrame:
        """Parse with Spark alone, as tutorials do: no event and no position is checked."""
        event = F.from_json(F.col("value").cast("string"), f"payload struct<{ENVELOPE}>")
        after = self.spark.read.table(self.source.table).select(event["payload"]["after"].alias("row"))
        after.select("row.*").select(*events.lake_columns()).write.parquet(str(target))
        return as_on_the_wire(self.spark.read.parquet(str(target)))

    def parquet(self, target: Path) -> DataFrame:
        """Write rows that are already decoded."""
        self.spark.read.parquet(str(self.folder / "rows")).write.parquet(str(target))
        return self.spark.read.parquet(str(target))

    @property
    def _expected(self) -> Summary:
        return events.summary(self.spark.read.parquet(str(self.folder / "rows")))


def _snapshot(spark: SparkSession, folder: Path, settings: Settings) -> BronzeSource:
    """Write the read events of all rows to bronze, and the rows themselves to Parquet."""
    workload = Workload(settings.rows, settings.rows, SPARSE)
    reads = spark.range(settings.rows).select(
        "id", F.col("id").alias("offset"), F.lit("r").alias("op"), F.lit(0).alias("snapshot")
    )
    rows = reads.select(*events.row_columns(F.col("id"), F.col("offset"), workload.seed))
    rows.write.parquet(str(folder / "rows"))
    framed = events.with_schemas(events.envelopes(reads, workload))
    return bronze_of(framed, settings.rows, f"{CATALOG}.bronze.snapshot")


@contextmanager
def _session(settings: Settings, folder: Path) -> Iterator[SparkSession]:
    lake = lake_of(settings.memory)
    state = StateFolder(folder / "state")
    state.create()
    local = choose_settings(state, lake.name, {}, frozenset())
    with driver(lake, state, local, session_options(folder)) as running:
        yield running.spark
