"""The SQL for the role that Debezium logs in as: its settings, and what it may read."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

from connectors.engines.postgres.sql_text import comment, identifier, literal

PRINTING: Mapping[str, str] = {
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "DateStyle": "ISO, MDY",
    "TimeZone": "UTC",
}
"""Settings with which a session prints values as Debezium reads them."""


def role_statement(role: str) -> str:
    """Return the SQL that creates the role, and lets it replicate."""
    return dedent(
        f"""\
        -- The role that reads the changes. It may log in and replicate; it owns nothing.
        DO $tributary$
        BEGIN
          IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {literal(role)}) THEN
            CREATE ROLE {identifier(role)} LOGIN;
          END IF;
          IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_replication') THEN
            GRANT rds_replication TO {identifier(role)};  -- Amazon RDS and Aurora
          ELSIF NOT (SELECT rolreplication FROM pg_roles WHERE rolname = {literal(role)}) THEN
            ALTER ROLE {identifier(role)} REPLICATION;
          END IF;
          EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), {literal(role)});
        END
        $tributary$"""
    )


def printing_statement(role: str) -> str:
    """Return the SQL that gives the role's sessions the settings of `PRINTING`."""
    values = ", ".join(f"({literal(name)}, {literal(value)})" for name, value in PRINTING.items())
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
              WHERE r.rolname = {literal(role)} AND d.datname = current_database()
                AND format('%s=%s', wanted.name, wanted.value) = ANY (s.setconfig))
          LOOP
            EXECUTE format('ALTER ROLE %I IN DATABASE %I SET %I = %L',
                           {literal(role)}, current_database(), setting.name, setting.value);
          END LOOP;
        EXCEPTION WHEN insufficient_privilege THEN
          NULL;  -- The check of the role reports a setting that matters.
        END
        $tributary$"""
    )


def rights_statement(role: str) -> str:
    """Return the SQL that lets the role read the tables that the lake takes."""
    return dedent(
        f"""\
        DO $tributary$
        DECLARE
          matched record;
        BEGIN
          FOR matched IN SELECT * FROM pg_temp.tributary_matched LOOP
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', matched.nspname, {literal(role)});
            CONTINUE WHEN has_table_privilege({literal(role)}, matched.oid, 'SELECT');
            EXECUTE format('GRANT SELECT ON %I.%I TO %I', matched.nspname, matched.relname, {literal(role)});
          END LOOP;
        END
        $tributary$"""
    )


def no_rights_on_parts(role: str) -> str:
    """Return the SQL that takes away the role's right to read partitions of tables that the lake takes.

    PostgreSQL gives a role its rights on later tables to later partitions, too. A connector that does not
    know them would take their rows once more, as those of tables of their own."""
    return dedent(
        f"""\
        DO $tributary$
        DECLARE
          part record;
        BEGIN
          FOR part IN
            SELECT n.nspname, p.relname
            FROM pg_class p JOIN pg_namespace n ON n.oid = p.relnamespace
            WHERE {is_readable_part(role)}
              AND p.oid NOT IN (SELECT oid FROM pg_temp.tributary_matched)
              AND EXISTS (
                SELECT FROM pg_partition_ancestors(p.oid) a
                JOIN pg_temp.tributary_matched m ON m.oid = a.relid)
          LOOP
            EXECUTE format('REVOKE SELECT ON %I.%I FROM %I', part.nspname, part.relname, {literal(role)});
          END LOOP;
        END
        $tributary$"""
    )


def is_readable_part(role: str) -> str:
    """Return the condition that a table, p, is a partition that the role may read, and that this can end."""
    return (
        "p.relispartition AND pg_has_role(p.relowner, 'USAGE') AND EXISTS ("
        "SELECT FROM aclexplode(p.relacl) acl JOIN pg_roles r ON r.oid = acl.grantee "
        f"WHERE r.rolname = {literal(role)} AND acl.privilege_type = 'SELECT')"
    )


def rights_on_later_tables(role: str, schema: str) -> str:
    """Return the SQL that lets the role read the tables that somebody creates later in the schema."""
    return dedent(
        f"""\
        -- Make tables that are created later in {comment(schema)} readable too, no matter who creates them.
        DO $tributary$
        DECLARE
          creator text;
        BEGIN
          IF EXISTS (SELECT FROM pg_namespace WHERE nspname = {literal(schema)}) THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', {literal(schema)}, {literal(role)});
            FOR creator IN
              SELECT current_user
              UNION SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = {literal(schema)}
              UNION SELECT pg_get_userbyid(relowner) FROM pg_class
                WHERE relkind IN ('r', 'p')
                  AND relnamespace = to_regnamespace(quote_ident({literal(schema)}))
            LOOP
              CONTINUE WHEN creator LIKE 'pg\\_%';
              BEGIN
                EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I '
                               'GRANT SELECT ON TABLES TO %I',
                               creator, {literal(schema)}, {literal(role)});
              EXCEPTION WHEN insufficient_privilege THEN
                RAISE WARNING 'tables that % creates later in schema % are readable only after another run',
                  creator, {literal(schema)};
              END;
            END LOOP;
          END IF;
        END
        $tributary$"""
    )


def role_removal(role: str) -> str:
    """A role has rights in this database only. Its creator may join it, and so may remove it."""
    return dedent(
        f"""\
        DO $tributary$
        BEGIN
          IF EXISTS (SELECT FROM pg_roles WHERE rolname = {literal(role)}) THEN
            GRANT {identifier(role)} TO CURRENT_USER;
            DROP OWNED BY {identifier(role)};
            DROP ROLE {identifier(role)};
          END IF;
        END
        $tributary$"""
    )
