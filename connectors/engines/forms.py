"""Comparable forms: a value's representation that is the same for a database and for the lake.

Two values are equal if and only if their forms are: decimals by value, moments in microseconds since 1970,
text and bytes as they are. DuckDB computes the form of the lake's value; the engine computes that of the
database's value. This module has the forms of types that most engines share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

INFINITE = 2**63 - 1
"""Later than all moments. Its negative is earlier than all moments."""


@dataclass(frozen=True)
class Form:
    """A comparable form.

    arrow  its Arrow type
    lake   turns the DuckDB expression of the lake's value into that of the form
    reads  tells whether a lake column of an Arrow type can be read in this form
    show   writes a comparable value for a person
    """

    name: str
    arrow: pa.DataType
    lake: Callable[[str], str]
    reads: Callable[[pa.DataType], bool]
    show: Callable[[Any], str] = repr


@dataclass(frozen=True)
class Readable:
    """A form, and the SQL that computes it from a column's quoted name."""

    form: Form
    expression: Callable[[str], str]


def list_of(element: Form) -> Form:
    """Return the form of lists whose elements have this form."""
    return Form(
        f"list of {element.name}",
        pa.list_(element.arrow),
        lambda value: f"list_transform({value}, lambda item: {element.lake('item')})",
        lambda found: bool(pa.types.is_list(found) and element.reads(found.value_type)),
        show=lambda value: "None" if value is None else f"[{', '.join(map(element.show, value))}]",
    )


def is_text(found: pa.DataType) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


def is_binary(found: pa.DataType) -> bool:
    return bool(pa.types.is_binary(found) or pa.types.is_large_binary(found))


def as_it_is(value: str) -> str:
    return value


def _with_leading_zero(number: str) -> str:
    """DuckDB prints .5 for a decimal below 1. Return an expression that prints 0.5."""
    return rf"regexp_replace(CAST({number} AS VARCHAR), '^(-?)[.]', '\10.')"


def _without_needless_zeros(number: str) -> str:
    return f"CASE WHEN contains({number}, '.') THEN rtrim(rtrim({number}, '0'), '.') ELSE {number} END"


def _finite_or_infinite(value: str, finite: str) -> str:
    return (
        f"CASE WHEN isfinite({value}) THEN {finite} WHEN {value} > '1970-01-01' THEN {INFINITE}"
        f" WHEN {value} < '1970-01-01' THEN -{INFINITE} END"
    )


def _shown(moment: Callable[[], date], value: int | None, unit: str) -> str:
    if value is None or abs(value) == INFINITE:
        return {None: "None", INFINITE: "infinity", -INFINITE: "-infinity"}[value]
    try:
        return moment().isoformat()
    except OverflowError:  # Before the year 1 or after 9999.
        return f"{value} {unit}"


BOOLEAN = Form("boolean", pa.bool_(), as_it_is, pa.types.is_boolean)

INTEGER = Form("integer", pa.int64(), lambda value: f"CAST({value} AS BIGINT)", pa.types.is_integer)

# float4 to float8 is exact, and a NaN equals a NaN.
FLOAT = Form("float", pa.float64(), lambda value: f"CAST({value} AS DOUBLE)", pa.types.is_floating)

NUMBER = Form(
    "number",
    # The shortest decimal text: an unbounded number fits no Arrow decimal.
    pa.string(),
    lambda value: _without_needless_zeros(_with_leading_zero(value)),
    lambda found: pa.types.is_decimal(found) or pa.types.is_integer(found) or is_text(found),
)

TEXT = Form("text", pa.string(), as_it_is, is_text)

BYTES = Form("bytes", pa.binary(), as_it_is, is_binary)

DATE = Form(
    "date",
    pa.int64(),
    lambda value: _finite_or_infinite(value, f"CAST({value} - DATE '1970-01-01' AS BIGINT)"),
    pa.types.is_date,
    show=lambda value: _shown(lambda: date(1970, 1, 1) + timedelta(days=value), value, "days since 1970"),
)

MOMENT = Form(
    "moment",
    pa.int64(),
    lambda value: _finite_or_infinite(value, f"epoch_us({value})"),
    pa.types.is_timestamp,
    show=lambda value: _shown(
        lambda: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value),
        value,
        "microseconds since 1970",
    ),
)

# With six decimal places, as in the lake.
TIME_OF_DAY = Form("time of day", pa.string(), as_it_is, is_text)

TIME_IN_UTC = Form(
    "time of day in UTC",
    pa.string(),
    lambda value: f"left({value}, 8) || '.' || rpad(regexp_extract({value}, '[.](\\d+)', 1), 6, '0')",
    is_text,
)

# As text without leading zeros, which Debezium does not send.
BITS = Form(
    "bits",
    pa.string(),
    lambda value: (
        f"CASE WHEN octet_length({value}) = 0 THEN '' ELSE ltrim(CAST(unhex(array_to_string(list_reverse("
        f"regexp_extract_all(hex({value}), '..')), '')) AS BIT)::VARCHAR, '0') END"
    ),
    is_binary,
)
