"""Decoding an event gives the values that its JSON has."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from itertools import product

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from spark_app.columns.table_columns import TableColumns
from spark_app.positions.postgres import PostgresLog
from spark_app.wire import decode
from spark_app.wire.connect_schema import SOURCE_SCALE, SOURCE_TYPE, ConnectSchema
from spark_app.wire.json_with_schemas import read_schema_version
from spark_app.wire.record_key import record_key
from spark_app.wire.schema_version import SchemaTexts, SchemaVersion, columns_of
from tests.spark_app.debezium import SentEvent, SourceTable, event_row
from tests.spark_app.typed_frames import event_frame

KEYS = (
    *('{"id":5}', '{"id":-5}', '{"id":0}', '{"id":9223372036854775807}', '{"id":-9223372036854775808}'),
    *('{"id":9223372036854775808}', '{"id":-0}', '{"id":05}', '{"id":+5}', '{"id":5.0}', '{"id":5e1}'),
    *('{"id": 5}', '{ "id":5}', '{"id":5 }', '{"id":5}}', '{"id":5},', '{"id":"5"}', '{"id":null}'),
    *('{"id":5,"id":6}', '{"id":5,"x":6}', '{"x":6,"id":5}', '{"ID":5}', '{"id":}', "{}", "5", "null", ""),
    *('{"id":{"id":5}}', '{"id":[5]}', '{"id":true}', '{"id":"a:5}"}', '{"a:b":5}', ":5}", '["id":5}'),
)


def test_a_key_is_read_as_its_json_is(spark: SparkSession) -> None:
    event, version = one_event()
    rows = [event_row(replace(event, key=with_key(event, key)), number) for number, key in enumerate(KEYS)]

    found = {KEYS[row["offset"]]: row for row in changes(spark, rows, version)}

    readable = {key: number for key in KEYS if (number := whole_id_of(key)) is not None}
    assert {key: row["key"] for key, row in found.items() if row["reason"] is None} == {
        key: f'{{"id":{number}}}' for key, number in readable.items()
    }
    assert {row["reason"] for key, row in found.items() if key not in (*readable, "null")} == {"mismatch"}
    assert found["null"]["reason"] == "missing_key"


@pytest.mark.parametrize("name", ["id", "Order_2", "of the shop", 'the "id"', "a,b", "größe", "back\\slash"])
@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (IntegerType(), [0, -7, 2**31 - 1, None]),
        (LongType(), [2**63 - 1, -(2**63), 1, None]),
        (StringType(), ["a,b", "7", "", 'the "id"']),
    ],
)
def test_a_record_key_is_the_json_of_its_columns_without_commas(
    spark: SparkSession, name: str, data_type: DataType, values: Sequence[object]
) -> None:
    columns = TableColumns(((name, data_type), ("other", IntegerType())), (name, "other"))
    rows = spark.createDataFrame([(value, 5) for value in values], columns.row_type)
    key = record_key(F.struct(*rows.columns), columns)
    found = [row[0] for row in rows.select(key).collect()]
    assert found == [" ".join(map(_without_commas, ({name: value}, {"other": 5}))) for value in values]


def _without_commas(column: object) -> str:
    return json.dumps(column, ensure_ascii=False, separators=(",", ":")).replace(",", "\\u002c")


def test_two_keys_that_are_not_utf8_are_not_taken_for_one(spark: SparkSession) -> None:
    event, version = one_event()
    assert event.key is not None
    rows = [event_row(replace(event, key=event.key.replace(b"5", byte)), 0) for byte in (b"\xfe", b"\xff")]
    assert [row["reason"] for row in changes(spark, rows, version)] == ["mismatch", "mismatch"]


@pytest.mark.parametrize(
    ("data_type", "sent", "expected"),
    [
        (StringType(), ["sad", "größer", None], ["sad", "größer", None]),
        (IntegerType(), ["-42", "0", None], [-42, 0, None]),
        (DecimalType(5, 2), ["1.50", None], [Decimal("1.50"), None]),
        (BooleanType(), ["t", "f"], [True, False]),
        (DateType(), ["2026-01-31"], [date(2026, 1, 31)]),
        (TimestampType(), ["2026-01-31 12:00:00.000001+02"], [datetime(2026, 1, 31, 10, 0, 0, 1)]),
        (BinaryType(), ["(1,2)"], [b"(1,2)"]),
    ],
    ids=lambda value: value.simpleString() if isinstance(value, DataType) else "",
)
def test_the_text_of_a_type_that_was_dropped_is_read_as_the_column_s_type(
    spark: SparkSession, data_type: DataType, sent: Sequence[str | None], expected: Sequence[object]
) -> None:
    event, version = one_event()
    unknown = ConnectSchema("bytes", parameters=((SOURCE_TYPE, "TEXT"), (SOURCE_SCALE, "-1")))
    version = replace(version, row=tuple((n, unknown if n == "name" else s) for n, s in version.row))
    texts = [None if text is None else base64.b64encode(text.encode()).decode() for text in sent]
    wrong = [] if data_type in (StringType(), BinaryType()) else [base64.b64encode(b"?").decode()]
    rows = [event_row(with_name(event, text), n) for n, text in enumerate([*texts, *wrong])]
    columns = columns_of(version)
    row = tuple((name, data_type if name == "name" else own) for name, own in columns.row)

    found = changes(spark, rows, version, replace(columns, row=row))

    assert [each["row"]["name"] for each in found[: len(sent)]] == expected
    assert [each["reason"] for each in found] == [*[None] * len(sent), *["mismatch"] * len(wrong)]


def test_a_schema_without_a_key_reads_a_truncate_and_nothing_else(spark: SparkSession) -> None:
    source = SourceTable()
    source.begin()
    source.insert(5, "five", None)
    source.truncate()
    source.commit()
    inserted, truncate = source.events
    assert truncate.key is None
    rows = [event_row(truncate, 0), event_row(replace(inserted, key=None), 1)]
    found = changes(spark, rows, version_of(truncate))
    assert [(row["op"], row["reason"]) for row in found] == [("t", None), ("c", "missing_key")]


@pytest.mark.parametrize("commit_lsn", [None, "7", "24023119", str(2**60)])
@pytest.mark.parametrize("separator", [",", ", "])
def test_the_position_of_a_change_is_its_last_commit_and_its_own_place_in_the_log(
    spark: SparkSession, commit_lsn: str | None, separator: str
) -> None:
    event, version = one_event()
    assert event.value is not None
    value = json.loads(event.value)
    own = value["payload"]["source"]["lsn"]
    rows, expected = [], []
    lsns = (None, "9", "24023128", str(2**63 - 1), str(2**63))
    for number, (lsn, source_lsn) in enumerate(product(lsns, (None, own))):
        sequence = json.dumps([commit_lsn, lsn], separators=(separator, ":"))
        value["payload"]["source"] |= {"sequence": sequence, "lsn": source_lsn}
        sent = json.dumps(value, separators=(",", ":")).encode()
        rows.append(event_row(replace(event, value=sent), number))
        is_long = lsn is not None and int(lsn) < 2**63
        place = source_lsn or (int(lsn) if lsn is not None and is_long else None)
        expected.append((_bytes(int(commit_lsn or place), place), _bytes(place)) if place else (b"", b""))
    found = [(bytes(row["position"]), bytes(row["log_position"])) for row in changes(spark, rows, version)]
    assert found == expected


def _bytes(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8) for number in numbers)


def one_event() -> tuple[SentEvent, SchemaVersion]:
    source = SourceTable()
    source.begin()
    source.insert(5, "five", None)
    source.commit()
    (event,) = source.events
    return event, version_of(event)


def version_of(event: SentEvent) -> SchemaVersion:
    assert event.value is not None
    key = None if event.key is None else schema_of(event.key)
    return read_schema_version(SchemaTexts(key, schema_of(event.value)))


def schema_of(sent: bytes) -> str:
    return json.dumps(json.loads(sent)["schema"], separators=(",", ":"))


def whole_id_of(key: str) -> int | None:
    try:
        found = json.loads(key)
    except ValueError:
        return None
    number = found.get("id") if isinstance(found, dict) else None
    return number if type(number) is int and -(2**63) <= number < 2**63 else None


def with_key(event: SentEvent, payload: str) -> bytes:
    assert event.key is not None
    start, mark, _ = event.key.partition(b'"payload":')
    return start + mark + payload.encode() + b"}"


def with_name(event: SentEvent, name: str | None) -> SentEvent:
    assert event.value is not None
    sent = json.loads(event.value)
    sent["payload"]["after"]["name"] = name
    return replace(event, value=json.dumps(sent, separators=(",", ":")).encode())


def changes(
    spark: SparkSession,
    rows: Sequence[tuple[object, ...]],
    version: SchemaVersion,
    columns: TableColumns | None = None,
) -> list[Row]:
    events = event_frame(spark, rows)
    decoded = decode.decode(events, (version,), columns or columns_of(version), PostgresLog())
    return decoded.orderBy("offset").collect()
