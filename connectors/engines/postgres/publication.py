"""The SQL for the publication: the tables whose changes PostgreSQL sends to Debezium."""

from __future__ import annotations

from textwrap import dedent, indent

from connectors.engines.postgres.names import publication, replication_slot
from connectors.engines.postgres.row_filters import filters_mark
from connectors.engines.postgres.sql_text import IS_OF_KEY, literal, literals
from connectors.engines.postgres.taken_tables import schemas_published_whole, taken, unfit_tables
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake


def unpublished_tables_query(lake: Lake, source: PostgresSource) -> str:
    """Return a query for the names of the tables to publish that are not published yet."""
    name = literal(publication(lake, source))
    return (
        "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace\n"
        f"WHERE {taken(source)}\n"
        f"AND c.oid NOT IN (SELECT unfit.oid FROM ({unfit_tables(lake, source)}) AS unfit)\n"
        "AND NOT EXISTS (SELECT FROM pg_publication_tables p\n"
        f"  WHERE p.pubname = {name} AND p.schemaname = n.nspname AND p.tablename = c.relname)\n"
        "ORDER BY 1"
    )


def publication_statement(lake: Lake, source: PostgresSource, own: str) -> str:
    """Return the SQL that publishes the lake's tables, and Tributary's `own` ones."""
    schemas = literals(schemas_published_whole(lake, source))
    name, slot = literal(publication(lake, source)), literal(replication_slot(lake, source))
    return dedent(
        f"""\
        -- Publish the heartbeat and the signals, every schema that the lake takes whole (so that it includes
        -- tables created later), and all other tables one by one.
        DO $tributary$
        DECLARE
          schemas name[];
          unsafe text;
          whole text DEFAULT '';
          single text DEFAULT '';
          wanted text;
          published text[];
          added record;
          has_rows boolean;
        BEGIN
          IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = {name}) THEN
            EXECUTE format('CREATE PUBLICATION %I WITH (publish = ''insert, update, delete, truncate'', '
                           'publish_via_partition_root = true)', {name});
          END IF;
          SELECT coalesce(array_agg(format('%I.%I', schemaname, tablename)), '{{}}')
          INTO published FROM pg_publication_tables WHERE pubname = {name};
          SELECT coalesce(array_agg(nspname), '{{}}')
          INTO schemas FROM pg_namespace WHERE nspname IN ({schemas})
            AND nspname NOT IN (SELECT nspname FROM pg_temp.tributary_unsafe);
          SELECT string_agg(format('%I.%I', nspname, relname), ', ' ORDER BY nspname, relname)
          INTO unsafe FROM pg_temp.tributary_unsafe WHERE nspname IN ({schemas});
          SELECT coalesce(string_agg(format('TABLES IN SCHEMA %I, ', nspname), '' ORDER BY nspname), '')
          INTO whole FROM unnest(schemas) AS nspname;
          SELECT coalesce(string_agg(format('%I.%I%s, ', nspname, relname, filter), ''
            ORDER BY nspname, relname), '')
          INTO single FROM pg_temp.tributary_matched WHERE nspname <> ALL (schemas);
          SELECT coalesce(string_agg(format('%I.%I%s, ', nspname, relname, filter), ''
            ORDER BY nspname, relname), '')
          INTO wanted FROM pg_temp.tributary_matched;
          BEGIN
            IF whole <> '' AND CAST(current_setting('server_version_num') AS int) < 150000 THEN
              RAISE feature_not_supported;
            END IF;
            EXECUTE format('ALTER PUBLICATION %I SET %sTABLE %s{own}',
                           {name}, whole, single);
          EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
            IF whole = '' THEN
              RAISE;
            END IF;
            EXECUTE format('ALTER PUBLICATION %I SET TABLE %s{own}',
                           {name}, wanted);
            RAISE WARNING 'tables created later are published one by one, by an ingest that follows or by '
                          'the next preparation of the database, because publishing whole schemas needs '
                          'PostgreSQL 15 and a superuser';
          END;
          IF unsafe IS NOT NULL THEN
            RAISE WARNING 'tables created later are published one by one, by an ingest that follows or by '
                          'the next preparation of the database, because publishing the whole schema would '
                          'also publish %',
                          unsafe;
          END IF;
{_filters(lake, source)}\
          -- Debezium took its snapshot when it created the slot.
          IF EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = {slot}) THEN
            FOR added IN SELECT * FROM pg_temp.tributary_matched
              WHERE format('%I.%I', nspname, relname) <> ALL (published)
            LOOP
              EXECUTE format('SELECT EXISTS (SELECT FROM %I.%I)', added.nspname, added.relname) INTO has_rows;
              IF has_rows THEN
                RAISE WARNING '%.% held rows before it was published, and no event brings them',
                  added.nspname, added.relname;
              END IF;
            END LOOP;
          END IF;
        END
        $tributary$"""
    )


def _filters(lake: Lake, source: PostgresSource) -> str:
    """Return the part of the publication's block that checks its row filters, and marks the publication.

    PostgreSQL refuses an application's updates and deletes of a table with a filter that reads columns
    outside the replica identity. It says so only then.
    """
    mark, name = filters_mark(lake, source), literal(publication(lake, source))
    comment = literal(mark) if mark else "NULL"
    marking = f"EXECUTE format('COMMENT ON PUBLICATION %I IS %L', {name}, {comment});\n"
    check = _FILTER_CHECK.replace("PUBLICATION", name).replace("IS_OF_KEY", IS_OF_KEY) if mark else ""
    return indent(check + marking, " " * 10)


# A column in a condition has its line in pg_depend.
_FILTER_CHECK = """\
SELECT string_agg(format('%I of %I.%I', a.attname, n.nspname, c.relname), ', ' ORDER BY c.relname)
INTO unsafe
FROM pg_temp.tributary_matched m
JOIN pg_publication_rel r ON r.prrelid = m.oid
JOIN pg_publication p ON p.oid = r.prpubid AND p.pubname = PUBLICATION
JOIN pg_depend d ON d.classid = CAST('pg_publication_rel' AS regclass) AND d.objid = r.oid
  AND d.refclassid = CAST('pg_class' AS regclass) AND d.refobjid = m.oid AND d.refobjsubid > 0
JOIN pg_attribute f ON f.attrelid = m.oid AND f.attnum = d.refobjsubid
JOIN pg_class c ON c.oid = m.oid OR c.oid IN (SELECT relid FROM pg_partition_tree(m.oid))
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = f.attname
WHERE m.filter <> '' AND c.relreplident <> 'f' AND NOT EXISTS (
  SELECT FROM pg_index i WHERE i.indrelid = c.oid AND IS_OF_KEY
    AND CASE c.relreplident WHEN 'd' THEN i.indisprimary ELSE i.indisreplident END);
IF unsafe IS NOT NULL THEN
  RAISE EXCEPTION 'with this row filter, applications could no longer update the table, because it reads %',
    unsafe
    USING DETAIL = 'rows that read only columns of the replica identity, or REPLICA IDENTITY FULL',
          HINT = 'ALTER TABLE … REPLICA IDENTITY FULL, or remove the entry rows from the lake file.';
END IF;
"""
