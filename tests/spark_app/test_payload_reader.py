"""The payload reader reads a text as a model of it over Python's own JSON does."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from spark_app.plain.usual_payloads import open_payload, usual_payload
from spark_app.steps.payloads import MISMATCH, NOT_UTF8, ClosedStruct
from spark_app.steps.steps import steps
from tests.spark_app.typed_frames import numbered_texts

pytestmark = pytest.mark.usefixtures("each_way_if_long")

INNER = StructType([StructField("id", LongType()), StructField("näme", StringType())])
WIRE = StructType(
    [
        StructField("text", StringType()),
        StructField("whole", IntegerType()),
        StructField("long", LongType()),
        StructField("double", DoubleType()),
        StructField("flag", BooleanType()),
        StructField("decimal", DecimalType(5, 2)),
        StructField("list", ArrayType(LongType())),
        StructField("map", MapType(StringType(), LongType())),
        StructField("row", INNER),
    ]
)
USUAL = StructType([field for field in WIRE.fields if field.name != "map"])
"""Types that plain PySpark reads with `from_json`, unless a payload is doubtful."""
BOTH = pytest.mark.parametrize("wire", [WIRE, USUAL], ids=["all types", "usual types"])
LIMITS = {IntegerType(): 2**31, LongType(): 2**63}

TEXTS = st.sampled_from(("", "NaN", '"', "\\", "\u2028", "\ufffd", "null")) | st.text(
    st.characters(codec="utf-8"), max_size=6
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([bound + shift for bound in (2**31, -(2**31), 2**63, -(2**63)) for shift in (-1, 0)])
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | TEXTS
)
NAMES = st.sampled_from((*WIRE.names, *INNER.names, "__op", "other", "te\\xt"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
FITTING = {
    "text": TEXTS,
    "whole": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "flag": st.booleans(),
    "decimal": st.integers(-99_999, 99_999).map(lambda cents: cents / 100),
    "list": st.lists(st.none() | st.integers(-9, 9), max_size=3),
    "map": st.dictionaries(TEXTS, st.none() | st.integers(-9, 9), max_size=3),
    "row": st.fixed_dictionaries({}, optional={"id": st.integers(-9, 9), "näme": TEXTS}),
}
PAYLOADS = st.fixed_dictionaries({}, optional=FITTING) | st.dictionaries(NAMES, VALUES, max_size=4)


@BOTH
@settings(max_examples=10)
@given(payloads=st.lists(PAYLOADS, min_size=1, max_size=80), is_ascii=st.booleans())
def test_each_value_is_as_json_has_it_or_null_and_a_mismatch(
    spark: SparkSession, wire: StructType, payloads: list[dict[str, Any]], is_ascii: bool
) -> None:
    as_json = partial(json.dumps, separators=(",", ":"), ensure_ascii=is_ascii)
    texts = [as_json(payload).encode() for payload in payloads]

    for payload, found in zip(payloads, read(spark, texts, ClosedStruct(ignored="__.*"), wire), strict=True):
        expected, fits = value_of(
            payload, wire, partial(json.dumps, separators=(",", ":"), ensure_ascii=is_ascii)
        )
        assert found["payload"] == expected
        assert found["problem"] == (None if fits else MISMATCH)
        unnamed = {name for name in payload if name not in wire.names and not name.startswith("__")}
        assert found["has_unnamed"] == bool(unnamed)


@BOTH
@settings(max_examples=10)
@given(payloads=st.lists(PAYLOADS, min_size=1, max_size=40), data=st.data())
def test_damaged_bytes_text_and_json_are_distinguished(
    spark: SparkSession, wire: StructType, payloads: list[dict[str, Any]], data: st.DataObject
) -> None:
    texts = []
    for payload in payloads:
        damaged = bytearray(json.dumps(payload, ensure_ascii=False).encode())
        for _ in range(data.draw(st.integers(1, 3))):
            place = data.draw(st.integers(0, len(damaged)))
            damaged[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
        texts.append(bytes(damaged))

    for text, found in zip(texts, read(spark, texts, wire=wire), strict=True):
        assert (found["problem"] == NOT_UTF8) == (not is_utf8(text))
        left = object_of(text)
        if left is None:
            assert found["problem"] is not None
            assert found["payload"] is None
        elif found["problem"] is None:
            assert found["payload"] == value_of(left, wire, lambda _: ANY)[0]


def test_a_sequence_of_bytes_is_text_where_it_is_to_python(spark: SparkSession) -> None:
    edges = bytes.fromhex("41 80 8f 90 9f a0 bf c1 c2 df e0 ed ef f0 f4 f5")
    texts = [b'{"text":"' + bytes(found) + b'"}' for found in product(edges, repeat=4)]
    problems = [found["problem"] for found in read(spark, texts, wire=USUAL)]
    assert problems == [None if is_utf8(text) else NOT_UTF8 for text in texts]
    assert len(set(problems)) == 2


def test_a_text_ends_where_it_does_to_python_whatever_is_in_it_and_wherever(spark: SparkSession) -> None:
    plain = ("", "!", "#", "[", "]", "\x7f", "¢", "Ü", "\u2028", "🎈")
    written = ('\\"', "\\\\", "\\n", "\\u00e9", "\x1f", "\t", "\0", '"')
    bodies = [
        "a" * before + found + "z" * after
        for found, before, after in product(plain + written, range(18), range(9))
    ]
    texts = [f'{{"other":"{body}","text":"{body}","long":1}}'.encode() for body in bodies]

    for text, found in zip(texts, read(spark, texts, wire=USUAL), strict=True):
        left = object_of(text)
        assert found["payload"] == (None if left is None else value_of(left, USUAL, lambda _: ANY)[0])
        assert found["problem"] == (MISMATCH if left is None else None)


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("double", '"NaN"', math.nan),
        ("double", '"Infinity"', math.inf),
        ("double", '"-Infinity"', -math.inf),
        ("double", "1e400", math.inf),
        ("float", '"-Infinity"', -math.inf),
        ("float", "0.1", 0.10000000149011612),
        ("float", "16777217", 16777216.0),
        ("decimal", "1e2", Decimal("100.00")),
        ("decimal", "999.994", Decimal("999.99")),
        ("decimal", "0e500", Decimal("0.00")),
        ("wide", f"-{'9' * 34}.99994", Decimal(f"-{'9' * 34}.9999")),
        ("text", "1.50", "1.50"),
        ("text", "true", "true"),
        ("text", '{"a": [1,"é\\u00e9", 1e7] }', '{"a": [1,"é\\u00e9", 1e7] }'),
    ],
)
def test_numbers_beyond_json_and_what_is_no_text_have_a_value(
    spark: SparkSession, name: str, written: str, value: object
) -> None:
    wire = StructType(
        [*WIRE.fields, StructField("float", FloatType()), StructField("wide", DecimalType(38, 4))]
    )

    (found,) = read(spark, [f'{{"{name}":{written}}}'.encode()], wire=wire)

    assert found["problem"] is None
    assert repr(found["payload"][name]) == repr(value)


@BOTH
@settings(max_examples=10)
@given(
    st.lists(
        st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,8})?([eE][-+]?[0-9]{1,2})?", fullmatch=True),
        min_size=1,
        max_size=60,
    )
)
def test_a_number_where_a_text_is_wanted_keeps_each_of_its_characters(
    spark: SparkSession, wire: StructType, numbers: list[str]
) -> None:
    texts = [f'{{"text":{number},"double":1.5}}'.encode() for number in numbers]
    assert [found["payload"]["text"] for found in read(spark, texts, wire=wire)] == numbers


@BOTH
@pytest.mark.parametrize("number", ["999.995", "1e3", "1e999999999", "1e-999999999", '"1"'])
def test_a_number_that_the_decimal_cannot_hold_is_a_mismatch_and_takes_no_time(
    spark: SparkSession, wire: StructType, number: str
) -> None:
    (found,) = read(spark, [f'{{"decimal":{number}}}'.encode()], wire=wire)
    assert (found["payload"]["decimal"], found["problem"]) == (None, MISMATCH)


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", '[{"text":"a"}]', '"a"', '{"text":"a"} {}', '{"text":"a"', "{'text':'a'}"),
        *("\ufeff{}", "{\0}\0", "\0{\0}", "\0\0\0{\0\0\0}", '{"text":"\0"}'),
    ],
)
def test_what_is_not_one_object_is_a_mismatch(spark: SparkSession, wire: StructType, text: str) -> None:
    (found,) = read(spark, [text.encode()], wire=wire)
    assert (found["payload"], found["problem"]) == (None, MISMATCH)


def test_only_the_closed_struct_is_checked_for_fields_that_the_type_does_not_name(
    spark: SparkSession,
) -> None:
    texts = [b'{"other":1,"row":{"id":1}}', b'{"row":{"id":1,"other":2}}', b'{"row":null,"list":[]}']
    assert [found["has_unnamed"] for found in read(spark, texts, ClosedStruct("row"))] == [False, True, False]
    assert not any(found["has_unnamed"] for found in read(spark, texts))


@pytest.mark.parametrize(
    ("payload", "is_doubtful"),
    [
        ('{"text":"a","whole":1,"long":-2,"double":1.5,"flag":true,"list":[1,null],"row":{"id":1}}', False),
        ('{"text":"1.10","whole":7,"row":null}', False),
        ('{"decimal":12.50,"double":1.5}', False),
        ('{"decimal":"12.50"}', True),
        ('{"decimal":1e-999999999}', True),
        ('{"text":1.10}', True),
        ('{"text":"12 High Street","decimal":12.50}', False),
        ('{"text":"None","double":1e3}', False),
        ('{"text":"12.5","decimal":12.50}', True),
        ('{"text":{"a":1}}', True),
        ('{"text":-0}', True),
        ('{"long":1.0}', True),
        ('{"text":"\\ud800"}', True),
        ('{"row":{"id":1}}{', True),
    ],
)
def test_only_payloads_that_from_json_may_change_go_to_python(
    spark: SparkSession, payload: str, is_doubtful: bool
) -> None:
    usual = usual_payload(F.col("opened"), USUAL, None)
    assert usual is not None
    opened = numbered_texts(spark, [payload.encode()]).select(
        open_payload(F.col("text"), USUAL, None).alias("opened")
    )
    (row,) = opened.select(usual.is_doubtful.alias("found")).collect()
    assert row["found"] == is_doubtful


def read(
    spark: SparkSession,
    texts: Sequence[bytes],
    closed: ClosedStruct | None = None,
    wire: StructType = WIRE,
) -> list[Row]:
    parsed = (
        numbered_texts(spark, texts)
        .select("number", steps().open_payload(F.col("text"), wire, closed).alias("opened"))
        .select("number", steps().read_payload(F.col("opened"), wire, closed).alias("read"))
        .orderBy("number")
    )
    return [row["read"] for row in parsed.collect()]


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def object_of(text: bytes) -> dict[str, Any] | None:
    """Return the object that the text contains; None if it is no object."""
    try:
        found = json.loads(text.decode())
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def value_of(value: Any, wire: DataType, as_json: Callable[[Any], str]) -> tuple[Any, bool]:
    """Return the value in this type, and whether everything in it has its type.

    A value of another type is null. If a text is expected, a value that is no text becomes its JSON, as it
    was written."""
    match wire:
        case _ if value is None:
            return None, True
        case StringType():
            return value if isinstance(value, str) else as_json(value), True
        case IntegerType() | LongType() if type(value) is int and -LIMITS[wire] <= value < LIMITS[wire]:
            return value, True
        case DoubleType() if type(value) in (int, float) or value == "NaN":
            return float(value), True
        case BooleanType() if isinstance(value, bool):
            return value, True
        case DecimalType() if type(value) in (int, float) and abs(scaled(value)) < 1_000:
            return scaled(value), True
        case ArrayType() if isinstance(value, list):
            items = [value_of(item, wire.elementType, as_json) for item in value]
            return [item for item, _ in items], all(fits for _, fits in items)
        case MapType() if isinstance(value, dict):
            found = {name: value_of(item, wire.valueType, as_json) for name, item in value.items()}
            return {name: item for name, (item, _) in found.items()}, all(fits for _, fits in found.values())
        case StructType() if isinstance(value, dict):
            fields = [value_of(value.get(field.name), field.dataType, as_json) for field in wire.fields]
            return Row(*wire.names)(*[item for item, _ in fields]), all(fits for _, fits in fields)
    return None, False


def scaled(number: float) -> Decimal:
    return Decimal(json.dumps(number)).quantize(Decimal("0.01"), ROUND_HALF_UP, Context(prec=400))
