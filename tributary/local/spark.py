"""Knows how the packaged Spark application is handed to spark-submit here, and how it is stopped."""

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
from tributary.local.state import LocalSettings, StateFolder, write_private_file

SERVICE = "spark"
OWNER = "spark-owner"
"""The record of the command that reads what the application reports."""

LOG_SETTINGS = "log4j2.properties"
"""The file's name, in the Spark folder of the state."""

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
    # Each of S3's answers gets a parser, whose name Java would else look for in every jar of the class path.
    "-Dorg.xml.sax.driver=com.sun.org.apache.xerces.internal.parsers.SAXParser",
    # Hudi measures the size of a record with JOL, which else starts JVMs to attach to this one, in vain.
    "-Djol.skipHotspotSAAttach=true",
    "-Djol.skipDynamicAttach=true",
    "-Djol.skipInstallAttach=true",
)


class SparkBusy(TributaryError):
    """The Spark application is running already: two writers of one table would overwrite each other."""


@dataclass(frozen=True)
class SparkInstallation:
    """A Java home, the jars for the driver's class path, and the folder of the unpacked package."""

    java_home: Path
    jars: Sequence[Path]
    package: Path


class RunningSpark:
    """The application while it runs; `reports()` has to be read to its end for it to go on.

    A Ctrl-C in the terminal does not reach it: its JVM would end in the middle of a commit.
    """

    def __init__(self, process: subprocess.Popen[str], record: ProcessRecord, state: StateFolder) -> None:
        self._process = process
        self._state = state
        self.record = record
        self.log = Path(record.log)

    def reports(self) -> Iterator[str]:
        """The JSON lines of the application, as they come. Whatever else it prints goes to the log."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                yield line.rstrip("\n")
                continue
            # On a disk that is full the line is lost, not the reports: nobody would read what the app says.
            with suppress(OSError), self.log.open("a") as log:
                log.write(line)

    def wait(self) -> int:
        """The exit status, once it has ended."""
        status = self._process.wait()
        remove_record(SERVICE, self._state.run)
        remove_record(OWNER, self._state.run)
        return status

    def ask_to_stop(self) -> None:
        """Lets the application finish the commits that it is writing; `wait()` for its end."""
        _ask_to_stop(self.record)


def start_spark(
    lake: Lake,
    state: StateFolder,
    settings: LocalSettings,
    installation: SparkInstallation,
    arguments: Sequence[str],
) -> RunningSpark:
    """Hands `main.py arguments…` to spark-submit. Raises SparkBusy if one runs here, StateFolderBusy."""
    folder = state.spark
    properties = folder / "spark.properties"
    write_private_file(properties, as_properties(spark_properties(lake, state, settings, installation)))
    (folder / LOG_SETTINGS).write_text(log_settings("warn"))
    spark_home = Path(pyspark.__file__).parent
    command = Command(
        SERVICE,
        [
            str(spark_home / "bin" / "spark-submit"),
            *("--properties-file", str(properties)),
            str(installation.package / "main.py"),
            *arguments,
        ],
        log=state.log(SERVICE),
        environment=spark_environment(settings, installation, spark_home, folder),
    )
    with state.exclusive():
        _take_over(state)
        empty_folder(_scratch(state))
        process, record = start_reporting_process(command, state.run)
        record_process(OWNER, os.getpid(), state.log(SERVICE), state.run)
    return RunningSpark(process, record, state)


def log_settings(level: str) -> str:
    """Of log4j2: all that is of the level or worse goes to standard error."""
    return _LOG4J2.replace("LEVEL", level)


def stop_spark(run_folder: Path, patience_seconds: float = 60.0) -> bool:
    """Stops an application that another command started, by force if need be. False if none was running."""
    record = read_process(SERVICE, run_folder)
    if record is None:
        return False
    _ask_to_stop(record)
    deadline = time.monotonic() + patience_seconds
    while find_process(record) is not None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    stop_process(SERVICE, run_folder, signal.SIGKILL)
    remove_record(SERVICE, run_folder)
    remove_record(OWNER, run_folder)
    return True


def _take_over(state: StateFolder) -> None:
    record = read_process(SERVICE, state.run)
    if record is None:
        return
    if read_process(OWNER, state.run) is not None:
        raise SparkBusy(
            "the Spark application of this state folder is running already",
            where=str(state.path),
            found=f"pid {record.pid}",
            remedy=StopRun(),
        )
    # The command that started it was killed and nobody reads its reports any more.
    stop_spark(state.run)


def _scratch(state: StateFolder) -> Path:
    """What Spark keeps while it runs: shuffled rows, buffered uploads, unpacked libraries."""
    return state.spark / "scratch"


def _ask_to_stop(record: ProcessRecord) -> None:
    """Signals the Python driver, a child of the JVM that spark-submit has become; the JVM ends with it."""
    jvm = find_process(record)
    if jvm is None:
        return
    with suppress(psutil.NoSuchProcess):
        for process in [child for child in jvm.children() if _is_driver(child)] or [jvm]:
            process.send_signal(signal.SIGTERM)


def _is_driver(process: psutil.Process) -> bool:
    try:
        return any(argument.endswith("main.py") for argument in process.cmdline())
    except psutil.NoSuchProcess:  # also a zombie, such as the shell that spark-submit leaves behind
        return False


def spark_properties(
    lake: Lake, state: StateFolder, settings: LocalSettings, installation: SparkInstallation
) -> Mapping[str, str]:
    """What spark-submit is told: how Spark runs on this machine, and where it finds everything."""
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
                f'"-Dlog4j2.configurationFile={(state.spark / LOG_SETTINGS).as_uri()}"',
                f'"-Djava.io.tmpdir={_scratch(state)}"',
                *class_archive_options(installation.java_home, installation.jars),
            ]
        ),
        "spark.ui.enabled": "false",
        "spark.local.dir": str(_scratch(state)),
        "spark.sql.warehouse.dir": (state.spark / "warehouse").as_uri(),
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
        "spark.hadoop.fs.s3a.buffer.dir": str(_scratch(state)),
    }


def spark_environment(
    settings: LocalSettings, installation: SparkInstallation, spark_home: Path, folder: Path
) -> dict[str, str]:
    """Little of the caller's: another Spark's SPARK_CONF_DIR or HADOOP_CONF_DIR would take effect."""
    kept = {name: os.environ[name] for name in ("HOME", "USER", "LANG") if name in os.environ}
    return {
        **kept,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
        "TZ": "UTC",
        "JAVA_HOME": str(installation.java_home),
        "SPARK_HOME": str(spark_home),
        # It is part of the class path. One that holds files would forbid the archive of classes.
        "SPARK_CONF_DIR": str(folder / "no-configuration"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(installation.package),
        "PYTHONUNBUFFERED": "1",
        "AWS_ACCESS_KEY_ID": settings.secrets.s3_access_key.get_secret_value(),
        "AWS_SECRET_ACCESS_KEY": settings.secrets.s3_secret_key.get_secret_value(),
        "AWS_REGION": REGION,
    }
