"""Tables of a database, as facts that the preflight check judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from connectors.engines.postgres.taken_tables import INEXACT
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA
from tributary.contract.table_name import TableName


@dataclass(frozen=True)
class UniqueKey:
    """The columns of a unique index that covers every row.

    is_deferrable  two rows may have the same values until the transaction ends
    """

    columns: frozenset[str]
    is_primary: bool = False
    is_replica_identity: bool = False
    is_deferrable: bool = False


@dataclass(frozen=True)
class TableFacts:
    """One table as PostgreSQL's catalog describes it.

    nested_arrays     columns declared with more than one dimension, such as text[][]
    unsent            columns of a type that Debezium leaves out of its events
    unreadable        columns of a type whose values make Debezium fail
    unmarked          columns that TOAST can hold, and for whose unchanged values Debezium has no placeholder
    inexact           columns of a type of which Debezium sends two different values as the same one
    dated             columns of a type that has years before Christ, if an index begins with the column
    ancient           the dated columns that hold such a year
    replica_identity  pg_class.relreplident: d primary key, i an index, f all columns, n nothing
    is_divided        the table is partitioned: its rows are in other tables
    is_foreign        the rows are on another server
    root              the partitioned table that a partition belongs to in the end, as schema and table
    has_heirs         other tables inherit from it
    hides_rows        row level security may hide rows from the replication user
    """

    schema: str
    table: str
    columns: tuple[str, ...]
    not_null: frozenset[str] = frozenset()
    generated: tuple[str, ...] = ()
    nested_arrays: tuple[str, ...] = ()
    unsent: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    unmarked: tuple[str, ...] = ()
    inexact: frozenset[str] = frozenset()
    dated: tuple[str, ...] = ()
    ancient: tuple[str, ...] = ()
    unique_keys: tuple[UniqueKey, ...] = ()
    replica_identity: Literal["d", "i", "f", "n"] = "d"
    is_permanent: bool = True
    is_divided: bool = False
    is_foreign: bool = False
    root: tuple[str, str] | None = None
    has_heirs: bool = False
    hides_rows: bool = False

    @property
    def primary_key(self) -> UniqueKey | None:
        return next((key for key in self.unique_keys if key.is_primary), None)

    @property
    def replicated_identity(self) -> frozenset[str]:
        """The old row's columns in an update or delete. Empty if the table cannot be replicated."""
        match self.replica_identity:
            case "f":
                return frozenset(self.columns)
            case "d":
                key = self.primary_key
                return frozenset() if key is None or key.is_deferrable else key.columns
            case "i":
                keys = (key.columns for key in self.unique_keys if key.is_replica_identity)
                return next(keys, frozenset())
            case "n":
                return frozenset()


def read_tables(connection: psycopg.Connection, role: str) -> list[TableFacts]:
    """Read all tables of the database except the system's and Tributary's own.

    `role` is the replication user, which need not exist yet.
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            _TABLES, {"own_schema": OWN_SCHEMA, "role": role, "inexact": [*INEXACT]}
        ).fetchall()
    return [_table_facts(row) for row in rows]


def _table_facts(row: Mapping[str, Any]) -> TableFacts:
    return TableFacts(
        schema=row["schema"],
        table=row["table"],
        columns=tuple(column["name"] for column in row["columns"]),
        not_null=frozenset(column["name"] for column in row["columns"] if column["not_null"]),
        generated=tuple(column["name"] for column in row["columns"] if column["generated"]),
        nested_arrays=tuple(column["name"] for column in row["columns"] if column["nested"]),
        unsent=tuple(column["name"] for column in row["columns"] if column["unsent"]),
        unreadable=tuple(column["name"] for column in row["columns"] if column["unreadable"]),
        unmarked=tuple(column["name"] for column in row["columns"] if column["unmarked"]),
        inexact=frozenset(column["name"] for column in row["columns"] if column["inexact"]),
        dated=tuple(column["name"] for column in row["columns"] if column["dated"]),
        unique_keys=tuple(
            UniqueKey(frozenset(key["columns"]), key["primary"], key["replica_identity"], key["deferrable"])
            for key in row["unique_keys"]
        ),
        replica_identity=row["replica_identity"],
        is_permanent=row["is_permanent"],
        is_divided=row["is_divided"],
        is_foreign=row["is_foreign"],
        root=None if row["root"] is None else (row["root"]["schema"], row["root"]["table"]),
        has_heirs=row["has_heirs"],
        hides_rows=row["hides_rows"],
    )


_TABLES = r"""
SELECT n.nspname AS schema, c.relname AS table, c.relpersistence = 'p' AS is_permanent,
  c.relkind = 'p' AS is_divided, c.relkind = 'f' AS is_foreign, c.relreplident::text AS replica_identity,
  (SELECT json_build_object('schema', m.nspname, 'table', r.relname)
   FROM pg_class r JOIN pg_namespace m ON m.oid = r.relnamespace
   WHERE c.relispartition AND r.oid = pg_partition_root(c.oid)) AS root,
  c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = c.oid) AS has_heirs,
  c.relrowsecurity
    AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = %(role)s AND (r.rolsuper OR r.rolbypassrls
      OR NOT c.relforcerowsecurity AND pg_has_role(r.oid, c.relowner, 'USAGE')))
    AND NOT (
      EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polpermissive AND p.polcmd IN ('r', '*')
        AND pg_get_expr(p.polqual, p.polrelid) = 'true' AND (0 = ANY (p.polroles)
          OR EXISTS (SELECT FROM pg_roles r WHERE r.rolname = %(role)s AND r.oid = ANY (p.polroles))))
      AND NOT EXISTS (SELECT FROM pg_policy p
        WHERE p.polrelid = c.oid AND NOT p.polpermissive AND p.polcmd IN ('r', '*'))) AS hides_rows,
  (SELECT coalesce(json_agg(json_build_object('name', a.attname, 'not_null', a.attnotnull,
      'generated', a.attgenerated <> '', 'nested', a.attndims > 1,
      -- io.debezium.connector.postgresql.PostgresValueConverter has no schema for these.
      'unsent', t.name = ANY ('{money[],name[],interval[],bit varying[],xml[],point[]}'),
      'unreadable', t.name = 'bit[]',
      -- io.debezium.connector.postgresql.UnchangedToastedReplicationMessageColumn
      'unmarked', a.attstorage <> 'p' AND (
        t.name IN ('bit', 'bit varying') AND a.atttypmod NOT BETWEEN 1 AND 128 OR t.name LIKE '%%[]'
        AND t.name <> ALL ('{text[],character varying[],character[],json[],jsonb[],uuid[],bytea[],integer[],
          bigint[],date[],money[],name[],interval[],bit varying[],xml[],point[]}')),
      'inexact', base.name = ANY (%(inexact)s),
      'dated', base.name IN ('date', 'timestamp without time zone', 'timestamp with time zone')
        AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum)
      ) ORDER BY a.attnum), '[]')
   FROM pg_attribute a CROSS JOIN LATERAL (SELECT a.atttypid::regtype::text AS name) t
   CROSS JOIN LATERAL (
     WITH RECURSIVE base AS (
       SELECT oid, typtype, typbasetype FROM pg_type WHERE oid = a.atttypid
       UNION ALL
       SELECT p.oid, p.typtype, p.typbasetype FROM base b
       JOIN pg_type p ON b.typtype = 'd' AND p.oid = b.typbasetype
     )
     SELECT oid::regtype::text AS name FROM base WHERE typtype <> 'd') base
   WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
  (SELECT coalesce(json_agg(json_build_object('primary', i.indisprimary, 'replica_identity', i.indisreplident,
      'deferrable', NOT i.indimmediate, 'columns', (SELECT json_agg(a.attname) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])))), '[]')
   FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
     AND i.indexprs IS NULL) AS unique_keys
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE (c.relkind IN ('r', 'p') OR c.relkind = 'f' AND c.relispartition) AND c.relpersistence <> 't'
  AND n.nspname NOT LIKE 'pg\_%%' AND n.nspname NOT IN ('information_schema', %(own_schema)s)
ORDER BY n.nspname, c.relname
"""


def with_ancient_columns(
    connection: psycopg.Connection, lake: Lake, source: PostgresSource, facts: TableFacts
) -> TableFacts:
    """Look for years before Christ in key columns, each by an index that begins with the column."""
    if not source.patterns.matches(facts.schema, facts.table) or facts.is_foreign:
        return facts
    key = key_of(lake, TableName(source.name, facts.schema, facts.table), facts)
    dated = [column for column in facts.dated if column in key]
    if not dated or not is_readable(connection, facts.schema, facts.table):
        return facts
    query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE {column} < '0001-01-01' AND isfinite({column}))")
    table = sql.Identifier(facts.schema, facts.table)
    found = {
        column: connection.execute(query.format(table, column=sql.Identifier(column))).fetchone()
        for column in dated
    }
    return replace(facts, ancient=tuple(column for column, row in found.items() if row and row[0]))


def key_of(lake: Lake, name: TableName, facts: TableFacts) -> frozenset[str]:
    """Return the columns by which the lake tells the table's rows apart. Empty if there are none."""
    key = lake.policy(name).key
    if key is not None:
        return frozenset(key)
    return frozenset() if facts.primary_key is None else facts.primary_key.columns


def is_readable(connection: psycopg.Connection, schema: str, table: str) -> bool:
    query = """
    SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
    """
    row = connection.execute(query, (schema, table)).fetchone()
    return bool(row and row[0])
