"""Start the packaged Spark app with spark-submit on this machine, and stop it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from connectors.worker import as_properties
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.remedies import StopRun
from tributary.local.class_archive import class_archive_options
from tributary.local.jvm import empty_folder
from tributary.local.postgres import CATALOG, CATALOG_ROLE
from tributary.local.process import (
    POLL_SECONDS,
    Command,
    ProcessRecord,
    find_process,
    read_process,
    record_process,
    remove_record,
    start_reporting_process,
    stop_process,
)
from tributary.local.s3 import REGION, s3a_options
from tributary.local.schema_registry import registry_environment
from tributary.local.state import LocalSettings, StateFolder, write_private_file

SERVICE = "spark"
DERIVE_SERVICE = "spark-derive"
"""The app that derives tables. It may run beside the one that writes the tables of the sources."""

APPS = (SERVICE, DERIVE_SERVICE)


def owner_of(service: str) -> str:
    """Return the name of the record of the command that reads the app's reports."""
    return f"{service}-owner"


LOG_SETTINGS = "log4j2.properties"
"""The name of the log settings in the state's Spark folder."""

_LOG4J2 = """\
rootLogger.level = LEVEL
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %-5p [%t] %m (%c{1})%n%ex
"""


_JAVA_OPTIONS = (
    "-XX:+UseParallelGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-Duser.timezone=UTC",
    # Otherwise Java searches every jar of the class path for an XML parser, for each of S3's answers.
    "-Dorg.xml.sax.driver=com.sun.org.apache.xerces.internal.parsers.SAXParser",
    # Hudi measures record sizes with JOL, which would otherwise start JVMs and fail to attach to this one.
    "-Djol.skipHotspotSAAttach=true",
    "-Djol.skipDynamicAttach=true",
    "-Djol.skipInstallAttach=true",
)


class SparkBusy(TributaryError):
    """The Spark app is already running. Two writers of a table would overwrite each other's commits."""


@dataclass(frozen=True)
class SparkInstallation:
    """The files that the app runs from.

    jars     for the driver's class path
    package  the folder of the unpacked package
    """

    java_home: Path
    jars: Sequence[Path]
    package: Path


class RunningSpark:
    """The running app. Somebody must read `reports()` to the end, or the app blocks.

    Ctrl-C in the terminal does not reach the app, because its JVM would end in the middle of a commit.
    """

    def __init__(
        self,
        process: subprocess.Popen[str],
        record: ProcessRecord,
        state: StateFolder,
        service: str = SERVICE,
    ) -> None:
        self._process = process
        self._state = state
        self._service = service
        self.record = record
        self.log = Path(record.log)

    def reports(self) -> Iterator[str]:
        """Yield the app's JSON lines as they arrive. All its other output goes to the log."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                yield line.rstrip("\n")
                continue
            # If the disk is full, losing this line is better than losing the reports.
            with suppress(OSError), self.log.open("a") as log:
                log.write(line)

    def wait(self) -> int:
        """Wait for the app to end. Return its exit status."""
        status = self._process.wait()
        remove_record(self._service, self._state.run)
        remove_record(owner_of(self._service), self._state.run)
        return status

    def kill(self) -> None:
        """End the app at once."""
        stop_spark(self._state.run, patience_seconds=0, service=self._service)

    def ask_to_stop(self) -> None:
        """Ask the app to finish its current commits and end. Call `wait()` after this."""
        _ask_to_stop(self.record)


def start_spark(
    lake: Lake,
    state: StateFolder,
    settings: LocalSettings,
    installation: SparkInstallation,
    arguments: Sequence[str],
    service: str = SERVICE,
) -> RunningSpark:
    """Start `main.py arguments…` with spark-submit. Raise SparkBusy or StateFolderBusy."""
    folder = _folder(state, service)
    folder.mkdir(parents=True, exist_ok=True)
    properties = folder / "spark.properties"
    write_private_file(
        properties, as_properties(spark_properties(lake, state, settings, installation, service))
    )
    (folder / LOG_SETTINGS).write_text(log_settings("warn"))
    spark_home = Path(pyspark.__file__).parent
    command = Command(
        service,
        [
            str(spark_home / "bin" / "spark-submit"),
            *("--properties-file", str(properties)),
            str(installation.package / "main.py"),
            *arguments,
        ],
        log=state.log(service),
        environment={
            **spark_environment(settings, installation, spark_home, folder),
            **registry_environment(lake),
        },
    )
    with state.exclusive():
        _take_over(state, service)
        empty_folder(_scratch(state, service))
        process, record = start_reporting_process(command, state.run)
        record_process(owner_of(service), os.getpid(), state.log(service), state.run)
    return RunningSpark(process, record, state, service)


def log_settings(level: str) -> str:
    """Return log4j2 settings that send messages from this level up to standard error."""
    return _LOG4J2.replace("LEVEL", level)


def stop_spark(run_folder: Path, patience_seconds: float = 60.0, service: str = SERVICE) -> bool:
    """Stop an app that another command started, by force if necessary. Return False if none was running."""
    record = read_process(service, run_folder)
    if record is None:
        return False
    _ask_to_stop(record)
    deadline = time.monotonic() + patience_seconds
    while find_process(record) is not None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    stop_process(service, run_folder, signal.SIGKILL)
    remove_record(service, run_folder)
    remove_record(owner_of(service), run_folder)
    return True


def _take_over(state: StateFolder, service: str) -> None:
    record = read_process(service, state.run)
    if record is None:
        return
    if read_process(owner_of(service), state.run) is not None:
        raise SparkBusy(
            "the Spark app of this state folder is already running",
            where=str(state.path),
            found=f"pid {record.pid}",
            remedy=StopRun(),
        )
    # The command that started the app was killed, so nobody reads its reports anymore.
    stop_spark(state.run, service=service)


def _folder(state: StateFolder, service: str) -> Path:
    """Return the folder with the settings and temporary files of an app."""
    return state.spark if service == SERVICE else state.spark.with_name(service)


def _scratch(state: StateFolder, service: str) -> Path:
    """Return the folder for Spark's temporary files: shuffled rows, buffered uploads, unpacked libraries."""
    return _folder(state, service) / "scratch"


def _ask_to_stop(record: ProcessRecord) -> None:
    """Send SIGTERM to the Python driver, a child of spark-submit's JVM. The JVM ends with it."""
    jvm = find_process(record)
    if jvm is None:
        return
    with suppress(psutil.NoSuchProcess):
        for process in [child for child in jvm.children() if _is_driver(child)] or [jvm]:
            process.send_signal(signal.SIGTERM)


def _is_driver(process: psutil.Process) -> bool:
    try:
        return any(argument.endswith("main.py") for argument in process.cmdline())
    except psutil.NoSuchProcess:  # raised also for a zombie, such as the shell that spark-submit leaves
        return False


def spark_properties(
    lake: Lake,
    state: StateFolder,
    settings: LocalSettings,
    installation: SparkInstallation,
    service: str = SERVICE,
) -> Mapping[str, str]:
    """Return the properties for spark-submit: how Spark runs on this machine, and all addresses."""
    scratch = _scratch(state, service)
    catalog = f"spark.sql.catalog.{lake.names.bronze_catalog}"
    s3a = {f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a_options(settings.s3_endpoint).items()}
    return {
        "spark.master": "local[*]",
        "spark.driver.memory": lake.local.spark_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, installation.jars)),
        "spark.driver.extraJavaOptions": " ".join(
            [
                *_JAVA_OPTIONS,
                f'"-Dlog4j2.configurationFile={(_folder(state, service) / LOG_SETTINGS).as_uri()}"',
                f'"-Djava.io.tmpdir={scratch}"',
                *class_archive_options(installation.java_home, installation.jars),
            ]
        ),
        "spark.ui.enabled": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (_folder(state, service) / "warehouse").as_uri(),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{catalog}.uri": f"jdbc:postgresql://127.0.0.1:{settings.ports.postgres}/{CATALOG}",
        f"{catalog}.jdbc.user": CATALOG_ROLE,
        f"{catalog}.jdbc.password": settings.secrets.catalog.get_secret_value(),
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.warehouse": f"s3://{lake.names.bronze_bucket}/",
        f"{catalog}.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        **s3a,
        "spark.hadoop.fs.s3a.aws.credentials.provider": (
            "com.amazonaws.auth.EnvironmentVariableCredentialsProvider"
        ),
        "spark.hadoop.fs.s3a.buffer.dir": str(scratch),
    }


def spark_environment(
    settings: LocalSettings, installation: SparkInstallation, spark_home: Path, folder: Path
) -> dict[str, str]:
    """Return the app's environment with little from the caller's.

    Another Spark's SPARK_CONF_DIR or HADOOP_CONF_DIR would take effect. SPARK_SUBMIT_OPTS is Spark's own way
    to give the driver's JVM more options, for example for a profiler.
    """
    kept = {
        name: os.environ[name] for name in ("HOME", "USER", "LANG", "SPARK_SUBMIT_OPTS") if name in os.environ
    }
    return {
        **kept,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
        "TZ": "UTC",
        "JAVA_HOME": str(installation.java_home),
        "SPARK_HOME": str(spark_home),
        # This folder is in the class path. If it contained files, the JVM would ignore the class archive.
        "SPARK_CONF_DIR": str(folder / "no-configuration"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(installation.package),
        "PYTHONUNBUFFERED": "1",
        "AWS_ACCESS_KEY_ID": settings.secrets.s3_access_key.get_secret_value(),
        "AWS_SECRET_ACCESS_KEY": settings.secrets.s3_secret_key.get_secret_value(),
        "AWS_REGION": REGION,
        **_item_endpoints(settings),
    }


def _item_endpoints(settings: LocalSettings) -> dict[str, str]:
    """Return Boto3's own variables for the local servers, which take any credentials."""
    if settings.ports.kinesis is None or settings.ports.dynamodb is None:
        return {}
    return {
        "AWS_ENDPOINT_URL_KINESIS": settings.kinesis_endpoint,
        "AWS_ENDPOINT_URL_DYNAMODB": settings.dynamodb_endpoint,
    }
