"""The message of an event in quarantine names the columns whose values do not fit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from spark_app.steps.held import Held
from spark_app.table.quarantine import quarantined
from spark_app.wire import decode
from spark_app.wire.reasons import MISMATCH, REASONS
from tests.spark_app.decoded import decoded
from tributary.contract.lake import TablePolicy

TOPIC = "shop.web.public.things"
PLACEHOLDER = "__debezium_unavailable_value"
TYPES = {"id": "bigint", "number": "integer", "price": "numeric(5,2)", "text": "text", "source": "text"}
DECLARED = TablePolicy.model_validate({"key": ("id",), "columns": TYPES})
CONNECT = {"id": "int64", "number": "int32", "price": "boolean", "text": "string", "source": "float"}


def messages_of(
    spark: SparkSession, values: Sequence[bytes], policy: TablePolicy, key: bytes | None = None
) -> list[tuple[str, str]]:
    events, changes = decoded(spark, TOPIC, [(key, value) for value in values], policy)
    held = Held.in_cache(changes)
    aside = quarantined(events, decode.undecoded(held.rows), decode.unfilled(held.rows))
    found = {row["offset"]: row for row in aside.collect()}
    held.release()
    return [
        (row["reason"], row["message"].removeprefix(REASONS[row["reason"]]).strip())
        for _, row in sorted(found.items())
    ]


def test_the_message_names_the_columns_of_each_form_of_json_without_schemas(spark: SparkSession) -> None:
    row = {"id": 1, "number": "seven", "price": 1.5, "text": PLACEHOLDER, "source": None}
    envelope, unwrapped = {"after": row, "op": "c"}, {**row, "__op": "c"}
    two = {**row, "price": "NaN"}
    deleted = {**row, "__op": "d", "__deleted": "true"}
    documents: list[Mapping[str, Any]] = [
        *(envelope, {"payload": envelope}, {"schema": None, "payload": envelope}),
        *(unwrapped, {"payload": unwrapped}),
        {"op": "u", "before": row, "after": two},
        # The envelope has a field of the name of a column, and the key of a delete does not fit.
        {**envelope, "source": {"lsn": 7}},
        {"op": "d", "before": {**row, "id": "one"}, "after": None},
        {**deleted, "id": "one"},
    ]
    values = [json.dumps(document).encode() for document in documents]

    found = messages_of(spark, [*values, b'{"op":"c","after":5}', b'{"op":"c",'], DECLARED)

    assert found[:5] == [(MISMATCH, "In number.")] * 5
    assert found[5] == (MISMATCH, "In number, price.")
    assert found[6] == (MISMATCH, "In number.")
    assert [message for _, message in found[7:]] == [""] * 4


def test_the_message_names_the_columns_of_json_with_schemas(spark: SparkSession) -> None:
    fields = [{"type": kind, "optional": name != "id", "field": name} for name, kind in CONNECT.items()]
    after = {"type": "struct", "optional": True, "field": "after", "fields": fields}
    schema = {"type": "struct", "fields": [after, {"type": "string", "field": "op"}]}
    key = {"schema": {"type": "struct", "fields": fields[:1]}, "payload": {"id": 1}}
    row = {"id": 1, "number": 2**31, "price": "yes", "text": "x", "source": 0.5}
    value = {"schema": schema, "payload": {"after": row, "op": "c"}}

    found = messages_of(spark, [json.dumps(value).encode()], TablePolicy(), json.dumps(key).encode())

    assert found == [(MISMATCH, "In number, price.")]
