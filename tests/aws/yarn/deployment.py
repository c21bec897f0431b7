"""What the stack `processing` deploys: the Spark app's files, and the cluster's configuration."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import App, CfnWaitConditionHandle
from aws_cdk.assertions import Template

from stacks.base import TributaryStack, deployment_of
from stacks.processing.emr_cluster import _configurations
from stacks.processing.spark_package import LakeFiles, SparkFiles, SparkPackage
from tests.stacks.conftest import FLAGS
from tributary.artifacts.lock import platform_name
from tributary.contract.lake import read_lake
from tributary.operations.runs.packaging import build_jars, build_package

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ARCHITECTURES = {
    "linux-amd64": ("x86_64", "m7i.xlarge"),
    "linux-arm64": ("arm64", "m7g.xlarge"),
}
"""By platform: the architecture in `[aws.processing]`, and an instance type with such processors."""


def processors_of_this_machine() -> str:
    """Return the entries of `[aws.processing]` for an EMR with this machine's processors."""
    architecture, instance = ARCHITECTURES[platform_name()]
    types = f'primary = "{instance}"\ncore = "{instance}"\ntask = ["{instance}"]\n'
    return f'architecture = "{architecture}"\n{types}'


def spark_defaults() -> Mapping[str, str]:
    """Return what the configuration of a cluster without TLS sets for Spark: to encrypt by itself."""
    (found,) = (
        one for one in _configurations(has_certificate=False) if one.classification == "spark-defaults"
    )
    properties: Mapping[str, str] = found.configuration_properties  # type: ignore[assignment]
    return properties


def upload_assets(lake_file: Path, folder: Path, s3: S3Client) -> Mapping[str, str]:
    """Build the app's files, upload them as the CDK's command does, and return the outputs that name them.

    The lake file must name the account and the region.
    """
    lake = read_lake(lake_file)
    built, assembly = folder / "dist", folder / "cdk.out"
    build_package(built, platform_name())
    build_jars(built)
    stack = TributaryStack(App(outdir=str(assembly), context=FLAGS), "processing", lake, "the app's files")
    files = SparkFiles.find(built, deployment_of(lake).processing)
    SparkPackage(stack, "Package", files, LakeFiles(lake_file))
    CfnWaitConditionHandle(stack, "Any")  # a template needs a resource
    outputs = Template.from_stack(stack).to_json()["Outputs"]
    (listed,) = assembly.glob("*.assets.json")
    for asset in json.loads(listed.read_text())["files"].values():
        (place,) = asset["destinations"].values()
        _create_bucket(s3, place["bucketName"])
        s3.upload_file(str(_packed(assembly, asset["source"])), place["bucketName"], place["objectKey"])
    return {name: output["Value"] for name, output in outputs.items()}


def _packed(assembly: Path, source: Mapping[str, str]) -> Path:
    """Return the file to upload. The CDK's command zips folders."""
    path = assembly / source["path"]
    if source["packaging"] == "zip":
        return Path(shutil.make_archive(str(path), "zip", path))
    return path


def _create_bucket(s3: S3Client, name: str) -> None:
    if name not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=name)
