"""What a source of files has to know of their records, and leaves to the wire forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import Column, DataFrame, DataFrameReader


class SinkRecords(Protocol):
    """Makes events' values of the records that a sink wrote (`spark_app.wire.sink_records`).

    Columns: `file string, block bigint, number bigint, value string`. `block` and `number` order the records
    of a file; `value` is null for a tombstone."""

    def read_lines(self, files: DataFrameReader, paths: Sequence[str], *, may_wrap_values: bool) -> DataFrame:
        """Return the records of files of JSON lines. `may_wrap_values`: a line can be `{"value":…}`."""

    def read_avro(self, files: DataFrameReader, paths: Sequence[str], schema: str) -> DataFrame:
        """Return the records of Avro files, all with that schema. Raises `UnreadableAvro`."""

    def is_delete(self, value: Column) -> Column:
        """Return whether a value is a delete's."""

    def has_no_schema(self, value: Column) -> Column:
        """Return whether a value is an event without a schema."""
