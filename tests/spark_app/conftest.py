"""The one Spark session of the tests, with the very jars of the lock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_app
from artifacts.fetch import fetch
from artifacts.java import find_java
from artifacts.lock import read_lock
from spark_app.session import start_session

LOCK = Path(spark_app.__file__).parent / "jars.lock.json"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    class_path = ":".join(str(path) for path in fetch(read_lock(LOCK)["spark"]).values())
    scratch = tmp_path_factory.mktemp("spark")
    options = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1500m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": class_path,
        "spark.ui.enabled": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    arguments = " ".join(f"--conf {name}={value}" for name, value in options.items())
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", str(find_java().home))
        environment.setenv("PYSPARK_SUBMIT_ARGS", f"{arguments} pyspark-shell")
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = start_session("tests")
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        gateway = session.sparkContext._gateway
        session.stop()
        if gateway is not None:
            gateway.shutdown()
            # The JVM ends when its standard input does.
            gateway.proc.stdin.close()
            gateway.proc.wait(60)
