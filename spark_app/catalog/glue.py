"""AWS Glue's Data Catalog: the one module that sends it requests."""

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
"""Partitions in one request (Glue's BatchCreatePartition, BatchUpdatePartition; BatchDeletePartition)."""


T = TypeVar("T")


class PartitionsRefused(TributaryError):
    """Glue has not taken some partitions of a request."""


def glue_client(endpoint: str | None = None) -> GlueClient:
    """Region and credentials come from the environment. A Glue that does not answer is given up soon: whoever
    asked comes again."""
    config = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 2})
    # As everywhere on AWS; Boto3 by itself knows AWS_DEFAULT_REGION only.
    region = os.environ.get("AWS_REGION")
    return boto3.client("glue", region_name=region, endpoint_url=endpoint, config=config)


class GlueCatalog:
    """One database of the catalog. Its methods raise Botocore's `BotoCoreError` and `ClientError`, and
    `PartitionsRefused`; what they have done until then stands, and to do all of it again is safe."""

    def __init__(self, client: GlueClient, database: str) -> None:
        self._client = client
        self._database = database

    def show_table(self, table: CatalogTable, partitions: frozenset[str]) -> None:
        """Makes all of the table's names and partitions so, whatever the catalog says of them now.

        `partitions` are all that there are, as paths in the table; empty where it has no partition keys."""
        self._create_database_if_missing()
        for wanted in table_inputs(table):
            self._show_name(wanted)
            if table.partition_keys:
                self._show_partitions(wanted["Name"], partition_inputs(table, wanted["Name"], partitions))

    def add_partitions(self, table: CatalogTable, partitions: frozenset[str]) -> None:
        """Adds partitions to a table that is shown as it is."""
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
        # Others may have put parameters of their own there, such as a table optimizer's.
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
            # An attempt that failed half-way has made some.
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
            what=f"Glue has refused {len(refused)} partitions",
            where=f"table {view}",
            found=f"{first['ErrorDetail']['ErrorCode']} for {first.get('PartitionValues')}",
        )


def _holds(found: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there. Glue adds to what it is given."""
    match wanted:
        case dict():
            return isinstance(found, dict) and all(_holds(found.get(k), v) for k, v in wanted.items())
        case list():
            return isinstance(found, list) and len(found) == len(wanted) and all(map(_holds, found, wanted))
    # Glue leaves out what is empty.
    return bool(found == wanted or (found is None and wanted == ""))
