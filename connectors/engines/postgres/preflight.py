"""The preflight check: servers, roles and tables that Debezium cannot read without loss, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import class_row, dict_row

from connectors.engines.absent import entries_without_table, patterns_without_table
from connectors.engines.engine import DatabaseNotReady, LeftOut, all_in_one
from connectors.engines.key_problems import lossy_key, no_such_column, unfit_key, without_key
from connectors.engines.postgres.names import (
    HEARTBEAT_SCHEMA,
    HEARTBEAT_TABLE,
    publication,
    replication_slot,
    replication_user,
    signal_table,
)
from connectors.engines.postgres.preparation import PRINTING, whole_schemas
from connectors.engines.postgres.row_filters import (
    OLDEST_VERSION_WITH_FILTERS,
    filters_mark,
    row_filters,
)
from connectors.engines.table_problems import (
    column_problems,
    tables_with_untraceable_names,
    topic_problems,
)
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA
from tributary.contract.remedies import BringUp, RemedyOrText, TakeSnapshot
from tributary.contract.table_name import TableName

OLDEST_VERSION = 13
"""The first PostgreSQL version with publish_via_partition_root."""


class PostgresNotReady(DatabaseNotReady):
    """A server, a role or a table that Debezium cannot read without losing changes."""


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


@dataclass(frozen=True)
class ServerFacts:
    """A server, and the lake's replication slot if the server already has one."""

    version: int
    release: str
    encoding: str
    wal_level: str
    is_standby: bool
    database: str
    slots: int
    slots_in_use: int
    senders: int
    senders_in_use: int
    has_slot: bool = False
    plugin: str | None = None
    slot_database: str | None = None
    wal_status: str | None = None


@dataclass(frozen=True)
class RoleFacts:
    """The rights of the logged-in user."""

    name: str
    is_superuser: bool
    may_replicate: bool
    may_beat: bool


@dataclass(frozen=True)
class PostgresFindings:
    """The tables that the lake takes, in order, and what does not stop the start.

    left_out  tables that the lake cannot take
    parts     partitions of the tables that it takes
    """

    tables: tuple[TableName, ...]
    left_out: tuple[LeftOut, ...] = ()
    parts: frozenset[TableName] = frozenset()
    warnings: tuple[str, ...] = ()


def check_server(connection: psycopg.Connection, lake: Lake, source: PostgresSource) -> None:
    """Check that the server can replicate logically to one more reader. Raises PostgresNotReady."""
    server = _read_server(connection, replication_slot(lake, source))
    judge_server(source, server, _address(connection))
    if server.version < OLDEST_VERSION_WITH_FILTERS and (filtered := sorted(row_filters(lake, source))):
        raise PostgresNotReady(
            "the database server cannot filter the rows that it sends",
            where=f'[table."{filtered[0]}"].rows, {_address(connection)}',
            found=f"PostgreSQL {server.release}",
            expected=f"PostgreSQL {OLDEST_VERSION_WITH_FILTERS} or newer",
            remedy="Upgrade the server, or remove the entry rows from the lake file.",
        )


def check_tables(connection: psycopg.Connection, lake: Lake, source: PostgresSource) -> PostgresFindings:
    """Find the tables that the lake can keep exact, and check that each pattern matches a table.

    A table that the lake cannot keep exact is left out, and stops nothing. In a database that Tributary
    started itself, a table may still be missing: that is only a warning. Raises PostgresNotReady.
    """
    for enum in connection.execute(_ENUMS_WITHOUT_VALUES).fetchall():
        raise PostgresNotReady(
            "Debezium cannot start on a database that has an enum without values, or a domain over an enum",
            where=f"source {source.name}, {_address(connection)}",
            found=f"the type {enum[0]}",
            remedy="Use the enum itself instead of the domain, and drop the domain.",
        )
    tables = read_tables(connection, replication_user(lake, source))
    return judge_tables(
        lake, source, [_with_ancient_columns(connection, lake, source, one) for one in tables]
    )


def warnings_before_publishing(
    connection: psycopg.Connection, lake: Lake, source: PostgresSource
) -> tuple[str, ...]:
    """Return what publishing whole schemas of a person's own database will mean for later tables."""
    if source.connection is None or connection.info.server_version < 150000:
        return ()
    query = """
    SELECT FROM pg_publication p JOIN pg_publication_namespace n ON n.pnpubid = p.oid
    WHERE p.pubname = %s AND n.pnnspid = to_regnamespace(quote_ident(%s))
    """
    name = publication(lake, source)
    return tuple(
        f"The schema {schema} will be published with all tables that are created in it later. PostgreSQL "
        "then refuses updates and deletes of a later table until it has a primary key or REPLICA IDENTITY "
        "FULL. "
        f'To publish only tables that exist at a start, write the pattern as "{schema}.?*".'
        for schema in whole_schemas(source)
        if connection.execute(query, (name, schema)).fetchone() is None
    )


def check_replication(
    connection: psycopg.Connection,
    lake: Lake,
    source: PostgresSource,
    untaken: Collection[TableName] = (),
) -> None:
    """Check that the connection's user, the replication user, has all it needs. Raises PostgresNotReady."""
    where = f"source {source.name}, {_address(connection)}"
    taken = [
        (facts.schema, facts.table)
        for facts in read_tables(connection, replication_user(lake, source))
        if source.matches(facts.schema, facts.table)
        and TableName(source.name, facts.schema, facts.table) not in untaken
    ]
    for found, expected in _replication_problems(connection, lake, source, taken):
        raise PostgresNotReady(
            "the database is not prepared for replication",
            where=where,
            found=found,
            expected=expected,
            remedy=[
                "Name an admin_user in the lake file and start the pipeline again. Without an admin_user, "
                "the start writes the SQL to a file, for an administrator to run.",
                BringUp(),
            ],
        )


def judge_server(source: PostgresSource, server: ServerFacts, address: str) -> None:
    """Judge the facts that `check_server` read. Raises PostgresNotReady."""
    problems = [
        PostgresNotReady(
            "the database server cannot replicate",
            where=f"source {source.name}, {address}",
            found=found,
            expected=expected,
            remedy=remedy,
        )
        for found, expected, remedy in _server_problems(server, source)
    ]
    if problems:
        raise all_in_one(problems)


def judge_tables(lake: Lake, source: PostgresSource, tables: Sequence[TableFacts]) -> PostgresFindings:
    """Judge the facts that `check_tables` read. Raises PostgresNotReady."""
    may_be_empty = source.connection is None
    matched = [facts for facts in tables if source.matches(facts.schema, facts.table)]
    names = [(facts.schema, facts.table) for facts in tables]
    taken_names = [(facts.schema, facts.table) for facts in matched]
    absent = [
        *patterns_without_table(source, names, f"in database {source.database}", PostgresNotReady),
        *entries_without_table(lake, source, taken_names, PostgresNotReady),
    ]
    if absent and not may_be_empty:
        raise all_in_one(absent)
    others = (name for name in names if name[0] != OWN_SCHEMA)
    left_out = [*tables_with_untraceable_names(source, others, PostgresNotReady)]
    taken: list[TableFacts] = []
    parts: set[TableName] = set()
    for facts in matched:
        name = TableName(source.name, facts.schema, facts.table)
        if facts.root is not None and source.matches(*facts.root):
            parts.add(name)
            continue
        leaves = [leaf for leaf in tables if leaf.root == (facts.schema, facts.table) and not leaf.is_divided]
        problems = tuple(_table_problems(lake, source, facts, leaves))
        if problems:
            left_out.append(LeftOut(name, problems))
        else:
            taken.append(facts)
    return PostgresFindings(
        tables=tuple(sorted(TableName(source.name, facts.schema, facts.table) for facts in taken)),
        left_out=tuple(sorted(left_out, key=lambda each: each.table)),
        parts=frozenset(parts),
        warnings=(
            *(str(error) for error in absent),
            *_warnings_of_generated_columns(source, taken),
            *_warnings_of_unsent_columns(source, taken),
            *_warnings_of_unmarked_columns(source, taken),
        ),
    )


def read_tables(connection: psycopg.Connection, role: str) -> list[TableFacts]:
    """Read all tables of the database except the system's and Tributary's own.

    `role` is the replication user, which need not exist yet.
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_TABLES, {"own_schema": OWN_SCHEMA, "role": role}).fetchall()
    return [_table_facts(row) for row in rows]


_ENUMS_WITHOUT_VALUES = """
SELECT format('%I.%I', n.nspname, t.typname)
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typcategory = 'E' AND NOT EXISTS (SELECT FROM pg_enum e WHERE e.enumtypid = t.oid)
ORDER BY 1
"""
"""In any schema, because io.debezium.connector.postgresql.TypeRegistry reads all types and fails at these
with a NullPointerException."""


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
      'inexact', base.name = ANY ('{bit varying,time with time zone,time without time zone[],
        time with time zone[],timestamp without time zone[],timestamp with time zone[]}'),
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


def _with_ancient_columns(
    connection: psycopg.Connection, lake: Lake, source: PostgresSource, facts: TableFacts
) -> TableFacts:
    """Look for years before Christ in key columns, each by an index that begins with the column."""
    if not source.matches(facts.schema, facts.table) or facts.is_foreign:
        return facts
    key = _key_of(lake, TableName(source.name, facts.schema, facts.table), facts)
    dated = [column for column in facts.dated if column in key]
    if not dated or not _is_readable(connection, facts.schema, facts.table):
        return facts
    query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE {column} < '0001-01-01' AND isfinite({column}))")
    table = sql.Identifier(facts.schema, facts.table)
    found = {
        column: connection.execute(query.format(table, column=sql.Identifier(column))).fetchone()
        for column in dated
    }
    return replace(facts, ancient=tuple(column for column, row in found.items() if row and row[0]))


def _key_of(lake: Lake, name: TableName, facts: TableFacts) -> frozenset[str]:
    """Return the columns by which the lake tells the table's rows apart. Empty if there are none."""
    key = lake.policy(name).key
    if key is not None:
        return frozenset(key)
    return frozenset() if facts.primary_key is None else facts.primary_key.columns


def _table_problems(
    lake: Lake, source: PostgresSource, facts: TableFacts, leaves: Sequence[TableFacts]
) -> Iterator[PostgresNotReady]:
    name = TableName(source.name, facts.schema, facts.table)
    leave_out = f'leave it out with the pattern "!{facts.schema}.{facts.table}"'

    def problem(what: str, found: str, expected: str | None, remedy: str) -> PostgresNotReady:
        return PostgresNotReady(what, where=f"table {name}", found=found, expected=expected, remedy=remedy)

    yield from topic_problems(lake, source, name, leave_out, PostgresNotReady)
    if not facts.is_permanent:
        found, remedy = "an unlogged table", f"ALTER TABLE … SET LOGGED, or {leave_out}."
        yield problem("PostgreSQL does not replicate it", found, "a logged table", remedy)
    if facts.root is not None:
        found, remedy = "a partition", f"Take the partitioned table instead and {leave_out}."
        what = "PostgreSQL publishes its changes as the partitioned table's"
        yield problem(what, found, "a whole table", remedy)
    else:
        yield from _identity_problems(lake, name, facts, leave_out)
        yield from _leaf_problems(lake, name, facts, leaves, leave_out)
        yield from _key_value_problems(lake, name, facts, leave_out)
    if facts.has_heirs:
        found = "tables that inherit from it"
        what = "a snapshot of it would also hold the rows of other tables"
        yield problem(what, found, "a table without children", f"Take only the children, and {leave_out}.")
    if facts.hides_rows:
        role = replication_user(lake, source)
        remedy = (
            f"{_sql('CREATE POLICY tributary ON {} FOR SELECT TO {} USING (true)', name, role)}, "
            f"or {_sql('ALTER ROLE {role} BYPASSRLS', name, role)}, or {leave_out}. "
            "Then start the pipeline again. A restrictive policy needs BYPASSRLS."
        )
        found = "row level security without a policy that shows it every row"
        yield problem(f"the user {role} may not see every row", found, "a view of all rows", remedy)
    for column in facts.nested_arrays:
        found, remedy = f"{column}, an array of arrays", f"Make it one array, or {leave_out}."
        yield problem("Debezium cannot read its values", found, "arrays of one dimension", remedy)
    for column in facts.unreadable:
        found, remedy = f"{column}, an array of bits", f"Make it an array of text, or {leave_out}."
        yield problem("its values make Debezium fail", found, "a type that Debezium reads", remedy)
    for column in _misread_columns(facts):
        remedy = f"Rename the column, or {leave_out}."
        yield problem("Debezium confuses a column with another one", f"the column {column}", None, remedy)
    key = _key_of(lake, name, facts)
    yield from column_problems(lake, name, facts.columns, key, leave_out, PostgresNotReady)


def _misread_columns(facts: TableFacts) -> Iterator[str]:
    """Yield columns whose names differ only in case, and columns whose names look quoted.

    The first kind stops Debezium (PgOutputMessageDecoder) or vanishes (TableEditorImpl). Debezium changes the
    names of the second kind (Strings.unquoteIdentifierPart).
    """
    seen: set[str] = set()
    for column in facts.columns:
        if column.lower() in seen or (len(column) > 1 and column[0] == column[-1] and column[0] in "\"'`"):
            yield column
        seen.add(column.lower())


def _identity_problems(
    lake: Lake, name: TableName, facts: TableFacts, leave_out: str
) -> Iterator[PostgresNotReady]:
    if not facts.replicated_identity:
        yield _without_identity(name, facts, leave_out)
        return
    key, entry = lake.policy(name).key, f'[table."{name}"].key'
    if key is None:
        if facts.primary_key is None:
            yield without_key(name, leave_out, PostgresNotReady)
        elif facts.primary_key.is_deferrable:
            yield _with_deferrable_key(name, facts.primary_key, leave_out)
        elif not facts.primary_key.columns <= facts.replicated_identity:
            yield _unreported_key(f"table {name}", facts.primary_key.columns, facts)
        return
    missing = [column for column in key if column not in facts.columns]
    if missing:
        yield no_such_column(entry, missing[0], facts.columns, PostgresNotReady)
        return
    yield from _key_problems(entry, frozenset(key), facts)


def _key_problems(entry: str, key: frozenset[str], facts: TableFacts) -> Iterator[PostgresNotReady]:
    """Yield what makes existing columns unfit as a key."""
    is_identity = any(unique.columns <= key and not unique.is_deferrable for unique in facts.unique_keys)
    unique_index = "columns with a unique index over them, or over some of them, that is not DEFERRABLE"
    expected = None if is_identity else unique_index
    nullable = sorted(key - facts.not_null)
    if unfit := unfit_key(entry, key, PostgresNotReady, expected=expected, nullable=nullable):
        yield unfit
    elif not key <= facts.replicated_identity:
        yield _unreported_key(entry, key, facts)


def _unreported_key(where: str, key: frozenset[str], facts: TableFacts) -> PostgresNotReady:
    return PostgresNotReady(
        "PostgreSQL does not report this key with a delete",
        where=where,
        found=f"a replica identity of {', '.join(sorted(facts.replicated_identity))}",
        expected=f"one that holds {', '.join(sorted(key))}",
        remedy="ALTER TABLE … REPLICA IDENTITY USING INDEX …, or REPLICA IDENTITY DEFAULT or FULL.",
    )


def _leaf_problems(
    lake: Lake, name: TableName, facts: TableFacts, leaves: Sequence[TableFacts], leave_out: str
) -> Iterator[PostgresNotReady]:
    """Yield what is wrong with the partitions, which do not inherit the replica identity of their root."""
    key = _key_of(lake, name, facts)
    for leaf in leaves:
        shown = f"the partition {leaf.schema}.{leaf.table}"
        if leaf.is_foreign or not leaf.is_permanent:
            kind = "a foreign table" if leaf.is_foreign else "unlogged"
            yield PostgresNotReady(
                "PostgreSQL does not replicate one of its partitions",
                where=f"table {name}",
                found=f"{shown}, {kind}",
                expected="logged partitions on this server",
                remedy=f"ALTER TABLE {leaf.schema}.{leaf.table} SET LOGGED, or {leave_out}.",
            )
        elif not leaf.replicated_identity:
            yield PostgresNotReady(
                "once it is published, its own application could no longer update it",
                where=f"table {name}",
                found=f"{shown} without a replica identity",
                expected="a replica identity in every partition",
                remedy=f"{_with_full_identity(leaf)}, or {leave_out}.",
            )
        elif facts.replica_identity == "f" and leaf.replica_identity != "f":
            yield PostgresNotReady(
                "values would be lost that an update does not change",
                where=f"table {name}",
                found=f"REPLICA IDENTITY FULL, but not for {shown}",
                expected="REPLICA IDENTITY FULL in every partition too",
                remedy=f"{_with_full_identity(leaf)}, or {leave_out}.",
            )
        elif not key <= leaf.replicated_identity:
            yield PostgresNotReady(
                "PostgreSQL does not report the key with a delete",
                where=f"table {name}",
                found=f"{shown} with a replica identity of {', '.join(sorted(leaf.replicated_identity))}",
                expected=f"one that holds {', '.join(sorted(key))}",
                remedy=f"ALTER TABLE {leaf.schema}.{leaf.table} REPLICA IDENTITY DEFAULT, or {leave_out}.",
            )


def _with_full_identity(leaf: TableFacts) -> str:
    return f"ALTER TABLE {leaf.schema}.{leaf.table} REPLICA IDENTITY FULL"


def _key_value_problems(
    lake: Lake, name: TableName, facts: TableFacts, leave_out: str
) -> Iterator[PostgresNotReady]:
    """Yield key columns in which two values would become one."""
    key = _key_of(lake, name, facts)
    for column in sorted(key & facts.inexact):
        found = f"the key column {column}, of a type of which Debezium sends two values as the same"
        yield lossy_key(name, leave_out, found, PostgresNotReady)
    for column in facts.ancient:
        found = f"the key column {column} with a year before Christ, which a snapshot reads as one after"
        yield lossy_key(name, leave_out, found, PostgresNotReady, "keys from the year 1 on")


def _sql(template: LiteralString, name: TableName, role: str) -> str:
    table = sql.Identifier(name.schema, name.table)
    return sql.SQL(template).format(table, sql.Identifier(role), role=sql.Identifier(role)).as_string()


def _with_deferrable_key(name: TableName, key: UniqueKey, leave_out: str) -> PostgresNotReady:
    """The problem of a table with REPLICA IDENTITY FULL. If two rows share a key, the lake has one row."""
    return PostgresNotReady(
        "the lake would lose a row that takes a key before the key's former row has left it",
        where=f"table {name}",
        found=_DEFERRABLE_KEY,
        expected="a primary key that is not DEFERRABLE, or as key in the lake file the columns of another "
        "unique index",
        remedy=f'{_undeferred(name, key)}, or add [table."{name}"] with key = [...], or {leave_out}.',
    )


_DEFERRABLE_KEY = "a DEFERRABLE primary key"


def _undeferred(name: TableName, key: UniqueKey) -> str:
    """Return the SQL. It always works, because a foreign key cannot refer to a DEFERRABLE key."""
    columns = ", ".join(sorted(key.columns))
    return f"ALTER TABLE {name.schema}.{name.table} DROP CONSTRAINT …, ADD PRIMARY KEY ({columns})"


def _without_identity(name: TableName, facts: TableFacts, leave_out: str) -> PostgresNotReady:
    key = facts.primary_key
    if key is not None and key.is_deferrable and facts.replica_identity == "d":
        return PostgresNotReady(
            "once it is published, its own application could no longer update it",
            where=f"table {name}",
            found=f"{_DEFERRABLE_KEY}, which PostgreSQL does not accept as a replica identity",
            expected="a primary key that is not DEFERRABLE",
            remedy=f"{_undeferred(name, key)}, or {leave_out}.",
        )
    return PostgresNotReady(
        "once it is published, its own application could no longer update it",
        where=f"table {name}",
        found="no replica identity",
        expected="a primary key, or REPLICA IDENTITY FULL",
        remedy=f"Give it a primary key, or ALTER TABLE … REPLICA IDENTITY FULL, or {leave_out}.",
    )


def _warnings_of_generated_columns(source: PostgresSource, taken: Sequence[TableFacts]) -> Iterator[str]:
    for facts in taken:
        if facts.generated:
            name, columns = TableName(source.name, facts.schema, facts.table), ", ".join(facts.generated)
            yield (
                f"{name}: PostgreSQL does not replicate generated columns. In the lake, {columns} hold the "
                "values of the first snapshot, and nothing in rows that changed since."
            )


def _warnings_of_unsent_columns(source: PostgresSource, taken: Sequence[TableFacts]) -> Iterator[str]:
    for facts in taken:
        if facts.unsent:
            name, columns = TableName(source.name, facts.schema, facts.table), ", ".join(facts.unsent)
            yield (
                f"{name}: the lake will not have {columns}, because Debezium leaves out arrays of their type."
            )


def _warnings_of_unmarked_columns(source: PostgresSource, taken: Sequence[TableFacts]) -> Iterator[str]:
    for facts in taken:
        if facts.unmarked and facts.replica_identity != "f":
            name, columns = TableName(source.name, facts.schema, facts.table), ", ".join(facts.unmarked)
            yield (
                f"{name}: in a row of more than 2,000 bytes, an update that does not change {columns} may "
                "stop Debezium. If there may be such rows: ALTER TABLE … REPLICA IDENTITY FULL."
            )


def _read_server(connection: psycopg.Connection, slot: str) -> ServerFacts:
    if connection.info.encoding == "ascii":
        # The server then sends bytes, which psycopg does not turn into text.
        connection.execute("SET client_encoding = 'UTF8'")
    with connection.cursor(row_factory=class_row(ServerFacts)) as cursor:
        return cursor.execute(_SERVER, {"slot": slot}).fetchall()[0]


_SERVER = """
SELECT current_setting('server_version_num')::int / 10000 AS version,
  current_setting('server_encoding') AS encoding,
  current_setting('server_version') AS release, current_setting('wal_level') AS wal_level,
  pg_is_in_recovery() AS is_standby, current_database() AS database,
  current_setting('max_replication_slots')::int AS slots, current_setting('max_wal_senders')::int AS senders,
  (SELECT count(*) FROM pg_replication_slots) AS slots_in_use,
  (SELECT count(*) FROM pg_stat_replication) AS senders_in_use,
  own.slot_name IS NOT NULL AS has_slot, own.plugin, own.database AS slot_database, own.wal_status
FROM (SELECT 1) one LEFT JOIN pg_replication_slots own ON own.slot_name = %(slot)s
"""


def _server_problems(server: ServerFacts, source: PostgresSource) -> Iterator[tuple[str, str, RemedyOrText]]:
    """Yield what was found, what was expected, and what to do."""
    if server.version < OLDEST_VERSION:
        yield f"PostgreSQL {server.release}", f"PostgreSQL {OLDEST_VERSION} or newer", "Upgrade the server."
    if server.encoding == "SQL_ASCII":
        advice = "Dump the database, and restore it into one with ENCODING 'UTF8'."
        found = "the encoding SQL_ASCII, which does not say what characters the bytes stand for"
        yield found, "a database with an encoding, such as UTF8", advice
    if server.is_standby:
        expected = "the primary server (on Amazon RDS and Aurora the writer endpoint)"
        yield "a standby server", expected, f"Change [source.{source.name}.connection].host."
    if server.wal_level != "logical":
        remedy = (
            "Run ALTER SYSTEM SET wal_level = 'logical' and restart the server "
            "(on Amazon RDS and Aurora: rds.logical_replication = 1 in the parameter group, then reboot)."
        )
        yield f"wal_level = {server.wal_level}", "wal_level = logical", remedy
    if not server.has_slot:
        yield from _capacity_problems(server)
    elif server.plugin != "pgoutput" or server.slot_database != server.database:
        found = f"a slot with the plugin {server.plugin} for the database {server.slot_database}"
        yield (
            found,
            f"pgoutput and {server.database}",
            "Drop that replication slot, or give the lake another name.",
        )
    elif server.wal_status == "lost":
        advice = (
            "The slot's unread changes are lost: drop the slot and take a new snapshot "
            "(and raise max_slot_wal_keep_size so that it does not happen again)."
        )
        found = "a slot whose log the server has removed (wal_status = lost)"
        yield found, "a slot that Debezium can resume from", [advice, TakeSnapshot(source.name)]


def _capacity_problems(server: ServerFacts) -> Iterator[tuple[str, str, str]]:
    if server.slots_in_use >= server.slots:
        found = f"all {server.slots} replication slots in use"
        yield (
            found,
            "a free one",
            "Raise max_replication_slots and restart the server, or drop an unused slot.",
        )
    if server.senders_in_use >= server.senders:
        found = f"all {server.senders} WAL senders in use"
        yield found, "a free one", "Raise max_wal_senders and restart the server."


def _replication_problems(
    connection: psycopg.Connection, lake: Lake, source: PostgresSource, taken: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield what was found and what was expected."""
    name = publication(lake, source)
    with connection.cursor(row_factory=class_row(RoleFacts)) as cursor:
        role = cursor.execute(_ROLE).fetchall()[0]
    found = connection.execute(_PUBLICATION, (name,)).fetchone()
    published = _published(connection, name)
    unreadable = [table for table in taken if not _is_readable(connection, *table)]
    if role.name != replication_user(lake, source):
        yield f"a connection as {role.name}", f"the replication user {replication_user(lake, source)}"
    if role.is_superuser:
        yield f"the replication user {role.name} is a superuser", "a user that may only read and replicate"
    if not role.may_replicate:
        yield f"{role.name} may not replicate", "the attribute REPLICATION, or membership in rds_replication"
    if not role.may_beat:
        yield (
            f"{role.name} may not write {HEARTBEAT_SCHEMA}.{HEARTBEAT_TABLE}",
            "the heartbeat table, writable",
        )
    signals = signal_table(lake, source)
    if not connection.execute(_MAY_SIGNAL, {"schema": HEARTBEAT_SCHEMA, "table": signals}).fetchall():
        yield f"{role.name} may not write {HEARTBEAT_SCHEMA}.{signals}", "the signal table, writable"
    yield from _printing_problems(connection, role.name)
    if unreadable:
        yield f"{role.name} may not read {_listed(unreadable)}", "SELECT on every table that the lake takes"
    if found is None:
        yield "no publication", f"the publication {name}"
    elif found[1] != filters_mark(lake, source):
        yield f"the publication {name} with other row filters", "those of the lake file"
    elif not found[0]:
        yield "a publication that leaves out a kind of change", "insert, update, delete and truncate"
    elif missing := [table for table in taken if table not in published]:
        yield f"a publication without {_listed(missing)}", "one with every table that the lake takes"


def _printing_problems(connection: psycopg.Connection, role: str) -> Iterator[tuple[str, str]]:
    """Yield settings that change how the connector's session prints values, and that it does not set itself.

    The PostgreSQL driver of Java sets DateStyle, TimeZone and extra_float_digits in every session.
    """
    found = connection.execute(
        "SELECT current_setting('IntervalStyle'), current_setting('bytea_output'), "
        "1234.5::numeric::money::text"
    ).fetchall()[0]
    names = ("IntervalStyle", "bytea_output", "lc_monetary")
    wanted = ("postgres", "hex", "$1,234.50")
    for name, value, right in zip(names, found, wanted, strict=True):
        if value != right:
            setting = (
                f"ALTER ROLE {role} IN DATABASE {connection.info.dbname} SET {name} = '{PRINTING[name]}'"
            )
            yield f"{name}, with which {role} reads {value}", f"{right}, which this sets: {setting}"


# Through the catalog, because to_regclass raises if the role may not use the schema.
_ROLE = f"""
SELECT rolname AS name, rolsuper AS is_superuser,
  rolreplication OR EXISTS (SELECT FROM pg_roles r
    WHERE r.rolname = 'rds_replication' AND pg_has_role(r.oid, 'MEMBER')) AS may_replicate,
  EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = '{HEARTBEAT_SCHEMA}' AND c.relname = '{HEARTBEAT_TABLE}'
    AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'INSERT')
    AND has_any_column_privilege(c.oid, 'UPDATE')) AS may_beat
FROM pg_roles WHERE rolname = current_user
"""

_MAY_SIGNAL = """
SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = %(table)s AND has_schema_privilege(n.oid, 'USAGE')
AND has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
AND has_table_privilege(c.oid, 'DELETE')
"""

_PUBLICATION = """
SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate,
  coalesce(obj_description(oid, 'pg_publication'), '')
FROM pg_publication WHERE pubname = %s
"""


def _published(connection: psycopg.Connection, name: str) -> set[tuple[str, str]]:
    query = "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s"
    return {(schema, table) for schema, table in connection.execute(query, (name,))}


def _is_readable(connection: psycopg.Connection, schema: str, table: str) -> bool:
    query = """
    SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
    """
    row = connection.execute(query, (schema, table)).fetchone()
    return bool(row and row[0])


def _listed(names: Sequence[tuple[str, str]]) -> str:
    shown = ", ".join(f"{schema}.{table}" for schema, table in names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _address(connection: psycopg.Connection) -> str:
    info = connection.info
    return f"{info.host}:{info.port}/{info.dbname}"
