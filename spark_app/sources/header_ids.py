"""Ids of schemas in Kafka's headers, as the converter of Apicurio 2.x writes them by default.

The names are those of io.apicurio.registry.serde.SerdeHeaders. A header's value is a long of eight bytes."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from spark_app.sources.event import EVENT

ID_HEADERS = {
    f"{part}_{kind}_id": f"apicurio.{part}.{kind}Id"
    for part in ("key", "value")
    for kind in ("global", "content")
}
"""The headers, by the columns that they are read into."""

WITH_IDS = StructType([*EVENT.fields, *(StructField(name, BinaryType()) for name in ID_HEADERS)])
"""An event with these columns."""

_FIRST = b"\x00"
_LONG, _INT = 8, 4


def framed_by_headers(events: DataFrame) -> DataFrame:
    """Return the events as `EVENT`, with each id in front of the record that it is for.

    The converters write the same bytes without headers (`spark_app.schema_registry.framing`): eight of a
    global id, or four of a content id."""
    framed = {part: _framed(part) for part in ("key", "value")}
    return events.select(*(framed.get(name, F.col(name)).alias(name) for name in EVENT.names))


def _framed(part: str) -> Column:
    record, first = F.col(part), F.lit(_FIRST)
    of_version, of_content = F.col(f"{part}_global_id"), F.col(f"{part}_content_id")
    return (
        F.when(F.length(of_version) == _LONG, F.concat(first, of_version, record))
        .when(F.length(of_content) == _LONG, F.concat(first, of_content.substr(_INT + 1, _INT), record))
        .otherwise(record)
    )
