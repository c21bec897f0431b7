"""A small wire form for tests: a byte, a schema's number in a registry, and a JSON payload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_app.schema_registry.registry import SchemaRegistry
from spark_app.steps.steps import steps
from spark_app.wire.connect_schema import UnreadableSchema
from spark_app.wire.form import VersionReading
from spark_app.wire.json_with_schemas import read_schema_version
from spark_app.wire.reasons import UNKNOWN_SCHEMA
from spark_app.wire.schema_version import SchemaTexts, SchemaVersion
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events

MARK = b"\x07"
_NUMBER_BYTES = 4


def framed(number: int, payload: bytes) -> bytes:
    return MARK + number.to_bytes(_NUMBER_BYTES) + payload


@dataclass(frozen=True)
class NumberedSchemas:
    """A form whose `registry` has the JSON of each schema by its number. The key is taken from the row."""

    name: ClassVar = "numbered_schemas"
    needs_registry: ClassVar = False

    registry: Mapping[int, str]

    def new_schema(self, known: Sequence[SchemaTexts]) -> Column:
        number = _number()
        is_new = number.isNotNull() & ~number.isin([texts.value for texts in known])
        return F.when(is_new, F.struct(F.lit(None).cast("string").alias("key"), number.alias("value")))

    def learned(
        self, texts: SchemaTexts, policy: TablePolicy, written: Events, _registry: SchemaRegistry | None, /
    ) -> SchemaVersion:
        schema = self.registry.get(int(texts.value, 16))
        if schema is None:
            raise UnreadableSchema(what="The registry lacks a schema", found=texts.value)
        version = read_schema_version(SchemaTexts(None, schema), policy.key, written.decimals)
        return replace(version, form=self.name, texts=texts)

    def opened(self, readings: Sequence[VersionReading]) -> Mapping[str, Column]:
        start = len(MARK) + _NUMBER_BYTES
        payload = F.col("value").substr(F.lit(start + 1), F.length("value"))
        return {
            reading.name("opened"): steps().open_payload(F.when(_is_of(reading), payload), reading.value)
            for reading in readings
        }

    def parsed(self, readings: Sequence[VersionReading]) -> Mapping[str, Column]:
        return {
            reading.name("numbered"): steps().read_payload(F.col(reading.name("opened")), reading.value)
            for reading in readings
        }

    def value(self, reading: VersionReading) -> Column:
        return F.col(reading.name("numbered"))

    def reason(self, _readings: Sequence[VersionReading]) -> Column:
        return F.when(_number().isNotNull(), UNKNOWN_SCHEMA)


def _number() -> Column:
    """Return the number in hexadecimal, null if the value has another form."""
    value = F.col("value")
    is_marked = value.substr(1, len(MARK)) == F.lit(MARK)
    return F.when(is_marked, F.hex(value.substr(len(MARK) + 1, _NUMBER_BYTES)))


def _is_of(reading: VersionReading) -> Column:
    assert reading.version.texts is not None
    return F.coalesce(_number() == reading.version.texts.value, F.lit(False))
