"""The requests to AWS Glue's Data Catalog. No other module sends any."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore.config import Config

from spark_app.catalog.catalog_table import (
    SCHEMA_PARAMETERS,
    CatalogTable,
    partition_inputs,
    table_inputs,
)
from tributary.contract.errors import TributaryError

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_glue.type_defs import PartitionInputTypeDef, PartitionTypeDef, TableInputTypeDef

_MOST_CREATED = 100
_MOST_DELETED = 25
"""The most partitions in one request: Glue's BatchCreatePartition and BatchUpdatePartition take 100,
BatchDeletePartition 25."""


T = TypeVar("T")


class PartitionsRefused(TributaryError):
    """Glue refused some partitions of a request."""


def glue_client(endpoint: str | None = None) -> GlueClient:
    """Return a Glue client with the environment's region and credentials.

    It gives up soon if Glue does not answer, because its caller retries.
    """
    config = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 2})
    # AWS services set AWS_REGION, but Boto3 reads only AWS_DEFAULT_REGION.
    region = os.environ.get("AWS_REGION")
    return boto3.client("glue", region_name=region, endpoint_url=endpoint, config=config)


class GlueCatalog:
    """One database of the catalog.

    Methods raise Botocore's `BotoCoreError` and `ClientError`, and `PartitionsRefused`. Work done before the
    error remains, and repeating all of it is safe.
    """

    def __init__(self, client: GlueClient, database: str) -> None:
        self._client = client
        self._database = database

    def show_table(self, table: CatalogTable, partitions: frozenset[str]) -> None:
        """Bring all of the table's names and partitions in the catalog up to date, from any earlier state.

        `partitions` are the paths of all the table's partitions, empty for a table without partition keys.
        """
        self._create_database_if_missing()
        for wanted in table_inputs(table):
            self._show_name(wanted)
            if table.partition_keys:
                self._show_partitions(wanted["Name"], partition_inputs(table, wanted["Name"], partitions))

    def add_partitions(self, table: CatalogTable, partitions: frozenset[str]) -> None:
        """Add partitions to a table whose entry is otherwise up to date."""
        for view in table.view_names:
            self._create_partitions(view, partition_inputs(table, view, partitions))

    def _create_database_if_missing(self) -> None:
        try:
            self._client.get_database(Name=self._database)
        except self._client.exceptions.EntityNotFoundException:
            self._client.create_database(DatabaseInput={"Name": self._database})

    def _show_name(self, wanted: TableInputTypeDef) -> None:
        try:
            found = self._client.get_table(DatabaseName=self._database, Name=wanted["Name"])["Table"]
        except self._client.exceptions.EntityNotFoundException:
            self._client.create_table(DatabaseName=self._database, TableInput=wanted)
            return
        if _holds(found, wanted):
            return
        # Keep parameters that others have added, such as a table optimizer.
        kept = {
            name: value
            for name, value in found.get("Parameters", {}).items()
            if not name.startswith(SCHEMA_PARAMETERS)
        }
        merged: TableInputTypeDef = {**wanted, "Parameters": {**kept, **wanted.get("Parameters", {})}}
        self._client.update_table(DatabaseName=self._database, TableInput=merged, SkipArchive=True)

    def _show_partitions(self, view: str, wanted: Sequence[PartitionInputTypeDef]) -> None:
        found = {tuple(partition.get("Values", ())): partition for partition in self._read_partitions(view)}
        by_values = {tuple(partition.get("Values", ())): partition for partition in wanted}
        self._create_partitions(view, [p for values, p in by_values.items() if values not in found])
        changed = [p for values, p in by_values.items() if values in found and not _holds(found[values], p)]
        self._update_partitions(view, changed)
        self._delete_partitions(view, sorted(found.keys() - by_values.keys()))

    def _read_partitions(self, view: str) -> Iterator[PartitionTypeDef]:
        pages = self._client.get_paginator("get_partitions")
        for page in pages.paginate(DatabaseName=self._database, TableName=view):
            yield from page["Partitions"]

    def _create_partitions(self, view: str, wanted: Sequence[PartitionInputTypeDef]) -> None:
        for batch in _batches(wanted, _MOST_CREATED):
            answer = self._client.batch_create_partition(
                DatabaseName=self._database, TableName=view, PartitionInputList=batch
            )
            # An earlier attempt may have created some before it failed.
            _check_taken(view, answer.get("Errors", ()), but="AlreadyExistsException")

    def _update_partitions(self, view: str, changed: Sequence[PartitionInputTypeDef]) -> None:
        for batch in _batches(changed, _MOST_CREATED):
            answer = self._client.batch_update_partition(
                DatabaseName=self._database,
                TableName=view,
                Entries=[{"PartitionValueList": p.get("Values", ()), "PartitionInput": p} for p in batch],
            )
            _check_taken(view, answer.get("Errors", ()))

    def _delete_partitions(self, view: str, gone: Sequence[tuple[str, ...]]) -> None:
        for batch in _batches(gone, _MOST_DELETED):
            answer = self._client.batch_delete_partition(
                DatabaseName=self._database,
                TableName=view,
                PartitionsToDelete=[{"Values": list(values)} for values in batch],
            )
            _check_taken(view, answer.get("Errors", ()), but="EntityNotFoundException")


def _batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def _check_taken(view: str, errors: Sequence[Mapping[str, Any]], but: str = "") -> None:
    refused = [error for error in errors if error["ErrorDetail"]["ErrorCode"] != but]
    if refused:
        first = refused[0]
        raise PartitionsRefused(
            what=f"Glue refused {len(refused)} partitions",
            where=f"table {view}",
            found=f"{first['ErrorDetail']['ErrorCode']} for {first.get('PartitionValues')}",
        )


def _holds(found: Any, wanted: Any) -> bool:
    """Return whether everything wanted was found. Glue adds its own entries, so `found` may have more."""
    match wanted:
        case dict():
            return isinstance(found, dict) and all(_holds(found.get(k), v) for k, v in wanted.items())
        case list():
            return isinstance(found, list) and len(found) == len(wanted) and all(map(_holds, found, wanted))
    # Glue leaves out empty values.
    return bool(found == wanted or (found is None and wanted == ""))
