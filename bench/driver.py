"""Run the local pipeline's Spark session in this process, so that a benchmark can inspect it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark
from pyspark.sql import SparkSession
from rich.console import Console

from connectors.worker import as_properties
from spark_app.acceleration.choice import choose_steps
from spark_app.run.session import start_session
from tributary.contract.lake import Lake
from tributary.local.spark import LOG_SETTINGS, log_settings, spark_environment, spark_properties
from tributary.local.state import LocalSettings, StateFolder, write_private_file
from tributary.operations.runs.ingest_run import read_installation


@dataclass(frozen=True)
class Driver:
    """A running session. `jvm` is the process that does all the Spark work."""

    spark: SparkSession
    jvm: psutil.Process

    def cpu_seconds(self) -> float:
        """Return the CPU seconds that the JVM has used so far."""
        times = self.jvm.cpu_times()
        return float(times.user + times.system)

    def cpu_seconds_of_all(self) -> float:
        """Return the CPU seconds that the JVM and its Python workers have used so far."""
        found = self.cpu_seconds()
        for process in self.jvm.children(recursive=True):
            # A worker can end between these lines. Its parent has its seconds then.
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                found += times.user + times.system + times.children_user + times.children_system
        return float(found)


@contextmanager
def driver(
    lake: Lake, state: StateFolder, settings: LocalSettings, more: Mapping[str, str] | None = None
) -> Iterator[Driver]:
    """Start a session with the environment and properties of `tributary ingest`, and `more` properties."""
    folder = state.spark
    (folder / "scratch").mkdir(parents=True, exist_ok=True)
    installation = read_installation(Console(stderr=True))
    properties = folder / "spark.properties"
    wanted = {**spark_properties(lake, state, settings, installation), **(more or {})}
    write_private_file(properties, as_properties(wanted))
    (folder / LOG_SETTINGS).write_text(log_settings("error"))
    os.environ.update(spark_environment(settings, installation, Path(pyspark.__file__).parent, folder))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {properties} pyspark-shell"
    spark = start_session("bench")
    choose_steps(spark, lake.acceleration, is_pinned=True)
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    try:
        yield Driver(spark, psutil.Process(gateway.proc.pid))
    finally:
        spark.stop()
        gateway.shutdown()
        # The JVM ends when its standard input does.
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
