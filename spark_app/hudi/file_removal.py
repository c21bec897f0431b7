"""Remove files. On S3, one request removes a thousand files, or one file if the order matters.

For each file, Hadoop's S3A makes three requests, one of which lists the folder (S3AFileSystem#delete, Hadoop
3.3)."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ErrorTypeDef, ObjectIdentifierTypeDef

_MOST_KEYS = 1000
"""The most keys in one request (S3's DeleteObjects)."""


class FilesNotRemoved(OSError):
    """S3 did not answer a request to remove files, or did not remove some of them."""


def remove_files(spark: SparkSession, folder: str, files: Collection[str]) -> None:
    """Remove the files, given as paths in the folder. Files that are already gone are no error.

    `folder` is a Hadoop path. Raises `FilesNotRemoved`. Files removed before the error stay removed."""
    _remove(spark, folder, list(files), most_at_once=_MOST_KEYS)


def remove_files_in_order(spark: SparkSession, folder: str, files: Sequence[str]) -> None:
    """Do the same as `remove_files`, but remove each file only after the one before it is gone."""
    _remove(spark, folder, files, most_at_once=1)


def _remove(spark: SparkSession, folder: str, files: Sequence[str], most_at_once: int) -> None:
    if not files:
        return
    scheme, _, place = folder.partition("://")
    jvm: Any = spark._jvm
    hadoop_conf = spark.sparkContext._jsc.hadoopConfiguration()
    if scheme in ("s3", "s3a"):
        bucket, _, prefix = place.partition("/")
        client = _s3_client(hadoop_conf, bucket)
        keys = [f"{prefix}/{file}" for file in files]
        for first in range(0, len(keys), most_at_once):
            _remove_objects(client, bucket, keys[first : first + most_at_once])
        return
    path = jvm.org.apache.hadoop.fs.Path
    file_system = path(folder).getFileSystem(hadoop_conf)
    for file in files:
        file_system.delete(path(f"{folder}/{file}"), False)


def _remove_objects(client: S3Client, bucket: str, keys: Sequence[str]) -> None:
    refusals: Sequence[ErrorTypeDef] = ()
    try:
        if len(keys) == 1:
            client.delete_object(Bucket=bucket, Key=keys[0])
        else:
            objects: list[ObjectIdentifierTypeDef] = [{"Key": key} for key in keys]
            answer = client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
            refusals = answer.get("Errors", ())
    except (BotoCoreError, ClientError) as error:
        raise FilesNotRemoved(f"S3 could not be asked to remove files of {bucket}: {error}") from error
    for refused in refusals:
        raise FilesNotRemoved(f"S3 has not removed a file of {bucket}: {refused}")


def _s3_client(hadoop_conf: Any, bucket: str) -> S3Client:
    """Return a client that reaches the bucket as S3A does.

    If Hadoop has no settings for the bucket, the client uses the defaults of AWS."""

    def setting(name: str) -> str | None:
        found = hadoop_conf.get(f"fs.s3a.bucket.{bucket}.{name}") or hadoop_conf.get(f"fs.s3a.{name}")
        return str(found) if found else None

    endpoint = setting("endpoint")
    return boto3.client(
        "s3",
        region_name=setting("endpoint.region") or os.environ.get("AWS_REGION"),
        endpoint_url=endpoint if endpoint is None or "://" in endpoint else f"https://{endpoint}",
        aws_access_key_id=setting("access.key"),
        aws_secret_access_key=setting("secret.key"),
        config=Config(
            s3={"addressing_style": "path" if setting("path.style.access") == "true" else "auto"},
            connect_timeout=5,
            read_timeout=60,
            retries={"mode": "standard", "total_max_attempts": 3},
        ),
    )
