"""A document is split as its JSON says, compared with a model over Python's own JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_app.steps.steps import steps
from tests.spark_app.json_layouts import Json, laid_out
from tests.spark_app.typed_frames import numbered_texts

pytestmark = pytest.mark.usefixtures("each_way_if_long")

SCHEMAS = [
    {"type": "struct", "fields": [{"type": "int64", "optional": False, "field": "id"}]},
    {"type": "struct", "fields": [{"type": "string", "field": "näme"}], "name": "Value", "version": 1.50},
    {"type": "string"},
]
KNOWN = [json.dumps(schema) for schema in SCHEMAS[:2]]
PAYLOADS = [
    {"id": 1},
    {"a": {"schema": 1, "payload": [" , } "]}, "b": None},
    {},
    None,
    "x",
    '{"id":1}',
    7,
    [{}],
]
DOCUMENTS: Sequence[Json] = [
    *({"schema": schema, "payload": payload} for schema in SCHEMAS for payload in PAYLOADS),
    *({"schema": None, "payload": payload} for payload in PAYLOADS),
    *({"payload": payload} for payload in PAYLOADS),
    *({"schema": schema, "payload": {"id": 1}, "__op": "c"} for schema in ("public", {"type": "x"}, 1)),
    *({"payload": "x", "schema": "public", "__op": "c"}, {"schema": SCHEMAS[0]}, {"schema": None}),
    *({"before": None, "after": {"id": 1}}, {"s": 1}, {"p": 1}, {"schemas": 1, "payload": 2}, {}),
]


@settings(max_examples=20)
@given(chosen=st.lists(st.sampled_from(DOCUMENTS), min_size=1, max_size=200), seed=st.integers(0, 2**32))
def test_a_document_is_a_schema_and_a_payload_or_all_of_it_is_the_payload(
    spark: SparkSession, chosen: list[Json], seed: int
) -> None:
    chance = random.Random(seed)
    texts = [laid_out(document, chance) for document in chosen]

    for examples in ((), texts):
        for document, text, found in zip(chosen, texts, taken_apart(spark, texts, examples), strict=True):
            assert (found["known"], found["schema"], parsed(found["payload"])) == model(document), text


def model(document: Json) -> tuple[int | None, str | None, Json]:
    if "payload" not in document or not document.keys() <= {"schema", "payload"}:
        return None, None, document
    schema, payload = document.get("schema"), document["payload"]
    if schema is None:
        return None, None, payload
    known = SCHEMAS.index(schema) if schema in SCHEMAS[:2] else None
    return known, json.dumps(schema, sort_keys=True, separators=(",", ":"), ensure_ascii=False), payload


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b" ", b"null", b"5", b'"a"', b"[]", b'[{"payload":1}]', b"\xff", b"{", b"{]", b'{"payload"'),
        *(b'{"payload":1', b'{"payload":1}}', b'{"payload":1} {}', b'{"payload":"\xff"}', b"{'payload':1}"),
        *(
            b'{"schema":{"type":"struct","fields":[]},"payload":1',
            b'{"schema":{,"payload":1}',
            b"\xef\xbb\xbf{}",
        ),
    ],
)
def test_what_is_no_document_is_null(spark: SparkSession, text: bytes) -> None:
    assert taken_apart(spark, [text]) == [None]


@pytest.mark.parametrize("ending", [b"}", b" } "])
@pytest.mark.parametrize("payload", [b"", b'{"id":}', b'{"id":"\xff"}', b'{},"more":1', b"{}}", b"{} {}"])
def test_a_known_start_does_not_change_the_result(spark: SparkSession, payload: bytes, ending: bytes) -> None:
    """After a schema, the payload ends with the document, and its reader reports what is wrong with it."""
    start = b'{"schema": %b ,\n"payload" : ' % KNOWN[0].encode()
    broken, right = start + payload + ending, start + b'{"id":1}}'

    for examples in ((), [right]):
        first, _, second = taken_apart(
            spark, [broken, right, broken], examples, "cast(payload as binary) as payload", "known"
        )
        assert first == second == Row(payload=bytearray(payload.strip()), known=0)


@pytest.mark.usefixtures("spark")
def test_texts_of_one_schema_have_one_canonical_form() -> None:
    chance = random.Random(1)
    for schema in SCHEMAS:
        forms = {steps().canonical(laid_out(schema, chance).decode()) for _ in range(50)}
        assert forms == {steps().canonical(json.dumps(schema))}
    assert steps().canonical("not JSON") == "not JSON"


def parsed(payload: str | None) -> Json:
    return None if payload is None else json.loads(payload)


def taken_apart(
    spark: SparkSession, texts: Sequence[bytes], examples: Sequence[bytes] = (), *fields: str
) -> list[Any]:
    found = (
        numbered_texts(spark, texts)
        .select("number", steps().schema_and_payload(F.col("text"), KNOWN, examples).alias("found"))
        .orderBy("number")
    )
    if fields:
        return found.select("found.*").selectExpr(*fields).collect()
    return [row["found"] for row in found.collect()]
