"""Capture instances: what SQL Server records of a table, and the SQL that finds out what it has to record.

A capture instance keeps the columns and types that its table had when somebody made it. After a change of
the table, a second one is needed: the server fills both, and Debezium continues with the newer one where that
begins. A table can have two at a time. The name of one of ours ends with a digest of the columns, so it shows
whether it fits the table as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connectors.engines.sqlserver.names import INSTANCE_PREFIX, own_tables
from connectors.engines.sqlserver.sql import any_of, like, literal
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA, TablePattern
from tributary.contract.table_name import TableName

TAKEN_TYPES = (
    *("bit", "tinyint", "smallint", "int", "bigint", "decimal", "numeric", "money", "smallmoney", "real"),
    *("float", "char", "varchar", "nchar", "nvarchar", "text", "ntext", "xml", "uniqueidentifier", "binary"),
    *("varbinary", "image", "timestamp", "date", "time", "datetime", "datetime2", "smalldatetime"),
    "datetimeoffset",
)
"""The types whose values Debezium sends (SqlServerValueConverters), by their names in sys.types. The type of
an alias is the one that it stands for. `rowversion` is called timestamp there."""

SYSTEM_SCHEMAS = ("sys", "cdc", "INFORMATION_SCHEMA")


@dataclass(frozen=True)
class CaptureInstance:
    """A capture instance of a table.

    change_table  the number of its change table, which no other one gets
    columns       that it records, in their order in the table
    computed      of its columns, those of which the server records NULL only
    """

    name: str
    change_table: int
    columns: tuple[str, ...]
    computed: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        return self.name.startswith(f"{INSTANCE_PREFIX}_")


@dataclass(frozen=True)
class Captures:
    """The capture instances of a table, and what the table needs.

    instances  the oldest first
    wanted     the name of ours that fits the table as it is now
    columns    the columns that the lake can take, in their order in the table
    """

    instances: tuple[CaptureInstance, ...]
    wanted: str
    columns: tuple[str, ...]

    @property
    def newest(self) -> CaptureInstance | None:
        return self.instances[-1] if self.instances else None

    @property
    def is_current(self) -> bool:
        """Tell whether the newest instance records what the lake takes.

        Of somebody else's, only the names of the columns can be compared, and not their types."""
        newest = self.newest
        if newest is None:
            return False
        return newest.name == self.wanted or (not newest.is_ours and newest.columns == self.columns)

    @property
    def is_full(self) -> bool:
        """Tell whether the server allows no further instance."""
        return len(self.instances) > 1


def is_followed(lake: Lake, source: SqlServerSource, untaken: Sequence[TableName]) -> str:
    """Return the condition for the tables to record, `t` in the schema `s`: the source's and Tributary's own.

    As in the lake file, case matters, whatever the database's collation says."""
    patterns = source.patterns
    own = any_of(_is(schema, table) for schema, table in own_tables(lake, source))
    left_out = any_of(_is(one.schema, one.table) for one in sorted(untaken))
    followed = (
        f"{_SCHEMA} <> {literal(OWN_SCHEMA)} AND {any_of(map(_matches, patterns.include))}"
        f" AND NOT {any_of(map(_matches, patterns.exclude))} AND NOT {left_out}"
    )
    return f"({own} OR ({followed}))"


def _is(schema: str, table: str) -> str:
    return f"{_SCHEMA} = {literal(schema)} AND {_TABLE} = {literal(table)}"


def _matches(pattern: TablePattern) -> str:
    return f"{_SCHEMA} LIKE {like(pattern.schema)} AND {_TABLE} LIKE {like(pattern.table)}"


_SCHEMA = "s.name COLLATE Latin1_General_100_BIN2"
_TABLE = "t.name COLLATE Latin1_General_100_BIN2"


_BASE_TYPE = "COALESCE(b.name, TYPE_NAME(c.user_type_id))"

IS_TAKEN = (
    f"c.is_computed = 0 AND c.is_column_set = 0 AND c.is_filestream = 0 AND c.encryption_type IS NULL"
    f" AND {_BASE_TYPE} IN ({', '.join(map(literal, TAKEN_TYPES))})"
)
"""The condition for a column that the lake can take. For a computed column, the server records only NULL."""

_TYPE_OF_COLUMN = "LEFT JOIN sys.types AS b ON b.user_type_id = c.system_type_id"

COLUMNS = f"""
SELECT s.name AS [schema], t.name AS [table], c.name AS [column], c.column_id AS id, {_BASE_TYPE} AS [type],
  CAST(c.scale AS int) AS scale, CAST(c.max_length AS int) AS length,
  CAST(CASE WHEN c.is_nullable = 1 THEN 1 ELSE 0 END AS int) AS nullable,
  CAST(CASE WHEN {IS_TAKEN} THEN 1 ELSE 0 END AS int) AS taken,
  CAST(c.is_computed AS int) AS computed
FROM sys.columns AS c
JOIN sys.tables AS t ON t.object_id = c.object_id AND t.is_ms_shipped = 0
JOIN sys.schemas AS s ON s.schema_id = t.schema_id
{_TYPE_OF_COLUMN}
ORDER BY s.name, t.name, c.column_id
"""

INSTANCES = """
SELECT ct.source_object_id AS table_id, ct.capture_instance AS name, ct.object_id AS change_table,
  cc.column_name AS [column], CAST(cc.is_computed AS int) AS computed
FROM cdc.change_tables AS ct
JOIN cdc.captured_columns AS cc ON cc.object_id = ct.object_id
ORDER BY ct.create_date, ct.object_id, cc.column_id
"""


KIND = """CASE WHEN t.is_memory_optimized = 1 THEN N'a table in memory'
    WHEN t.is_external = 1 THEN N'an external table'
    WHEN t.is_filetable = 1 THEN N'a FileTable'
    WHEN t.is_node = 1 OR t.is_edge = 1 THEN N'a table of a graph'
    WHEN t.temporal_type = 1 THEN N'the history of another table'
    WHEN EXISTS (SELECT 1 FROM sys.indexes AS x WHERE x.object_id = t.object_id AND x.type = 5)
      THEN N'a clustered columnstore index'
    ELSE N'' END"""
"""What CDC cannot record of a table `t`; empty: it can."""


def tables_query(condition: str = "1 = 1") -> str:
    """Return the query for what tables need: their columns that can be taken, and the name of the instance.

    In a condition, `t` is the table and `s` its schema. The digest is a part of names in databases: another
    way to compute it makes new capture instances of all tables."""
    described = (
        "CONCAT(c.name, N' ', c.system_type_id, N' ', c.max_length, N' ', c.precision, N' ', c.scale,"
        " N' ', c.is_nullable)"
    )
    return f"""
SELECT s.name AS [schema], t.name AS [table], t.object_id AS id, w.columns AS columns,
  CONCAT(N'{INSTANCE_PREFIX}_', t.object_id, N'_', w.digest) AS instance,
  CAST(CASE WHEN EXISTS (SELECT 1 FROM sys.indexes AS i JOIN sys.partition_schemes AS p
    ON p.data_space_id = i.data_space_id WHERE i.object_id = t.object_id AND i.index_id IN (0, 1))
    THEN 1 ELSE 0 END AS int) AS is_partitioned
FROM sys.tables AS t
JOIN sys.schemas AS s ON s.schema_id = t.schema_id
CROSS APPLY (
  SELECT STRING_AGG(CAST(QUOTENAME(c.name) AS nvarchar(max)), N',')
      WITHIN GROUP (ORDER BY c.column_id) AS columns,
    LOWER(LEFT(CONVERT(varchar(64), HASHBYTES('SHA2_256',
      STRING_AGG(CAST({described} AS nvarchar(max)), N',')
        WITHIN GROUP (ORDER BY c.column_id)), 2), 8)) AS digest
  FROM sys.columns AS c
  {_TYPE_OF_COLUMN}
  WHERE c.object_id = t.object_id AND {IS_TAKEN}
) AS w
WHERE t.is_ms_shipped = 0 AND w.columns IS NOT NULL AND {KIND} = N''
  AND {condition}
"""


RECORDED_COLUMNS = """(
    SELECT STRING_AGG(CAST(QUOTENAME(cc.column_name) AS nvarchar(max)), N',')
      WITHIN GROUP (ORDER BY cc.column_id)
    FROM cdc.captured_columns AS cc WHERE cc.object_id = ct.object_id)"""
"""The columns of a capture instance `ct`, as `tables_query` writes those of a table."""

NEWEST_FIRST = "ORDER BY ct.create_date DESC, ct.object_id DESC"


def fits(newest: str, instance: str, recorded: str, columns: str) -> str:
    """Return the condition that the newest instance records the table as it is now.

    Of somebody else's instance, only the names of the columns can be compared, and not their types.
    The arguments are T-SQL: the names of the newest instance and of ours, its columns and the table's."""
    others = f"{newest} NOT LIKE N'{INSTANCE_PREFIX}[_]%'"
    return f"{newest} = {instance} OR ({others} AND {recorded} = {columns})"


def captures_of(
    tables: Sequence[Mapping[str, object]],
    columns: Mapping[int, tuple[str, ...]],
    instances: Sequence[Mapping[str, object]],
) -> Mapping[int, Captures]:
    """Return what tables need and have, by the tables' numbers.

    tables     rows of `tables_query`
    columns    the columns that can be taken, by the tables' numbers
    instances  rows of `INSTANCES`
    """
    found: dict[int, dict[tuple[str, int], list[tuple[str, bool]]]] = {}
    for row in instances:
        of_table = found.setdefault(_number(row["table_id"]), {})
        instance = of_table.setdefault((str(row["name"]), _number(row["change_table"])), [])
        instance.append((str(row["column"]), bool(row["computed"])))
    return {
        number: Captures(
            instances=tuple(
                CaptureInstance(
                    name,
                    change_table,
                    columns=tuple(column for column, _ in recorded),
                    computed=tuple(column for column, is_computed in recorded if is_computed),
                )
                for (name, change_table), recorded in found.get(number, {}).items()
            ),
            wanted=str(row["instance"]),
            columns=columns.get(number, ()),
        )
        for row in tables
        for number in [_number(row["id"])]
    }


def _number(found: object) -> int:
    assert isinstance(found, int)
    return found
