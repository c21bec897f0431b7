"""Tables that the lake cannot keep exact, with the reason and the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import LiteralString

from psycopg import sql

from connectors.engines.absent import entries_without_table, patterns_without_table
from connectors.engines.engine import LeftOut, all_in_one
from connectors.engines.key_problems import lossy_key, no_such_column, unfit_key, without_key
from connectors.engines.postgres.names import replication_user
from connectors.engines.postgres.not_ready import PostgresNotReady
from connectors.engines.postgres.table_facts import TableFacts, UniqueKey, key_of
from connectors.engines.table_problems import (
    column_problems,
    tables_with_untraceable_names,
    topic_problems,
)
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA
from tributary.contract.table_name import TableName


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


def judge_tables(lake: Lake, source: PostgresSource, tables: Sequence[TableFacts]) -> PostgresFindings:
    """Judge the facts that `check_tables` read. Raises PostgresNotReady."""
    may_be_empty = source.connection is None
    # An outbox, too, must have what Debezium needs of a table.
    matched = [facts for facts in tables if source.patterns.matches(facts.schema, facts.table)]
    names = [(facts.schema, facts.table) for facts in tables]
    taken_names = [(facts.schema, facts.table) for facts in matched]
    absent = [
        *patterns_without_table(source, names, f"in database {source.database}", PostgresNotReady),
        *entries_without_table(lake, source, taken_names, PostgresNotReady),
        *_absent_outbox(source, names),
    ]
    if absent and not may_be_empty:
        raise all_in_one(absent)
    found = judge_existing(lake, source, tables)
    return replace(found, warnings=(*(str(error) for error in absent), *found.warnings))


def judge_existing(lake: Lake, source: PostgresSource, tables: Sequence[TableFacts]) -> PostgresFindings:
    """Judge the facts of the tables that there are, whatever else the lake file names."""
    matched = [facts for facts in tables if source.patterns.matches(facts.schema, facts.table)]
    names = [(facts.schema, facts.table) for facts in tables]
    others = (name for name in names if name[0] != OWN_SCHEMA)
    left_out = [*tables_with_untraceable_names(source, others, PostgresNotReady)]
    taken: list[TableFacts] = []
    parts: set[TableName] = set()
    for facts in matched:
        name = TableName(source.name, facts.schema, facts.table)
        if facts.root is not None and source.patterns.matches(*facts.root):
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
            *_warnings_of_generated_columns(source, taken),
            *_warnings_of_unsent_columns(source, taken),
            *_warnings_of_unmarked_columns(source, taken),
        ),
    )


def _table_problems(
    lake: Lake, source: PostgresSource, facts: TableFacts, leaves: Sequence[TableFacts]
) -> Iterator[PostgresNotReady]:
    name = TableName(source.name, facts.schema, facts.table)
    leave_out = f'leave the table out with the pattern "!{facts.schema}.{facts.table}"'

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
    key = key_of(lake, name, facts)
    yield from column_problems(lake, name, facts.columns, key, leave_out, PostgresNotReady)
    if source.outbox is not None and source.outbox.schema_and_table == (facts.schema, facts.table):
        needed = (*source.outbox.lake_columns, source.outbox.payload)
        for column in (column for column in needed if column not in facts.columns):
            remedy = f"Correct the names of columns in [source.{source.name}.outbox]."
            yield problem("an outbox without a column", column, f"one of {', '.join(facts.columns)}", remedy)


def _absent_outbox(source: PostgresSource, names: Sequence[tuple[str, str]]) -> Iterator[PostgresNotReady]:
    if source.outbox is not None and source.outbox.schema_and_table not in names:
        yield PostgresNotReady(
            "an outbox that does not exist",
            where=f"[source.{source.name}.outbox].table",
            found=f'"{source.outbox.table}"',
            expected=f"a table of database {source.database}",
        )


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
    key = key_of(lake, name, facts)
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
    key = key_of(lake, name, facts)
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
