"""Time from a cold start to the Spark app's first commit, a query's answer and the CDK templates."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from bench.orders import OrdersHistory
from bench.results import Figure, Results, WrongResult
from bench.servers import StorageAndKafka, storage_and_kafka
from tributary.contract.table_name import TableName
from tributary.local import kafka
from tributary.local.class_archive import prepare_class_archive
from tributary.operations.runs.ingest_run import read_installation, start_ingest
from tributary.operations.workspace import Workspace

LAKE_FILE = """
[lake]
name = "start"

[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
"""

_PROJECT = Path(__file__).parent.parent
_PLATFORMS = ("linux-arm64", "linux-amd64")


@dataclass(frozen=True)
class Settings:
    """The settings: measure each start `times` times. Each app start reads a new table of `orders` rows."""

    times: int = 3
    orders: int = 1_000


FULL = Settings()
QUICK = Settings(times=1)

Waits = Mapping[str, float]
"""Seconds since the start, by what was waited for."""


def run(settings: Settings = FULL) -> Results:
    tables = [TableName("shop", "public", f"orders_{number}") for number in range(settings.times)]
    with _pipeline(settings, tables) as workspace:
        # One-time preparation, part of it by `make setup`, does not count as start time.
        console = Console(stderr=True)
        installation = read_installation(console)
        prepare_class_archive(console, installation.java_home, installation.jars)
        waits = [_first_commit(workspace, table, settings.orders) for table in tables]
        waits += [_query(workspace, table, settings.orders) for table in tables]
    with tempfile.TemporaryDirectory(prefix="tributary-bench-") as folder:
        _build_assets()
        waits += [_synth(Path(folder) / str(number)) for number in range(settings.times)]
    return Results("start", asdict(settings), tuple(_figures(waits)))


@contextmanager
def _pipeline(settings: Settings, tables: list[TableName]) -> Iterator[Workspace]:
    """Run S3, and Kafka with the tables' topics."""
    with tempfile.TemporaryDirectory(prefix="tributary-bench-") as folder:
        lake_file = Path(folder) / "lake.toml"
        lake_file.write_text(LAKE_FILE)
        state = Path(folder) / "state"
        workspace = Workspace.open(lake_file, state)
        lake = workspace.lake
        with storage_and_kafka(lake, state) as servers:
            servers.state.write_settings(servers.settings)
            for table in tables:
                _fill(
                    servers,
                    lake.source_names(lake.source(table.source)).topic(table.schema, table.table),
                    settings.orders,
                )
            yield workspace


def _fill(servers: StorageAndKafka, topic: str, orders: int) -> None:
    kafka.create_topic(servers.settings.kafka_bootstrap, topic, partitions=1)
    producer = Producer({"bootstrap.servers": servers.settings.kafka_bootstrap, "log_level": 0})
    for record in OrdersHistory(topic, orders).snapshot():
        producer.produce(topic, key=record.key, value=record.value, partition=0)
    producer.flush()


def _first_commit(workspace: Workspace, table: TableName, orders: int) -> Waits:
    moments: dict[str, float] = {}

    def note(line: str) -> None:
        for event in ("started", "commit"):
            if f'"event": "{event}"' in line:
                moments.setdefault(event, time.perf_counter())
        if '"event": "commit"' in line and f'"rows": {orders}' not in line:
            raise WrongResult(
                "The first commit has the wrong number of rows",
                where=str(table),
                found=line,
                expected=f"{orders} rows",
            )

    began = time.perf_counter()
    start_ingest(workspace, Console(stderr=True), tables=[table], on_line=note).wait()
    return {
        "spark-submit to the app's tables found": moments["started"] - began,
        "spark-submit to the first commit": moments["commit"] - began,
        "spark-submit to its end": time.perf_counter() - began,
    }


def _query(workspace: Workspace, table: TableName, orders: int) -> Waits:
    sql = f"SELECT count(*) AS n FROM {table.table}"
    where = ["--lake", str(workspace.lake_file), "--state", str(workspace.state.path)]
    seconds, out = _timed([_command("tributary"), "query", sql, "--json", *where])
    if f'"n": {orders}' not in " ".join(out.split()):
        raise WrongResult("The query's answer is wrong", where=sql, found=out, expected=f"n = {orders}")
    return {"tributary query": seconds}


def _build_assets() -> None:
    for arguments in (["plugins", "build"], *(["package", "--platform", name] for name in _PLATFORMS)):
        _timed([_command("tributary"), *arguments])


def _synth(folder: Path) -> Waits:
    seconds, _ = _timed([sys.executable, "app.py"], {"CDK_OUTDIR": str(folder)})
    if not list(folder.glob("*.template.json")):
        raise WrongResult("app.py wrote no templates", where=str(folder))
    return {"cdk synth": seconds}


def _command(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _timed(arguments: list[str], environment: Mapping[str, str] | None = None) -> tuple[float, str]:
    began = time.perf_counter()
    result = subprocess.run(
        arguments, cwd=_PROJECT, env={**os.environ, **(environment or {})}, capture_output=True, text=True
    )
    seconds = time.perf_counter() - began
    if result.returncode != 0:
        raise WrongResult(f"{arguments[0]} {arguments[1]} failed", found=result.stderr.strip()[-1000:])
    return seconds, result.stdout


def _figures(waits: list[Waits]) -> Iterator[Figure]:
    for what in dict.fromkeys(what for each in waits for what in each):
        seconds = [each[what] for each in waits if what in each]
        statistic: Mapping[str, Callable[[list[float]], float]] = {
            "p50": statistics.median,
            "min": min,
            "max": max,
        }
        for name, of in statistic.items():
            yield Figure(f"seconds {name}", round(of(seconds), 2), "s", {"what": what})
