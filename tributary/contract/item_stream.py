"""A stream of changed items, which the Spark app reads itself: no connector and no Kafka are between."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from tributary.contract.column_types import ColumnType

ITEM_SCHEMA = "dynamodb"
"""The schema of all tables of items, as in `shop.dynamodb.orders`. Their database has no schemas."""

DELETED_KEYS_FOLDER = "_deleted_keys"
"""The folder below the quarantine location with the keys of deleted rows. No table's path is like it."""

Attributes = Literal["columns", "json"]
TtlDeletes = Literal["apply", "ignore"]


@dataclass(frozen=True)
class ItemRules:
    """How the items of one table become rows.

    attributes   "columns": each attribute is a column; "json": all of them are one column with JSON
    types        the types that the lake file sets, by attribute; the types of all others follow from values
    ttl_deletes  whether a delete by the table's time to live deletes the row, too
    remembered   how long the key of a deleted row is remembered, so that no late change brings it back
    """

    attributes: Attributes = "columns"
    types: tuple[tuple[str, ColumnType], ...] = ()
    ttl_deletes: TtlDeletes = "apply"
    remembered: timedelta = timedelta(hours=24)


@dataclass(frozen=True)
class ItemStream:
    """Where the changes of a source's items come from.

    stream             a name or an ARN
    region             None: the region of the ARN, or the one in which the app runs
    stream_endpoint    the address of a service that stands for AWS's, None for AWS's own
    database_endpoint  the same for the database
    initial_load       whether the app reads all items of a new table once
    exports            by table, the address of an export to S3 that it reads them from, in place of a scan
    """

    stream: str
    region: str | None = None
    stream_endpoint: str | None = None
    database_endpoint: str | None = None
    initial_load: bool = True
    exports: tuple[tuple[str, str], ...] = ()

    @property
    def arn(self) -> str | None:
        return self.stream if self.stream.startswith("arn:") else None

    @property
    def name(self) -> str:
        return self.stream.rpartition("/")[2]

    @property
    def region_of_stream(self) -> str | None:
        return self.region or (self.arn.split(":")[3] if self.arn else None)

    def may_be(self, other: ItemStream) -> bool:
        """Return whether both can be one stream, as far as the lake file says where they are."""
        if self.arn and other.arn:
            return self.arn == other.arn
        return (self.stream_endpoint, self.region_of_stream, self.name) == (
            other.stream_endpoint,
            other.region_of_stream,
            other.name,
        )
