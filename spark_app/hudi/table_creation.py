"""The creation of a table, with its properties."""

from __future__ import annotations

from collections.abc import Mapping

from spark_app.columns.app_columns import ORDERING, RECORD_KEY
from spark_app.hudi.table_access import TableAccess
from spark_app.hudi.table_files import PROPERTIES
from spark_app.hudi.table_properties import properties_text

_KINDS_OF_KEYS = {
    "org.apache.hudi.keygen.NonpartitionedKeyGenerator": "NON_PARTITION",
    "org.apache.hudi.keygen.SimpleKeyGenerator": "SIMPLE",
    "org.apache.hudi.keygen.CustomKeyGenerator": "CUSTOM",
}
_ORDERED_BY_PAYLOAD = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
"""HoodieRecordMerger.DEFAULT_MERGE_STRATEGY_UUID: a row with a higher ordering value wins."""


def create_table(table: TableAccess) -> None:
    """Create a table without a commit.

    It gets the properties that Hudi's own writer would set, and one more: the bootstrap index is off."""
    table.files.write(PROPERTIES, properties_text(table.name, _properties(table)).encode())


def _properties(table: TableAccess) -> Mapping[str, str]:
    options = table.options
    return {
        "hoodie.table.name": table.name,
        "hoodie.table.type": options["hoodie.datasource.write.table.type"],
        "hoodie.table.version": options["hoodie.write.table.version"],
        "hoodie.timeline.layout.version": "1",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.recordkey.fields": RECORD_KEY,
        "hoodie.table.precombine.field": ORDERING,
        "hoodie.table.partition.fields": ",".join(each.name for each in table.policy.partitions),
        "hoodie.table.keygenerator.type": _KINDS_OF_KEYS[
            options["hoodie.datasource.write.keygenerator.class"]
        ],
        "hoodie.compaction.payload.class": options["hoodie.datasource.write.payload.class"],
        "hoodie.record.merge.strategy.id": _ORDERED_BY_PAYLOAD,
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.populate.meta.fields": "true",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.table.cdc.enabled": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        # With the index, each commit would look eight times for the index of a table that was made from other
        # files. Hudi reads this setting only from the table's properties, not from the options of a write.
        "hoodie.bootstrap.index.enable": "false",
    }
