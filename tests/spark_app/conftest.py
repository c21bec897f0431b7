"""What the tests share: the one Spark session, with the very jars of the lock, and a Glue server."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_app
from artifacts.fetch import fetch
from artifacts.java import find_java
from artifacts.lock import read_lock
from local.class_archive import class_archive_options
from spark_app.glue import glue_client
from spark_app.session import start_session
from tests.spark_app.glue import DATABASE, Glue

LOCK = Path(spark_app.__file__).parent / "jars.lock.json"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars, java_home = tuple(fetch(read_lock(LOCK).on_this_machine()).values()), find_java().home
    scratch = tmp_path_factory.mktemp("spark")
    options = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1500m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.extraJavaOptions": " ".join(class_archive_options(java_home, jars)),
        "spark.ui.enabled": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    arguments = " ".join(f"--conf {shlex.quote(f'{name}={value}')}" for name, value in options.items())
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", str(java_home))
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


@pytest.fixture(scope="session")
def glue_server() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def glue_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.fixture
def glue(glue_server: str, request: pytest.FixtureRequest) -> Iterator[Glue]:
    request.getfixturevalue("glue_environment")
    glue = Glue(glue_client(glue_server))
    glue.client.meta.events.register("before-call.glue", lambda model, **_: glue.requests.append(model.name))
    yield glue
    glue.client.delete_database(Name=DATABASE)
