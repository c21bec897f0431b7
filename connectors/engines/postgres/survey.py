"""The facts about a PostgreSQL database from which a first lake file is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from connectors.engines.engine import RowsUnreadable
from connectors.engines.survey import SAMPLED_ROWS, SECONDS_FOR_A_SAMPLE, Survey, SurveyedTable
from tributary.contract.patterns import OWN_SCHEMA

_BYTES_PER_ROW = 128
"""The assumed size of a row in a table that was never analyzed. A rough value is enough for buckets."""


def survey(connection: psycopg.Connection) -> Survey:
    """Read the tables of the database, with about how many rows each has."""
    may_prepare = connection.execute(
        "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    release = connection.execute("SHOW server_version").fetchall()[0][0]
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_TABLES, {"own_schema": OWN_SCHEMA, "bytes": _BYTES_PER_ROW}).fetchall()
    tables = tuple(
        SurveyedTable(
            schema=row["schema"],
            table=row["table"],
            columns={column["name"]: column["type"] for column in row["columns"]},
            rows=row["rows"],
            primary_key=next((tuple(key["columns"]) for key in row["keys"] if key["primary"]), ()),
            unique_keys=tuple(tuple(key["columns"]) for key in row["keys"] if not key["primary"]),
            has_text=tuple(column["name"] for column in row["columns"] if column["category"] in "SN"),
        )
        for row in rows
    )
    return Survey(f"PostgreSQL {release.split()[0]}", tables, bool(may_prepare and may_prepare[0]))


def sample(
    connection: psycopg.Connection, table: SurveyedTable, columns: Iterable[str]
) -> Sequence[Sequence[str | None]]:
    """Return some rows, each with the text of these columns. Raises RowsUnreadable."""
    texts = sql.SQL(", ").join(
        sql.SQL("left({}::text, 100)").format(sql.Identifier(column)) for column in columns
    )
    query = sql.SQL("SELECT {} FROM {} LIMIT {}").format(
        texts, sql.Identifier(table.schema, table.table), sql.Literal(SAMPLED_ROWS)
    )
    try:
        with connection.transaction():
            connection.execute("SET TRANSACTION READ ONLY")
            connection.execute(f"SET LOCAL statement_timeout = '{SECONDS_FOR_A_SAMPLE}s'".encode())
            return connection.execute(query).fetchall()
    except psycopg.Error as error:
        if connection.closed:
            raise
        raise RowsUnreadable(" ".join(str(error).split())) from error


_TABLES = r"""
SELECT n.nspname AS schema, c.relname AS table,
  (SELECT sum(CASE WHEN p.reltuples >= 0 THEN p.reltuples
                   ELSE pg_relation_size(p.oid) / %(bytes)s END)::bigint
   FROM pg_class p WHERE p.oid = c.oid AND c.relkind = 'r'
     OR c.relkind = 'p' AND p.oid IN (SELECT relid FROM pg_partition_tree(c.oid) WHERE isleaf)) AS rows,
  (SELECT coalesce(json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
      'category', t.typcategory) ORDER BY a.attnum), '[]')
   FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
   WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
  (SELECT coalesce(json_agg(json_build_object('primary', i.indisprimary,
      'columns', (SELECT json_agg(a.attname ORDER BY k.place)
        FROM unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) WITH ORDINALITY AS k(attnum, place)
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum))
      -- The index that says what an update holds is the best, then the one with the fewest columns.
      ORDER BY i.indisreplident DESC, i.indnkeyatts, i.indexrelid), '[]')
   FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
     AND i.indexprs IS NULL AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid
       AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) AND NOT a.attnotnull)) AS keys
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
  AND n.nspname NOT LIKE 'pg\_%%' AND n.nspname NOT IN ('information_schema', %(own_schema)s)
ORDER BY n.nspname, c.relname
"""
