"""SQL that finds the tables that the lake takes, and those that cannot be published."""

from __future__ import annotations

from collections.abc import Collection
from textwrap import dedent, indent

from connectors.engines.postgres.row_filters import row_filters
from connectors.engines.postgres.sql_text import IS_OF_KEY, like, literal, literals
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA, TablePattern
from tributary.contract.table_name import TableName

INEXACT = (
    "bit varying",
    "time with time zone",
    "time without time zone[]",
    "time with time zone[]",
    "timestamp without time zone[]",
    "timestamp with time zone[]",
)
"""Types of which Debezium sends two different values as the same one."""


def left_out_query(lake: Lake, source: PostgresSource) -> str:
    """Return a query for the tables that match the patterns and cannot be published, each with the reason."""
    return (
        "SELECT unfit.nspname || '.' || unfit.relname || ', ' || unfit.reason\n"
        f"FROM ({unfit_tables(lake, source)}) AS unfit ORDER BY 1"
    )


def patterns_without_table_query(source: PostgresSource) -> str:
    """Return a query for the source's patterns that match no table of the database."""
    table = (
        "SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')"
    )
    rows = ",\n  ".join(
        f"({literal(str(pattern))}, EXISTS ({table} AND {_pattern_condition(pattern)}))"
        for pattern in source.patterns.include
    )
    return f"SELECT pattern FROM (VALUES\n  {rows}\n) AS patterns (pattern, has_table) WHERE NOT has_table"


def whole_schemas(source: PostgresSource) -> tuple[str, ...]:
    """Return the schemas from which the source takes every table, existing or future."""
    patterns = source.patterns
    return tuple(
        pattern.schema
        for pattern in patterns.include
        if pattern.is_whole_schema
        and not any(excluded.may_match_in(pattern.schema) for excluded in patterns.exclude)
    )


def schemas_published_whole(lake: Lake, source: PostgresSource) -> tuple[str, ...]:
    """Return the schemas that the publication has as a whole, with the tables that are created later.

    PostgreSQL ignores the filter of a table whose schema is published whole. A table with a filter can come
    later, too."""
    filtered = {table.schema for table in row_filters(lake, source)}
    return tuple(schema for schema in whole_schemas(source) if schema not in filtered)


def matched_tables(
    lake: Lake, source: PostgresSource, untaken: Collection[TableName], condition: str = ""
) -> tuple[str, ...]:
    """Return the SQL that lists the tables that the lake takes, in a temporary table.

    untaken    tables that match the patterns, and are not taken
    condition  more SQL over n and c, which begins with AND
    """
    cases = "".join(
        f"\n    WHEN (n.nspname, c.relname) = ({literal(table.schema)}, {literal(table.table)})"
        f" THEN {literal(f' WHERE ({rows})')}"
        for table, rows in sorted(row_filters(lake, source).items())
    )
    filtered = f"CASE{cases}\n    ELSE '' END AS filter" if cases else "'' AS filter"
    names = ", ".join(f"({literal(each.schema)}, {literal(each.table)})" for each in sorted(untaken))
    exclude = f"\n  AND (n.nspname, c.relname) NOT IN ({names})" if names else ""
    return (
        "-- The tables that the lake takes.\nDROP TABLE IF EXISTS pg_temp.tributary_matched",
        "CREATE TEMPORARY TABLE tributary_matched AS\n"
        f"SELECT c.oid, n.nspname, c.relname, c.relreplident, {filtered}\n"
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace\n"
        f"WHERE {taken(source)}{exclude}{condition}",
    )


def taken(source: PostgresSource) -> str:
    """Return the condition, as SQL over n and c, for the tables that the lake takes."""
    return (
        "c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND NOT c.relispartition\n"
        f"  AND {indent(_patterns_condition(source), '  ').strip()}"
    )


def unsafe_tables() -> tuple[str, ...]:
    """Return the SQL that lists the tables that cannot be published, in a temporary table."""
    return (
        "-- Tables that cannot be published. Their own application could no longer update them, also in a\n"
        "-- partition, or two of their columns differ only in case, which stops Debezium.\n"
        "DROP TABLE IF EXISTS pg_temp.tributary_unsafe",
        dedent(
            """\
            CREATE TEMPORARY TABLE tributary_unsafe AS
            WITH unsafe AS (
              SELECT c.oid FROM pg_class c
              WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND (UNSAFE))
            SELECT c.oid, n.nspname, c.relname
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
              AND (c.oid IN (SELECT oid FROM unsafe)
                OR c.relkind = 'p' AND EXISTS (
                  SELECT FROM pg_partition_tree(c.oid) leaf JOIN unsafe ON unsafe.oid = leaf.relid))"""
        ).replace("UNSAFE", _UNSAFE),
    )


_UNSAFE = """
NOT (c.relreplident = 'f'
  OR c.relreplident = 'd' AND EXISTS (
    SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indimmediate)
  OR c.relreplident = 'i' AND EXISTS (
    SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident))
OR EXISTS (
  SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  GROUP BY lower(a.attname) HAVING count(*) > 1)
"""
"""Holds for a table, c, that cannot be published."""


# The types that `table_facts` calls inexact, also as domains.
_LOSSY_KEY = """
EXISTS (
  SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND IS_OF_KEY
  WHERE i.indrelid = c.oid AND i.indisprimary AND (
    WITH RECURSIVE base AS (
      SELECT oid, typtype, typbasetype FROM pg_type WHERE oid = a.atttypid
      UNION ALL
      SELECT p.oid, p.typtype, p.typbasetype FROM base b
      JOIN pg_type p ON b.typtype = 'd' AND p.oid = b.typbasetype
    )
    SELECT CAST(CAST(oid AS regtype) AS text) FROM base WHERE typtype <> 'd'
  ) IN (INEXACT))
"""
"""Holds for a table, c, of which Debezium sends two primary keys as the same one."""


def unfit_tables(lake: Lake, source: PostgresSource) -> str:
    """Return a query for the oid, the name and the reason of each matching table that cannot be taken."""
    lossy = with_lossy_key(lake, source)
    of_leaf = _UNSAFE.replace("c.", "p.")
    unsafe = (
        f"({_UNSAFE} OR EXISTS (SELECT FROM pg_partition_tree(c.oid) leaf JOIN pg_class p "
        f"ON p.oid = leaf.relid WHERE {of_leaf}))"
    )
    heirs = "c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = c.oid)"
    return (
        "SELECT c.oid, n.nspname, c.relname, CASE\n"
        f"  WHEN {unsafe} THEN 'which has no replica identity, or columns that differ only in case'\n"
        f"  WHEN {lossy} THEN 'of whose keys Debezium sends two as the same'\n"
        "  ELSE 'from which other tables inherit' END AS reason\n"
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace\n"
        f"WHERE {taken(source)}\n"
        f"  AND ({unsafe} OR {lossy} OR {heirs})"
    )


def with_lossy_key(lake: Lake, source: PostgresSource) -> str:
    """Return the condition for tables, n and c, with a lossy primary key that the lake uses."""
    keyed = ", ".join(
        f"({literal(table.schema)}, {literal(table.table)})"
        for table, policy in lake.tables
        if table.source == source.name and policy.key is not None
    )
    others = f"(n.nspname, c.relname) NOT IN ({keyed}) AND " if keyed else ""
    return f"({others}{_LOSSY_KEY.replace('INEXACT', literals(INEXACT)).replace('IS_OF_KEY', IS_OF_KEY)})"


def _patterns_condition(source: PostgresSource) -> str:
    """Return the source's patterns as SQL over n.nspname and c.relname, without system schemas and ours."""
    # The common cases of names that tributary.contract.patterns.is_traceable refuses.
    untraceable = literal('[.]|^"|"$')
    included = " OR ".join(_pattern_condition(pattern) for pattern in source.patterns.include)
    excluded = "".join(f"\nAND NOT {_pattern_condition(pattern)}" for pattern in source.patterns.exclude)
    return (
        f"({included}){excluded}\n"
        f"AND n.nspname !~ {untraceable} AND c.relname !~ {untraceable}\n"
        f"AND n.nspname NOT IN ('information_schema', {literal(OWN_SCHEMA)}) AND n.nspname NOT LIKE 'pg\\_%'"
    )


def _pattern_condition(pattern: TablePattern) -> str:
    return f"(n.nspname LIKE {like(pattern.schema)} AND c.relname LIKE {like(pattern.table)})"
