"""Reconcile tables of items: every item of the database against every row of the lake, value by value.

The database of items tells no position up to which it was read. So while an ingest runs, a table that differs
is compared again until it is equal or the time is up."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import boto3
import pyarrow as pa
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
)

from connectors.engines.engine import DatabaseColumn, DatabaseTable
from connectors.engines.forms import BOOLEAN, BYTES, FLOAT, INTEGER, NUMBER, TEXT, Form, list_of
from spark_app.columns.table_columns import TableColumns
from spark_app.wire.items.attributes import Item, NotAnAttribute
from spark_app.wire.items.decoder import ItemDecoder, Misfit
from spark_app.wire.items.item_columns import Attributes, ItemColumns
from spark_app.wire.items.numbers import number, number_text
from spark_app.wire.items.record import ItemChange
from tributary.api.lake_files import LakeFiles
from tributary.api.rows import read_table, without_key_parts
from tributary.api.tables import read_silver_tables
from tributary.api.timeline import read_last_commit
from tributary.contract.column_names import OWN_COLUMNS
from tributary.contract.errors import TributaryError
from tributary.contract.item_stream import ITEM_SCHEMA, ItemRules, ItemStream
from tributary.contract.lake import Lake
from tributary.contract.source import Source
from tributary.contract.table_name import TableName
from tributary.operations.reconcile.barrier import Patience
from tributary.operations.reconcile.comparison import Comparison, compare
from tributary.operations.reconcile.pairing import Pairing, comparable_lake_rows, pair
from tributary.operations.reconcile.proof import TableProof
from tributary.operations.reconcile.rounds import Findings

SECONDS_BETWEEN_ROUNDS = 1.0
ROWS_AT_ONCE = 5_000


class ItemsUnreadable(TributaryError):
    """The database of items does not answer, or refuses an answer."""


@dataclass(frozen=True)
class ItemLink:
    """A source of items, with access to its database and its lake tables.

    silver        the bucket of the tables, with a prefix if there is one
    is_ingesting  whether something brings the lake up to date meanwhile
    """

    lake: Lake
    source: Source
    dynamodb: Any
    files: LakeFiles
    silver: str
    is_ingesting: bool


def dynamodb_client(stream: ItemStream, local_endpoint: str, local_region: str) -> Any:
    """Return a client for the source's database: the one of this machine, unless the lake file names another.

    Both take any credentials."""
    session: Any = boto3.session.Session("local", "local")
    return session.client(
        "dynamodb",
        endpoint_url=stream.database_endpoint or local_endpoint,
        region_name=stream.region_of_stream or local_region,
        config=Config(connect_timeout=5, read_timeout=60, retries={"total_max_attempts": 4}),
    )


def reconcile_items(link: ItemLink, patience: Patience) -> tuple[TableProof, ...]:
    """Compare all tables of the source. Raises `ItemsUnreadable`."""
    try:
        pages = link.dynamodb.get_paginator("list_tables").paginate()
        names = sorted(name for page in pages for name in page["TableNames"])
        taken = [name for name in names if link.source.matches(ITEM_SCHEMA, name)]
        return tuple(_prove(link, name, patience) for name in taken)
    except (BotoCoreError, ClientError) as error:
        raise ItemsUnreadable(
            "The items cannot be read", where=f"[source.{link.source.name}]", found=str(error)
        ) from error


def _prove(link: ItemLink, table: str, patience: Patience) -> TableProof:
    name = TableName(link.source.name, ITEM_SCHEMA, table)
    while True:
        patience.tell(f"comparing {name}")
        items = list(_read_items(link.dynamodb, table))
        try:
            comparison, pairing = _compared(link, name, items)
        except (NotAnAttribute, Misfit) as error:
            return TableProof(name, problem=f"an item does not fit the lake file's types: {error}")
        is_late = time.monotonic() >= patience.deadline or patience.stop.is_set()
        is_over = is_late or not link.is_ingesting
        if is_over or (comparison.identical and not pairing.mismatched):
            differences = {each.key: each for each in comparison.differences}
            return TableProof(name, Findings(comparison.rows, certain=differences, rounds=1), pairing)
        patience.stop.wait(SECONDS_BETWEEN_ROUNDS)


def _compared(link: ItemLink, name: TableName, items: Sequence[Item]) -> tuple[Comparison, Pairing]:
    rules, names = link.source.item_rules(name.table), link.lake.names
    assert rules is not None, "the source is one of items"
    path = f"{link.silver}/{names.table_path(name)}"
    silver = read_silver_tables(link.files.filesystem, names, link.silver)
    places = {place.name: place for place in silver}
    lake = pa.table({}) if name not in places else read_table(link.files, places[name])
    lake = without_key_parts(lake, link.lake.policy(name))
    commit = read_last_commit(link.files.filesystem, path) if name in places else None
    lake_key = () if commit is None else commit.ledger.key_columns
    return compare_items(rules, items, _key_of(link.dynamodb, name.table), lake, lake_key)


def compare_items(
    rules: ItemRules, items: Sequence[Item], key: Sequence[str], lake: pa.Table, lake_key: tuple[str, ...]
) -> tuple[Comparison, Pairing]:
    """Compare items with the rows of their lake table. Raises `Misfit` and `NotAnAttribute`.

    key       the attributes of the key
    lake_key  the key's columns in the lake; empty if there is no table
    """
    decoder = _decoder(rules, _columns_of(lake, lake_key), key, items)
    table = _database_table(decoder.columns)
    pairing = pair(table, lake.schema, decoder.columns.key)
    rows = _batches(decoder, items, pairing)
    return compare(rows, comparable_lake_rows(lake, pairing), pairing.schema, pairing.key), pairing


def _decoder(
    rules: ItemRules, current: TableColumns | None, key: Sequence[str], items: Sequence[Item]
) -> ItemDecoder:
    """Return what turns the items into rows with the lake's columns, and with columns that the lake lacks."""
    seen = Attributes(tuple(sorted(key)))
    for item in items:
        seen = seen.with_item({part: item[part] for part in key}, item)
    columns = ItemColumns(rules).columns(current, seen)
    assert columns is not None, "the key is known"
    return ItemDecoder(ItemColumns(rules), columns)


def _batches(decoder: ItemDecoder, items: Sequence[Item], pairing: Pairing) -> Iterator[pa.RecordBatch]:
    key = [name for name in decoder.columns.names if name in decoder.columns.key]
    for begin in range(0, len(items), ROWS_AT_ONCE):
        rows = []
        for item in items[begin : begin + ROWS_AT_ONCE]:
            keys = {name: value for name, value in item.items() if decoder.column(name) in key}
            row = decoder.row(ItemChange("c", 0, keys, item, by_ttl=False))
            values = dict(zip(decoder.columns.names, row, strict=True))
            rows.append({name: _comparable(values[name], form) for name, form in pairing.forms.items()})
        yield pa.RecordBatch.from_pylist(rows, pairing.schema)


def _comparable(value: Any, form: Form) -> Any:
    if isinstance(value, list):
        return [_comparable(each, _ELEMENTS[form.name]) for each in value]
    if value is None or form is not NUMBER:
        return bytes(value) if isinstance(value, bytearray) else value
    return number_text(number(str(value)))


_ELEMENTS = {list_of(form).name: form for form in (INTEGER, NUMBER, TEXT, BYTES)}


def _database_table(columns: TableColumns) -> DatabaseTable:
    found = (DatabaseColumn(name, each.simpleString(), _form(each)) for name, each in columns.row)
    return DatabaseTable(ITEM_SCHEMA, "", tuple(found), columns.key)


def _form(data_type: DataType) -> Form:
    match data_type:
        case ArrayType():
            return list_of(_form(data_type.elementType))
        case LongType():
            return INTEGER
        case DecimalType():
            return NUMBER
        case DoubleType():
            return FLOAT
        case BooleanType():
            return BOOLEAN
        case BinaryType():
            return BYTES
        case _:
            return TEXT


def _columns_of(lake: pa.Table, key: tuple[str, ...]) -> TableColumns | None:
    """Return the columns of the lake's table; None if there is no table."""
    if not lake.column_names:
        return None
    fields = [field for field in lake.schema if field.name not in OWN_COLUMNS]
    return TableColumns(tuple((field.name, _spark_type(field.type)) for field in fields), key)


def _spark_type(found: pa.DataType) -> DataType:
    if pa.types.is_list(found):
        return ArrayType(_spark_type(found.value_type))
    if pa.types.is_decimal(found):
        return DecimalType(found.precision, found.scale)
    if pa.types.is_binary(found) or pa.types.is_large_binary(found):
        return BinaryType()
    kinds = {pa.int64(): LongType(), pa.float64(): DoubleType(), pa.bool_(): BooleanType()}
    return kinds.get(found, StringType())


def _key_of(dynamodb: Any, table: str) -> list[str]:
    schema = dynamodb.describe_table(TableName=table)["Table"]["KeySchema"]
    return [part["AttributeName"] for part in schema]


def _read_items(dynamodb: Any, table: str) -> Iterator[Item]:
    """Yield all items, in the form in which records have them: binary values in base64."""
    for page in dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        yield from json.loads(json.dumps(page["Items"], default=_base64))


def _base64(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    raise TypeError(type(value).__name__)
