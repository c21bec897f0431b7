"""The interface through which a source of files reads its records. The wire forms implement it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame, DataFrameReader


class SinkRecords(Protocol):
    """Turns the records that a sink wrote into the values of events (`spark_app.wire.sink_records`).

    Columns: `file string, block bigint, number bigint, value string`. `block` and `number` order the records
    of a file. `value` is null for a tombstone."""

    def read_lines(self, files: DataFrameReader, paths: Sequence[str], *, may_wrap_values: bool) -> DataFrame:
        """Return the records of files of JSON lines. `may_wrap_values`: a line can be `{"value":…}`."""

    def read_avro(self, files: DataFrameReader, paths: Sequence[str], schema: str) -> DataFrame:
        """Return the records of Avro files, all with that schema. Raises `UnreadableAvro`."""

    def described(self, records: DataFrame) -> DataFrame:
        """Return the records with two columns more: `is_delete boolean, lacks_schema boolean`.

        A value that is no event is neither. Aggregate them, and do not filter by them: Spark would move the
        filter before their computation, and repeat in it all that it needs."""
