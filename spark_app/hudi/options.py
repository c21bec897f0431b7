"""The Apache Hudi options for a table's policy, with reasons. This module has no side effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_app.columns.app_columns import DELETE_MARKER, OPERATION, ORDERING, RECORD_KEY
from tributary.contract.lake import TablePolicy

Options = Mapping[str, str]

CALENDAR_OPTIONS: Options = {
    # Write dates before 1582 as they are, not in the hybrid calendar that old Hive readers expect.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
    # Hudi's files do not name their calendar. Without this, Spark fails at dates before 1582.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
}
"""Spark's settings for the calendar of old dates. A job that is not a query needs them separately."""

SESSION_OPTIONS: Options = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    # Parquet's old list structure cannot hold an array with a null element.
    "spark.hadoop.parquet.avro.write-old-list-structure": "false",
    **CALENDAR_OPTIONS,
}
"""The options that a Spark session needs before it writes a Hudi table."""

READ_OPTIONS: Options = {
    # There is no index to skip files by. Otherwise Hudi would log this at each read.
    "hoodie.enable.data.skipping": "false",
}

COMPACTION_OPTIONS: Options = {
    # Allow a compaction without a commit since the last one, because a compaction's parts follow each other.
    "hoodie.compact.inline.max.delta.commits": "0",
}

CLIENT_OPTIONS: Options = {
    # DataSourceUtils creates clients that leave the commit to their caller.
    "hoodie.auto.commit": "true",
}
"""Options of a client that compacts a table."""

ONE_ROW_A_KEY_OPTIONS: Options = {
    # Rows with one key each need no combining, which would shuffle all of them. Only for copy-on-write: the
    # delete blocks of a merge-on-read table would lack their ordering value.
    "hoodie.combine.before.upsert": "false",
}

FEW_ROWS_OPTIONS: Options = {
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.markers.delete.parallelism": "1",
}

REPLACING_OPTIONS: Options = {
    "hoodie.datasource.write.operation": "insert_overwrite_table",
    # Take the types of the new rows as they are. No file holds both the old types and the new.
    "hoodie.internal.write.schema.canonicalize": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}
"""Options for a commit that replaces every file group of the table by new ones."""

SMALL_COMMIT_OPTIONS: Options = {
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.datasource.write.row.writer.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
"""Options for a commit of some thousand rows every second or two.

The features that these options turn off cost more than they save."""

LARGE_COMMIT_OPTIONS: Options = {
    # Hudi counts the records, then writes them. Serializing them in between is slower than holding them.
    "hoodie.write.tagged.record.storage.level": "MEMORY_AND_DISK",
    # A block's records stay in memory until it is full. At 256 MB, the garbage collector keeps moving them.
    "hoodie.logfile.data.block.max.size": str(4 << 20),
}
"""Options for a commit of hundreds of thousands of rows."""

BASE_FILE_OPTIONS: Options = {
    # With gzip, compression was a third of a compaction. Hudi makes zstd its own default on Spark 3.5
    # (apache/hudi#19684).
    "hoodie.parquet.compression.codec": "zstd",
    # Nobody searches base files for keys: a key's hash names its bucket.
    "hoodie.parquet.bloom.filter.enabled": "false",
    # Spark's row writer always adds a Bloom filter (HoodieInternalRowFileWriterFactory). At its usual size,
    # it adds a megabyte to the footer of each file. This one has a single entry.
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "1",
    "hoodie.index.bloom.fpp": "0.5",
    # Hudi merges with a reader that misreads a decimal stored as an integer.
    "hoodie.parquet.writelegacyformat.enabled": "true",
}


def write_options(name: str, policy: TablePolicy) -> Options:
    """Return the options that every write and every table service of the table has."""
    return {
        "hoodie.table.name": name,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.write.table.version": "6",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.table.timeline.timezone": "UTC",
        **_key_options([each.name for each in policy.partitions], policy.buckets),
        **_merge_options(policy),
        **_storage_options(policy),
        **SMALL_COMMIT_OPTIONS,
        **LARGE_COMMIT_OPTIONS,
        **BASE_FILE_OPTIONS,
    }


def compaction_options(policy: TablePolicy) -> Options:
    # To make an incremental plan, Hudi reads from each commit which partitions it wrote to. That is two
    # requests per commit, to save two per partition.
    is_incremental = str(bool(policy.partition_by)).lower()
    return {**COMPACTION_OPTIONS, "hoodie.table.services.incremental.enabled": is_incremental}


def metadata_options(metadata: Mapping[str, str]) -> Options:
    """Return the options with which Hudi's Spark writer records the texts in the commit's metadata.

    Hudi records every option whose name begins with a given prefix. So all other keys have to begin with the
    shortest key. Raises ValueError if they do not."""
    if not metadata:
        return {}
    prefix = min(metadata, key=len)
    if not all(key.startswith(prefix) for key in metadata):
        raise ValueError(
            f"Hudi cannot record commit metadata under the keys {', '.join(sorted(metadata))}: "
            f"all of them have to begin with {prefix}"
        )
    return {"hoodie.datasource.write.commitmeta.key.prefix": prefix, **metadata}


def _key_options(partition_by: Sequence[str], buckets: int) -> Options:
    """Return the options of the key, which is always a single text column.

    Hudi refuses an empty text as a key, joins several key columns ambiguously, and renders timestamps and
    decimals in more than one way."""
    generators = {0: "NonpartitionedKeyGenerator", 1: "SimpleKeyGenerator"}
    generator = generators.get(len(partition_by), "CustomKeyGenerator")
    fields = partition_by if len(partition_by) < 2 else [f"{column}:SIMPLE" for column in partition_by]
    return {
        "hoodie.datasource.write.recordkey.field": RECORD_KEY,
        "hoodie.datasource.write.partitionpath.field": ",".join(fields),
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": str(buckets),
        "hoodie.bucket.index.hash.field": RECORD_KEY,
    }


def _merge_options(policy: TablePolicy) -> Options:
    options = {
        "hoodie.datasource.write.precombine.field": ORDERING,
        "hoodie.payload.ordering.field": ORDERING,
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    }
    if policy.deletes == "hard":
        options |= {"hoodie.payload.delete.field": OPERATION, "hoodie.payload.delete.marker": DELETE_MARKER}
    return options


def _storage_options(policy: TablePolicy) -> Options:
    if policy.storage == "copy_on_write":
        return {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
    return {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        # Do not compact within a write: `compaction.complete_late_enough` says why.
        "hoodie.compact.inline": "false",
        "hoodie.compact.schedule.inline": "false",
    }
