"""SQL that refuses to publish tables that would harm an application, or the lake."""

from __future__ import annotations

from textwrap import dedent

from connectors.engines.postgres.sql_text import literal
from connectors.engines.postgres.taken_tables import with_lossy_key
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake


def key_guard(lake: Lake, source: PostgresSource) -> str:
    """Refuse to publish tables of which the lake would have one row for two."""
    return dedent(
        """\
        -- The lake would have one row for two whose keys Debezium sends as the same.
        DO $tributary$
        DECLARE
          lossy text;
        BEGIN
          SELECT string_agg(format('%I.%I', n.nspname, c.relname), ', ' ORDER BY n.nspname, c.relname)
          INTO lossy FROM pg_temp.tributary_matched m JOIN pg_class c ON c.oid = m.oid
          JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE LOSSY;
          IF lossy IS NOT NULL THEN
            RAISE EXCEPTION 'the lake would keep one row for two of a table, namely %', lossy
              USING DETAIL = 'a key of types that Debezium sends exactly',
                    HINT = 'Add [table."source.schema.table"] with the columns of another unique index as '
                           'key, or leave them out with an exclude pattern ("!schema.table").';
          END IF;
        END
        $tributary$"""
    ).replace("LOSSY", with_lossy_key(lake, source))


def replica_identity_guard() -> str:
    """Refuse to publish tables whose updates PostgreSQL would then reject."""
    return dedent(
        """\
        -- A published table without a replica identity could no longer be updated by its own application.
        DO $tributary$
        DECLARE
          unsafe text;
        BEGIN
          SELECT string_agg(format('%I.%I', nspname, relname), ', ' ORDER BY nspname, relname)
          INTO unsafe FROM pg_temp.tributary_matched
          WHERE oid IN (SELECT oid FROM pg_temp.tributary_unsafe);
          IF unsafe IS NOT NULL THEN
            RAISE EXCEPTION 'tables without a replica identity cannot be published, namely %', unsafe
              USING DETAIL = 'a primary key that is not DEFERRABLE, or REPLICA IDENTITY FULL',
                    HINT = 'Give them a primary key, or ALTER TABLE … REPLICA IDENTITY FULL, '
                           'or leave them out with an exclude pattern ("!schema.table").';
          END IF;
        END
        $tributary$"""
    )


def hidden_columns_guard(lake: Lake, source: PostgresSource) -> tuple[str, ...]:
    """Refuse hidden columns that a table does not have: the column that was meant would not be hidden."""
    columns = ",\n      ".join(
        f"({literal(table.schema)}, {literal(table.table)}, {literal(column)})"
        for table, policy in lake.tables
        if table.source == source.name
        for column in sorted(policy.hidden.required)
    )
    if not columns:
        return ()
    guard = dedent(
        """\
        -- Columns that must not leave the database have to be there.
        DO $tributary$
        DECLARE
          missing text;
        BEGIN
          SELECT string_agg(format('%I of %I.%I', col, nspname, relname), ', ' ORDER BY nspname, relname, col)
          INTO missing FROM (VALUES
              COLUMNS
            ) AS hidden (sch, tbl, col)
          JOIN pg_temp.tributary_matched ON nspname = sch AND relname = tbl
          WHERE NOT EXISTS (SELECT FROM pg_attribute a
            WHERE a.attrelid = oid AND a.attname = col AND a.attnum > 0 AND NOT a.attisdropped);
          IF missing IS NOT NULL THEN
            RAISE EXCEPTION 'a column to leave out, mask or hash does not exist, namely %', missing
              USING HINT = 'Write its name as it is now. One that may be missing ends with a question mark.';
          END IF;
        END
        $tributary$"""
    )
    return (guard.replace("COLUMNS", columns),)
