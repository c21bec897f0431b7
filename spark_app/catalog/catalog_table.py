"""A silver table's entry in Glue, in the form in which Athena engine v3 reads Hudi.

The form follows Hudi's own sync (org.apache.hudi.aws.sync.AWSGlueCatalogSyncClient and
org.apache.hudi.sync.common.util.SparkDataSourceTableUtils) and Athena's guide "Query Apache Hudi datasets".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_app.columns.key_parts import key_part_fields
from spark_app.columns.table_columns import DELETED, LOG_POSITION, TableColumns
from tributary.contract.errors import TributaryError
from tributary.contract.lake import TablePolicy

if TYPE_CHECKING:
    from mypy_boto3_glue.type_defs import (
        ColumnTypeDef,
        PartitionInputTypeDef,
        StorageDescriptorTypeDef,
        TableInputTypeDef,
    )

SCHEMA_PARAMETERS = "spark.sql.sources.schema."
"""The prefix of the parameters with the schema for Spark. Their number depends on the schema's length."""

_LONGEST_PARAMETER = 4_000
"""Characters of the schema in one parameter, as in Hudi's sync and Spark."""

_HUDI_COMMENTS = {
    "_hoodie_commit_time": "Hudi: the commit that wrote the row",
    "_hoodie_commit_seqno": "Hudi: the row's number within that commit",
    "_hoodie_record_key": "Hudi: the record key, equal to _key",
    "_hoodie_partition_path": "Hudi: the partition's folder",
    "_hoodie_file_name": "Hudi: the file of the row",
}
_APP_COMMENTS = {
    "_key": "The primary key, each of its columns as JSON",
    "_op": "The last change: c(reate), u(pdate), d(elete), r(ead by a snapshot), t(runcate)",
    "_seq": "The order of changes: epoch * 2^48 + offset",
    LOG_POSITION: "Where in the source's log the last change stands, as bytes that sort",
    "_source_ts": "When the source committed the last change",
    "_topic": "The Kafka topic of the last change",
    "_partition": "The Kafka partition of the last change",
    "_offset": "The Kafka offset of the last change",
    DELETED: "Whether the row is gone in the source; the values are its last",
}
_KEY_COMMENT = "Part of the primary key"

_HIVE_TYPES: dict[type[DataType], str] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "binary",
    DateType: "date",
    TimestampType: "timestamp",
}
_TYPES_OF_PARTITION_KEYS = (IntegerType, LongType, StringType, DateType)
"""The types whose text in a partition's path is a valid literal for every engine."""


class NotInCatalog(TributaryError):
    """A Glue catalog cannot represent the table."""


@dataclass(frozen=True)
class CatalogColumn:
    """A column with its Hive type. Glue's names are lower case."""

    name: str
    hive_type: str
    comment: str = ""


@dataclass(frozen=True)
class CatalogTable:
    """A silver table's entry in the catalog, under `name`.

    A merge-on-read table also has the entries `name_ro` (only compacted rows) and `name_rt` (the same rows as
    `name`).

    location      the base path
    partition_by  the names of the partition columns in the source's spelling
    spark_schema  JSON, partition columns last, with column names in the source's spelling
    """

    name: str
    location: str
    description: str
    columns: tuple[CatalogColumn, ...]
    partition_keys: tuple[CatalogColumn, ...]
    partition_by: tuple[str, ...]
    spark_schema: str
    is_merge_on_read: bool

    @property
    def view_names(self) -> tuple[str, ...]:
        views = ("", "_ro", "_rt") if self.is_merge_on_read else ("",)
        return tuple(self.name + view for view in views)


def catalog_table(
    name: str, path: str, description: str, columns: TableColumns, policy: TablePolicy
) -> CatalogTable:
    """Return the entry of the table at `path` with the source's columns. Raise `NotInCatalog`."""
    hudi = [StructField(column, StringType()) for column in _HUDI_COMMENTS]
    deleted = [StructField(DELETED, BooleanType())] if policy.deletes == "soft" else []
    source = [StructField(column, data_type) for column, data_type in columns.row]
    _check_told_apart([*source, *key_part_fields(policy.key_parts)])
    names = [each.name for each in policy.partitions]
    fields = (*source, *key_part_fields(policy.key_parts))
    partitions = {field.name: field for field in fields if field.name in names}
    ordered = [partitions[name] for name in names]
    beside = [field for field in (*hudi, *columns.own, *deleted, *source) if field.name not in partitions]
    of_parts = {part.name: f"{part}, to find rows in fewer files" for part in policy.key_parts}
    comments = {**dict.fromkeys(columns.key, _KEY_COMMENT), **_HUDI_COMMENTS, **_APP_COMMENTS, **of_parts}
    return CatalogTable(
        name=name,
        location=_as_athena_reads(path),
        description=description,
        columns=tuple(_column(field, hive_type(field.dataType), comments) for field in beside),
        partition_keys=tuple(_column(field, _partition_type(field.dataType), comments) for field in ordered),
        partition_by=tuple(names),
        spark_schema=StructType([*beside, *ordered]).json(),
        is_merge_on_read=policy.storage == "merge_on_read",
    )


def hive_type(data_type: DataType) -> str:
    """Return the type as Glue and Athena write it. Raise `NotInCatalog` if they have no such type."""
    match data_type:
        case DecimalType():
            return f"decimal({data_type.precision},{data_type.scale})"
        case ArrayType():
            return f"array<{hive_type(data_type.elementType)}>"
        case MapType():
            return f"map<{hive_type(data_type.keyType)},{hive_type(data_type.valueType)}>"
        case StructType():
            fields = (f"{field.name.lower()}:{hive_type(field.dataType)}" for field in data_type.fields)
            return f"struct<{','.join(fields)}>"
    if type(data_type) not in _HIVE_TYPES:
        raise NotInCatalog("A Glue catalog has no type for a column", found=data_type.simpleString())
    return _HIVE_TYPES[type(data_type)]


def partition_values(path: str) -> tuple[str, ...]:
    """Return the values of a partition's keys from its path, such as `region=eu/day=2024-01-01`."""
    return tuple(unquote(part.partition("=")[2]) for part in path.split("/"))


def table_inputs(table: CatalogTable) -> tuple[TableInputTypeDef, ...]:
    """Return Glue's input for each of the table's names."""
    return tuple(_table_input(table, view) for view in table.view_names)


def partition_inputs(
    table: CatalogTable, view: str, paths: Iterable[str]
) -> tuple[PartitionInputTypeDef, ...]:
    """Return Glue's input for the partitions at `paths` in the table, under one of the table's names."""
    return tuple(
        {
            "Values": list(partition_values(path)),
            "StorageDescriptor": _storage(table, view, f"{table.location}/{path}"),
        }
        for path in sorted(paths)
    )


def _check_told_apart(fields: Iterable[StructField]) -> None:
    own = {name: name for name in (*_HUDI_COMMENTS, *_APP_COMMENTS)}
    for field in fields:
        other = own.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise NotInCatalog(
                what="The names of two columns differ only in case, which a Glue catalog ignores",
                found=f"{other} and {field.name}",
                remedy="Read the table by its path with Spark, or rename one of the columns.",
            )


def _column(field: StructField, data_type: str, comments: Mapping[str, str]) -> CatalogColumn:
    return CatalogColumn(field.name.lower(), data_type, comments.get(field.name, ""))


def _partition_type(data_type: DataType) -> str:
    return hive_type(data_type) if isinstance(data_type, _TYPES_OF_PARTITION_KEYS) else "string"


def _as_athena_reads(path: str) -> str:
    """Return the path with `s3://`, the only scheme that Athena knows."""
    return path.replace("s3a://", "s3://", 1) if path.startswith("s3a://") else path


def _table_input(table: CatalogTable, view: str) -> TableInputTypeDef:
    return {
        "Name": view,
        "Description": table.description,
        "TableType": "EXTERNAL_TABLE",
        "PartitionKeys": [_glue_column(column) for column in table.partition_keys],
        "StorageDescriptor": _storage(table, view, table.location),
        "Parameters": {"EXTERNAL": "TRUE", **_spark_parameters(table)},
    }


def _storage(table: CatalogTable, view: str, location: str) -> StorageDescriptorTypeDef:
    is_read_optimized = table.is_merge_on_read and view.endswith("_ro")
    reads_logs = table.is_merge_on_read and not is_read_optimized
    hudi_input = "realtime.HoodieParquetRealtimeInputFormat" if reads_logs else "HoodieParquetInputFormat"
    return {
        "Columns": [_glue_column(column) for column in table.columns],
        "Location": location,
        "InputFormat": f"org.apache.hudi.hadoop.{hudi_input}",
        "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "SerdeInfo": {
            "SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
            "Parameters": {
                "path": table.location,
                "serialization.format": "1",
                "hoodie.query.as.ro.table": str(is_read_optimized).lower(),
            },
        },
    }


def _glue_column(column: CatalogColumn) -> ColumnTypeDef:
    return {"Name": column.name, "Type": column.hive_type, "Comment": column.comment}


def _spark_parameters(table: CatalogTable) -> dict[str, str]:
    schema = table.spark_schema
    parts = [schema[at : at + _LONGEST_PARAMETER] for at in range(0, len(schema), _LONGEST_PARAMETER)]
    keys = table.partition_by
    return {
        "spark.sql.sources.provider": "hudi",
        f"{SCHEMA_PARAMETERS}numParts": str(len(parts)),
        **{f"{SCHEMA_PARAMETERS}part.{number}": part for number, part in enumerate(parts)},
        **({f"{SCHEMA_PARAMETERS}numPartCols": str(len(keys))} if keys else {}),
        **{f"{SCHEMA_PARAMETERS}partCol.{number}": key for number, key in enumerate(keys)},
    }
