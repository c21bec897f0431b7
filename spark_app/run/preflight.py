"""The preflight: try on the running release everything that the app needs, without touching a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import boto3
from pyspark.sql import SparkSession

from spark_app.acceleration.choice import missing_members
from spark_app.catalog.glue import glue_client
from spark_app.hudi.table_files import TableFiles
from spark_app.jvm import java_steps
from spark_app.plain import plain_steps
from spark_app.run.self_test import run_self_test
from spark_app.steps import steps
from tributary.contract.preflight import Check, Preflight, preflight_file, tried


class MissingMembers(Exception):
    """The running Spark, Hudi or Iceberg lacks something that the app's Java links to."""


class NoCredentials(Exception):
    """A process of the job has no credentials of AWS."""


@dataclass(frozen=True)
class Places:
    """What the preflight reaches out to. `silver` and `quarantine` have no slash at the end.

    topics         lists Kafka's topics; None if no source has Kafka
    glue_database  None if no catalog shows the tables
    on_aws         whether all processes need credentials of AWS
    """

    silver: str
    quarantine: str
    topics: Callable[[], frozenset[str]] | None
    glue_database: str | None
    glue_endpoint: str | None
    on_aws: bool


def run_preflight(spark: SparkSession, release: str, places: Places) -> Preflight:
    """Run all checks, and store the result beside the quarantined events."""
    found = Preflight(
        release=release,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        spark=spark.version,
        checks=tuple(_checks(spark, places)),
    )
    TableFiles(spark, places.quarantine).write(preflight_file(release), found.to_json().encode())
    return found


def _checks(spark: SparkSession, places: Places) -> list[Check]:
    checks = []
    if places.on_aws:
        checks += [
            tried("credentials of the driver", credentials_here),
            tried("credentials of the executors", lambda: _credentials_of_executors(spark)),
        ]
    if (topics := places.topics) is not None:
        checks.append(tried("login to Kafka", lambda: f"{len(topics())} topics"))
    if (database := places.glue_database) is not None:
        checks.append(tried("catalog in Glue", lambda: _database(database, places.glue_endpoint)))
    for place in dict.fromkeys((places.silver, places.quarantine)):
        steps.use(plain_steps)
        checks.append(tried(f"plain PySpark, tables in {place}", lambda place=place: _tested(spark, place)))  # type: ignore[misc]
    links = tried("all that our Java links to", lambda: _linked(spark), is_required=False)
    checks.append(links)
    if links.state == "passed":
        steps.use(java_steps)
        tested = tried(
            f"Java, tables in {places.silver}", lambda: _tested(spark, places.silver), is_required=False
        )
        checks.append(tested)
    return checks


def credentials_here() -> str:
    """Return the kind of AWS credentials that this process has. Raises `NoCredentials`."""
    found = boto3.Session().get_credentials()
    if found is None:
        raise NoCredentials("Boto3 finds no credentials")
    found.get_frozen_credentials()
    return str(found.method)


def _credentials_of_executors(spark: SparkSession) -> str:
    context = spark.sparkContext
    tasks = context.defaultParallelism
    kinds = context.parallelize(range(tasks), tasks).map(lambda _: credentials_here()).distinct().collect()
    return ", ".join(sorted(kinds))


def _database(name: str, endpoint: str | None) -> str:
    tables = glue_client(endpoint).get_tables(DatabaseName=name)["TableList"]
    return f"database {name}, {len(tables)} tables or more" if tables else f"database {name}, no tables yet"


def _tested(spark: SparkSession, place: str) -> str:
    run_self_test(spark, place)
    return "wrote, compacted, read and dropped a table of each storage"


def _linked(spark: SparkSession) -> str:
    missing = missing_members(spark)
    if missing:
        raise MissingMembers(", ".join(missing[:10]))
    return "nothing is missing"
