"""Catch-up throughput of one table, in events a second.

Compares Tributary, the tutorials' app and HoodieStreamer on the same events, cores and disk. Each is warm.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench import events
from bench.acceleration import lake_entry
from bench.avro_events import SchemasInMemory, with_avro
from bench.driver import Driver, driver
from bench.events import COLUMNS, DENSE, SPARSE, TABLE, Keys, Shape, Summary, Workload
from bench.hoodie_streamer import HoodieStreamer, commits, wire_columns
from bench.plain_app import PlainApp, columns
from bench.results import Figure, Results, WrongResult
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import commit_metadata
from spark_app.ledger.ledger import Ledger
from spark_app.positions.postgres import PostgresLog
from spark_app.schema_registry.registry import KeptSchemas
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.event import EventSource
from spark_app.sources.kafka import KafkaSource
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tributary.contract.lake import Lake, TablePolicy, parse_lake
from tributary.contract.table_name import TableName
from tributary.local.kafka import KafkaBroker, create_topic
from tributary.local.server_files import read_server_files
from tributary.local.servers import Servers
from tributary.local.state import StateFolder, choose_settings

Form = Literal["bare", "schemas", "avro"]
PEER_HOME = "PEER_HOME"


@dataclass(frozen=True)
class Settings:
    """The settings of a measurement.

    rounds    timed runs of each contender. The contenders take turns.
    batches   by contender, the events in a commit. Each size is tried, and the best one counts. The peer
              takes part if `batches` names it and PEER_HOME is set.
    warm_ups  runs before the timed ones, while Java compiles. Without any, as in the quick run, most of the
              measured time is compilation.
    """

    events: int
    preloaded: int
    keys: Keys
    rounds: int
    batches: Mapping[str, Sequence[int]]
    warm_ups: int = 3
    buckets: int = 4
    memory: str = "5g"
    name: str = "catch_up"


_BATCHES = {
    "kafka, bare": (1_000_000,),
    "kafka, schemas": (1_000_000,),
    "bronze, bare": (1_000_000,),
    "bronze, schemas": (1_000_000,),
    "plain app": (1_000_000,),
    "HoodieStreamer": (1_000_000,),
}
FULL = Settings(events=1_000_000, preloaded=1_000_000, keys=SPARSE, rounds=2, batches=_BATCHES)
_BARE = {name: _BATCHES[name] for name in ("kafka, bare", "bronze, bare", "plain app", "HoodieStreamer")}
DENSE_KEYS = replace(FULL, keys=DENSE, batches=_BARE, name="catch_up_dense")
LARGE = replace(
    FULL,
    events=5_000_000,
    batches=dict.fromkeys(_BARE, (1_000_000, 5_000_000)),
    warm_ups=1,
    name="catch_up_large",
)
LARGE_DENSE_KEYS = replace(LARGE, keys=DENSE, name="catch_up_large_dense")
AVRO = replace(
    FULL,
    events=400_000,
    preloaded=100_000,
    batches=dict.fromkeys(("kafka, schemas", "kafka, avro", "bronze, schemas", "bronze, avro"), (400_000,)),
    warm_ups=2,
    name="catch_up_avro",
)
BATCHES = replace(
    LARGE,
    events=2_000_000,
    rounds=1,
    batches=dict.fromkeys(
        ("kafka, bare", "plain app", "HoodieStreamer"), (250_000, 500_000, 1_000_000, 2_000_000)
    ),
    name="catch_up_batches",
)
QUICK = Settings(
    events=60_000,
    preloaded=20_000,
    keys=SPARSE,
    rounds=1,
    warm_ups=0,
    batches={"kafka, bare": (60_000,), "plain app": (60_000,)},
)


def run(settings: Settings = FULL) -> Results:
    folder = Path(tempfile.mkdtemp(prefix="tributary-catch-up-"))
    try:
        with prepared_arena(settings, folder) as arena:
            contenders = _contenders(arena)
            for contender in contenders:
                contender.preload()
            runs = [
                checked_run(contender, batch, arena, is_warm=number >= settings.warm_ups)
                for number in range(settings.warm_ups + settings.rounds)
                # The first contender meets a colder disk, so the order alternates.
                for contender in (contenders if number % 2 else contenders[::-1])
                if number >= settings.warm_ups or contender.shares_the_jvm
                for batch in settings.batches[contender.name]
            ]
            sizes = _sizes(folder, contenders, settings.events)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Results(
        settings.name,
        {**asdict(settings), "shares": arena.shape.shares, "events_per_key": arena.shape.events_per_key},
        (*figures([found for found in runs if found.is_warm], arena.shape.events_per_key), *sizes),
    )


@dataclass(frozen=True)
class Run:
    """One catch-up: `events` applied in `seconds`.

    `heap` and `resident` are the JVM's peaks in bytes. `cpu_seconds` count the JVM and its Python
    workers. `heap` and `cpu_seconds` are None for a separate JVM, which nobody looks into.
    """

    contender: str
    batch: int
    events: int
    seconds: float
    resident: int
    heap: int | None = None
    cpu_seconds: float | None = None
    is_warm: bool = True


class Contender(Protocol):
    """An app that is measured. A contender that does not share the JVM warms itself up.

    preload   create the table with the preloaded rows
    catch_up  apply the events to a copy of that table
    rows      return the copy's rows, as on the wire
    """

    name: str
    shares_the_jvm: ClassVar[bool]

    def preload(self) -> None: ...

    def catch_up(self, batch: int) -> Run: ...

    def rows(self) -> DataFrame: ...


@dataclass(frozen=True)
class Arena:
    """The session, events and expected result that all contenders share."""

    settings: Settings
    workload: Workload
    folder: Path
    driver: Driver
    bootstrap: str
    expected: Summary
    shape: Shape

    @property
    def spark(self) -> SparkSession:
        return self.driver.spark

    def envelopes(self, form: Form) -> DataFrame:
        bare = self.spark.read.parquet(str(self.folder / "envelopes"))
        match form:
            case "bare":
                return bare
            case "schemas":
                return events.with_schemas(bare)
            case "avro":
                return with_avro(bare)

    def preloaded(self) -> DataFrame:
        return events.preloaded_rows(self.spark, self.workload)

    def copy_of(self, preloaded: Path) -> Path:
        target = self.folder / "table"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(preloaded, target)
        return target


def checked_run(contender: Contender, batch: int, arena: Arena, *, is_warm: bool) -> Run:
    """Run a catch-up. Raise `WrongResult` if the table does not match the events."""
    found = contender.catch_up(batch)
    summary = events.summary(contender.rows())
    if summary != arena.expected:
        raise WrongResult(
            what="A contender's table does not match the events, so its time does not count",
            where=contender.name,
            found=str(summary),
            expected=str(arena.expected),
        )
    warmth = "warm" if is_warm else "warm-up"
    rate = found.events / found.seconds
    print(f"{contender.name}: {rate:,.0f} events/s in batches of {batch:,} ({warmth})", file=sys.stderr)
    return replace(found, is_warm=is_warm)


def _sizes(folder: Path, contenders: Sequence[Contender], count: int) -> tuple[Figure, ...]:
    """Return the bytes on disk of each of our contenders' events: zstd in Kafka, Parquet in bronze."""
    found = []
    for contender in contenders:
        if isinstance(contender, OursContender):
            size = sum(file.stat().st_size for file in contender.event_files(folder))
            found.append(Figure("bytes an event", round(size / count, 1), "B", {"of": contender.name}))
    return tuple(found)


def figures(runs: Sequence[Run], events_per_key: float) -> tuple[Figure, ...]:
    """Return the mean rate and the memory peaks of each contender and batch size, and our speed-ups.

    A speed-up compares one of our contenders with a baseline, each at its best batch size.
    """
    of = {"events a key": events_per_key}
    measured: list[Figure] = []
    best: dict[str, float] = {}
    for contender, batch in dict.fromkeys((found.contender, found.batch) for found in runs):
        same = [found for found in runs if (found.contender, found.batch) == (contender, batch)]
        rate = statistics.mean(found.events / found.seconds for found in same)
        best[contender] = max(rate, best.get(contender, 0.0))
        by: dict[str, str | int | float] = {"of": contender, "batch": batch, **of}
        measured.append(Figure("events a second", round(rate), "events/s", by))
        measured.append(
            Figure("peak resident memory", max(found.resident for found in same) >> 20, "MiB", by)
        )
        if heaps := [found.heap for found in same if found.heap is not None]:
            measured.append(Figure("peak heap", max(heaps) >> 20, "MiB", by))
    baselines = [name for name in (PlainContender.name, PeerContender.name) if name in best]
    ours = [name for name in best if name not in baselines]
    return (
        *measured,
        *(
            Figure(
                "times as fast",
                round(best[name] / best[baseline], 2),
                "×",
                {"of": name, "as": baseline, **of},
            )
            for name in ours
            for baseline in baselines
        ),
    )


@dataclass
class OursContender:
    """Tributary's engine, configured as the app configures it from a lake file."""

    shares_the_jvm: ClassVar[bool] = True

    name: str
    arena: Arena
    form: Form
    origin: Literal["kafka", "bronze"]
    group: str = "bench"
    _table: HudiTable | None = None
    _source: EventSource | None = None

    def preload(self) -> None:
        """Write the table as an earlier run would have left it, at a position before all events."""
        self._source = self._bronze() if self.origin == "bronze" else self._kafka()
        if self._preloaded.exists():
            return
        row = self.arena.preloaded().select(
            F.to_json(F.struct(events.KEY)).alias("_key"),
            F.lit("r").alias("_op"),
            F.col("offset").alias("_seq"),
            F.timestamp_micros(F.lit(1_789_000_000_000_000)).alias("_source_ts"),
            F.lit(events.TOPIC).alias("_topic"),
            F.lit(0).alias("_partition"),
            F.col("offset").alias("_offset"),
            F.lit(1).cast("bigint").cast("binary").alias("_log_position"),
            *events.lake_columns(),
        )
        ledger = Ledger(self._topic, positions={0: 0}, key_columns=(events.KEY,))
        self._hudi(self._preloaded).write(row, commit_metadata(ledger))

    def catch_up(self, batch: int) -> Run:
        assert self._source is not None
        self._table = self._hudi(self.arena.copy_of(self._preloaded))
        table = TableIngest(
            name=TABLE,
            topic=self._topic,
            source=self._source,
            hudi=self._table,
            quarantine_path=str(self.arena.folder / "quarantine"),
            form=TopicForm(
                PostgresLog(), registry=KeptSchemas(SchemasInMemory().schema) if self.form == "avro" else None
            ),
        )
        with _measured(self.arena.driver) as measured:
            applied = apply_all(table, batch)
        return measured.run(self.name, batch, applied)

    def rows(self) -> DataFrame:
        assert self._table is not None
        return as_on_the_wire(self._table.read())

    def event_files(self, folder: Path) -> Iterator[Path]:
        """Yield the files with the events."""
        if self.origin == "kafka":
            return folder.glob(f"state/kafka/**/{_topic(self.form)}-0/*.log")
        return folder.glob(f"iceberg/bronze/{self.form}/data/**/*.parquet")

    @property
    def _preloaded(self) -> Path:
        """Return the preloaded table. Each topic needs its own, because the ledger names the topic."""
        return self.arena.folder / f"preloaded {self._topic}"

    @property
    def _topic(self) -> str:
        return events.TOPIC if self.origin == "bronze" else _topic(self.form)

    def _hudi(self, path: Path) -> HudiTable:
        policy = policy_of(self.form, self.arena.settings.buckets)
        return HudiTable(self.arena.spark, str(path), "orders", policy)

    def _kafka(self) -> EventSource:
        _produce(self.arena, self.form)
        return KafkaSource(self.arena.spark, self.arena.bootstrap, group_prefix=self.group)

    def _bronze(self) -> EventSource:
        table = f"{CATALOG}.bronze.{self.form}"
        return bronze_of(self.arena.envelopes(self.form), self.arena.workload.events, table)


@dataclass
class PlainContender:
    """The tutorials' app."""

    shares_the_jvm: ClassVar[bool] = True

    arena: Arena
    name: str = "plain app"
    _path: Path | None = None

    def preload(self) -> None:
        _produce(self.arena, "bare")
        rows = self.arena.preloaded().withColumn("_hoodie_is_deleted", F.lit(False))
        self._app(self._preloaded, batch=1).write(rows.select(*columns()))

    def catch_up(self, batch: int) -> Run:
        self._path = self.arena.copy_of(self._preloaded)
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        app = self._app(self._path, batch)
        with _measured(self.arena.driver) as measured:
            app.catch_up()
        return measured.run(self.name, batch, self.arena.workload.events)

    def rows(self) -> DataFrame:
        return as_on_the_wire(self.arena.spark.read.format("hudi").load(str(self._path)))

    @property
    def _preloaded(self) -> Path:
        return self.arena.folder / "preloaded plain"

    @property
    def _checkpoint(self) -> Path:
        return self.arena.folder / "checkpoint"

    def _app(self, path: Path, batch: int) -> PlainApp:
        return PlainApp(
            spark=self.arena.spark,
            bootstrap_servers=self.arena.bootstrap,
            topic=_topic("bare"),
            path=str(path),
            checkpoint=str(self._checkpoint),
            events_per_batch=batch,
            buckets=self.arena.settings.buckets,
        )


@dataclass
class PeerContender:
    """HoodieStreamer, in its own JVM.

    It warms up on a sample of the events, which arrives before the timed ones. The clock starts at the commit
    that completes the sample.
    """

    shares_the_jvm: ClassVar[bool] = False

    arena: Arena
    home: Path
    name: str = "HoodieStreamer"
    _path: Path | None = None

    def preload(self) -> None:
        loaded = self.arena.preloaded().select(
            "id", "offset", F.lit("r").alias("op"), F.lit(-1).alias("snapshot")
        )
        before = F.col("offset") + self.arena.workload.preloaded
        _write_lines(
            events.envelopes(loaded, self.arena.workload).withColumn("offset", before),
            self.arena.folder / "preloaded lines",
        )
        _write_lines(self.arena.envelopes("bare"), self.arena.folder / "lines")
        landing, size = self._landing(), 0
        for number, file in enumerate(_lines(self.arena.folder / "preloaded lines")):
            size += _land(file, landing, number)
        self._streamer.run(landing, self._preloaded, size // 2 + 1, _PEER_TIMEOUT_SECONDS)

    def catch_up(self, batch: int) -> Run:
        self._path = self.arena.copy_of(self._preloaded)
        landing, files = self._landing(), _lines(self.arena.folder / "lines")
        per_batch = max(1, batch // _EVENTS_PER_FILE)
        # The warm-up fills a whole batch, so none mixes it with timed events. Streamed changes come first.
        middle = len(files) // 2
        warm_up = [files[(middle + number) % len(files)] for number in range(per_batch)]
        for number, file in enumerate(warm_up):
            _land(file, landing, _FIRST_WARM_UP + number)
        sizes = [_land(file, landing, _FIRST_TIMED + number) for number, file in enumerate(files)]
        # HoodieStreamer closes a batch before the file that would exceed the limit.
        limit = int(statistics.mean(sizes) * (per_batch + 0.5))
        resident = self._streamer.run(landing, self._path, limit, _PEER_TIMEOUT_SECONDS)
        last_of_warm_up = _modified_ms(_FIRST_WARM_UP + per_batch - 1)
        done = [commit for commit in commits(self._path) if commit.checkpoint >= last_of_warm_up]
        before = sum(
            _modified_ms(_FIRST_TIMED + number) <= done[0].checkpoint for number in range(len(files))
        )
        return Run(
            contender=self.name,
            batch=batch,
            events=self.arena.workload.events - before * _EVENTS_PER_FILE,
            seconds=done[-1].completed - done[0].completed,
            resident=resident,
        )

    def rows(self) -> DataFrame:
        return self.arena.spark.read.format("hudi").load(str(self._path)).selectExpr(*wire_columns())

    @property
    def _preloaded(self) -> Path:
        return self.arena.folder / "preloaded peer"

    @property
    def _streamer(self) -> HoodieStreamer:
        settings = self.arena.settings
        return HoodieStreamer(self.home, self.arena.folder / "peer", settings.buckets, settings.memory)

    def _landing(self) -> Path:
        landing = self.arena.folder / "landing"
        shutil.rmtree(landing, ignore_errors=True)
        landing.mkdir()
        return landing


CATALOG = "bench"
"""The Spark catalog that holds bronze."""

_LAKE = """
[lake]
name = "bench"
{acceleration}

[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
"""
_EVENTS_PER_FILE = 50_000
_EPOCH, _FIRST_WARM_UP, _FIRST_TIMED = 1_700_000_000, 1_000, 2_000
"""Modification times in seconds. Files land one second apart, so their times order them."""

_PEER_TIMEOUT_SECONDS = 3_600.0


def policy_of(form: Form, buckets: int) -> TablePolicy:
    """Return the table's policy. The lake file declares the columns if the events carry no schemas."""
    declared = "\n".join(f'{name} = "{data_type}"' for name, data_type in COLUMNS.items())
    lines = [
        _lake_text(),
        f'[table."{TABLE}"]\nkey = ["{events.KEY}"]\nbuckets = {buckets}',
        *([f'[table."{TABLE}".columns]\n{declared}'] if form == "bare" else []),
    ]
    return parse_lake("\n".join(lines)).policy(TableName.parse(TABLE))


def _lake_text() -> str:
    return _LAKE.format(acceleration=lake_entry())


def lake_of(memory: str) -> Lake:
    """Return a lake whose Spark has the given memory."""
    return parse_lake(f'{_lake_text()}\n[local]\nspark_memory = "{memory}"')


def session_options(folder: Path) -> Mapping[str, str]:
    """Return Spark options for two cores and a bronze catalog in the folder."""
    return {
        "spark.master": "local[2]",
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{CATALOG}.warehouse": str(folder / "iceberg"),
    }


def apply_all(table: TableIngest, batch: int) -> int:
    """Apply everything in the table's source in commits of `batch` events. Return the number of events."""
    applied = 0
    while ranges := table.pending(table.source.extents(frozenset({table.topic}))[table.topic], batch):
        committed = table.apply(ranges)
        applied += 0 if committed is None else committed.events
    return applied


def bronze_of(envelopes: DataFrame, count: int, table: str) -> BronzeSource:
    """Write the events to a new table as the sink does: in offset order, one file for each commit."""
    spark = envelopes.sparkSession
    spark.sql(
        f"CREATE TABLE {table} (k_topic string, k_partition int, k_offset bigint, k_timestamp bigint, "
        "key binary, value binary) USING iceberg PARTITIONED BY (k_topic) "
        "TBLPROPERTIES ('write.distribution-mode' = 'none')"
    )
    ordered = envelopes.repartitionByRange(max(2, count // _EVENTS_PER_FILE), "offset")
    ordered.sortWithinPartitions("offset").select(
        F.lit(events.TOPIC).alias("k_topic"),
        F.lit(0).alias("k_partition"),
        F.col("offset").alias("k_offset"),
        F.lit(1_790_000_000_000).cast("bigint").alias("k_timestamp"),
        F.col("key").cast("binary"),
        F.col("value").cast("binary"),
    ).writeTo(table).append()
    return BronzeSource(spark, table)


def _contenders(arena: Arena) -> list[Contender]:
    ours: Mapping[str, tuple[Form, Literal["kafka", "bronze"]]] = {
        "kafka, bare": ("bare", "kafka"),
        "kafka, schemas": ("schemas", "kafka"),
        "kafka, avro": ("avro", "kafka"),
        "bronze, avro": ("avro", "bronze"),
        "bronze, bare": ("bare", "bronze"),
        "bronze, schemas": ("schemas", "bronze"),
    }
    wanted, home = arena.settings.batches, os.environ.get(PEER_HOME)
    found: list[Contender] = [
        OursContender(name, arena, form, origin) for name, (form, origin) in ours.items() if name in wanted
    ]
    if PlainContender.name in wanted:
        found.append(PlainContender(arena))
    if PeerContender.name in wanted and home is not None:
        found.append(PeerContender(arena, Path(home)))
    return found


@contextmanager
def prepared_arena(settings: Settings, folder: Path) -> Iterator[Arena]:
    """Start Kafka and the Spark session that all contenders except the peer share, and write the events."""
    lake = lake_of(settings.memory)
    state = StateFolder(folder / "state")
    state.create()
    local = choose_settings(state, lake.name, {}, frozenset())
    servers = Servers(lake, state, local, read_server_files())
    try:
        servers.kafka.start(threading.Event())
        with driver(lake, state, local, session_options(folder)) as running:
            workload = Workload(settings.events, settings.preloaded, settings.keys)
            changes = _prepared(running.spark, workload, folder)
            yield Arena(
                settings,
                workload,
                folder,
                running,
                servers.kafka.bootstrap,
                events.summary(events.expected_rows(running.spark, changes, workload)),
                events.shape(changes),
            )
    finally:
        KafkaBroker.stop(state.run)


def _prepared(spark: SparkSession, workload: Workload, folder: Path) -> DataFrame:
    """Write the events once. Return the changes that the events describe."""
    path = str(folder / "changes")
    events.changes(spark, workload).write.parquet(path)
    changes = spark.read.parquet(path)
    events.envelopes(changes, workload).write.parquet(str(folder / "envelopes"))
    return changes


def _topic(form: Form) -> str:
    return f"{events.TOPIC}.{form}"


def _produce(arena: Arena, form: Form) -> None:
    """Send all events once, to a topic with one partition, the lake's default."""
    topic = _topic(form)
    if not create_topic(arena.bootstrap, topic, 1):
        return
    options = {
        "kafka.bootstrap.servers": arena.bootstrap,
        "topic": topic,
        "kafka.compression.type": "zstd",
        "kafka.batch.size": "262144",
        "kafka.linger.ms": "20",
    }
    ordered = arena.envelopes(form).repartition(1).sortWithinPartitions("offset")
    ordered.select("key", "value").write.format("kafka").options(**options).save()


def _write_lines(envelopes: DataFrame, folder: Path) -> None:
    number = F.floor(F.col("offset") / _EVENTS_PER_FILE).cast("int").alias("number")
    lines = envelopes.select("value", number).repartition(4, "number")
    lines.write.partitionBy("number").text(str(folder))


def _lines(folder: Path) -> list[Path]:
    folders = sorted(folder.glob("number=*"), key=lambda path: int(path.name.partition("=")[2]))
    return [file for of in folders for file in sorted(of.glob("part-*"))]


def _land(file: Path, landing: Path, number: int) -> int:
    """Copy the file to the peer's input folder as file `number`. Return its size in bytes."""
    landed = landing / f"{number:06}.json"
    shutil.copyfile(file, landed)
    modified = _modified_ms(number) // 1_000
    os.utime(landed, (modified, modified))
    return landed.stat().st_size


def _modified_ms(number: int) -> int:
    return (_EPOCH + number) * 1_000


def as_on_the_wire(table: DataFrame) -> DataFrame:
    wire = {"placed": F.unix_micros("placed"), "due": F.unix_date("due")}
    return table.select(*[wire.get(name, F.col(name)).alias(name) for name in COLUMNS])


@dataclass
class _Measured:
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    heap: int = 0
    resident: int = 0
    _begun: float = field(default_factory=time.monotonic)

    def run(self, contender: str, batch: int, applied: int) -> Run:
        return Run(contender, batch, applied, self.seconds, self.resident, self.heap, self.cpu_seconds)


_SAMPLING_SECONDS = 0.5


@contextmanager
def _measured(running: Driver) -> Iterator[_Measured]:
    """Time the `with` block and watch the JVM's memory.

    The JVM collects its garbage first, so no contender pays for another's.
    """
    jvm: Any = running.spark._jvm
    jvm.java.lang.System.gc()
    pools = list(jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans())
    heap = [pool for pool in pools if str(pool.getType()) == "Heap memory"]
    for pool in heap:
        pool.resetPeakUsage()
    measured, done = _Measured(), threading.Event()

    def watch() -> None:
        while not done.wait(_SAMPLING_SECONDS):
            measured.resident = max(measured.resident, running.jvm.memory_info().rss)

    watcher = threading.Thread(target=watch, name="memory")
    watcher.start()
    started, used = time.monotonic(), running.cpu_seconds_of_all()
    try:
        yield measured
    finally:
        measured.seconds = time.monotonic() - started
        measured.cpu_seconds = running.cpu_seconds_of_all() - used
        done.set()
        watcher.join()
        measured.resident = max(measured.resident, running.jvm.memory_info().rss)
        measured.heap = sum(pool.getPeakUsage().getUsed() for pool in heap)
