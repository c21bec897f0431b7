"""The order of the tests (those that start servers or Spark come last), and the fixtures that they share."""

from __future__ import annotations

import functools
import os
import shlex
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import botocore.loaders
import botocore.session
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# An example's duration depends on how busy the machine is. Continuous integration judges a change by the same
# examples each time; on a developer's machine every run tries others.
settings.register_profile("tributary", deadline=None, derandomize="CI" in os.environ)
settings.register_profile("soak", parent=settings.get_profile("tributary"), max_examples=60)
settings.load_profile("tributary")

pytest_plugins = ("tests.interrupts",)

STARTED_FOR_SECONDS = {"spark", "pipeline"}
"""Fixtures that make a test slow."""

SHORT_RUN = (
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=400m",
    "-XX:+UseSerialGC",
    "-Djdk.lang.Process.launchMechanism=VFORK",
)
"""JVM options. Most code in tests runs only a few times. Optimizing it would take 40 % of the CPU time.

Without it, the JVM has only 48 MB for compiled code. Spark's generated code fills them within minutes.
From then on, the JVM spends a fifth of its time on throwing code away, and compiles it again later.
Hadoop starts a process for each file that it creates on a local disk, and VFORK is the cheapest way.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if STARTED_FOR_SECONDS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


@pytest.fixture(scope="session", autouse=True)
def _shared_service_descriptions() -> Iterator[None]:
    """Let all boto3 sessions share one loader. Otherwise each would read AWS's service descriptions again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", functools.cache(botocore.loaders.create_loader))
        yield


@pytest.fixture(scope="session", autouse=True)
def _short_runs_of_the_app() -> Iterator[None]:
    """Start the app, whichever command does it, with these options too: most runs take a few seconds."""
    # The app chooses its own garbage collector.
    options = [option for option in SHORT_RUN if option != "-XX:+UseSerialGC"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", " ".join(options))
        yield


def use_usual_steps() -> None:
    """Use the steps in Java, or those in plain PySpark if TRIBUTARY_STEPS is "plain"."""
    from spark_app.jvm import java_steps
    from spark_app.plain import plain_steps
    from spark_app.steps import steps

    steps.use(plain_steps if os.environ.get("TRIBUTARY_STEPS") == "plain" else java_steps)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of a run, with the jars of the lock."""
    from spark_app.run.session import start_session
    from tributary.artifacts.java import find_java
    from tributary.local.class_archive import class_archive_options
    from tributary.local.spark_jars import spark_jars

    jars, java_home = spark_jars(), find_java().home
    scratch = tmp_path_factory.mktemp("spark")
    options = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1500m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.extraJavaOptions": " ".join(
            [f"-Djava.io.tmpdir={scratch}", *class_archive_options(java_home, jars), *SHORT_RUN]
        ),
        "spark.ui.enabled": "false",
        "spark.local.dir": str(scratch),
        "spark.hadoop.fs.s3a.buffer.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    arguments = " ".join(f"--conf {shlex.quote(f'{name}={value}')}" for name, value in options.items())
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", str(java_home))
        environment.setenv("PYSPARK_SUBMIT_ARGS", f"{arguments} pyspark-shell")
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        on_interrupt = signal.getsignal(signal.SIGINT)
        session = start_session("tests")
    # Spark's own handler asks the JVM to cancel its jobs. During another call to the JVM, this fails, and the
    # interrupt is lost.
    signal.signal(signal.SIGINT, on_interrupt)
    session.sparkContext.setLogLevel("ERROR")
    use_usual_steps()
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
def jvm() -> Iterator[Any]:
    """A JVM with Kafka, Connect, and the plugins of PostgreSQL and the sink, through py4j."""
    from connectors.plugins import build_plugins, unpack_plugins

    plugins = unpack_plugins(build_plugins(names=("debezium-connector-postgres", "iceberg-sink")))
    with running_jvm([folder / "*" for folder in sorted(plugins.iterdir())]) as running:
        yield running


@contextmanager
def running_jvm(more: Iterable[Path] = ()) -> Iterator[Any]:
    """Start a JVM with Kafka, Connect and `more` on its class path, and yield its py4j view."""
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    from tributary.local.server_files import read_server_files

    files = read_server_files()
    py4j = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
    process: subprocess.Popen[bytes]
    port, token, process = launch_gateway(
        jarpath=str(py4j),
        classpath=":".join(map(str, [py4j, *files.kafka, *more])),
        java_path=str(files.java),
        javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1"],
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
    )
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        process.terminate()
        process.wait(30)
