"""Run the app's steps in plain PySpark, without the jar of our Java, and print the Java classes it named.

A process of its own: Spark's class path cannot change. Started with a folder for the tables."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

from spark_app.acceleration.choice import choose_steps
from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.run.self_test import run_self_test
from spark_app.run.session import start_session
from spark_app.sources.event import OffsetRange
from spark_app.table.rebuild import rebuild_table
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.conftest import SHORT_RUN
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource
from tributary.artifacts.java import find_java
from tributary.contract.lake import TablePolicy
from tributary.local.spark_jars import classes_jar, spark_jars

OF_PYSPARK = ("java.", "scala.", "org.apache.spark.", "py4j.")
"""What PySpark itself calls."""


def main(folder: Path) -> None:
    spark = _start(folder)
    named = _watched()
    chosen = choose_steps(spark, "auto")
    run_self_test(spark, str(folder))
    _use_services(spark, folder)
    print(json.dumps({"steps": chosen.steps, "reason": chosen.reason, "named": sorted(named)}))
    spark.stop()


def _use_services(spark: SparkSession, folder: Path) -> None:
    """Compact, shorten and clean a table without any history, rebuild it, and do so again."""
    shop = SourceTable()
    shop.begin()
    for number in range(4):
        shop.insert(number, f"thing {number}", None)
    shop.move(3, 8)
    shop.commit()
    rows = [event_row(sent, offset) for offset, sent in enumerate(shop.events)]
    policy = TablePolicy(buckets=1, history=timedelta(0), longest_query=timedelta(0))
    hudi = HudiTable(spark, str(folder / "silver"), "things", policy)
    source = MemorySource(spark, rows)
    table = TableIngest("things", TOPIC, source, hudi, str(folder / "quarantine"), TopicForm(PostgresLog()))
    for number in range(2):
        table.apply((OffsetRange(0, 2 * number, 2 * number + 2),))
        table.serve()
    rebuild_table(table)
    table.serve()
    found = {row["id"]: row["name"] for row in hudi.read().collect()}
    assert found == {0: "thing 0", 1: "thing 1", 2: "thing 2", 8: "thing 3"}, found


def _watched() -> set[str]:
    """Return a set that gets the name of each class whose constructor or static method is called."""
    named: set[str] = set()

    def watch(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: JavaClass, *arguments: Any) -> Any:
            if not self._fqn.startswith(OF_PYSPARK):
                named.add(self._fqn)
            return method(self, *arguments)

        return call

    for name in ("__getattr__", "__call__"):
        setattr(JavaClass, name, watch(getattr(JavaClass, name)))
    return named


def _start(folder: Path) -> SparkSession:
    jars = [jar for jar in spark_jars() if jar != classes_jar()]
    options = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.extraJavaOptions": " ".join([f"-Djava.io.tmpdir={folder}", *SHORT_RUN]),
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder),
    }
    arguments = " ".join(f"--conf {shlex.quote(f'{name}={value}')}" for name, value in options.items())
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{arguments} pyspark-shell"
    spark = start_session("plain alone")
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main(Path(sys.argv[1]))
