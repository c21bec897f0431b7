"""The query that Debezium's own role can run to see whether its database is prepared."""

from __future__ import annotations

from connectors.engines.postgres.names import HEARTBEAT_SCHEMA, HEARTBEAT_TABLE, publication, signal_table
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake


def missing_preparation_query(lake: Lake, source: PostgresSource) -> str:
    """Return a query for what an administrator still has to prepare: one row of text for each problem."""
    name = publication(lake, source)
    signals = signal_table(lake, source)
    quoted = "'" + name.replace("'", "''") + "'"
    return f"""
SELECT problem FROM (VALUES
  (current_setting('wal_level') = 'logical',
   'wal_level is ' || current_setting('wal_level') || ', not logical'),
  (EXISTS (SELECT FROM pg_roles me WHERE me.rolname = current_user AND (me.rolreplication OR EXISTS (
     SELECT FROM pg_roles r WHERE r.rolname = 'rds_replication' AND pg_has_role(r.oid, 'MEMBER')))),
   current_user || ' may not replicate'),
  (EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = '{HEARTBEAT_SCHEMA}' AND c.relname = '{HEARTBEAT_TABLE}'
     AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'INSERT')),
   'no table {HEARTBEAT_SCHEMA}.{HEARTBEAT_TABLE} that ' || current_user || ' may write'),
  (EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = '{HEARTBEAT_SCHEMA}' AND c.relname = '{signals}'
     AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'INSERT')
     AND has_table_privilege(c.oid, 'DELETE')),
   'no table {HEARTBEAT_SCHEMA}.{signals} that ' || current_user || ' may write'),
  (EXISTS (SELECT FROM pg_publication WHERE pubname = {quoted}), 'no publication ' || {quoted})
) AS prepared (holds, problem) WHERE NOT holds
""".strip()
