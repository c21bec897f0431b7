"""What spark-submit is told on AWS: class path, Python, catalogs, and the Spark app's own arguments.

Hudi and Iceberg are those that EMR brings; the other jars, the package, the lake file and the entry point are
assets, so that no cluster asks Maven or PyPI for anything. Both kinds of EMR get the same job: they differ in
where a driver's environment is set, and in who does the submitting.
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

Command = Literal["ingest", "rebuild", "replay", "new-epoch", "compact"]
"""Of the Spark app (`spark_app.main`)."""

HUDI_JAR = "/usr/lib/hudi/hudi-spark-bundle.jar"
ICEBERG_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
"""Where EMR 7 and EMR Serverless keep them (Amazon EMR Release Guide, "Hudi" and "Iceberg")."""

PYTHON = "/usr/bin/python3.11"
"""EMR 7's second Python; its first one is 3.9, for which the package has no wheels."""

CLASSES_JAR = "tributary-spark-classes.jar"
"""The name of the jar of the app's own Java classes."""

PACKAGE_FOLDER = "app"
LAKE_FOLDER = "lake"
LAKE_FILE = "lake.toml"
"""The archives are unpacked under these names in the working folder of each container."""

_FOLLOW_ATTEMPTS = "2"
"""YARN allows no more by default; after an hour without a failure it counts anew."""


@dataclass(frozen=True)
class Job:
    """One run of the Spark app.

    follow  goes on until it is stopped; for `ingest` only
    since_snapshot  of the events since the last snapshot only; for `rebuild` only
    tables  source.schema.table; none: all of the lake
    source  kafka, bronze or files:URI; None: what the command does by itself
    """

    command: Command
    follow: bool = False
    tables: tuple[str, ...] = ()
    source: str | None = None
    since_snapshot: bool = False

    def __post_init__(self) -> None:
        if self.since_snapshot and self.command != "rebuild":
            raise ValueError(f"{self.command} takes no snapshot into account")
        if self.follow and self.command != "ingest":
            raise ValueError(f"{self.command} does not follow")

    def name(self, lake: str) -> str:
        """What the step or job run is called, by which a second one of the same kind is found."""
        what = "follow" if self.follow else self.command
        return f"{AwsNames(lake).resource}-{what}"


@dataclass(frozen=True)
class Addresses:
    """Where the deployed lake is: what the stacks' outputs say of it.

    entry_point, package, lake_file  s3:// addresses of the assets; the last two are zips
    jars              s3:// addresses of the jars that EMR does not bring
    bronze, silver, quarantine  s3:// addresses without a slash at the end
    bronze_table      None where another sink than Iceberg's fills bronze
    """

    lake: str
    region: str
    bootstrap_servers: str
    entry_point: str
    package: str
    jars: tuple[str, ...]
    lake_file: str
    bronze: str
    silver: str
    quarantine: str
    glue_database: str
    bronze_table: str | None

    @classmethod
    def of_outputs(cls, lake: str, aws: Aws, outputs: Mapping[str, str]) -> Addresses:
        """From the outputs of all stacks of the lake. Raises TributaryError where one is missing."""

        def output(key: str) -> str:
            if key not in outputs:
                raise TributaryError(
                    f"no stack of the lake has an output {key}",
                    where=f"lake {lake}, region {aws.region}",
                    found=", ".join(sorted(outputs)) or "no outputs",
                    remedy="Deploy all of the lake's stacks with this version of Tributary.",
                )
            return outputs[key]

        return cls(
            lake=lake,
            region=aws.region,
            bootstrap_servers=output(Output.BOOTSTRAP_SERVERS),
            entry_point=output(Output.SPARK_ENTRY_POINT),
            package=output(Output.SPARK_APP),
            jars=tuple(output(Output.SPARK_JARS).split(",")),
            lake_file=output(Output.LAKE_FILE),
            bronze=output(Output.BRONZE).rstrip("/"),
            silver=output(Output.SILVER).rstrip("/"),
            quarantine=output(Output.QUARANTINE).rstrip("/"),
            glue_database=output(Output.GLUE_DATABASE),
            bronze_table=LakeNames(lake).spark_bronze_table if aws.connect.sink is None else None,
        )


def submit_arguments(job: Job, addresses: Addresses, processing: Processing) -> tuple[str, ...]:
    """For `command-runner.jar` as a step of an EMR cluster; the first of them is spark-submit itself.

    The driver runs on a core node: in client mode it would not get the archives. With a runtime role the
    arguments go through a shell (Amazon EMR Management Guide, "Runtime roles for Amazon EMR steps"): none but
    the last ones, which a person may have written, hold anything that it would take for its own.
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
        *_confs(_options(addresses) | _sizes(processing) | environment | attempts),
        addresses.entry_point,
        *map(shlex.quote, app_arguments(job, addresses)),
    )


def job_driver(job: Job, addresses: Addresses, processing: Processing) -> dict[str, Any]:
    """The `jobDriver` of a job run on EMR Serverless."""
    environment = {
        f"spark.emr-serverless.driverEnv.{name}": value for name, value in _environment(addresses).items()
    }
    options = _options(addresses) | _sizes(processing) | environment
    return {
        "sparkSubmit": {
            "entryPoint": addresses.entry_point,
            "entryPointArguments": list(app_arguments(job, addresses)),
            "sparkSubmitParameters": " ".join(_confs(options)),
        }
    }


def app_arguments(job: Job, addresses: Addresses) -> tuple[str, ...]:
    """Those of `spark_app.main` itself."""
    arguments = [job.command, *("--lake", f"{LAKE_FOLDER}/{LAKE_FILE}")]
    if job.source is not None:
        arguments += ["--from", job.source]
    arguments += ["--kafka", addresses.bootstrap_servers, "--msk-iam"]
    if addresses.bronze_table is not None:
        arguments += ["--bronze-table", addresses.bronze_table]
    arguments += ["--silver", addresses.silver, "--quarantine", addresses.quarantine]
    arguments += ["--metrics-log-group", AwsNames(addresses.lake).log_group("metrics")]
    if job.command == "ingest":
        arguments += ["--glue-database", addresses.glue_database]
    if job.follow:
        arguments.append("--follow")
    if job.since_snapshot:
        arguments.append("--since-snapshot")
    for table in job.tables:
        arguments += ["--tables", table]
    return tuple(arguments)


def _options(addresses: Addresses) -> dict[str, str]:
    """Of every job. What the app needs of any Spark it sets itself (`spark_app.session`)."""
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
        # The app shows its tables in Glue itself; Hive's client would ask for the database `default` first.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        f"{catalog}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{catalog}.warehouse": f"{addresses.bronze}/",
    }


def _environment(addresses: Addresses) -> dict[str, str]:
    """Of the driver."""
    return {
        "PYSPARK_PYTHON": PYTHON,
        "PYSPARK_DRIVER_PYTHON": PYTHON,
        "PYTHONPATH": f"./{PACKAGE_FOLDER}",
        "AWS_REGION": addresses.region,
    }


def _sizes(processing: Processing) -> dict[str, str]:
    """Small executors: one fits beside the driver on an m7g.xlarge, of which YARN has 12 GB."""
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
    """Two an instance of a cluster; on EMR Serverless all workers but the driver."""
    if processing.on == "emr-serverless":
        return processing.units_max - 1
    return 2 * processing.units_max


def _confs(options: Mapping[str, str]) -> Iterator[str]:
    for name, value in options.items():
        yield "--conf"
        yield f"{name}={value}"
