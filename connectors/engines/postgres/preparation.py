"""The SQL that prepares a PostgreSQL for Debezium: a role, its rights, a publication and two tables.

`setup_statements` returns this SQL, which may run again at any time. An administrator can run it by hand;
`apply_postgres_setup` and the deployment on AWS run the same SQL. The module `preflight` checks what a table
lacks. No statement holds a colon, because the RDS Data API reads the text after a colon as a parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from textwrap import dedent, indent

import psycopg
from psycopg import sql

from connectors.engines.postgres.names import (
    HEARTBEAT_SCHEMA,
    HEARTBEAT_TABLE,
    publication,
    replication_role,
    replication_slot,
    replication_user,
    signal_table,
)
from connectors.engines.postgres.row_filters import filters_mark, row_filters
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA, TablePattern
from tributary.contract.table_name import TableName

_HEARTBEAT = f"{HEARTBEAT_SCHEMA}.{HEARTBEAT_TABLE}"


_ATTEMPTS = 5
_CHANGED_MEANWHILE = "tuple concurrently"
"""PostgreSQL waits for a catalog row that another session is changing, and then fails: for example at two
concurrent GRANTs, or when a vacuum of the table has just ended (simple_heap_update)."""


PRINTING: Mapping[str, str] = {
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "DateStyle": "ISO, MDY",
    "TimeZone": "UTC",
}
"""Settings with which a session prints values as Debezium reads them."""


INEXACT = (
    "bit varying",
    "time with time zone",
    "time without time zone[]",
    "time with time zone[]",
    "timestamp without time zone[]",
    "timestamp with time zone[]",
)
"""Types of which Debezium sends two different values as the same one."""


class PostgresSetupFailed(TributaryError):
    """The SQL that prepares the database failed."""


def heartbeat_query(lake: Lake, source: PostgresSource) -> str:
    """Return the statement that Debezium runs with each heartbeat.

    It writes, so that the slot also advances in a quiet database.
    """
    return (
        f"INSERT INTO {_HEARTBEAT} (lake, source, beaten_at) "
        f"VALUES ({_literal(lake.name)}, {_literal(source.name)}, now()) "
        "ON CONFLICT (lake, source) DO UPDATE SET beaten_at = now()"
    )


def signals_of(lake: Lake, source: PostgresSource) -> str:
    """Return the source's signal table, with its schema, as SQL names it."""
    return f"{HEARTBEAT_SCHEMA}.{_identifier(signal_table(lake, source))}"


def setup_script(lake: Lake, source: PostgresSource, untaken: Collection[TableName] = ()) -> str:
    """Return the psql script for an administrator, if Tributary has no administrator's password.

    A superuser can run it. So can the owner of the database and its tables, with the right to create roles.
    """
    set_password = f"-- Then set its password:\n\\password {_identifier(replication_user(lake, source))}"
    return f"BEGIN;\n\n{setup_sql(lake, source, untaken)}\n\nCOMMIT;\n\n{set_password}\n"


def password_statement(lake: Lake, source: PostgresSource, password: str) -> str:
    """Return the statement that gives Debezium's role a password, or the verifier of one."""
    return f"ALTER ROLE {_identifier(replication_user(lake, source))} PASSWORD {_literal(password)}"


def setup_sql(lake: Lake, source: PostgresSource, untaken: Collection[TableName] = ()) -> str:
    """Return `setup_statements` as one text."""
    return "\n\n".join(f"{statement};" for statement in setup_statements(lake, source, untaken))


def setup_statements(
    lake: Lake, source: PostgresSource, untaken: Collection[TableName] = ()
) -> tuple[str, ...]:
    """Return the SQL that prepares the source's database in one transaction.

    It neither publishes the tables in `untaken` one by one nor lets the role read them. It sets no password.
    A later run adds the tables that were created since the last run.
    """
    return _statements(lake, source, _matched_tables(lake, source, untaken))


def later_statements(lake: Lake, source: PostgresSource) -> tuple[str, ...]:
    """Return the SQL of a later run that nobody watches: it passes over the tables of `left_out_query`."""
    unfit = f"\n  AND c.oid NOT IN (SELECT unfit.oid FROM ({_unfit_tables(lake, source)}) AS unfit)"
    return _statements(lake, source, _matched_tables(lake, source, (), unfit))


def _statements(lake: Lake, source: PostgresSource, matched_tables: tuple[str, ...]) -> tuple[str, ...]:
    role = replication_user(lake, source)
    return (
        _role(role),
        _printing(role),
        *_heartbeat(role),
        *_signals(signals_of(lake, source), role),
        *_unsafe_tables(),
        *matched_tables,
        _replica_identity_guard(),
        _key_guard(lake, source),
        *_hidden_columns_guard(lake, source),
        _rights(role),
        *(_rights_on_later_tables(role, schema) for schema in whole_schemas(source)),
        _publication(lake, source),
        "DROP TABLE pg_temp.tributary_matched, pg_temp.tributary_unsafe",
    )


def removal_statements(lake: Lake, source: PostgresSource) -> tuple[str, ...]:
    """Return the SQL that undoes `setup_statements`, one transaction a statement. The slot must be inactive.

    The source's tables stay unchanged. Only a superuser, or the user that ran the setup, may run this SQL.
    """
    return (
        slot_removal(replication_slot(lake, source)),
        f"DROP PUBLICATION IF EXISTS {_identifier(publication(lake, source))}",
        f"DROP TABLE IF EXISTS {signals_of(lake, source)}",
        _heartbeat_removal(lake, source),
        _role_removal(replication_user(lake, source)),
    )


def slot_removal(slot: str) -> str:
    """Return the SQL that drops a replication slot if it exists and nobody reads from it."""
    return (
        "SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots "
        f"WHERE slot_name = {_literal(slot)} AND NOT active"
    )


def unpublished_tables_query(lake: Lake, source: PostgresSource) -> str:
    """Return a query for the names of the tables to publish that are not published yet."""
    name = _literal(publication(lake, source))
    return (
        "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace\n"
        f"WHERE {_taken(source)}\n"
        f"AND c.oid NOT IN (SELECT unfit.oid FROM ({_unfit_tables(lake, source)}) AS unfit)\n"
        "AND NOT EXISTS (SELECT FROM pg_publication_tables p\n"
        f"  WHERE p.pubname = {name} AND p.schemaname = n.nspname AND p.tablename = c.relname)\n"
        "ORDER BY 1"
    )


def left_out_query(lake: Lake, source: PostgresSource) -> str:
    """Return a query for the tables that match the patterns and cannot be published, each with the reason."""
    return (
        "SELECT unfit.nspname || '.' || unfit.relname || ', ' || unfit.reason\n"
        f"FROM ({_unfit_tables(lake, source)}) AS unfit ORDER BY 1"
    )


def patterns_without_table_query(source: PostgresSource) -> str:
    """Return a query for the source's patterns that match no table of the database."""
    table = (
        "SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')"
    )
    rows = ",\n  ".join(
        f"({_literal(str(pattern))}, EXISTS ({table} AND {_pattern_condition(pattern)}))"
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


def apply_postgres_setup(
    admin: psycopg.Connection,
    lake: Lake,
    source: PostgresSource,
    password: str,
    untaken: Collection[TableName] = (),
) -> tuple[str, ...]:
    """Prepare the database in one transaction, give the replication user the password, and return warnings.

    A role that already exists and that the lake file names keeps its password. Only a SCRAM verifier of the
    password reaches the server, so no log can hold the password. Raises PostgresSetupFailed.
    """
    role = replication_user(lake, source)
    warnings: list[str] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING" and diagnostic.message_primary:
            warnings.append(diagnostic.message_primary)

    admin.add_notice_handler(note)
    try:
        for is_last in (*[False] * (_ATTEMPTS - 1), True):
            warnings.clear()
            try:
                with admin.transaction():
                    is_new = _is_missing(admin, role)
                    admin.execute(setup_sql(lake, source, untaken).encode())
                    if is_new or role == replication_role(lake, source):
                        _set_password(admin, role, password)
                break
            except psycopg.errors.InternalError_ as error:
                if is_last or _CHANGED_MEANWHILE not in str(error):
                    raise
    except psycopg.Error as error:
        raise PostgresSetupFailed(
            "the database could not be prepared for replication",
            where=f"{source.name}, database {source.database}",
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            expected=error.diag.message_detail,
            remedy=error.diag.message_hint
            or "Remove admin_user from the lake file and start the pipeline again: it then writes the SQL "
            "to a file, for an administrator to run.",
        ) from error
    finally:
        admin.remove_notice_handler(note)
    return tuple(warnings)


def _is_missing(connection: psycopg.Connection, role: str) -> bool:
    return connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None


def _set_password(admin: psycopg.Connection, role: str, password: str) -> None:
    verifier = admin.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    statement = sql.SQL("ALTER ROLE {role} PASSWORD {verifier}")
    admin.execute(statement.format(role=sql.Identifier(role), verifier=sql.Literal(verifier)))


def _role(role: str) -> str:
    return dedent(
        f"""\
        -- The role that reads the changes. It may log in and replicate; it owns nothing.
        DO $tributary$
        BEGIN
          IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {_literal(role)}) THEN
            CREATE ROLE {_identifier(role)} LOGIN;
          END IF;
          IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_replication') THEN
            GRANT rds_replication TO {_identifier(role)};  -- Amazon RDS and Aurora
          ELSIF NOT (SELECT rolreplication FROM pg_roles WHERE rolname = {_literal(role)}) THEN
            ALTER ROLE {_identifier(role)} REPLICATION;
          END IF;
          EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), {_literal(role)});
        END
        $tributary$"""
    )


def _printing(role: str) -> str:
    values = ", ".join(f"({_literal(name)}, {_literal(value)})" for name, value in PRINTING.items())
    return dedent(
        f"""\
        -- Values as Debezium reads them, whatever the database's own settings are.
        DO $tributary$
        DECLARE
          setting record;
        BEGIN
          FOR setting IN SELECT * FROM (VALUES {values}) AS wanted (name, value)
            WHERE NOT EXISTS (
              SELECT FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole
              JOIN pg_database d ON d.oid = s.setdatabase
              WHERE r.rolname = {_literal(role)} AND d.datname = current_database()
                AND format('%s=%s', wanted.name, wanted.value) = ANY (s.setconfig))
          LOOP
            EXECUTE format('ALTER ROLE %I IN DATABASE %I SET %I = %L',
                           {_literal(role)}, current_database(), setting.name, setting.value);
          END LOOP;
        EXCEPTION WHEN insufficient_privilege THEN
          NULL;  -- The check of the role reports a setting that matters.
        END
        $tributary$"""
    )


def _heartbeat(role: str) -> tuple[str, ...]:
    return (
        "-- A row that Debezium keeps updating, so that the slot holds back no log of a quiet database.\n"
        f"CREATE SCHEMA IF NOT EXISTS {HEARTBEAT_SCHEMA}",
        f"CREATE TABLE IF NOT EXISTS {_HEARTBEAT} (\n"
        "  lake text, source text, beaten_at timestamptz NOT NULL, PRIMARY KEY (lake, source)\n"
        ")",
        f"GRANT USAGE ON SCHEMA {HEARTBEAT_SCHEMA} TO {_identifier(role)}",
        f"GRANT SELECT (lake, source), INSERT, UPDATE (beaten_at) ON {_HEARTBEAT} TO {_identifier(role)}",
    )


def _signals(table: str, role: str) -> tuple[str, ...]:
    return (
        "-- Rows that tell Debezium to read a table again. Debezium also writes its own rows.\n"
        f"CREATE TABLE IF NOT EXISTS {table} (\n"
        "  id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL, data text\n"
        ")",
        "-- Debezium understands a deleted row only with all its values.\n"
        f"ALTER TABLE {table} REPLICA IDENTITY FULL",
        f"GRANT SELECT, INSERT, DELETE ON {table} TO {_identifier(role)}",
    )


def _unsafe_tables() -> tuple[str, ...]:
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
  SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
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


def _unfit_tables(lake: Lake, source: PostgresSource) -> str:
    """Return a query for the oid, the name and the reason of each matching table that cannot be taken."""
    lossy = _with_lossy_key(lake, source)
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
        f"WHERE {_taken(source)}\n"
        f"  AND ({unsafe} OR {lossy} OR {heirs})"
    )


def _with_lossy_key(lake: Lake, source: PostgresSource) -> str:
    """Return the condition for tables, n and c, with a lossy primary key that the lake uses."""
    keyed = ", ".join(
        f"({_literal(table.schema)}, {_literal(table.table)})"
        for table, policy in lake.tables
        if table.source == source.name and policy.key is not None
    )
    others = f"(n.nspname, c.relname) NOT IN ({keyed}) AND " if keyed else ""
    return f"({others}{_LOSSY_KEY.replace('INEXACT', _literals(INEXACT))})"


def _key_guard(lake: Lake, source: PostgresSource) -> str:
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
    ).replace("LOSSY", _with_lossy_key(lake, source))


def _matched_tables(
    lake: Lake, source: PostgresSource, untaken: Collection[TableName], condition: str = ""
) -> tuple[str, ...]:
    cases = "".join(
        f"\n    WHEN (n.nspname, c.relname) = ({_literal(table.schema)}, {_literal(table.table)})"
        f" THEN {_literal(f' WHERE ({rows})')}"
        for table, rows in sorted(row_filters(lake, source).items())
    )
    filtered = f"CASE{cases}\n    ELSE '' END AS filter" if cases else "'' AS filter"
    names = ", ".join(f"({_literal(each.schema)}, {_literal(each.table)})" for each in sorted(untaken))
    exclude = f"\n  AND (n.nspname, c.relname) NOT IN ({names})" if names else ""
    return (
        "-- The tables that the lake takes.\nDROP TABLE IF EXISTS pg_temp.tributary_matched",
        "CREATE TEMPORARY TABLE tributary_matched AS\n"
        f"SELECT c.oid, n.nspname, c.relname, c.relreplident, {filtered}\n"
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace\n"
        f"WHERE {_taken(source)}{exclude}{condition}",
    )


def _taken(source: PostgresSource) -> str:
    """Return the condition, as SQL over n and c, for the tables that the lake takes."""
    return (
        "c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND NOT c.relispartition\n"
        f"  AND {indent(_patterns_condition(source), '  ').strip()}"
    )


def _replica_identity_guard() -> str:
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


def _hidden_columns_guard(lake: Lake, source: PostgresSource) -> tuple[str, ...]:
    """Refuse hidden columns that a table does not have: the column that was meant would not be hidden."""
    columns = ",\n      ".join(
        f"({_literal(table.schema)}, {_literal(table.table)}, {_literal(column)})"
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


def _rights(role: str) -> str:
    return dedent(
        f"""\
        DO $tributary$
        DECLARE
          matched record;
        BEGIN
          FOR matched IN SELECT * FROM pg_temp.tributary_matched LOOP
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', matched.nspname, {_literal(role)});
            CONTINUE WHEN has_table_privilege({_literal(role)}, matched.oid, 'SELECT');
            EXECUTE format('GRANT SELECT ON %I.%I TO %I', matched.nspname, matched.relname, {_literal(role)});
          END LOOP;
        END
        $tributary$"""
    )


def _rights_on_later_tables(role: str, schema: str) -> str:
    return dedent(
        f"""\
        -- Make tables that are created later in {_comment(schema)} readable too, no matter who creates them.
        DO $tributary$
        DECLARE
          creator text;
        BEGIN
          IF EXISTS (SELECT FROM pg_namespace WHERE nspname = {_literal(schema)}) THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', {_literal(schema)}, {_literal(role)});
            FOR creator IN
              SELECT current_user
              UNION SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = {_literal(schema)}
              UNION SELECT pg_get_userbyid(relowner) FROM pg_class
                WHERE relkind IN ('r', 'p')
                  AND relnamespace = to_regnamespace(quote_ident({_literal(schema)}))
            LOOP
              CONTINUE WHEN creator LIKE 'pg\\_%';
              BEGIN
                EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I '
                               'GRANT SELECT ON TABLES TO %I',
                               creator, {_literal(schema)}, {_literal(role)});
              EXCEPTION WHEN insufficient_privilege THEN
                RAISE WARNING 'tables that % creates later in schema % are readable only after another run',
                  creator, {_literal(schema)};
              END;
            END LOOP;
          END IF;
        END
        $tributary$"""
    )


def _publication(lake: Lake, source: PostgresSource) -> str:
    schemas = _literals(schemas_published_whole(lake, source))
    own = f"{_HEARTBEAT}, {signals_of(lake, source)}"
    name, slot = _literal(publication(lake, source)), _literal(replication_slot(lake, source))
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
                          'another `tributary up`, because publishing whole schemas needs PostgreSQL 15 and '
                          'a superuser';
          END;
          IF unsafe IS NOT NULL THEN
            RAISE WARNING 'tables created later are published one by one, by an ingest that follows or by '
                          'another `tributary up`, because publishing the whole schema would also publish %',
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
    mark, name = filters_mark(lake, source), _literal(publication(lake, source))
    comment = _literal(mark) if mark else "NULL"
    marking = f"EXECUTE format('COMMENT ON PUBLICATION %I IS %L', {name}, {comment});\n"
    return indent((_FILTER_CHECK.replace("PUBLICATION", name) if mark else "") + marking, " " * 10)


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
  SELECT FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey)
    AND CASE c.relreplident WHEN 'd' THEN i.indisprimary ELSE i.indisreplident END);
IF unsafe IS NOT NULL THEN
  RAISE EXCEPTION 'with this row filter, applications could no longer update the table, because it reads %',
    unsafe
    USING DETAIL = 'rows that read only columns of the replica identity, or REPLICA IDENTITY FULL',
          HINT = 'ALTER TABLE … REPLICA IDENTITY FULL, or remove the entry rows from the lake file.';
END IF;
"""


def _heartbeat_removal(lake: Lake, source: PostgresSource) -> str:
    """Other sources may still have their row in the same table."""
    return dedent(
        f"""\
        DO $tributary$
        DECLARE
          is_in_use boolean;
        BEGIN
          IF to_regclass({_literal(_HEARTBEAT)}) IS NOT NULL THEN
            DELETE FROM {_HEARTBEAT} WHERE lake = {_literal(lake.name)} AND source = {_literal(source.name)};
            SELECT EXISTS (SELECT FROM {_HEARTBEAT}) INTO is_in_use;
            IF NOT is_in_use THEN
              DROP TABLE {_HEARTBEAT};
              DROP SCHEMA {HEARTBEAT_SCHEMA};
            END IF;
          END IF;
        END
        $tributary$"""
    )


def _role_removal(role: str) -> str:
    """A role has rights in this database only. Its creator may join it, and so may remove it."""
    return dedent(
        f"""\
        DO $tributary$
        BEGIN
          IF EXISTS (SELECT FROM pg_roles WHERE rolname = {_literal(role)}) THEN
            GRANT {_identifier(role)} TO CURRENT_USER;
            DROP OWNED BY {_identifier(role)};
            DROP ROLE {_identifier(role)};
          END IF;
        END
        $tributary$"""
    )


def _patterns_condition(source: PostgresSource) -> str:
    """Return the source's patterns as SQL over n.nspname and c.relname, without system schemas and ours."""
    # The common cases of names that tributary.contract.patterns.is_traceable refuses.
    untraceable = _literal('[.]|^"|"$')
    included = " OR ".join(_pattern_condition(pattern) for pattern in source.patterns.include)
    excluded = "".join(f"\nAND NOT {_pattern_condition(pattern)}" for pattern in source.patterns.exclude)
    return (
        f"({included}){excluded}\n"
        f"AND n.nspname !~ {untraceable} AND c.relname !~ {untraceable}\n"
        f"AND n.nspname NOT IN ('information_schema', {_literal(OWN_SCHEMA)}) AND n.nspname NOT LIKE 'pg\\_%'"
    )


def _pattern_condition(pattern: TablePattern) -> str:
    return f"(n.nspname LIKE {_like(pattern.schema)} AND c.relname LIKE {_like(pattern.table)})"


def _like(wildcard: str) -> str:
    escaped = "".join(f"\\{character}" if character in "\\%_" else character for character in wildcard)
    return _literal(escaped.replace("*", "%").replace("?", "_"))


def _literals(texts: Iterable[str]) -> str:
    """Return a list for IN. SQL has no empty list, so an empty one becomes a text that equals no name."""
    return ", ".join(map(_literal, texts)) or "''"


def _literal(text: str) -> str:
    """Return a literal that reads the same everywhere, even between dollar quotes.

    It contains no colon and no question mark, because some clients read these as parameters.
    """
    quoted = text.replace("'", "''")
    if not any(character in quoted for character in "\\$:?"):
        return f"'{quoted}'"
    escaped = quoted.replace("\\", "\\\\")
    for character in "$:?":
        escaped = escaped.replace(character, f"\\x{ord(character):x}")
    return f"E'{escaped}'"


def _identifier(name: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    if ":" not in name:
        return quoted
    return "U&" + quoted.replace("\\", "\\\\").replace(":", "\\003a")


def _comment(text: str) -> str:
    return " ".join(text.replace(":", " ").split())
