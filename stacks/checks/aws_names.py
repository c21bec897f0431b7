"""Which regions, instance classes and versions there are: CloudFormation refuses others only after minutes.

Regions and EC2's instance types are those of the installed botocore, Aurora's versions those of the CDK. The
lists below are of what neither of them lists; each says where it is from and of when it is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cache

import botocore.session
from aws_cdk import aws_rds as rds
from botocore.model import StringShape

from stacks.base import deployment_of
from tributary.contract.aws import Aws
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake

KAFKA_VERSIONS = frozenset({"3.7.x.kraft", "3.8.x.kraft", "3.9.x.kraft", "4.0.x.kraft", "4.1.x.kraft"})
"""Amazon MSK developer guide, "Supported Apache Kafka versions", September 2026: versions without ZooKeeper
for standard brokers."""

_UP_TO_16 = ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge")
BROKER_TYPES = frozenset(
    {
        "kafka.t3.small",
        *(f"kafka.m5.{size}" for size in (*_UP_TO_16, "24xlarge")),
        *(f"kafka.m7g.{size}" for size in _UP_TO_16),
        *(f"express.m7g.{size}" for size in _UP_TO_16),
    }
)
"""Amazon MSK developer guide, "Broker types", September 2026."""

EMR_RELEASES = frozenset({"emr-7.11.0", "emr-7.12.0", "emr-7.13.0", "emr-7.14.0"})
"""EMR release guide, September 2026: the releases with Hudi 1.0.2."""

DATABASE_FAMILIES = frozenset({"r5", "r6g", "r6gd", "r6i", "r6id", "r7g", "r7i", "r8a", "r8g", "r8gd"})
"""Aurora user guide, DB instance classes for Aurora PostgreSQL, September 2026: those with
the Data API. Sizes are EC2's."""


def check_known(lake: Lake) -> None:
    """Check the names in `[aws]`. Raise TributaryError for the first setting that AWS does not know."""
    aws = deployment_of(lake)
    makes_databases = any(source.name not in aws.source for source in lake.sources)
    for service in _services(aws, makes_databases):
        _check("region", aws.region, _regions(service), f"a region in which AWS offers {service}")
    if makes_databases:
        database = aws.database
        _check("database.engine_version", database.engine_version, _aurora_versions(), "a version of Aurora")
        _check("database.instance", database.instance, _database_classes(), "a class of Aurora PostgreSQL")
    if aws.kafka.kind == "provisioned":
        _check("kafka.version", aws.kafka.version, KAFKA_VERSIONS, "a version that Amazon MSK offers")
        _check("kafka.broker", aws.kafka.broker, BROKER_TYPES, "a broker type of Amazon MSK")
    _check("processing.release", aws.processing.release, EMR_RELEASES, "an EMR release with Hudi 1.0.2")
    if aws.processing.on == "emr":
        for setting, instance_type in _instances(aws):
            _check(setting, instance_type, _instance_types(), "an instance type of EC2")


def _services(aws: Aws, makes_databases: bool) -> Iterator[str]:
    yield from ("kafka", "kafkaconnect", aws.processing.on, "glue", "athena", "secretsmanager", "kms")
    if makes_databases:
        yield "rds"


def _instances(aws: Aws) -> Iterator[tuple[str, str]]:
    yield "processing.primary", aws.processing.primary
    yield "processing.core", aws.processing.core
    for number, instance_type in enumerate(aws.processing.task):
        yield f"processing.task[{number}]", instance_type


def _check(setting: str, found: str, known: frozenset[str], expected: str) -> None:
    if found in known:
        return
    examples = difflib.get_close_matches(found, sorted(known), n=3, cutoff=0.5) or sorted(known)[:3]
    raise TributaryError(
        "AWS does not know this name",
        where=_entry(setting),
        found=f'"{found}"',
        expected=f"{expected}, such as {', '.join(examples)}",
        remedy="If it is new on AWS, upgrade to a release of Tributary that knows it.",
    )


def _entry(setting: str) -> str:
    """Return the setting's place in the lake file: `[aws].region` or `[aws.kafka].broker`."""
    section, _, key = setting.rpartition(".")
    return f"[aws.{section}].{key}" if section else f"[aws].{key}"


@cache
def _session() -> botocore.session.Session:
    return botocore.session.get_session()


@cache
def _regions(service: str) -> frozenset[str]:
    session = _session()
    return frozenset(
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions(service, partition)
    )


@cache
def _instance_types() -> frozenset[str]:
    shape = _session().get_service_model("ec2").shape_for("InstanceType")
    assert isinstance(shape, StringShape)
    return frozenset(shape.enum)


@cache
def _database_classes() -> frozenset[str]:
    sizes = (name.partition(".") for name in _instance_types())
    return frozenset({"db.serverless"}) | {
        f"db.{family}.{size}"
        for family, _, size in sizes
        if family in DATABASE_FAMILIES and not size.startswith(("medium", "metal"))
    }


@cache
def _aurora_versions() -> frozenset[str]:
    """`VER_16_6` of the CDK is 16.6."""
    names = (re.fullmatch(r"VER_(\d+)_(\d+)", name) for name in dir(rds.AuroraPostgresEngineVersion))
    return frozenset(f"{name[1]}.{name[2]}" for name in names if name)
