"""Check that AWS has the region, instance types and versions. CloudFormation would fail only minutes later.

The installed botocore lists the regions and EC2's instance types. The lists below cover the rest, and each
names its page and month. An engine checks the names that only it uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from zoneinfo import available_timezones

import botocore.session

from stacks.base import deployment_of
from stacks.checks.instance_types import ec2_instance_types
from stacks.checks.refusal import check_name
from stacks.checks.zones import check_zones
from stacks.database.registry import own_sources
from tributary.contract.aws import Aws
from tributary.contract.lake import Lake

KAFKA_VERSIONS = frozenset({"3.7.x.kraft", "3.8.x.kraft", "3.9.x.kraft", "4.0.x.kraft", "4.1.x.kraft"})
"""Amazon MSK developer guide, "Supported Apache Kafka versions", September 2026: versions without ZooKeeper
for standard brokers."""

_KAFKA_VERSION = "a version of Kafka that Amazon MSK offers without ZooKeeper"

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


def check_known(lake: Lake) -> None:
    """Check the names in `[aws]`. Raise TributaryError for the first setting that AWS does not know.

    An entry that the lake does not use has its default or the profile's value, which AWS knows.
    """
    aws = deployment_of(lake)
    engines = own_sources(lake)
    for service in (*_services(lake, aws), *(service for engine in engines for service in engine.services)):
        check_name("region", aws.region, _regions(service), f"a region in which AWS offers {service}")
    check_zones(aws)
    for name in (name for engine in engines for name in engine.names(aws)):
        check_name(name.setting, name.found, name.known, name.expected)
    check_name("kafka.version", aws.kafka.version, KAFKA_VERSIONS, _KAFKA_VERSION)
    check_name("kafka.broker", aws.kafka.broker, BROKER_TYPES, "a broker type of Amazon MSK")
    check_name("processing.release", aws.processing.release, EMR_RELEASES, "an EMR release with Hudi 1.0.2")
    # A machine without the package tzdata knows none.
    if zones := frozenset(available_timezones()):
        for setting, zone in _time_zones(aws):
            check_name(setting, zone, zones, "a time zone of the IANA database")
    for setting, instance_type in _instances(aws):
        check_name(setting, instance_type, ec2_instance_types(), "an instance type of EC2")


def _services(lake: Lake, aws: Aws) -> Iterator[str]:
    if lake.connected_sources:
        yield from ("kafka", "kafkaconnect")
    yield from (aws.processing.on, "glue", "athena", "secretsmanager", "kms")
    if aws.items:
        yield from ("kinesis", "dynamodb")
    if aws.dbt is not None or aws.verify is not None:
        yield from ("codebuild", "scheduler")
    if aws.quicksight is not None:
        yield "quicksight"


def _time_zones(aws: Aws) -> Iterator[tuple[str, str]]:
    for section, job in (("dbt", aws.dbt), ("verify", aws.verify)):
        if job is not None:
            yield f"{section}.time_zone", job.time_zone


def _instances(aws: Aws) -> Iterator[tuple[str, str]]:
    yield "processing.primary", aws.processing.primary
    yield "processing.core", aws.processing.core
    for number, instance_type in enumerate(aws.processing.task):
        yield f"processing.task[{number}]", instance_type


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
