"""The tables of the deployed lake according to its buckets, and the tables with errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from spark_app.run.outcome import OUTCOME_FILE, Outcome
from tributary.contract.acceleration import CHOSEN_STEPS_FILE, ChosenSteps
from tributary.contract.lake import Lake
from tributary.contract.naming import LakeNames
from tributary.contract.orphan import ORPHANS_FOLDER, DecidedOrphan
from tributary.contract.orphan import from_json as decided_orphan
from tributary.contract.preflight import Preflight, preflight_file
from tributary.contract.source_look import look_name
from tributary.contract.table_name import TableName
from tributary.operations.snapshots.record_files import Look
from tributary.operations.verify.record import RECORDS_FOLDER, Verification, from_json

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_LEVELS = 3
"""The levels of a table's path: source, schema and table (`LakeNames.table_path`)."""
_READERS = 8


def read_table_names(s3: S3Client, names: LakeNames, *uris: str) -> tuple[TableName, ...]:
    """Return the tables with a folder below one of the addresses: s3://bucket, or s3://bucket/prefix."""
    tables = {names.table_of_path(folder) for uri in uris for folder in _folders(s3, *_split(uri))}
    return tuple(sorted(table for table in tables if table is not None))


def read_outcomes(s3: S3Client, names: LakeNames, quarantine: str) -> Mapping[TableName, Outcome]:
    """Return the outcomes of the tables that have errors."""
    bucket, prefix = _split(quarantine)

    def read(table: TableName) -> Outcome | None:
        try:
            found = s3.get_object(Bucket=bucket, Key=f"{prefix}{names.table_path(table)}/{OUTCOME_FILE}")
        except s3.exceptions.NoSuchKey:
            return None
        return Outcome.from_json(found["Body"].read().decode())

    tables = read_table_names(s3, names, quarantine)
    with ThreadPoolExecutor(_READERS) as pool:
        outcomes = zip(tables, pool.map(read, tables), strict=True)
        return {table: outcome for table, outcome in outcomes if outcome is not None}


def read_verifications(s3: S3Client, quarantine: str) -> Mapping[TableName, Verification]:
    """Return what the last verification of each table has found."""
    bucket, prefix = _split(quarantine)
    keys = list(_keys(s3, bucket, f"{prefix}{RECORDS_FOLDER}/"))

    def read(key: str) -> Verification | None:
        text = _read_text(s3, bucket, key)
        return None if text is None else from_json(text)

    with ThreadPoolExecutor(_READERS) as pool:
        return {one.table: one for one in pool.map(read, keys) if one is not None}


def read_looks(s3: S3Client, lake: Lake, quarantine: str) -> Mapping[str, Look]:
    """Return the last look at each source that somebody has looked at, by the source's name."""
    bucket, prefix = _split(quarantine)
    texts = {one.name: _read_text(s3, bucket, f"{prefix}{look_name(one.name)}") for one in lake.sources}
    looks = {name: Look.from_json(text) for name, text in texts.items() if text is not None}
    return {name: look for name, look in looks.items() if look is not None}


def read_decided_orphans(s3: S3Client, quarantine: str) -> Mapping[TableName, DecidedOrphan]:
    """Return what somebody has decided about orphans."""
    bucket, prefix = _split(quarantine)
    texts = [_read_text(s3, bucket, key) for key in _keys(s3, bucket, f"{prefix}{ORPHANS_FOLDER}/")]
    decided = [decided_orphan(text) for text in texts if text is not None]
    return {one.table: one for one in decided if one is not None}


def read_chosen_steps(s3: S3Client, quarantine: str) -> ChosenSteps | None:
    """Return the steps that the last ingest has chosen, or None before the first one."""
    bucket, prefix = _split(quarantine)
    try:
        found = s3.get_object(Bucket=bucket, Key=f"{prefix}{CHOSEN_STEPS_FILE}")
    except s3.exceptions.NoSuchKey:
        return None
    return ChosenSteps.from_json(found["Body"].read().decode())


def read_preflight(s3: S3Client, quarantine: str, release: str) -> Preflight | None:
    """Return the result of the last preflight on the release, or None if there was none."""
    bucket, prefix = _split(quarantine)
    try:
        found = s3.get_object(Bucket=bucket, Key=f"{prefix}{preflight_file(release)}")
    except s3.exceptions.NoSuchKey:
        return None
    return Preflight.from_json(found["Body"].read().decode())


def _keys(s3: S3Client, bucket: str, prefix: str) -> Iterator[str]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        yield from (found["Key"] for found in page.get("Contents", ()))


def _read_text(s3: S3Client, bucket: str, key: str) -> str | None:
    """Return an object's text, or None if there is no such object."""
    try:
        return s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
    except s3.exceptions.NoSuchKey:
        return None


def _folders(s3: S3Client, bucket: str, prefix: str) -> Iterator[str]:
    """Yield the folders three levels below the prefix, without the prefix."""
    folders = [prefix]
    for _ in range(_LEVELS):
        folders = [below for folder in folders for below in _folders_in(s3, bucket, folder)]
    yield from (folder.removeprefix(prefix) for folder in folders)


def _folders_in(s3: S3Client, bucket: str, prefix: str) -> Iterator[str]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/"):
        yield from (found["Prefix"] for found in page.get("CommonPrefixes", ()))


def _split(uri: str) -> tuple[str, str]:
    """Return bucket and prefix. The prefix is empty or ends with a slash."""
    bucket, _, prefix = uri.removeprefix("s3://").rstrip("/").partition("/")
    return bucket, f"{prefix}/" if prefix else ""
