"""The SQL that prepares a PostgreSQL for Debezium: a role, its rights, a publication and two tables.

`setup_statements` returns this SQL, which may run again at any time. An administrator can run it by hand;
`apply_postgres_setup` and the deployment on AWS run the same SQL. The module `preflight` checks what a table
lacks. No statement holds a colon, because the RDS Data API reads the text after a colon as a parameter.
"""

from __future__ import annotations

from collections.abc import Collection
from textwrap import dedent

import psycopg
from psycopg import sql

from connectors.engines.postgres.guards import hidden_columns_guard, key_guard, replica_identity_guard
from connectors.engines.postgres.names import (
    HEARTBEAT_SCHEMA,
    HEARTBEAT_TABLE,
    publication,
    replication_role,
    replication_slot,
    replication_user,
    signal_table,
)
from connectors.engines.postgres.publication import publication_statement
from connectors.engines.postgres.role import (
    is_readable_part,
    no_rights_on_parts,
    printing_statement,
    rights_on_later_tables,
    rights_statement,
    role_removal,
    role_statement,
)
from connectors.engines.postgres.sql_text import identifier, literal
from connectors.engines.postgres.taken_tables import (
    matched_tables,
    taken,
    unfit_tables,
    unsafe_tables,
    whole_schemas,
)
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName

_HEARTBEAT = f"{HEARTBEAT_SCHEMA}.{HEARTBEAT_TABLE}"


_ATTEMPTS = 5
_CHANGED_MEANWHILE = "tuple concurrently"
"""PostgreSQL waits for a catalog row that another session is changing, and then fails: for example at two
concurrent GRANTs, or when a vacuum of the table has just ended (simple_heap_update)."""


class PostgresSetupFailed(TributaryError):
    """The SQL that prepares the database failed."""


def heartbeat_query(lake: Lake, source: PostgresSource) -> str:
    """Return the statement that Debezium runs with each heartbeat.

    It writes, so that the slot also advances in a quiet database.
    """
    return (
        f"INSERT INTO {_HEARTBEAT} (lake, source, beaten_at) "
        f"VALUES ({literal(lake.name)}, {literal(source.name)}, now()) "
        "ON CONFLICT (lake, source) DO UPDATE SET beaten_at = now()"
    )


def signals_of(lake: Lake, source: PostgresSource) -> str:
    """Return the source's signal table, with its schema, as SQL names it."""
    return f"{HEARTBEAT_SCHEMA}.{identifier(signal_table(lake, source))}"


def setup_script(lake: Lake, source: PostgresSource, untaken: Collection[TableName] = ()) -> str:
    """Return the psql script for an administrator, if Tributary has no administrator's password.

    A superuser can run it. So can the owner of the database and its tables, with the right to create roles.
    """
    set_password = f"-- Then set its password:\n\\password {identifier(replication_user(lake, source))}"
    return f"BEGIN;\n\n{setup_sql(lake, source, untaken)}\n\nCOMMIT;\n\n{set_password}\n"


def password_statement(lake: Lake, source: PostgresSource, password: str) -> str:
    """Return the statement that gives Debezium's role a password, or the verifier of one."""
    return f"ALTER ROLE {identifier(replication_user(lake, source))} PASSWORD {literal(password)}"


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
    return _statements(lake, source, matched_tables(lake, source, untaken))


def later_statements(lake: Lake, source: PostgresSource) -> tuple[str, ...]:
    """Return the SQL of a later run that nobody watches: it passes over the tables of `left_out_query`."""
    return _statements(lake, source, matched_tables(lake, source, (), _is_fit(lake, source)))


def readable_parts_query(lake: Lake, source: PostgresSource) -> str:
    """Return a query for the partitions that Tributary's own role may read, until `later_statements` run."""
    return (
        "SELECT p.relname FROM pg_class p\n"
        f"WHERE {is_readable_part(replication_role(lake, source))} AND EXISTS (\n"
        "  SELECT FROM pg_partition_ancestors(p.oid) a JOIN pg_class c ON c.oid = a.relid\n"
        "  JOIN pg_namespace n ON n.oid = c.relnamespace\n"
        f"  WHERE {taken(source)}{_is_fit(lake, source)})"
    )


def _is_fit(lake: Lake, source: PostgresSource) -> str:
    return f"\n  AND c.oid NOT IN (SELECT unfit.oid FROM ({unfit_tables(lake, source)}) AS unfit)"


def _statements(lake: Lake, source: PostgresSource, matched: tuple[str, ...]) -> tuple[str, ...]:
    role = replication_user(lake, source)
    return (
        role_statement(role),
        printing_statement(role),
        *_heartbeat(role),
        *_signals(signals_of(lake, source), role),
        *unsafe_tables(),
        *matched,
        replica_identity_guard(),
        key_guard(lake, source),
        *hidden_columns_guard(lake, source),
        rights_statement(role),
        # The lake file may name a role that others use, too.
        *((no_rights_on_parts(role),) if role == replication_role(lake, source) else ()),
        *(rights_on_later_tables(role, schema) for schema in whole_schemas(source)),
        publication_statement(lake, source, f"{_HEARTBEAT}, {signals_of(lake, source)}"),
        "DROP TABLE pg_temp.tributary_matched, pg_temp.tributary_unsafe",
    )


def removal_statements(lake: Lake, source: PostgresSource) -> tuple[str, ...]:
    """Return the SQL that undoes `setup_statements`, one transaction a statement. The slot must be inactive.

    The source's tables stay unchanged. Only a superuser, or the user that ran the setup, may run this SQL.
    """
    return (
        slot_removal(replication_slot(lake, source)),
        f"DROP PUBLICATION IF EXISTS {identifier(publication(lake, source))}",
        f"DROP TABLE IF EXISTS {signals_of(lake, source)}",
        _heartbeat_removal(lake, source),
        role_removal(replication_user(lake, source)),
    )


def slot_removal(slot: str) -> str:
    """Return the SQL that drops a replication slot if it exists and nobody reads from it."""
    return (
        "SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots "
        f"WHERE slot_name = {literal(slot)} AND NOT active"
    )


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


def _heartbeat(role: str) -> tuple[str, ...]:
    return (
        "-- A row that Debezium keeps updating, so that the slot holds back no log of a quiet database.\n"
        f"CREATE SCHEMA IF NOT EXISTS {HEARTBEAT_SCHEMA}",
        f"CREATE TABLE IF NOT EXISTS {_HEARTBEAT} (\n"
        "  lake text, source text, beaten_at timestamptz NOT NULL, PRIMARY KEY (lake, source)\n"
        ")",
        f"GRANT USAGE ON SCHEMA {HEARTBEAT_SCHEMA} TO {identifier(role)}",
        f"GRANT SELECT (lake, source), INSERT, UPDATE (beaten_at) ON {_HEARTBEAT} TO {identifier(role)}",
    )


def _signals(table: str, role: str) -> tuple[str, ...]:
    return (
        "-- Rows that tell Debezium to read a table again. Debezium also writes its own rows.\n"
        f"CREATE TABLE IF NOT EXISTS {table} (\n"
        "  id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL, data text\n"
        ")",
        "-- Debezium understands a deleted row only with all its values.\n"
        f"ALTER TABLE {table} REPLICA IDENTITY FULL",
        f"GRANT SELECT, INSERT, DELETE ON {table} TO {identifier(role)}",
    )


def _heartbeat_removal(lake: Lake, source: PostgresSource) -> str:
    """Other sources may still have their row in the same table."""
    return dedent(
        f"""\
        DO $tributary$
        DECLARE
          is_in_use boolean;
        BEGIN
          IF to_regclass({literal(_HEARTBEAT)}) IS NOT NULL THEN
            DELETE FROM {_HEARTBEAT} WHERE lake = {literal(lake.name)} AND source = {literal(source.name)};
            SELECT EXISTS (SELECT FROM {_HEARTBEAT}) INTO is_in_use;
            IF NOT is_in_use THEN
              DROP TABLE {_HEARTBEAT};
              DROP SCHEMA {HEARTBEAT_SCHEMA};
            END IF;
          END IF;
        END
        $tributary$"""
    )
