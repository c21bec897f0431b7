"""A job of the Spark app on EMR: class path, Python, catalogs, and the app's own arguments.

EMR brings Hudi and Iceberg. The other jars, the package, the lake file and the entry point are assets, so
no cluster downloads anything from Maven or PyPI. EMR on EC2 and EMR Serverless run the same job. Only the
request, and how the driver gets its environment, differ.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tributary.contract.aws import Aws, Processing
from tributary.contract.aws_names import AwsNames, Output
from tributary.contract.errors import TributaryError
from tributary.contract.naming import LakeNames
from tributary.contract.remedies import BringUp

Command = Literal[
    "ingest",
    "rebuild",
    "replay",
    "new-epoch",
    "compact",
    "maintain",
    "preflight",
    "derive",
    "erase",
    "delete-events",
]
"""The commands of `spark_app.main`."""

HUDI_JAR = "/usr/lib/hudi/hudi-spark-bundle.jar"
ICEBERG_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
"""The paths of these jars on EMR 7 and EMR Serverless (Amazon EMR Release Guide, "Hudi" and "Iceberg")."""

PYTHON = "/usr/bin/python3.11"
"""EMR 7 also has Python 3.9, its default, but the package has no wheels for it."""

PACKAGE_FOLDER = "app"
LAKE_FOLDER = "lake"
LAKE_FILE = "lake.toml"
"""Each container unpacks the archives under these names in its working folder."""

_FOLLOW_ATTEMPTS = "2"
"""YARN's default limit. The count restarts after an hour without a failure."""


@dataclass(frozen=True)
class ErasureAddresses:
    """The s3:// addresses of the keys to erase, and of the report."""

    keys: str
    report: str


@dataclass(frozen=True)
class Job:
    """One run of the Spark app.

    follow          run until somebody stops it; for `ingest` and `derive` only
    tables          names, written source.schema.table; for `derive`, names of derived tables; empty for all
    source          kafka, bronze or files:URI; None for the command's default
    since_snapshot  use only the events since the last snapshot; for `rebuild` only
    erasure         where the keys and the report are; for `erase` only
    topics          whose events to delete from bronze; for `delete-events` only
    """

    command: Command
    follow: bool = False
    tables: tuple[str, ...] = ()
    source: str | None = None
    since_snapshot: bool = False
    erasure: ErasureAddresses | None = None
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.command == "erase") != (self.erasure is not None):
            raise ValueError(f"{self.command} with erasure {self.erasure}")
        if (self.command == "delete-events") != bool(self.topics):
            raise ValueError(f"{self.command} with topics {self.topics}")
        if self.since_snapshot and self.command != "rebuild":
            raise ValueError(f"{self.command} cannot start at a snapshot")
        if self.follow and self.command not in ("ingest", "derive"):
            raise ValueError(f"{self.command} cannot follow")

    def name(self, lake: str) -> str:
        """Return the name of the step or job run, which identifies a second job of the same kind."""
        what = "follow" if self.follow and self.command == "ingest" else self.command
        return f"{AwsNames(lake).resource}-{what}"


@dataclass(frozen=True)
class Addresses:
    """The addresses of a deployed lake's parts, from the outputs of its stacks.

    bootstrap_servers            None if the lake has no Kafka
    entry_point                  s3:// address of main.py
    package, lake_file           s3:// addresses of zips
    jars                         s3:// addresses of the jars that EMR does not bring
    bronze, silver, quarantine   s3:// addresses without a slash at the end
    release                      the release of EMR that runs the jobs
    bronze_table                 None if another sink than Iceberg's fills bronze, or without Kafka
    """

    lake: str
    region: str
    bootstrap_servers: str | None
    entry_point: str
    package: str
    jars: tuple[str, ...]
    lake_file: str
    bronze: str
    silver: str
    quarantine: str
    glue_database: str
    release: str
    bronze_table: str | None

    @classmethod
    def of_outputs(
        cls, lake: str, aws: Aws, outputs: Mapping[str, str], *, has_kafka: bool = True
    ) -> Addresses:
        """Read the addresses from the outputs of all stacks. Raises TributaryError if one is missing."""

        def output(key: str) -> str:
            if key not in outputs:
                raise TributaryError(
                    f"no stack of the lake has an output {key}",
                    where=f"lake {lake}, region {aws.region}",
                    found=", ".join(sorted(outputs)) or "no outputs",
                    remedy=["Deploy all of the lake's stacks with this version of Tributary.", BringUp()],
                )
            return outputs[key]

        return cls(
            lake=lake,
            region=aws.region,
            bootstrap_servers=output(Output.BOOTSTRAP_SERVERS) if has_kafka else None,
            entry_point=output(Output.SPARK_ENTRY_POINT),
            package=output(Output.SPARK_APP),
            jars=tuple(output(Output.SPARK_JARS).split(",")),
            lake_file=output(Output.LAKE_FILE),
            bronze=output(Output.BRONZE).rstrip("/"),
            silver=output(Output.SILVER).rstrip("/"),
            quarantine=output(Output.QUARANTINE).rstrip("/"),
            glue_database=output(Output.GLUE_DATABASE),
            release=aws.processing.release,
            bronze_table=LakeNames(lake).spark_bronze_table
            if has_kafka and aws.connect.sink is None
            else None,
        )


def submit_arguments(job: Job, addresses: Addresses, processing: Processing) -> tuple[str, ...]:
    """Return the arguments of `command-runner.jar` for a step of an EMR cluster.

    The driver runs on a core node, because in client mode it would not get the archives. With a runtime role
    a shell interprets the arguments (Amazon EMR Management Guide, "Runtime roles for Amazon EMR steps"). Only
    the app's own arguments come from a person, so only those are quoted.
    """
    environment = {
        f"spark.yarn.appMasterEnv.{name}": value for name, value in _environment(addresses).items()
    }
    attempts = {"spark.yarn.maxAppAttempts": "1"}
    if job.follow:
        attempts = {
            "spark.yarn.maxAppAttempts": _FOLLOW_ATTEMPTS,
            "spark.yarn.am.attemptFailuresValidityInterval": "1h",
        }
    return (
        "spark-submit",
        *("--deploy-mode", "cluster"),
        *("--name", job.name(addresses.lake)),
        *_confs(_options(job, addresses) | _sizes(processing) | environment | attempts),
        addresses.entry_point,
        *map(shlex.quote, app_arguments(job, addresses)),
    )


def job_driver(job: Job, addresses: Addresses, processing: Processing) -> dict[str, Any]:
    """Return the `jobDriver` of a job run on EMR Serverless."""
    environment = {
        f"spark.emr-serverless.driverEnv.{name}": value for name, value in _environment(addresses).items()
    }
    options = _options(job, addresses) | _sizes(processing) | environment
    return {
        "sparkSubmit": {
            "entryPoint": addresses.entry_point,
            "entryPointArguments": list(app_arguments(job, addresses)),
            "sparkSubmitParameters": " ".join(_confs(options)),
        }
    }


def app_arguments(job: Job, addresses: Addresses) -> tuple[str, ...]:
    """Return the arguments that `spark_app.run.arguments` parses."""
    arguments = [job.command, *("--lake", f"{LAKE_FOLDER}/{LAKE_FILE}")]
    if job.source is not None:
        arguments += ["--from", job.source]
    if addresses.bootstrap_servers is not None:
        arguments += ["--kafka", addresses.bootstrap_servers, "--msk-iam"]
    if addresses.bronze_table is not None:
        arguments += ["--bronze-table", addresses.bronze_table]
    arguments += ["--silver", addresses.silver, "--quarantine", addresses.quarantine]
    if job.command != "erase":  # a refused erasure must not count as a blocked table
        arguments += ["--metrics-log-group", AwsNames(addresses.lake).log_group("metrics")]
    if job.command in ("ingest", "preflight", "derive"):
        arguments += ["--glue-database", addresses.glue_database]
    if job.command == "preflight":
        arguments += ["--release", addresses.release]
    if job.follow:
        arguments.append("--follow")
    if job.since_snapshot:
        arguments.append("--since-snapshot")
    if job.erasure is not None:
        arguments += ["--keys", job.erasure.keys, "--report", job.erasure.report]
    for topic in job.topics:
        arguments += ["--topic", topic]
    for table in job.tables:
        arguments += ["--derived" if job.command == "derive" else "--tables", table]
    return tuple(arguments)


def _options(job: Job, addresses: Addresses) -> dict[str, str]:
    """Return the Spark options of a job. The app itself sets what it needs on any Spark."""
    catalog = f"spark.sql.catalog.{LakeNames(addresses.lake).bronze_catalog}"
    return {
        "spark.jars": ",".join((HUDI_JAR, ICEBERG_JAR, *addresses.jars)),
        "spark.archives": f"{addresses.package}#{PACKAGE_FOLDER},{addresses.lake_file}#{LAKE_FOLDER}",
        "spark.pyspark.python": PYTHON,
        "spark.pyspark.driver.python": PYTHON,
        "spark.executorEnv.PYSPARK_PYTHON": PYTHON,
        "spark.executorEnv.PYTHONPATH": f"./{PACKAGE_FOLDER}",
        "spark.executorEnv.AWS_REGION": addresses.region,
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
        # The app itself registers its tables in Glue; Hive's client would ask for the database `default`.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        f"{catalog}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{catalog}.warehouse": f"{addresses.bronze}/",
        # Spark's event log holds the conditions of queries, and with them the keys to erase.
        **({"spark.eventLog.enabled": "false"} if job.command == "erase" else {}),
    }


def _environment(addresses: Addresses) -> dict[str, str]:
    """Return the environment of the driver."""
    return {
        "PYSPARK_PYTHON": PYTHON,
        "PYSPARK_DRIVER_PYTHON": PYTHON,
        "PYTHONPATH": f"./{PACKAGE_FOLDER}",
        "AWS_REGION": addresses.region,
    }


def _sizes(processing: Processing) -> dict[str, str]:
    """Return sizes for small executors: one fits beside the driver in the 12 GB of YARN on an m7g.xlarge."""
    return {
        "spark.driver.cores": "2",
        "spark.driver.memory": "4g",
        "spark.executor.cores": "2",
        "spark.executor.memory": "4g",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": "1",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": str(_most_executors(processing)),
    }


def _most_executors(processing: Processing) -> int:
    """Return two for each instance of a cluster; on EMR Serverless, every worker except the driver."""
    if processing.on == "emr-serverless":
        return processing.units_max - 1
    return 2 * processing.units_max


def _confs(options: Mapping[str, str]) -> Iterator[str]:
    for name, value in options.items():
        yield "--conf"
        yield f"{name}={value}"
