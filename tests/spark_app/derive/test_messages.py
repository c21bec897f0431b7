"""A message in Avro holds what the message in JSON holds, and its bytes name the schema."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType, YearMonthIntervalType

from spark_app.derive.messages import avro_messages, json_messages, value_schema
from spark_app.derive.result_rows import ResultNotUsable, table_rows
from spark_app.schema_registry.framing import SchemaId, unframed

TYPES = (
    "id bigint, b boolean, i int, f float, d double, n decimal(38,9), t string, x binary, "
    "day date, at timestamp, tags array<string>, place struct<city: string, rooms: array<struct<no: int>>>"
)
AT = datetime(2026, 3, 1, 12, 7, 0, 123456, tzinfo=UTC)
MANY_DIGITS = Decimal("12345678901234567890123456789.123456789")
ROWS: list[tuple[Any, ...]] = [
    (
        *(1, True, 2, 0.5, 0.25, MANY_DIGITS, "ü", b"\x00\xff", date(2026, 3, 1), AT),
        *(["a", None], ("Rome", [(1,), None])),
    ),
    (2, *[None] * 11),
    # Before the calendar of 1582, dates and times are those of ISO 8601, as in the lake.
    (3, *[None] * 7, date(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC), [], (None, None)),
]


@dataclass
class Store:
    """A registry that keeps schemas in a list."""

    schemas: list[tuple[str, str]] = field(default_factory=list)

    def add(self, topic: str, schema: str) -> SchemaId:
        self.schemas.append((topic, schema))
        return SchemaId.of_int32(len(self.schemas))


def decoded(value: bytes, store: Store) -> dict[str, Any]:
    framed = unframed(value)
    assert framed is not None
    assert framed.avro is not None
    schema = fastavro.parse_schema(json.loads(store.schemas[framed.schema.number - 1][1]))
    found = fastavro.schemaless_reader(io.BytesIO(framed.avro), schema, None)
    assert isinstance(found, dict)
    return found


def test_every_type_of_a_row_is_in_its_message(spark: SparkSession) -> None:
    rows = table_rows(spark.createDataFrame(ROWS, TYPES), ["id"], 1)
    store = Store()
    messages = avro_messages(rows, "totals", "shop.totals", store).collect()
    assert [topic for topic, _ in store.schemas] == ["shop.totals"]
    as_json = {bytes(row["key"]) for row in json_messages(rows).collect()}
    assert {bytes(row["key"]) for row in messages} == as_json == {b'{"id":%d}' % n for n in (1, 2, 3)}
    found = {row["id"]: row for row in (decoded(bytes(message["value"]), store) for message in messages)}
    names = ["id", "b", "i", "f", "d", "n", "t", "x", "day", "at", "tags", "place"]
    for row in ROWS:
        expected = dict(zip(names, row, strict=True))
        if row[-1] is not None:
            city, rooms = row[-1]
            listed = None if rooms is None else [None if room is None else {"no": room[0]} for room in rooms]
            expected["place"] = {"city": city, "rooms": listed}
        assert found[row[0]] == expected


def test_a_deleted_row_s_message_has_the_key_and_no_value(spark: SparkSession) -> None:
    rows = table_rows(spark.createDataFrame([(1, "US"), (2, "DE")], "id bigint, country string"), ["id"], 1)
    gone = rows.selectExpr("_key", "if(id = 2, 'd', _op) AS _op", "_seq", "id", "country")
    store = Store()
    found = {bytes(row["key"]): row["value"] for row in avro_messages(gone, "t", "t", store).collect()}
    assert found[b'{"id":2}'] is None
    assert decoded(bytes(found[b'{"id":1}']), store) == {"id": 1, "country": "US"}


def test_a_column_more_or_less_leaves_the_messages_readable_in_both_directions() -> None:
    one = StructType([StructField("id", LongType())])
    two = StructType([*one, StructField("total", LongType())])
    for written, read in ((one, two), (two, one)):
        writer, reader = (
            fastavro.parse_schema(json.loads(value_schema("totals", columns))) for columns in (written, read)
        )
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, writer, dict.fromkeys(written.names, 5))
        buffer.seek(0)
        found = fastavro.schemaless_reader(buffer, writer, reader)
        assert found == {name: 5 if name in written.names else None for name in read.names}


def test_a_type_that_avro_does_not_have_is_told_with_its_column() -> None:
    columns = StructType([StructField("place", StructType([StructField("stay", YearMonthIntervalType())]))])
    with pytest.raises(ResultNotUsable, match=r"place\.stay: interval"):
        value_schema("totals", columns)
