"""Frame: what JsonConverter puts around a payload, the payload without it, and what a bare payload looks
like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from spark_app.jvm.text_search import contains, starts_with
from spark_app.wire.connect_schema import SchemaTexts, SchemaVersion

_SCHEMA_START = '{"schema":'
_PAYLOAD_START = ',"payload":'
_ENVELOPE_MARK = '"source":{"version":'
"""Inside a JSON string its quotes would be escaped."""


def version_of(known: Sequence[SchemaVersion]) -> Column:
    """The place of an event's version among the known ones, an int; null where it is of none of those.

    JsonConverter writes `{"schema":…,"payload":…}` without white space, and a schema always as the same text.
    So an event begins with a known text, and its schema, nine tenths of it, need not be searched or
    parsed."""
    cases = reduce(lambda case, item: case.when(_is_of(item[1]), item[0]), enumerate(known), F)
    return (cases if known else F.lit(None)).cast(IntegerType())


def value_payload(version: SchemaVersion) -> Column:
    """The text of the value's payload, of an event of the version."""
    return F.col("value") if version.texts is None else _payload("value", version.texts.value)


def key_payload(version: SchemaVersion) -> Column:
    """The text that holds the key, of an event of the version: the value's payload, where the record has no
    key of its own."""
    if version.has_own_key and version.texts is not None:
        return _payload("key", version.texts.key)
    return value_payload(version)


def schema_texts(events: DataFrame, known: Iterable[SchemaTexts]) -> DataFrame:
    """The schemas of the events that carry none of the known ones, in the order in which they appear.

    Columns: `key string, value string, first_offset bigint`; `key` is null where the record has none. Reads
    every byte of such events.
    """
    is_known = reduce(lambda a, b: a | b, [_carries(texts) for texts in known], F.lit(False))
    return (
        events.where(F.col("value").isNotNull() & ~is_known & is_framed())
        .groupBy(_schema("key").alias("key"), _schema("value").alias("value"))
        .agg(F.min("offset").alias("first_offset"))
        .orderBy("first_offset")
    )


def is_framed() -> Column:
    """Whether value and key, if there is one, are schemas with payloads, known or not."""
    return _schema("value").isNotNull() & (F.col("key").isNull() | _schema("key").isNotNull())


def is_bare() -> Column:
    """Whether the value is an envelope, or a row that tells its operation, without a schema around it."""
    value = F.col("value").cast("string")
    return _is_bare_object(value) & (contains(value, _ENVELOPE_MARK) | value.rlike('"__(op|deleted)":'))


def is_utf8(value: Column) -> Column:
    """Whether bytes, or a string made of them, are text. Spark does not look when it makes a string."""
    return F.encode(value.cast("string"), "UTF-8") == value.cast("binary")


def _schema(name: str) -> Column:
    """The schema of a framed text, null where it is not framed.

    The first `,"payload":` is the border: inside a JSON string its quotes would be escaped, and no node of a
    Connect schema has a field of that name."""
    text = F.col(name).cast("string")
    border = F.instr(text, _PAYLOAD_START)
    has_both = text.startswith(_SCHEMA_START) & (border > 0) & text.endswith("}")
    start = len(_SCHEMA_START)
    return F.when(has_both, text.substr(F.lit(start + 1), border - start - 1))


def _payload(name: str, schema: str | None) -> Column:
    """Bytes are counted, not characters, for which Spark would have to read all of them."""
    if schema is None:
        return F.lit(None)
    start = len(_frame(schema).encode())
    return F.col(name).substr(F.lit(start + 1), F.length(name) - (start + 1))


def _is_of(version: SchemaVersion) -> Column:
    if version.texts is not None:
        return _carries(version.texts)
    value = F.col("value").cast("string")
    has_mark = contains(value, _ENVELOPE_MARK)
    return _is_bare_object(value) & (has_mark if version.shape == "envelope" else ~has_mark)


def _is_bare_object(value: Column) -> Column:
    return value.startswith("{") & value.endswith("}") & ~value.startswith(_SCHEMA_START)


def _carries(texts: SchemaTexts) -> Column:
    has_key_schema = F.col("key").isNull() if texts.key is None else _begins_with("key", texts.key)
    return _begins_with("value", texts.value) & has_key_schema


def _begins_with(name: str, schema: str) -> Column:
    text = F.col(name).cast("string")
    return F.coalesce(starts_with(text, _frame(schema)) & text.endswith("}"), F.lit(False))


def _frame(schema: str) -> str:
    return f"{_SCHEMA_START}{schema}{_PAYLOAD_START}"
