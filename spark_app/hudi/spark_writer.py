"""Write rows with Hudi's own data source for Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_app.hudi.options import (
    FEW_ROWS_OPTIONS,
    ONE_ROW_A_KEY_OPTIONS,
    REPLACING_OPTIONS,
    Options,
    metadata_options,
)
from spark_app.hudi.spread import FewRows, Spread
from spark_app.hudi.table_access import TableAccess


@dataclass(frozen=True)
class SparkWriter:
    """Writes to any table, and replaces the files of any table."""

    table: TableAccess

    def upsert(self, rows: DataFrame, metadata: Mapping[str, str], spread: Spread) -> None:
        """Commit the rows, one per key, and the metadata.

        In a copy-on-write table, Hudi rewrites the base files of their buckets."""
        few = FEW_ROWS_OPTIONS if isinstance(spread, FewRows) else {}
        uncombined = ONE_ROW_A_KEY_OPTIONS if self.table.policy.storage == "copy_on_write" else {}
        self._save(rows, {**uncombined, **few, **metadata_options(metadata)})

    def replace_all(self, rows: DataFrame, metadata: Mapping[str, str]) -> None:
        """Commit the metadata and new files with these rows. The new files replace all existing files."""
        self._save(rows, {**REPLACING_OPTIONS, **metadata_options(metadata)})

    def _save(self, rows: DataFrame, options: Options) -> None:
        options = {**self.table.options, **options}
        rows.write.format("hudi").options(**options).mode("append").save(self.table.path)
