"""A deployed lake as a client of AWS sees it: stack outputs, buckets, and the service that runs jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import boto3
import pytest
from moto import mock_aws

from tributary.contract.aws import Processing
from tributary.contract.aws_names import AwsNames, Output, StackKind
from tributary.contract.preflight import Check, Preflight, preflight_file

if TYPE_CHECKING:
    from mypy_boto3_emr import EMRClient
    from mypy_boto3_emr_serverless import EMRServerlessClient
    from mypy_boto3_s3 import S3Client

REGION: Literal["eu-west-1"] = "eu-west-1"
ACCOUNT = "123456789012"
"""Moto's own account."""
RELEASE = Processing().release
ROLE = f"arn:aws:iam::{ACCOUNT}:role/runtime"
NAMES = AwsNames("shop")
LAKE = f"""
[lake]
name = "shop"
[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
[aws]
region = "{REGION}"
account = "{ACCOUNT}"
"""
ITEMS = f"""
[lake]
name = "shop"
[source.shop]
engine = "dynamodb"
tables = ["orders"]
stream = "shop-changes"
[aws]
region = "{REGION}"
account = "{ACCOUNT}"
"""
"""A lake without Kafka."""
SERVERLESS = LAKE + '[aws.processing]\non = "emr-serverless"\n'


@contextmanager
def moto_aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use moto for all of AWS, and no real credentials."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with mock_aws():
        yield


@dataclass(frozen=True)
class Deployed:
    """`place_id` is the id of the EMR cluster or the EMR Serverless application."""

    place_id: str
    emr: EMRClient
    emr_serverless: EMRServerlessClient
    s3: S3Client

    def put(self, bucket: Literal["silver", "quarantine"], key: str, content: str = "") -> None:
        name = NAMES.bucket(bucket, ACCOUNT, REGION)
        self.s3.put_object(Bucket=name, Key=key, Body=content.encode())

    def put_silver_table(self, table: str) -> None:
        """Put `shop.public.TABLE`, with an empty commit."""
        self.put("silver", f"shop/public/{table}/.hoodie/20260101000000000.deltacommit", "{}")


def deploy(
    on: Literal["emr", "emr-serverless"] = "emr", without: tuple[str, ...] = (), *, has_kafka: bool = True
) -> Deployed:
    """Deploy the stacks of the lake `shop`, except the outputs `without`. Call it within `moto_aws`."""
    emr = boto3.client("emr", REGION)
    serverless = boto3.client("emr-serverless", REGION)
    s3 = boto3.client("s3", REGION)
    buckets: dict[str, str] = {}
    for kind in ("bronze", "silver", "quarantine"):
        buckets[kind] = NAMES.bucket(kind, ACCOUNT, REGION)
        s3.create_bucket(Bucket=buckets[kind], CreateBucketConfiguration={"LocationConstraint": REGION})
    if on == "emr":
        place_id = emr.run_job_flow(
            Name="shop",
            Instances={"MasterInstanceType": "m7g.xlarge", "KeepJobFlowAliveWhenNoSteps": True},
            LogUri="s3n://shop-logs/emr/",
        )["JobFlowId"]
        place = {Output.EMR_CLUSTER: place_id}
    else:
        place_id = serverless.create_application(
            releaseLabel="emr-7.13.0", type="SPARK", clientToken="application"
        )["applicationId"]
        place = {Output.EMR_SERVERLESS: place_id}
    stacks: dict[StackKind, dict[str, str]] = {
        "lake": {
            Output.BRONZE: f"s3://{buckets['bronze']}",
            Output.SILVER: f"s3://{buckets['silver']}",
            Output.QUARANTINE: f"s3://{buckets['quarantine']}",
            Output.GLUE_DATABASE: "shop_silver",
        },
        "streaming": {
            Output.BOOTSTRAP_SERVERS: "b-1.kafka:9098,b-2.kafka:9098",
            Output.KAFKA_CLUSTER: f"arn:aws:kafka:{REGION}:{ACCOUNT}:cluster/tributary-shop/0-1",
        },
        "processing": {
            Output.RUNTIME_ROLE: ROLE,
            Output.SPARK_ENTRY_POINT: "s3://assets/main.py",
            Output.SPARK_APP: "s3://assets/package.zip",
            Output.SPARK_JARS: "s3://assets/a.jar,s3://assets/b.jar",
            Output.LAKE_FILE: "s3://assets/lake.zip",
            **place,
        },
    }
    if not has_kafka:
        del stacks["streaming"]
    for kind, outputs in stacks.items():
        make_stack(kind, {key: value for key, value in outputs.items() if key not in without})
    deployed = Deployed(place_id, emr, serverless, s3)
    deployed.put("quarantine", preflight_file(RELEASE), preflight().to_json())
    return deployed


def preflight(failed: str | None = None) -> Preflight:
    """Return the result of a preflight in which at most one check failed."""
    checks = (("login to Kafka", True), ("Java, tables", False))
    return Preflight(
        RELEASE,
        "2026-11-27T10:00:00+00:00",
        "3.5.6-amzn-1",
        tuple(
            Check(name, "failed" if name == failed else "passed", f"found {name}", is_required)
            for name, is_required in checks
        ),
    )


def make_stack(kind: StackKind, outputs: dict[str, str]) -> None:
    template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {key: {"Value": value} for key, value in outputs.items()},
    }
    boto3.client("cloudformation", REGION).create_stack(
        StackName=NAMES.stack(kind), TemplateBody=json.dumps(template)
    )
