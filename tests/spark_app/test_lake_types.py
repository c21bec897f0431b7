"""The lake's values for the values that Debezium sends, type by type, in each form that it uses."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from spark_app.steps.steps import steps
from spark_app.wire.connect_schema import parse_schema
from spark_app.wire.lake_types import conversion

Converted = tuple[str | None, bool]
"""A value of the lake as Spark prints it, and whether the conversion failed."""


def number(name: str, length: int, scale: int | None) -> dict[str, Any]:
    """Return the schema of a column of numbers that are sent as text."""
    declared = {"type": name, "length": str(length)} | ({} if scale is None else {"scale": str(scale)})
    parameters = {f"__debezium.source.column.{key}": value for key, value in declared.items()}
    return {"type": "string", "optional": True, "parameters": parameters}


def precise(scale: int, precision: int) -> dict[str, Any]:
    """Return the schema of a column of numbers that are sent as JSON numbers."""
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}


def lake_type(schema: dict[str, Any]) -> str:
    return conversion("c", parse_schema(json.dumps(schema))).lake.simpleString()


FREE = number("NUMERIC", 0, None)
FREE_DOMAIN = number("ANY_NUMBER", 131_089, 0)


def converted(spark: SparkSession, schema: dict[str, Any], values: list[Any]) -> list[Converted]:
    found = conversion("c", parse_schema(json.dumps(schema)))
    texts = [(place, json.dumps({"c": value})) for place, value in enumerate(values)]
    wire = StructType([StructField("c", found.wire)])
    value = F.from_json("text", wire)["c"]
    has_failed = (
        F.lit(False) if found.has_failed is None else F.coalesce(found.has_failed(value), F.lit(False))
    )
    rows = (
        spark.createDataFrame(texts, "place int, text string")
        .select("place", found.to_lake(value).cast("string").alias("lake"), has_failed.alias("has_failed"))
        .orderBy("place")
        .collect()
    )
    return [(row["lake"], row["has_failed"]) for row in rows]


def converted_texts(spark: SparkSession, schema: dict[str, Any], texts: list[str]) -> list[Converted]:
    """Do the same as `converted` for values as they are written in JSON, which the app reads."""
    found = conversion("c", parse_schema(json.dumps(schema)))
    rows = [(place, f'{{"c":{text}}}') for place, text in enumerate(texts)]
    wire = StructType([StructField("c", found.wire)])
    read = steps().read_payload(steps().open_payload(F.col("text"), wire), wire)
    value, has_failed = read["payload"]["c"], found.has_failed
    assert has_failed is not None
    lake = spark.createDataFrame(rows, "place int, text string").select(
        "place", found.to_lake(value).cast("string").alias("lake"), has_failed(value).alias("has_failed")
    )
    return [(row["lake"], row["has_failed"]) for row in lake.orderBy("place").collect()]


def test_the_lake_type_of_a_number_as_text_is_what_it_was_as_a_json_number() -> None:
    assert lake_type(number("NUMERIC", 10, 2)) == lake_type(precise(2, 10)) == "decimal(10,2)"
    assert lake_type(number("NUMERIC", 38, 38)) == lake_type(precise(38, 38)) == "decimal(38,38)"
    assert lake_type(number("MONEY", 2**31 - 1, 0)) == "decimal(38,2)"
    # SQL Server's.
    assert lake_type(number("MONEY", 19, 4)) == "decimal(19,4)"
    assert lake_type(number("DECIMAL() IDENTITY", 20, 0)) == "decimal(20,0)"
    assert lake_type(number("NUMERIC() IDENTITY", 20, 0)) == "decimal(20,0)"


def test_a_scale_that_is_negative_or_beyond_the_precision_is_supported() -> None:
    assert lake_type(number("NUMERIC", 3, 2048 - 2)) == lake_type(precise(2048 - 2, 3)) == "decimal(5,0)"
    assert lake_type(number("NUMERIC", 3, 5)) == lake_type(precise(5, 3)) == "decimal(5,5)"


def test_a_column_of_numbers_that_no_decimal_holds_is_text() -> None:
    assert lake_type(FREE) == lake_type(number("NUMERIC", 39, 2)) == lake_type(precise(2, 39)) == "string"
    assert lake_type(precise(3, 40)) == lake_type(precise(40, 38)) == "string"


NUMBERS = st.decimals(allow_nan=False, allow_infinity=False).filter(lambda n: abs(n.adjusted()) < 9_999)


@settings(max_examples=10)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=100))
def test_a_json_number_that_no_decimal_holds_is_the_text_of_all_its_digits(
    spark: SparkSession, numbers: list[Decimal]
) -> None:
    expected = [f"{number:f}" for number in numbers]
    trimmed = [text.rstrip("0").rstrip(".") if "." in text else text for text in expected]
    found = converted_texts(spark, precise(3, 40), list(map(str, numbers)))
    assert found == [(text, False) for text in trimmed]


@pytest.mark.parametrize("text", ['"one"', "true", "{}", "[1]", "1e999999999", "1e-999999999"])
def test_what_is_no_number_of_a_database_fails(spark: SparkSession, text: str) -> None:
    assert converted_texts(spark, precise(3, 40), [text]) == [(None, True)]


def test_bytes_that_no_decimal_holds_are_the_text_of_all_their_digits(spark: SparkSession) -> None:
    schema = precise(50, 60)
    schema["parameters"]["tributary.written.as"] = "base64"
    sent = [base64.b64encode(whole.to_bytes(16, signed=True)).decode() for whole in (15, -(10**37), 0)]
    assert converted(spark, schema, sent) == [
        (f"0.{'0' * 48}15", False),
        (f"-0.{'0' * 12}1", False),
        ("0", False),
    ]


def test_a_negative_scale_counts_in_bytes_too(spark: SparkSession) -> None:
    schema = precise(2048 - 2, 3)
    schema["parameters"]["tributary.written.as"] = "base64"
    sent = [base64.b64encode(whole.to_bytes(4, signed=True)).decode() for whole in (123, -7, 0)]
    assert converted(spark, schema, sent) == [("12300", False), ("-700", False), ("0", False)]


def test_a_domain_over_numeric_is_known_by_its_scale() -> None:
    assert lake_type(number("AMOUNT", 8, 3)) == "decimal(8,3)"
    assert lake_type(number("PLACE_NAME", 20, 0)) == "string"
    assert lake_type(number("TIMETZ", 21, 6) | {"name": "io.debezium.time.ZonedTime"}) == "string"


def test_arrays_of_numbers_hold_what_single_ones_are() -> None:
    items = {"type": "string", "optional": True}
    declared = number("_NUMERIC", 10, 2) | {"type": "array", "items": items}
    free = number("_NUMERIC", 131_089, 0) | {"type": "array", "items": items}
    texts = number("_VARCHAR", 10, 0) | {"type": "array", "items": items}
    assert [lake_type(schema) for schema in (declared, free, texts)] == [
        "array<decimal(10,2)>",
        "array<string>",
        "array<string>",
    ]


def test_a_number_without_precision_keeps_all_its_digits_and_equal_ones_are_equal_texts(
    spark: SparkSession,
) -> None:
    long = "12345678901234567890123456789012345678901234567890.123"
    values = ["1.50", "100", "100.00", "0.00", "-0.10", "10", "0", f"-{long}", f"{long}0", None]
    assert converted(spark, FREE, values) == [
        (text, False) for text in ("1.5", "100", "100", "0", "-0.1", "10", "0", f"-{long}", long, None)
    ]
    assert converted(spark, FREE_DOMAIN, ["NAN", "POSITIVE_INFINITY", "NEGATIVE_INFINITY"]) == [
        ("NaN", False),
        ("Infinity", False),
        ("-Infinity", False),
    ]


def test_a_number_without_precision_is_the_same_text_in_both_forms(spark: SparkSession) -> None:
    fields = [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}]
    variable = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": fields}
    unscaled = [("1.5", 15, 1), ("-0.001", -1, 3), ("100", 100, 0), ("0", 0, 0), ("-128", -128, 0)]
    sent = [
        {"scale": scale, "value": base64.b64encode(whole.to_bytes(4, signed=True)).decode()}
        for _, whole, scale in unscaled
    ]
    texts = [text for text, _, _ in unscaled]
    assert converted(spark, variable, sent) == converted(spark, FREE, texts) == [(t, False) for t in texts]


def test_a_number_that_its_decimal_cannot_hold_fails_and_is_not_rounded(spark: SparkSession) -> None:
    assert converted(spark, number("NUMERIC", 5, 2), ["1.50", "-999.99", "NAN", None]) == [
        ("1.50", False),
        ("-999.99", False),
        (None, True),
        (None, False),
    ]
    failed = [
        has_failed for _, has_failed in converted(spark, number("MONEY", 1, 0), ["1.2", "1.2300", "1.234"])
    ]
    assert failed == [False, False, True]


MICROS = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
MILLIS = {"type": "int64", "name": "io.debezium.time.Timestamp"}
DAYS = {"type": "int32", "name": "io.debezium.time.Date"}
ZONED = {"type": "string", "name": "io.debezium.time.ZonedTimestamp"}
LAST_MOMENT = "+294247-01-10 04:00:54.775807"
FIRST_MOMENT = "-290308-12-21 19:59:05.224193"


def test_dates_and_timestamps_far_beyond_the_years_1_and_9999_are_supported(spark: SparkSession) -> None:
    assert converted(spark, DAYS, [-2_440_588, 2_932_897, 2_145_042_905]) == [
        ("-4713-11-24", False),
        ("+10000-01-01", False),
        ("+5874897-12-31", False),
    ]
    assert converted(spark, MICROS, [-210_866_803_200_000_000, 253_402_300_800_000_000]) == [
        ("-4713-11-24 00:00:00", False),
        ("+10000-01-01 00:00:00", False),
    ]
    assert converted(spark, ZONED, ["-0043-03-15T12:00:00Z", "+10000-01-01T00:00:00.5Z"]) == [
        ("-0043-03-15 12:00:00", False),
        ("+10000-01-01 00:00:00.5", False),
    ]


def test_nanoseconds_are_rounded_down_to_microseconds(spark: SparkSession) -> None:
    nanos = {"type": "int64", "name": "io.debezium.time.NanoTimestamp"}
    assert converted(spark, nanos, [1_734_382_927_123_456_700, -100, 2**63 - 1, None]) == [
        ("2024-12-16 21:02:07.123456", False),
        ("1969-12-31 23:59:59.999999", False),
        ("2262-04-11 23:47:16.854775", False),
        (None, False),
    ]
    of_day = {"type": "int64", "name": "io.debezium.time.NanoTime"}
    assert converted(spark, of_day, [75_723_123_456_700, 0]) == [
        ("21:02:03.123456", False),
        ("00:00:00.000000", False),
    ]


def test_infinite_dates_and_timestamps_are_the_last_and_first_of_the_lakes_type(spark: SparkSession) -> None:
    moments = [(LAST_MOMENT, False), (FIRST_MOMENT, False)]
    assert converted(spark, MICROS, [9_223_372_036_825_200_000, -9_223_372_036_832_400_000]) == moments
    assert converted(spark, MICROS, [2**63 - 1, -(2**63)]) == moments
    assert converted(spark, MILLIS, [9_223_372_036_825_200, -9_223_372_036_832_400]) == moments
    assert converted(spark, MILLIS, [9_223_372_036_825_200_000, -9_223_372_036_832_400_000]) == moments
    assert converted(spark, ZONED, ["infinity", "-infinity"]) == moments
    in_array = "+292269055-12-02T23:00:00.000000Z"
    assert converted(spark, ZONED, ["infinity", in_array]) == moments
    days = [("+5881580-07-11", False), ("-5877641-06-24", False)]
    assert converted(spark, DAYS, [-2_147_472_692, -2_147_472_691]) == days
    assert converted(spark, DAYS, [2_146_033_979, -2_147_472_691]) == days
    assert converted(spark, DAYS, [-622_191_234, -625_821_272]) == days


def test_a_value_that_is_no_date_or_timestamp_fails(spark: SparkSession) -> None:
    assert converted(spark, DAYS, [-2_440_589, 2_145_042_906]) == [(None, True)] * 2
    assert converted(spark, MICROS, [-210_866_803_200_000_001, -(2**63) + 1]) == [(None, True)] * 2
    assert converted(spark, ZONED, ["soon", "+294277-01-01T00:00:00Z"]) == [(None, True)] * 2


def test_the_seconds_of_an_interval_are_exact(spark: SparkSession) -> None:
    sent = [
        "P1Y2M3DT4H5M6.789012S",
        "P0Y0M0DT0H0M12.425070999S",
        "P0Y0M0DT0H0M-1.661560999S",
        "P0Y0M0DT0H0M0S",
    ]
    assert converted(spark, {"type": "string", "name": "io.debezium.time.Interval"}, sent) == [
        ("P1Y2M3DT4H5M6.789012S", False),
        ("P0Y0M0DT0H0M12.425071S", False),
        ("P0Y0M0DT0H0M-1.661561S", False),
        ("P0Y0M0DT0H0M0S", False),
    ]
