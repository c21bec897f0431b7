"""The cost of a small commit and of an idle table: Spark jobs, S3 requests, files and CPU seconds."""

from __future__ import annotations

import io
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bench.acceleration import lake_entry
from bench.driver import Driver, driver
from bench.orders import OrdersHistory, Record
from bench.orders_table import apply_pending, check_orders
from bench.results import Figure, Results, quantile
from bench.s3_requests import by_kind
from bench.servers import StorageAndKafka, storage_and_kafka
from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.reports import ProgressWriter
from spark_app.run.loop import Ingest
from spark_app.run.outcome_files import OutcomeFiles
from spark_app.run.stop_request import StopRequest
from spark_app.run.table_runs import TableRuns
from spark_app.sources.kafka import KafkaSource
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tributary.contract.lake import parse_lake
from tributary.contract.table_name import TableName
from tributary.local import kafka

LAKE = parse_lake(
    f"""
    [lake]
    name = "commit-cost"
    {lake_entry()}

    [source.shop]
    engine = "postgres"
    database = "shop"
    tables = ["public.*"]
    """
)
TABLE = TableName.parse("shop.public.orders")
TOPIC = "commit-cost.shop.public.orders"


@dataclass(frozen=True)
class Settings:
    """The settings: measure `commits` of `records` Kafka records each, after `warm_up` commits.

    orders       rows in the table
    s3_delay_ms  delay added to each request to the local S3 server
    """

    name: str = "commit_cost"
    s3_delay_ms: int = 0
    orders: int = 20_000
    records: int = 1_000
    warm_up: int = 40
    commits: int = 20
    idle_seconds: float = 10.0


FULL = Settings()
AT_PACE_OF_S3 = Settings(name="commit_cost_at_pace_of_s3", s3_delay_ms=20)
QUICK = Settings(orders=2_000, warm_up=3, commits=3, idle_seconds=3.0)


@dataclass(frozen=True)
class Cost:
    """The app's work and resource use between two readings.

    objects   growth of the number of objects in S3
    requests  by kind
    failures  requests that the server failed to answer; S3A repeats them
    """

    seconds: float
    jvm_seconds: float
    python_seconds: float
    jobs: int
    stages: int
    tasks: int
    objects: int
    failures: int
    requests: Mapping[str, int]


def run(settings: Settings = FULL) -> Results:
    with tempfile.TemporaryDirectory(prefix="tributary-bench-") as folder:
        state_folder = Path(folder) / "state"
        with (
            storage_and_kafka(LAKE, state_folder, settings.s3_delay_ms / 1000) as servers,
            driver(LAKE, servers.state, servers.settings) as running,
        ):
            commits, services, idle = _measure(servers, running, settings)
    return Results(settings.name, asdict(settings), tuple(_figures(commits, services, idle)))


def _measure(
    servers: StorageAndKafka, running: Driver, settings: Settings
) -> tuple[Sequence[Cost], Cost, Cost]:
    kafka.create_topic(servers.settings.kafka_bootstrap, TOPIC, partitions=1)
    history = OrdersHistory(TOPIC, settings.orders)
    producer = _Topic(servers.settings.kafka_bootstrap)
    producer.send(history.snapshot())
    source = KafkaSource(running.spark, servers.settings.kafka_bootstrap, LAKE.names.spark_group_prefix)
    source.topics()
    table = _table(running, source)
    meter = _Meter(servers, running)
    apply_pending(table, source)
    # Every table gets its services soon in a real run, and Hudi then sends fewer requests.
    table.serve()
    costs = []
    for _ in range(settings.warm_up + settings.commits):
        producer.send(history.changes(settings.records))
        before = meter.read()
        apply_pending(table, source)
        costs.append(meter.since(before))
    check_orders(table.hudi, history)
    before = meter.read()
    table.serve()
    services = meter.since(before)
    check_orders(table.hudi, history)
    idle = _idle(running, table, source, meter, settings.idle_seconds)
    source.close()
    return costs[settings.warm_up :], services, idle


def _table(running: Driver, source: KafkaSource) -> TableIngest:
    path = LAKE.names.table_path(TABLE)
    silver = f"s3a://{LAKE.names.silver_bucket}/{path}"
    hudi = HudiTable(running.spark, silver, path.replace("/", "_"), LAKE.policy(TABLE))
    return TableIngest(
        str(TABLE),
        TOPIC,
        source,
        hudi,
        f"s3a://{LAKE.names.quarantine_bucket}/{path}",
        TopicForm(PostgresLog()),
    )


def _idle(running: Driver, table: TableIngest, source: KafkaSource, meter: _Meter, seconds: float) -> Cost:
    """Return the cost of a following run without events.

    The first seconds do not count: the run reads its position and cleans.
    """
    stop, reports = StopRequest(), io.StringIO()
    tables = TableRuns(
        source=source,
        table_of=lambda topic: table if topic == TOPIC else None,
        progress=ProgressWriter(reports),
        outcomes=OutcomeFiles(running.spark),
        follow=True,
    )
    ingest = Ingest(running.spark, tables, stop=stop)
    thread = threading.Thread(target=ingest.run, name="ingest")
    thread.start()
    try:
        while '"caught_up"' not in reports.getvalue() and thread.is_alive():
            time.sleep(0.1)
        time.sleep(6.0)
        before = meter.read()
        time.sleep(seconds)
        return meter.since(before)
    finally:
        stop.set()
        thread.join()


class _Topic:
    """A producer for the topic's only partition."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": "zstd", "log_level": 0}
        )

    def send(self, records: Iterable[Record]) -> None:
        """Send the records. Return when Kafka has all of them."""
        for record in records:
            self._producer.produce(TOPIC, key=record.key, value=record.value, partition=0)
            if len(self._producer) > 50_000:
                self._producer.flush()
        self._producer.flush()


@dataclass(frozen=True)
class _Reading:
    moment: float
    jvm_seconds: float
    python_seconds: float
    job: int
    objects: int
    log_position: int


class _Meter:
    """A reader of the counters of the session and the S3 server."""

    def __init__(self, servers: StorageAndKafka, running: Driver) -> None:
        self._requests, self._running = servers.requests, running
        self._buckets = servers.state.s3 / "buckets"
        context: Any = running.spark.sparkContext
        self._store = context._jsc.sc().statusStore()

    def read(self) -> _Reading:
        jobs = self._store.jobsList(None)
        return _Reading(
            job=jobs.apply(0).jobId() if jobs.size() else -1,
            objects=sum(1 for path in self._buckets.rglob("*") if path.is_file()),
            log_position=self._requests.position(),
            jvm_seconds=self._running.cpu_seconds(),
            python_seconds=time.process_time(),
            moment=time.perf_counter(),
        )

    def since(self, before: _Reading) -> Cost:
        seconds = time.perf_counter() - before.moment
        jvm_seconds = self._running.cpu_seconds() - before.jvm_seconds
        python_seconds = time.process_time() - before.python_seconds
        jobs = self._jobs_after(before.job)
        # The proxy logs a request after it has passed on the answer.
        time.sleep(0.05)
        requests = self._requests.since(before.log_position)
        return Cost(
            seconds=seconds,
            jvm_seconds=jvm_seconds,
            python_seconds=python_seconds,
            jobs=len(jobs),
            stages=sum(job.numCompletedStages() for job in jobs),
            tasks=sum(job.numCompletedTasks() for job in jobs),
            objects=self.read().objects - before.objects,
            failures=sum(request.status >= 500 for request in requests),
            requests=by_kind(requests),
        )

    def _jobs_after(self, last: int) -> Sequence[Any]:
        found = []
        jobs = self._store.jobsList(None)
        for place in range(jobs.size()):
            job = jobs.apply(place)
            if job.jobId() <= last:
                break
            found.append(job)
        return found


def _figures(commits: Sequence[Cost], services: Cost, idle: Cost) -> Iterable[Figure]:
    commit = {"of": "commit"}
    seconds = [cost.seconds for cost in commits]
    for share in (0.5, 0.95):
        yield Figure(f"seconds p{share * 100:.0f}", round(quantile(seconds, share), 3), "s", commit)
    yield from _cost_figures(_median(commits), commit)
    yield Figure("seconds", round(services.seconds, 3), "s", {"of": "services"})
    yield from _cost_figures(services, {"of": "services"})
    yield Figure("seconds", round(idle.seconds, 1), "s", {"of": "idle"})
    yield from _cost_figures(idle, {"of": "idle"})


def _median(costs: Sequence[Cost]) -> Cost:
    kinds = Counter(kind for cost in costs for kind in cost.requests)
    return Cost(
        **{
            name: statistics.median(getattr(cost, name) for cost in costs)
            for name in Cost.__dataclass_fields__
            if name != "requests"
        },
        requests={
            kind: round(statistics.median(cost.requests.get(kind, 0) for cost in costs)) for kind in kinds
        },
    )


def _cost_figures(cost: Cost, of: Mapping[str, str]) -> Iterable[Figure]:
    yield Figure("processor seconds of the JVM", round(cost.jvm_seconds, 3), "s", of)
    yield Figure("processor seconds of Python", round(cost.python_seconds, 3), "s", of)
    for name in ("jobs", "stages", "tasks", "objects", "failures"):
        yield Figure(name, getattr(cost, name), "", of)
    yield Figure("requests", sum(cost.requests.values()), "", of)
    for kind, number in sorted(cost.requests.items()):
        yield Figure("requests", number, "", {**of, "kind": kind})
