"""Read all items of a table once, as records, so that the lake has those that nobody changes.

In a stream's places, the items of a table are like one more shard. So they land like its records, and a crash
in between continues at the next page."""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from spark_app.sources.kinesis.item_export import ItemExport
from spark_app.sources.kinesis.places import Shard, ShardPlace
from spark_app.sources.kinesis.shard_reader import FIRST_WAIT_SECONDS, Fetched
from spark_app.sources.kinesis.stream import Record, Stream, StreamUnreadable, Throttled, region_here
from tributary.contract.item_stream import ItemStream
from tributary.contract.patterns import WILDCARDS, TablePatterns
from tributary.contract.remedies import EditLakeFile

ITEMS_OF = "items of "
"""The beginning of the names under which the items of tables are in the places. No shard has such a name."""

BYTES_AT_ONCE = 16 << 20

MARGIN_MS = 60_000
"""An item counts as written this long before it was read, so any change from about that time is newer.

Such a change then comes again, which alters nothing. The margin covers clocks that differ."""


@dataclass(frozen=True)
class Page:
    """Some items of a table.

    keys     the attributes of the key
    read_ms  when they were read, by the database's clock, in milliseconds since 1970
    next     where the next page begins, as JSON; None at the end
    origin   what the records of the items name as their source
    """

    items: Sequence[Mapping[str, Any]]
    keys: tuple[str, ...]
    read_ms: int
    next: str | None
    origin: str = "tributary:scan"


class ReadsTables(Protocol):
    """The requests of `ItemTables`."""

    def names(self) -> tuple[str, ...]: ...

    def page(self, table: str, begin: str | None) -> Page: ...


def shard_of_items(table: str) -> Shard:
    return Shard(f"{ITEMS_OF}{table}")


def is_of_items(shard: str) -> bool:
    return shard.startswith(ITEMS_OF)


@dataclass
class ItemReader:
    """Reads the items of one table, like a `ShardReader`. The place's `sequence` says where to read on."""

    tables: ReadsTables
    place: ShardPlace
    clock: Callable[[], float] = time.monotonic
    is_at_end: bool = field(default=False, init=False)
    is_refused: bool = field(default=False, init=False)
    _not_before: float = field(default=0.0, init=False)

    @property
    def is_due(self) -> bool:
        return self.clock() >= self._not_before

    def fetch(self) -> Fetched | None:
        """Return the next items; None if the database refused, so that it has to be asked later."""
        table, found, size = self.place.shard.removeprefix(ITEMS_OF), list[Record](), 0
        begin, is_over = self.place.sequence, False
        while not is_over and size < BYTES_AT_ONCE:
            try:
                page = self.tables.page(table, begin)
                self.is_refused = False
            except Throttled:
                self.is_refused = True
                self._not_before = self.clock() + FIRST_WAIT_SECONDS
                if not found:
                    return None
                break
            found += [_record(table, item, page) for item in page.items]
            size = sum(len(record.data) for record in found)
            begin, is_over = page.next, page.next is None
        self.is_at_end = is_over
        self.place = replace(self.place, sequence=begin, is_over=is_over)
        return Fetched(self.place, tuple(found), is_over)


@dataclass(frozen=True)
class ItemTables:
    """The tables that the patterns take. Raises `StreamUnreadable` where a person has to help."""

    of: ItemStream
    patterns: TablePatterns
    schema: str

    def names(self) -> tuple[str, ...]:
        """Return the tables that exist."""
        named = [pattern.table for pattern in self.patterns.include]
        if any(wildcard in name for name in named for wildcard in WILDCARDS):
            pages = self._asked(lambda: list(self._client.get_paginator("list_tables").paginate()))
            named = [name for page in pages for name in page["TableNames"]]
        taken = (name for name in named if self.patterns.matches(self.schema, name))
        return tuple(name for name in sorted(taken) if self._key(name))

    def page(self, table: str, begin: str | None) -> Page:
        if (export := self._exports.get(table)) is None:
            return self._scanned(table, begin)
        found = export.page(begin)
        return Page(found.items, self._key(table), export.time_ms, found.next, "tributary:export")

    def _scanned(self, table: str, begin: str | None) -> Page:
        # A place in an export is a list, and none in a scan.
        key = None if begin is None or begin.startswith("[") else _from_json(begin)
        start = {} if key is None else {"ExclusiveStartKey": key}
        found = self._asked(lambda: self._client.scan(TableName=table, ConsistentRead=True, **start))
        date = found["ResponseMetadata"]["HTTPHeaders"].get("date")
        read = time.time() if date is None else parsedate_to_datetime(date).timestamp()
        following = found.get("LastEvaluatedKey")
        return Page(
            items=found["Items"],
            keys=self._key(table),
            read_ms=int(read * 1000),
            next=None if following is None else _json(following),
        )

    def _key(self, table: str) -> tuple[str, ...]:
        """Return the attributes of the table's key; none if there is no such table."""
        if table not in self._keys:
            try:
                found = self._asked(lambda: self._client.describe_table(TableName=table))
            except StreamUnreadable as error:
                if _NO_TABLE in (error.found or ""):
                    return ()
                raise
            self._keys[table] = tuple(part["AttributeName"] for part in found["Table"]["KeySchema"])
        return self._keys[table]

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in ("ProvisionedThroughputExceededException", "ThrottlingException"):
                raise Throttled(str(error)) from error
            if code in (_NO_TABLE, "AccessDeniedException"):
                raise StreamUnreadable(
                    what="The items of a table cannot be read",
                    where=f"the source of the stream {self.of.name}",
                    found=str(error),
                    remedy=[
                        "Allow the app's role to list, describe and scan the tables.",
                        EditLakeFile("set initial_load = false in the source, to read no items"),
                    ],
                ) from error
            raise OSError(f"DynamoDB: {error}") from error
        except BotoCoreError as error:
            raise OSError(f"DynamoDB: {error}") from error

    @cached_property
    def _exports(self) -> Mapping[str, ItemExport]:
        """The exports by table. A database that stands for AWS's own has none."""
        if ".amazonaws." not in self._client.meta.endpoint_url:
            return {}
        facts = Stream(self.of).facts
        return {table: ItemExport(table, address, facts) for table, address in self.of.exports}

    @cached_property
    def _keys(self) -> dict[str, tuple[str, ...]]:
        return {}

    @cached_property
    def _client(self) -> Any:
        return boto3.client(
            "dynamodb",
            endpoint_url=self.of.database_endpoint,
            region_name=self.of.region_of_stream or region_here(),
            config=Config(retries={"total_max_attempts": 3, "mode": "standard"}),
        )


_NO_TABLE = "ResourceNotFoundException"


def _record(table: str, item: Mapping[str, Any], page: Page) -> Record:
    """Return an item in the form of a record that DynamoDB sends for a new one."""
    data = {
        "eventName": "INSERT",
        "userIdentity": None,
        "recordFormat": "application/json",
        "tableName": table,
        "dynamodb": {
            "ApproximateCreationDateTime": (page.read_ms - MARGIN_MS) * 1000,
            "Keys": {name: item[name] for name in page.keys},
            "NewImage": item,
            "ApproximateCreationDateTimePrecision": "MICROSECOND",
        },
        "eventSource": page.origin,
    }
    return Record("0", page.read_ms, "", _json(data).encode())


def _json(value: Any) -> str:
    def base64(each: object) -> str:
        if isinstance(each, bytes | bytearray):
            return b64encode(each).decode()
        raise TypeError(type(each).__name__)

    return json.dumps(value, separators=(",", ":"), default=base64)


def _from_json(key: str) -> Mapping[str, Any]:
    """Return a key as Boto3 takes it. Boto3 itself encodes bytes in base64."""
    return {
        name: {kind: b64decode(value) if kind == "B" else value}
        for name, attribute in json.loads(key).items()
        for kind, value in attribute.items()
    }
