"""The creation of a table, with its properties."""

from __future__ import annotations

from spark_app.columns.app_columns import ORDERING, RECORD_KEY
from spark_app.hudi.table_access import TableAccess


def create_table(table: TableAccess) -> None:
    """Create a table without a commit.

    It gets the properties that Hudi's own writer would set, and one more: the bootstrap index is off."""
    options, java = table.options, table.java
    properties = java.meta_client.newTableBuilder()
    properties.setTableName(table.name)
    properties.setTableType(options["hoodie.datasource.write.table.type"])
    properties.setTableVersion(int(options["hoodie.write.table.version"]))
    properties.setRecordKeyFields(RECORD_KEY)
    properties.setPreCombineField(ORDERING)
    properties.setPayloadClassName(options["hoodie.datasource.write.payload.class"])
    properties.setKeyGeneratorClassProp(options["hoodie.datasource.write.keygenerator.class"])
    properties.setPartitionFields(",".join(table.policy.partition_by))
    properties.setHiveStylePartitioningEnable(True)
    properties.setUrlEncodePartitioning(True)
    properties.setCommitTimezone(java.time_zone.UTC)
    properties.setBaseFileFormat("PARQUET")
    properties.setArchiveLogFolder("history")
    properties.setPartitionMetafileUseBaseFormat(False)
    properties.setPopulateMetaFields(True)
    properties.setShouldDropPartitionColumns(False)
    properties.setCDCEnabled(False)
    # With the index, each commit would look eight times for the index of a table that was made from other
    # files. Hudi reads this setting only from the table's properties, not from the options of a write.
    properties.setBootstrapIndexEnable(False)
    properties.initTable(table.files.storage_configuration, table.path)
