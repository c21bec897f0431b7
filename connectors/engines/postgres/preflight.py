"""The preflight check: servers, roles and tables that Debezium cannot read without loss, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import psycopg
from psycopg.rows import class_row

from connectors.engines.engine import all_in_one
from connectors.engines.postgres.names import (
    HEARTBEAT_SCHEMA,
    HEARTBEAT_TABLE,
    publication,
    replication_slot,
    replication_user,
    signal_table,
)
from connectors.engines.postgres.not_ready import PostgresNotReady
from connectors.engines.postgres.role import PRINTING
from connectors.engines.postgres.row_filters import (
    OLDEST_VERSION_WITH_FILTERS,
    filters_mark,
    row_filters,
)
from connectors.engines.postgres.table_check import PostgresFindings, judge_existing, judge_tables
from connectors.engines.postgres.table_facts import TableFacts, is_readable, read_tables, with_ancient_columns
from connectors.engines.postgres.taken_tables import schemas_published_whole
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.remedies import BringUp, RemedyOrText, TakeSnapshot
from tributary.contract.table_name import TableName

OLDEST_VERSION = 13
"""The first PostgreSQL version with publish_via_partition_root."""


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
    return judge_tables(lake, source, _read_facts(connection, lake, source))


def check_later_tables(
    connection: psycopg.Connection, lake: Lake, source: PostgresSource
) -> PostgresFindings:
    """Find the tables that the lake cannot keep exact, whatever else has become of the database."""
    return judge_existing(lake, source, _read_facts(connection, lake, source))


def _read_facts(connection: psycopg.Connection, lake: Lake, source: PostgresSource) -> list[TableFacts]:
    tables = read_tables(connection, replication_user(lake, source))
    return [with_ancient_columns(connection, lake, source, one) for one in tables]


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
        for schema in schemas_published_whole(lake, source)
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
        if source.patterns.matches(facts.schema, facts.table)
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


_ENUMS_WITHOUT_VALUES = """
SELECT format('%I.%I', n.nspname, t.typname)
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typcategory = 'E' AND NOT EXISTS (SELECT FROM pg_enum e WHERE e.enumtypid = t.oid)
ORDER BY 1
"""
"""In any schema, because io.debezium.connector.postgresql.TypeRegistry reads all types and fails at these
with a NullPointerException."""


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
    unreadable = [table for table in taken if not is_readable(connection, *table)]
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


def _listed(names: Sequence[tuple[str, str]]) -> str:
    shown = ", ".join(f"{schema}.{table}" for schema, table in names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _address(connection: psycopg.Connection) -> str:
    info = connection.info
    return f"{info.host}:{info.port}/{info.dbname}"
