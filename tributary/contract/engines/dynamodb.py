"""DynamoDB in the lake file: its tables, the Kinesis stream of their changes, and how items become rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, PlainValidator

from tributary.contract.column_types import ColumnType, NotAColumnType
from tributary.contract.entries import Duration, Entry, Problem, as_tuple, expecting, matching
from tributary.contract.item_stream import ITEM_SCHEMA, Attributes, ItemRules, ItemStream, TtlDeletes
from tributary.contract.patterns import TablePatterns
from tributary.contract.source import Source

MOST_DIGITS = 38
"""The precision of DynamoDB's numbers, and of the lake's decimals."""

TYPES = ("text", "bigint", "numeric", "double precision", "boolean", "bytea", "json")
"""The column types that an attribute can be given."""

_EXPECTED_PATTERN = (
    'tables with * and ? as wildcards, such as "orders" or "shop_*", and none that only "!" excludes; '
    "letters, digits, _ and - (a dot would not survive in the names that follow)"
)
_EXPECTED_TYPE = f"{', '.join(TYPES)}; numeric needs its digits, as in numeric(18,2), at most {MOST_DIGITS}"


def _table_patterns(texts: tuple[str, ...]) -> tuple[str, ...]:
    is_pattern = [re.fullmatch(r"!?[A-Za-z0-9_*?-]{1,255}", text) is not None for text in texts]
    if not all(is_pattern) or all(text.startswith("!") for text in texts):
        raise expecting(_EXPECTED_PATTERN)
    return texts


TablePatternTexts = Annotated[tuple[str, ...], BeforeValidator(as_tuple), AfterValidator(_table_patterns)]
StreamText = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_.-]{1,128}|arn:aws[a-z-]*:kinesis:[a-z0-9-]+:[0-9]{12}:stream/[A-Za-z0-9_.-]{1,128}",
        "the name or the ARN of a Kinesis data stream",
    ),
]
Region = Annotated[str, matching(r"[a-z]{2}(-[a-z]+)+-[0-9]", 'a region, such as "eu-central-1"')]
Url = Annotated[str, matching(r"https?://[^\s/]+/?", 'an address, such as "http://127.0.0.1:4567"')]
TypesOfTables = tuple[tuple[str, tuple[tuple[str, ColumnType], ...]], ...]


def _types(value: object) -> TypesOfTables:
    expected = 'tables, each with attributes and their types: { orders = { amount = "numeric(18,2)" } }'
    if not isinstance(value, dict) or not all(isinstance(types, dict) for types in value.values()):
        raise expecting(expected)
    return tuple(
        (table, tuple((name, _type(text)) for name, text in types.items())) for table, types in value.items()
    )


Exports = tuple[tuple[str, str], ...]
_EXPORT = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/(?:[^?*]+/)?AWSDynamoDB/[A-Za-z0-9-]+/?")


def _exports(value: object) -> Exports:
    expected = 'tables and the folders of their exports: { orders = "s3://bucket/prefix/AWSDynamoDB/ID" }'
    if not isinstance(value, dict) or not all(
        isinstance(text, str) and _EXPORT.fullmatch(text) for text in value.values()
    ):
        raise expecting(expected)
    return tuple(value.items())


def _type(text: object) -> ColumnType:
    try:
        found = ColumnType.parse(text) if isinstance(text, str) else None
    except NotAColumnType:
        found = None
    if found is None or found.is_array or found.name not in TYPES or not _has_good_digits(found):
        raise expecting(_EXPECTED_TYPE)
    return found


def _has_good_digits(column_type: ColumnType) -> bool:
    if column_type.name != "numeric":
        return True
    precision, scale = (*column_type.arguments, 0, 0)[:2]
    return 1 <= precision <= MOST_DIGITS and scale <= precision


class Endpoints(Entry):
    """`[source.NAME.endpoints]`: services that stand for AWS's. Without it, `tributary up` starts its own."""

    kinesis: Url
    dynamodb: Url


class DynamoDbSource(Source):
    """`[source.NAME]`: tables of DynamoDB whose changes go to one Kinesis data stream.

    tables           patterns of table names; there are no schemas
    stream           the name or the ARN of the stream
    region           of the tables and the stream
    attributes       "columns" or "json"
    types            by table and attribute, types that stay as they are
    ttl_deletes      whether a delete by the table's time to live is applied, or the row stays
    initial_load     whether all items of a new table are read once
    exports          by table, the folder of an export to S3 that these items come from, in place of a scan
    deletes_remembered  how long a deleted key is remembered, so that no late change brings its row back
    """

    engine: Literal["dynamodb"]
    tables: TablePatternTexts
    stream: StreamText
    region: Region | None = None
    attributes: Attributes = "columns"
    types: Annotated[TypesOfTables, PlainValidator(_types)] = ()
    ttl_deletes: TtlDeletes = "apply"
    deletes_remembered: Duration = timedelta(hours=24)
    initial_load: bool = True
    exports: Annotated[Exports, PlainValidator(_exports)] = ()
    endpoints: Endpoints | None = None

    @cached_property
    def patterns(self) -> TablePatterns:
        texts = (
            f"!{ITEM_SCHEMA}.{text[1:]}" if text.startswith("!") else f"{ITEM_SCHEMA}.{text}"
            for text in self.tables
        )
        return TablePatterns.parse(tuple(texts))

    @property
    def item_stream(self) -> ItemStream:
        endpoints = self.endpoints
        return ItemStream(
            self.stream,
            self.region,
            stream_endpoint=None if endpoints is None else endpoints.kinesis,
            database_endpoint=None if endpoints is None else endpoints.dynamodb,
            initial_load=self.initial_load,
            exports=self.exports,
        )

    def item_rules(self, table: str) -> ItemRules:
        return ItemRules(
            self.attributes, dict(self.types).get(table, ()), self.ttl_deletes, self.deletes_remembered
        )

    def problems(self, entry: str) -> Iterator[Problem]:
        """Yield what no single key shows. `entry` is the section's name in errors."""
        yield from super().problems(entry)
        section = entry[:-1]
        if self.connection is not None:
            yield Problem(
                f"{section}.connection]",
                "DynamoDB has no server to connect to",
                "a section",
                f"{section}.endpoints], or nothing: then AWS's own services are read",
            )
        if self.partitions != 1:
            yield Problem(
                f"{entry}.partitions",
                "a stream of items has no partitions",
                str(self.partitions),
                "no entry: the shards of the stream take the place of partitions",
            )
        for key, what, tables in (("types", "types", self.types), ("exports", "an export", self.exports)):
            for table, _ in tables:
                if not self.matches(ITEM_SCHEMA, table):
                    expected = f"a table that {entry}.tables takes: {', '.join(self.tables)}"
                    yield Problem(f"{entry}.{key}", f"{what} of a table that is not taken", table, expected)
        if self.exports and not self.initial_load:
            yield Problem(
                f"{entry}.exports", "exports, although no items are read", "initial_load = false", "true"
            )
        arn_region = self.stream.split(":")[3] if self.stream.startswith("arn:") else None
        if self.region is not None and arn_region not in (None, self.region):
            yield Problem(f"{entry}.region", "another region than the stream's", self.region, str(arn_region))

    def problems_beside(self, name: str, others: Mapping[str, Source]) -> Iterator[Problem]:
        for other, source in others.items():
            if isinstance(source, DynamoDbSource) and source.item_stream.may_be(self.item_stream):
                yield Problem(
                    f"[source.{name}].stream",
                    f"the source {other} reads the same stream, and Kinesis answers only five reads a second",
                    self.stream,
                    f"another stream, or these tables in [source.{other}]",
                )

    def problems_on_aws(self, name: str, _aws: Any) -> Iterator[Problem]:
        if self.endpoints is not None:
            yield Problem(
                f"[source.{name}.endpoints]",
                "a lake on AWS reads AWS's own services",
                "a section with addresses",
                "no such section",
            )
