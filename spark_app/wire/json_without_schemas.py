"""JSON without schemas: only a payload. The lake file names its columns and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_app.wire.declared_columns import declared_columns
from spark_app.wire.form import VersionReading
from spark_app.wire.json_document import VALUE, is_json, is_utf8
from spark_app.wire.payload_shapes import open_in_its_shape, read_in_its_shape
from spark_app.wire.reasons import UNKNOWN_SHAPE
from spark_app.wire.schema_version import SchemaVersion, Shape
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events

_OPENED, _PAYLOAD = "opened_without_schema", "payload_without_schema"
_SHAPES: tuple[Shape, ...] = ("envelope", "unwrapped")


class JsonWithoutSchemas:
    """Reads events whose columns the lake file names: one version for each shape. The key is in the row."""

    name: ClassVar = "json_without_schemas"

    def declared(self, policy: TablePolicy, written: Events) -> tuple[SchemaVersion, ...]:
        if policy.columns is None:
            return ()
        row = declared_columns(policy.columns, written.decimals, written.times)
        fields = dict(row)
        key = tuple((name, fields[name]) for name in policy.key or ())
        return tuple(SchemaVersion(self.name, None, key, row, shape, has_own_key=False) for shape in _SHAPES)

    def opened(self, readings: Sequence[VersionReading]) -> Mapping[str, Column]:
        if not readings:
            return {}
        document = F.col(VALUE)
        payload = F.when(document["schema"].isNull(), document["payload"])
        return {_OPENED: open_in_its_shape(payload, _types(readings))}

    def parsed(self, readings: Sequence[VersionReading]) -> Mapping[str, Column]:
        if not readings:
            return {}
        return {_PAYLOAD: read_in_its_shape(F.col(_OPENED), _types(readings))}

    def value(self, reading: VersionReading) -> Column:
        return F.col(_PAYLOAD)[reading.version.shape]

    def reason(self, readings: Sequence[VersionReading]) -> Column:
        document, value = F.col(VALUE), F.col("value")
        is_payload = document.isNotNull() & document["schema"].isNull()
        return F.when(F.lit(bool(readings)) & is_payload & is_utf8(value) & is_json(value), UNKNOWN_SHAPE)


def _types(readings: Sequence[VersionReading]) -> dict[Shape, StructType]:
    return {reading.version.shape: reading.value for reading in readings}
