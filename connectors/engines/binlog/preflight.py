"""The preflight check: servers, users and tables that Debezium cannot read without loss, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from connectors.engines.absent import entries_without_table, patterns_without_table
from connectors.engines.binlog.catalog import ServerFacts, TableFacts, read_server, read_tables, spellings
from connectors.engines.binlog.character_sets import (
    LABELS_UNREADABLE,
    UNREADABLE,
    WITH_OTHER_CHARACTERS,
)
from connectors.engines.binlog.names import (
    HEARTBEAT_TABLE,
    OWN_DATABASE,
    connector_user,
    server_id,
    signal_table,
)
from connectors.engines.binlog.session import Session, first_row, rows_of
from connectors.engines.engine import Checked, DatabaseNotReady, LeftOut, all_in_one
from connectors.engines.key_problems import lossy_key, no_such_column, unfit_key, without_key
from connectors.engines.table_problems import (
    column_problems,
    tables_with_untraceable_names,
    topic_problems,
)
from tributary.contract.column_names import is_column_name
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake
from tributary.contract.remedies import BringUp
from tributary.contract.table_name import TableName

SHORTEST_RETENTION_HOURS = 24


class ServerNotReady(DatabaseNotReady):
    """A server, a user or a table that Debezium cannot read without losing changes."""


@dataclass(frozen=True)
class Finding:
    """A fault of a server: what was found, what was expected, and what to do."""

    found: str
    expected: str
    remedy: str


_UNREADABLE = {
    "SEQUENCE": ("its changes have no definition that Debezium knows", "a sequence"),
    "SYSTEM VERSIONED": ("its changes have more columns than Debezium knows", "a system-versioned table"),
}
"""Kinds of MariaDB's tables whose changes stop Debezium's connector, and so all tables of the source."""


@dataclass(frozen=True)
class Rules:
    """What an engine demands of its servers.

    title        what people call the engine
    other        of the engine that the server may be instead, its title and its key in the lake file
    is_mariadb   what a server of the engine says of itself
    oldest       version
    wanted       variables with the value that they must have if the server has them, and how to set it
    refused      variables that must not have a value, or not have it among several
    unreadable   character sets that the connector reads wrong from the log
    """

    title: str
    other: tuple[str, str]
    is_mariadb: bool
    oldest: tuple[int, int]
    wanted: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    unreadable: frozenset[str] = UNREADABLE


OF_BOTH = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL"}
"""The wanted variables of both engines."""


def check_server(session: Session, lake: Lake, source: BinlogSource, rules: Rules) -> tuple[str, ...]:
    """Check the server, and return warnings. Raises ServerNotReady."""
    server = read_server(session)
    judge_server(lake, source, server, rules)
    return tuple(_warnings_of_server(server))


def check_tables(session: Session, lake: Lake, source: BinlogSource, rules: Rules) -> Checked:
    """Find the tables that the lake cannot keep exact. Raises ServerNotReady."""
    return judge_tables(lake, source, read_tables(session), read_server(session), rules)


def check_later_tables(
    session: Session, lake: Lake, source: BinlogSource, rules: Rules
) -> tuple[LeftOut, ...]:
    """Find the tables that the lake cannot keep exact, whatever else has become of the server."""
    return judge_existing(lake, source, read_tables(session), read_server(session), rules)


def check_user(session: Session, lake: Lake, source: BinlogSource) -> None:
    """Check that the session's user, the connector's, has all it needs. Raises ServerNotReady."""
    problems = list(_user_problems(session, lake, source))
    if problems:
        raise ServerNotReady(
            "the server is not prepared for Debezium",
            where=f"source {source.name}, as {connector_user(lake, source)}",
            found="; ".join(problems),
            remedy=[
                "Name an admin_user in the lake file and start the pipeline again. Without an admin_user, "
                "the start writes the SQL to a file, for an administrator to run.",
                BringUp(),
            ],
        )


def judge_server(lake: Lake, source: BinlogSource, server: ServerFacts, rules: Rules) -> None:
    """Judge the facts that `read_server` read. Raises ServerNotReady with all faults at once."""
    where = f"source {source.name}"
    problems = [
        ServerNotReady(
            "the server cannot be read without loss",
            where=where,
            found=one.found,
            expected=one.expected,
            remedy=one.remedy,
        )
        for one in _server_findings(lake, source, server, rules)
    ]
    if problems:
        raise all_in_one(problems)


def judge_tables(
    lake: Lake, source: BinlogSource, tables: Sequence[TableFacts], server: ServerFacts, rules: Rules
) -> Checked:
    """Judge the facts that `read_tables` and `read_server` read. Raises ServerNotReady."""
    matched = [facts for facts in tables if source.matches(facts.schema, facts.table)]
    names = [(facts.schema, facts.table) for facts in tables]
    absent = [
        *patterns_without_table(source, names, "on the server", ServerNotReady),
        *entries_without_table(
            lake, source, [(facts.schema, facts.table) for facts in matched], ServerNotReady
        ),
    ]
    if absent and source.connection is not None:
        raise all_in_one(absent)
    if unparsed := [facts for facts in tables if _may_be_in_history(source, facts) and facts.unparsed]:
        raise _unparsed_columns(source, unparsed)
    left_out = judge_existing(lake, source, tables, server, rules)
    untaken = {one.table for one in left_out}
    taken = [facts for facts in matched if TableName(source.name, facts.schema, facts.table) not in untaken]
    return Checked(
        left_out=left_out,
        warnings=(
            *map(str, absent),
            *_warnings_of_texts(lake, source, taken),
            *(_warnings_of_zero_dates(lake, source, taken) if server.allows_zero_dates else ()),
        ),
    )


def judge_existing(
    lake: Lake, source: BinlogSource, tables: Sequence[TableFacts], server: ServerFacts, rules: Rules
) -> tuple[LeftOut, ...]:
    """Return the tables that cannot be taken, ordered by name, whatever else the lake file names."""
    if server.logs_cascades:
        # Only InnoDB's foreign keys. Other storage engines that have some are left out anyway.
        tables = [replace(facts, cascades=()) for facts in tables]
    left_out = [
        LeftOut(TableName(source.name, facts.schema, facts.table), problems)
        for facts in tables
        if source.matches(facts.schema, facts.table)
        and (problems := tuple(_table_problems(lake, source, facts, rules)))
    ]
    names = ((one.schema, one.table) for one in tables)
    left_out += tables_with_untraceable_names(source, names, ServerNotReady)
    return tuple(sorted(left_out, key=lambda each: each.table))


def _server_findings(
    lake: Lake, source: BinlogSource, server: ServerFacts, rules: Rules
) -> Iterator[Finding]:
    if server.is_mariadb != rules.is_mariadb:
        title, key = rules.other
        yield Finding(
            f"a {title} server, {server.release}",
            f"a {rules.title} server",
            f'Write engine = "{key}" in [source.{source.name}].',
        )
        return
    if server.version < rules.oldest:
        oldest = ".".join(map(str, rules.oldest))
        yield Finding(
            f"{rules.title} {server.release}", f"{rules.title} {oldest} or newer", "Upgrade the server."
        )
    yield from _findings_of_variables(server, rules)
    yield from _findings_of_the_log(source, server)
    yield from _findings_of_the_number(source, server, server_id(lake, source))


def _findings_of_variables(server: ServerFacts, rules: Rules) -> Iterator[Finding]:
    if not server.is_on("log_bin"):
        yield Finding(
            "no binary log (log_bin = OFF)",
            "log_bin = ON",
            "Start the server with log_bin and server_id (on Amazon RDS: turn automated backups on).",
        )
    for variable, value in rules.wanted.items():
        found = server.variables.get(variable)
        if variable != "log_bin" and found is not None and found.upper() not in spellings(value):
            yield Finding(f"{variable} = {found}", f"{variable} = {value}", _set(variable, value))
    for variable, value in rules.refused.items():
        found = server.variables.get(variable, "")
        if not {*found.upper().split(",")}.isdisjoint(spellings(value)):
            without = "OFF" if value == "ON" else "''"
            yield Finding(f"{variable} = {found}", f"no {value} in {variable}", _set(variable, without))
    if server.variables.get("server_id") == "0":
        yield Finding("server_id = 0", "a number of its own", "Set server_id in the server's configuration.")


def _findings_of_the_log(source: BinlogSource, server: ServerFacts) -> Iterator[Finding]:
    if (
        server.is_replica
        and not server.is_on("log_slave_updates")
        and not server.is_on("log_replica_updates")
    ):
        yield Finding(
            "a replica that does not write the changes of its primary to its own log",
            "log_replica_updates = ON (log_slave_updates), or the primary server",
            f"Change [source.{source.name}.connection].host, or the replica's configuration.",
        )
    for database in _databases(source):
        if database in server.ignored or (server.only and database not in server.only):
            yield Finding(
                f"the database {database} left out of the log (binlog_do_db, binlog_ignore_db)",
                "a log with every database that the lake takes",
                "Change the server's configuration.",
            )
    mode = server.variables.get("gtid_mode", "ON")
    if mode != "ON" and server.variables.get("gtid_executed"):
        yield Finding(
            f"gtid_mode = {mode}, and transactions with GTIDs",
            "gtid_mode = ON, or a server without any GTID",
            "Set gtid_mode = ON, step by step. With GTIDs of some transactions only, the lake has no order.",
        )


def _findings_of_the_number(source: BinlogSource, server: ServerFacts, number: int) -> Iterator[Finding]:
    """Yield who else has the number with which the connector registers as a replica."""
    if str(number) == server.variables.get("server_id"):
        yield Finding(
            f"server_id = {number}, the number of the connector",
            "another number than the connector's",
            f"Set server_id in [source.{source.name}] to a number that no server has.",
        )
    if number in server.replicas:
        yield Finding(
            f"a replica with server_id = {number}, the number of the connector",
            "a number that no other replica has: the server ends the connection of the first one",
            f"Set server_id in [source.{source.name}] to a number that is not in SHOW REPLICAS "
            "(SHOW SLAVE HOSTS).",
        )


def _warnings_of_server(server: ServerFacts) -> Iterator[str]:
    hours = server.retention_hours
    if hours is not None and hours < SHORTEST_RETENTION_HOURS:
        yield (
            f"The server keeps its binary log for {hours:g} hours only. If the connector stops for longer, "
            "the changes are lost and all tables have to be read again. Keep it for some days: "
            "binlog_expire_logs_seconds, or on Amazon RDS "
            "CALL mysql.rds_set_configuration('binlog retention hours', 72)."
        )

    if server.variables.get("gtid_mode", "ON") != "ON":
        yield (
            "GTIDs are off (gtid_mode). After a failover to another server, the connector could begin at a "
            "wrong place of its log, and nobody would notice. Turn GTIDs on, or take a new snapshot after "
            "each failover."
        )
    if "ALLOW_INVALID_DATES" in server.sql_modes:
        yield (
            "sql_mode has ALLOW_INVALID_DATES. A date such as 2023-02-31 stops the connector when it comes "
            "from the log, and becomes 2023-03-03 in a snapshot. Take this mode away, and correct such dates."
        )
    if server.xa_open:
        yield (
            f"{server.xa_open} transactions are prepared by XA, and not committed yet. A first snapshot does "
            "not see their rows, and the connector does not see their commit. If a snapshot is to come, end "
            "these transactions before it."
        )
    if server.xa_prepared:
        yield (
            f"Applications use XA: {server.xa_prepared} transactions were prepared since the server's start. "
            "If one is rolled back after XA PREPARE, the lake keeps its changes, because Debezium sends them "
            "at the PREPARE. Verify or reconcile to find such rows, and take a snapshot of the table to mend "
            "them."
        )


def _warnings_of_texts(lake: Lake, source: BinlogSource, tables: Sequence[TableFacts]) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for facts in tables:
        hidden = lake.policy(TableName(source.name, facts.schema, facts.table)).hidden.left_out
        for column, charset in facts.charsets.items():
            if charset in WITH_OTHER_CHARACTERS and column not in hidden:
                found.setdefault(charset, []).append(f"{facts.schema}.{facts.table}.{column}")
    for charset, columns in sorted(found.items()):
        yield (
            f"Debezium reads some characters of {charset} wrong from the log: "
            f"{WITH_OTHER_CHARACTERS[charset]}. The columns {_some(columns)} have this character set. "
            "utf8mb4 has no such characters."
        )


def _warnings_of_zero_dates(lake: Lake, source: BinlogSource, tables: Sequence[TableFacts]) -> Iterator[str]:
    columns = [
        f"{facts.schema}.{facts.table}.{column}"
        for facts in tables
        for column, data_type in facts.types.items()
        if data_type in _WITH_ZERO
        and column in facts.not_null
        and column not in lake.policy(TableName(source.name, facts.schema, facts.table)).hidden.left_out
    ]
    if columns:
        yield (
            "sql_mode allows zero dates (0000-00-00). They become null in the lake, but 1970-01-01 in NOT "
            f"NULL columns, such as {_some(columns)}. If you have such values, let these columns be NULL. "
            "Otherwise, add NO_ZERO_DATE to sql_mode."
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f", and {len(names) - 3} more" if len(names) > 3 else "")


_WITH_ZERO = ("date", "datetime", "timestamp")


def _table_problems(
    lake: Lake, source: BinlogSource, facts: TableFacts, rules: Rules
) -> Iterator[ServerNotReady]:
    name = TableName(source.name, facts.schema, facts.table)
    leave_out = f'leave the table out with the pattern "!{facts.schema}.{facts.table}"'

    def problem(what: str, found: str, expected: str | None, remedy: str) -> ServerNotReady:
        return ServerNotReady(what, where=f"table {name}", found=found, expected=expected, remedy=remedy)

    if facts.kind in _UNREADABLE:
        what, found = _UNREADABLE[facts.kind]
        yield problem(what, found, "an ordinary table", f"{leave_out[0].upper()}{leave_out[1:]}.")
        return
    yield from topic_problems(lake, source, name, leave_out, ServerNotReady)
    if facts.engine.upper() in _NOT_KEPT:
        found = f"the storage engine {facts.engine}"
        what = "the log does not tell when its rows vanish"
        yield problem(
            what,
            found,
            "a table on disk, such as InnoDB's",
            f"ALTER TABLE … ENGINE = InnoDB, or {leave_out}.",
        )
    for cascade in facts.cascades:
        what = "a foreign key changes its rows, and the binary log does not have such changes"
        found = f"the foreign key {cascade}"
        expected = "a foreign key with RESTRICT or NO ACTION"
        remedy = f"Let the application or a trigger change the rows, or {leave_out}."
        yield problem(what, found, expected, remedy)
    yield from _key_problems(lake, name, facts, leave_out)
    for column, charset in facts.charsets.items():
        has_labels = facts.types[column] in ("enum", "set")
        is_wrong = charset in rules.unreadable or (has_labels and charset in LABELS_UNREADABLE)
        if is_wrong and column not in lake.policy(name).hidden.left_out:
            what = "Debezium reads other characters from the log than the column has"
            found = f"the column {column}, {facts.types[column]} CHARACTER SET {charset}"
            remedy = (
                f"ALTER TABLE … MODIFY {column} … CHARACTER SET utf8mb4. Or leave the column out with "
                f'leave_out in [table."{name}"], or {leave_out}.'
            )
            yield problem(what, found, "another character set, such as utf8mb4", remedy)
    for column in facts.columns:
        if is_column_name(column) and len(column) > 1 and column[0] == column[-1] and column[0] in "\"'`":
            remedy = f"Rename the column, or {leave_out}."
            yield problem("Debezium changes the name of a column", f"the column {column}", None, remedy)
    key = lake.policy(name).key or facts.primary_key
    yield from column_problems(lake, name, facts.columns, key, leave_out, ServerNotReady)


_NOT_KEPT = ("MEMORY", "BLACKHOLE", "FEDERATED", "CONNECT", "SPIDER", "NDBCLUSTER", "NDB")
"""Storage engines whose rows come and go without an event: in memory, on other servers, or nowhere."""


def _key_problems(lake: Lake, name: TableName, facts: TableFacts, leave_out: str) -> Iterator[ServerNotReady]:
    entry = f'[table."{name}"].key'
    given = lake.policy(name).key
    if given is None and not facts.primary_key:
        yield without_key(name, leave_out, ServerNotReady)
        return
    key = facts.primary_key if given is None else frozenset(given)
    if missing := sorted(key - facts.types.keys()):
        yield no_such_column(entry, missing[0], facts.columns, ServerNotReady)
        return
    is_identity = given is None or any(unique <= key for unique in facts.unique_keys)
    expected = None if is_identity else "columns with a unique index over them, or over some of them"
    nullable = sorted(key - facts.not_null)
    if unfit := unfit_key(entry, key, ServerNotReady, expected=expected, nullable=nullable):
        yield unfit
    for column in sorted(key):
        if facts.types[column] == "float":
            found = f"the key column {column}, a float, of which a snapshot reads six digits"
            yield lossy_key(name, leave_out, found, ServerNotReady)


def _may_be_in_history(source: BinlogSource, facts: TableFacts) -> bool:
    return any(pattern.may_match_in(facts.schema) for pattern in source.patterns.include)


def _unparsed_columns(source: BinlogSource, tables: Sequence[TableFacts]) -> ServerNotReady:
    found = [
        f"{one.schema}.{one.table}.{column} ({one.types[column]})"
        for one in tables
        for column in one.unparsed
    ]
    return ServerNotReady(
        "Debezium cannot read the definitions of all tables in the databases of the lake, and then stops",
        where=f"source {source.name}",
        found=", ".join(found[:5]) + (f", and {len(found) - 5} more" if len(found) > 5 else ""),
        expected="no column of these types in these databases, also in tables that the lake does not take",
        remedy="Change the column to varbinary(16) or varchar(45), or move the table to another database.",
    )


def _user_problems(session: Session, lake: Lake, source: BinlogSource) -> Iterator[str]:
    grants = " ".join(str(next(iter(row.values()))) for row in rows_of(session, "SHOW GRANTS"))
    may_all = "ALL PRIVILEGES ON *.*" in grants
    for right, names in _RIGHTS.items():
        if not may_all and not any(name in grants for name in names):
            yield f"the user lacks {right}"
    signals = signal_table(lake, source)
    for table in (HEARTBEAT_TABLE, signals):
        if first_row(session, _OWN_TABLE, (OWN_DATABASE, table)) is None:
            yield f"there is no table {OWN_DATABASE}.{table} that the user may read"
    visible = {
        row["db"] for row in rows_of(session, "SELECT SCHEMA_NAME AS db FROM information_schema.SCHEMATA")
    }
    for database in _databases(source):
        if database not in visible:
            yield f"there is no database {database} that the user may read"


_RIGHTS: Mapping[str, tuple[str, ...]] = {
    "RELOAD": ("RELOAD", "FLUSH_TABLES"),
    "PROCESS": ("PROCESS",),
    "REPLICATION SLAVE": ("REPLICATION SLAVE",),
    "REPLICATION CLIENT": ("REPLICATION CLIENT", "BINLOG MONITOR"),
    "LOCK TABLES": ("LOCK TABLES",),
}
"""The rights by their names in a GRANT, and how SHOW GRANTS may call them."""


def _databases(source: BinlogSource) -> tuple[str, ...]:
    """Return the databases that the patterns name without a wildcard."""
    return tuple(
        sorted({pattern.schema for pattern in source.patterns.include if not {*pattern.schema} & {*"*?"}})
    )


def _set(variable: str, value: str) -> str:
    return (
        f"SET GLOBAL {variable} = {value}, and in the server's configuration "
        "(on Amazon RDS and Aurora: in the parameter group)."
    )


_OWN_TABLE = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
