"""Versions of objects in the lake's buckets, which S3 keeps for some days after an object was removed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tributary.api.open_lake import OpenLake
from tributary.contract.erasure import DAYS_OF_UNDOING
from tributary.contract.errors import TributaryError
from tributary.contract.item_stream import DELETED_KEYS_FOLDER
from tributary.contract.table_name import TableName

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef


class VersionsLeft(TributaryError):
    """S3 refused to remove versions of objects."""


@dataclass(frozen=True)
class Folder:
    """A part of a bucket: the objects whose names begin with `prefix`."""

    bucket: str
    prefix: str

    @classmethod
    def of(cls, path: str) -> Folder:
        """Return the folder at `path`, which begins with the bucket's name."""
        bucket, _, prefix = path.partition("/")
        return cls(bucket, prefix)


def kept_until(removed: datetime) -> datetime:
    """Return when S3 may remove the versions of what was removed: it rounds up to midnight, UTC."""
    day = (removed + timedelta(days=DAYS_OF_UNDOING)).astimezone(UTC)
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)


def folders_of(lake: OpenLake, table: TableName) -> tuple[Folder, ...]:
    """Return the folders in which an erasure of the table's keys removes files.

    Bronze's metadata is that of all topics in the same table of bronze. Its removed files belong to removed
    snapshots.
    """
    names, source = lake.lake.names, lake.lake.source(table.source)
    path, of_source = names.table_path(table), lake.lake.source_names(source)
    events, topics = "events", [of_source.topic(table.schema, table.table)]
    in_quarantine = [path]
    if source.item_stream is not None:
        # Damaged records without the name of a table are in a topic of their own.
        events, topics = names.records_table(source.name), [*topics, of_source.topic_prefix]
        in_quarantine.append(f"{DELETED_KEYS_FOLDER}/{path}")
    in_bronze = [
        f"{lake.bronze}/{database}/{events}/{folder}/"
        for database in (names.bronze_namespace, f"{names.bronze_namespace}.db")
        for folder in (*(f"data/k_topic={topic}" for topic in topics), "metadata")
    ]
    quarantine = (f"{lake.quarantine}/{folder}/" for folder in in_quarantine)
    paths = (f"{lake.silver}/{path}/", *quarantine, *in_bronze)
    return tuple(map(Folder.of, paths))


def check_removal(s3: S3Client, folder: Folder) -> None:
    """Check that the caller may list and remove versions in the folder, with a version that does not exist.

    Raises VersionsLeft and boto3's errors.
    """
    s3.list_object_versions(Bucket=folder.bucket, Prefix=folder.prefix, MaxKeys=1)
    _delete(s3, folder, [{"Key": f"{folder.prefix}{uuid.uuid4().hex}", "VersionId": "null"}])


def remove_noncurrent_versions(s3: S3Client, folder: Folder) -> int:
    """Remove the versions of removed and overwritten objects, and return how many there were.

    No current object changes. A delete marker that is the latest version stays, because without it, an older
    version could come back. Raises VersionsLeft and boto3's errors.
    """
    return _remove(s3, folder, lambda version: not version["IsLatest"])


def remove_all_versions(s3: S3Client, folder: Folder) -> int:
    """Remove the objects with all their versions and delete markers, and return how many there were.

    Raises VersionsLeft and boto3's errors.
    """
    return _remove(s3, folder, lambda _: True)


def _remove(s3: S3Client, folder: Folder, is_wanted: Callable[[Mapping[str, Any]], bool]) -> int:
    removed = 0
    # A page has at most as many versions as one request removes.
    for versions in _pages(s3, folder):
        wanted = [version for version in versions if is_wanted(version)]
        if not wanted:
            continue
        _delete(s3, folder, [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in wanted])
        removed += len(wanted)
    return removed


def _delete(s3: S3Client, folder: Folder, versions: Sequence[ObjectIdentifierTypeDef]) -> None:
    answer = s3.delete_objects(Bucket=folder.bucket, Delete={"Objects": versions, "Quiet": True})
    # A version that is gone, or was never there, needs no removal.
    errors = [
        one for one in answer.get("Errors", ()) if one.get("Code") not in ("NoSuchKey", "NoSuchVersion")
    ]
    if errors:
        first = errors[0]
        raise VersionsLeft(
            "S3 refuses to remove versions of objects",
            where=f"s3://{folder.bucket}/{folder.prefix}",
            found=f"{first.get('Code')}: {first.get('Message')}",
            expected="credentials with the right to s3:DeleteObjectVersion",
        )


def _pages(s3: S3Client, folder: Folder) -> Iterator[list[Mapping[str, Any]]]:
    pages = s3.get_paginator("list_object_versions")
    for page in pages.paginate(Bucket=folder.bucket, Prefix=folder.prefix):
        yield [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
