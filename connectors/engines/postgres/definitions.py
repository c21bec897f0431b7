"""The definitions of a PostgreSQL database's tables, from its catalog."""

from __future__ import annotations

import psycopg
from psycopg import sql

from connectors.engines.definitions import ColumnDefinition, PartDefinition, TableDefinition
from connectors.engines.hidden_columns import as_taken
from connectors.engines.postgres.names import publication
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName


def read_definitions(
    connection: psycopg.Connection, lake: Lake, source: PostgresSource
) -> dict[TableName, TableDefinition]:
    """Read the definitions of all tables of the source that become lake tables.

    A partition is a part of its table."""
    found = {}
    publishes_schemas = connection.info.server_version >= 150000
    query = _TABLES.format(followed=_FOLLOWED if publishes_schemas else "false").encode()
    with connection.transaction():
        connection.execute("SET LOCAL search_path = pg_catalog")  # So that regclass shows the schema.
        rows = connection.execute(query, {"publication": publication(lake, source)}).fetchall()
        for schema, table, oid, files, was_followed, columns, parts in rows:
            if not source.matches(schema, table):
                continue
            of_parts = tuple(
                _part(connection, oid, name, files, was_attached=was_attached)
                for oid, name, files, was_attached in parts
            )
            name = TableName(source.name, schema, table)
            definition = TableDefinition(
                identity=str(oid),
                files="" if of_parts else str(files),
                columns=tuple(
                    ColumnDefinition(name, str(number), f"{type_name} {version}", filled, labels)
                    for number, name, type_name, version, filled, labels in columns
                ),
                parts=of_parts,
                followed=was_followed and not any(part.came_full for part in of_parts),
            )
            found[name] = as_taken(definition, lake.policy(name))
    return found


def _part(
    connection: psycopg.Connection, oid: int, name: str, files: int, *, was_attached: bool
) -> PartDefinition:
    return PartDefinition(
        name=name,
        identity=str(oid),
        files=str(files),
        rows=f"tableoid = {oid}",
        came_full=was_attached and _has_rows(connection, name),
    )


def has_rows(connection: psycopg.Connection, table: TableName) -> bool:
    """Return whether a table holds a row. One that the connection's user may not read seems to."""
    return _has_rows(connection, sql.Identifier(table.schema, table.table).as_string())


def _has_rows(connection: psycopg.Connection, relation: str) -> bool:
    try:
        with connection.transaction():
            row = connection.execute(f"SELECT EXISTS (SELECT FROM {relation})".encode()).fetchone()
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
        return True
    return bool(row and row[0])


# What PostgreSQL writes into its catalog and when, by the transaction (xmin) and the command (cmin) that
# wrote a row. A table's system column ctid keeps xmin and cmin of the table's creation.
#
# A table was followed all its life if its schema was published before, its name is the first, and it never
# was a partition. RENAME and SET SCHEMA rewrite the row of its type. ATTACH and DETACH PARTITION rewrite
# the rows of all its columns. So a partition was attached if all its columns are newer than it.
#
# `attmissingval` is what the rows have that are older than the column; a partitioned table has none, but its
# partitions do. ALTER COLUMN rewrites the row of a column. VACUUM FULL, CLUSTER and TRUNCATE do not, but
# they change pg_class.relfilenode, too.
_FOLLOWED = """
  EXISTS (SELECT FROM pg_publication_namespace s JOIN pg_publication p ON p.oid = s.pnpubid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'ctid'
    JOIN pg_type t ON t.typrelid = c.oid AND t.xmin = a.xmin AND t.cmin = a.cmin
    JOIN LATERAL (SELECT FROM pg_attribute o WHERE o.attrelid = c.oid AND o.attnum > 0
      AND o.xmin = a.xmin AND o.cmin = a.cmin LIMIT 1) untouched ON true
    WHERE p.pubname = %(publication)s AND s.pnnspid = c.relnamespace AND age(s.xmin) > age(a.xmin))
"""
_TABLES = """
SELECT n.nspname, c.relname, c.oid::bigint, c.relfilenode::bigint, {followed},
  (SELECT coalesce(json_agg(json_build_array(a.attnum, a.attname, format_type(a.atttypid, a.atttypmod),
      a.xmin::text, a.attmissingval IS NOT NULL OR c.relkind = 'p' AND EXISTS (
        SELECT FROM pg_partition_tree(c.oid) tree JOIN pg_attribute m ON m.attrelid = tree.relid
        WHERE m.attname = a.attname AND m.attmissingval IS NOT NULL),
      (SELECT coalesce(json_object_agg(e.oid, e.enumlabel), '{{}}') FROM pg_enum e JOIN pg_type t
        ON e.enumtypid IN (t.oid, t.typelem, t.typbasetype) WHERE t.oid = a.atttypid)
      ) ORDER BY a.attnum), '[]')
    FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  CASE WHEN c.relkind = 'p' THEN
    (SELECT coalesce(json_agg(json_build_array(p.oid::bigint, p.oid::regclass::text, p.relfilenode::bigint,
        NOT EXISTS (SELECT FROM pg_attribute x JOIN pg_attribute y ON y.attrelid = x.attrelid
          AND y.attnum > 0 AND y.xmin = x.xmin AND y.cmin = x.cmin
          WHERE x.attrelid = p.oid AND x.attname = 'ctid')) ORDER BY p.oid), '[]')
      FROM pg_partition_tree(c.oid) tree JOIN pg_class p ON p.oid = tree.relid
      WHERE tree.isleaf AND p.oid <> c.oid) ELSE '[]' END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%%'
"""
