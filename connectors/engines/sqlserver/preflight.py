"""The preflight check: what of a server, a database and its tables Debezium cannot read without loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors.engines.absent import entries_without_table, patterns_without_table
from connectors.engines.engine import Checked, DatabaseNotReady, LeftOut, all_in_one
from connectors.engines.key_problems import lossy_key, no_such_column, unfit_key, without_key
from connectors.engines.sqlserver.catalog import ServerFacts, TableFacts
from connectors.engines.sqlserver.names import connector_user, own_tables
from connectors.engines.sqlserver.preparation import removal_of
from connectors.engines.table_problems import (
    column_problems,
    tables_with_untraceable_names,
    topic_problems,
)
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import Lake
from tributary.contract.remedies import BringUp, remedies_of
from tributary.contract.table_name import TableName

OLDEST_RELEASE = 14
"""SQL Server 2017, the first with STRING_AGG and with CDC in the Standard edition from the start."""

SHORTEST_RETENTION_MINUTES = 24 * 60
LONGEST_SILENCE_SECONDS = 15 * 60
"""The capture job records a place of the log every five minutes, even if nothing changes."""

_EXPRESS, _AZURE_SQL_DATABASE, _MANAGED_INSTANCE = 4, 5, 8
_WITH_CDC = (2, 3, _MANAGED_INSTANCE)
_MOST_PLACES_IN_A_KEY = 6
"""Decimal places of seconds in the lake. A datetime2 has seven if it is declared without a number."""


class SqlServerNotReady(DatabaseNotReady):
    """A server, a database or a table that Debezium cannot read without losing changes."""


@dataclass(frozen=True)
class Finding:
    """A fault of a server or a database: what was found, what was expected, and what to do."""

    found: str
    expected: str
    remedy: str


def judge_server(source: SqlServerSource, server: ServerFacts, *, will_be_prepared: bool) -> tuple[str, ...]:
    """Judge the facts of a server, and return warnings. Raises SqlServerNotReady with all faults at once.

    will_be_prepared  the setup that follows turns CDC and snapshot isolation on
    """
    findings = [*_of_the_server(source, server), *(() if will_be_prepared else _of_the_database(server))]
    problems = [
        SqlServerNotReady(
            "the database cannot be read without loss",
            where=f"source {source.name}, database {source.database}",
            found=one.found,
            expected=one.expected,
            remedy=one.remedy,
        )
        for one in findings
    ]
    if problems:
        raise all_in_one(problems)
    return tuple(_warnings_of_server(server))


def judge_tables(lake: Lake, source: SqlServerSource, tables: Sequence[TableFacts]) -> Checked:
    """Judge the facts of the tables. Raises SqlServerNotReady."""
    matched = [facts for facts in tables if source.matches(facts.schema, facts.table)]
    names = [(facts.schema, facts.table) for facts in tables]
    absent = [
        *patterns_without_table(source, names, f"in database {source.database}", SqlServerNotReady),
        *entries_without_table(
            lake, source, [(facts.schema, facts.table) for facts in matched], SqlServerNotReady
        ),
    ]
    if absent:
        if source.connection is not None and source.connection.admin_user is None:
            absent[0].remedies = remedies_of((*absent[0].remedies, _MAY_NOT_SEE))
        raise all_in_one(absent)
    left_out = judge_existing(lake, source, tables)
    untaken = {each.table for each in left_out}
    return Checked(
        left_out=left_out,
        warnings=tuple(
            warning
            for facts in matched
            if TableName(source.name, facts.schema, facts.table) not in untaken
            for warning in _table_warnings(facts)
        ),
    )


def judge_existing(lake: Lake, source: SqlServerSource, tables: Sequence[TableFacts]) -> tuple[LeftOut, ...]:
    """Return the tables that cannot be taken, ordered by name, whatever else the lake file names."""
    left_out = [
        LeftOut(TableName(source.name, facts.schema, facts.table), problems)
        for facts in tables
        if source.matches(facts.schema, facts.table)
        and (problems := tuple(_table_problems(lake, source, facts)))
    ]
    names = ((one.schema, one.table) for one in tables)
    left_out += tables_with_untraceable_names(source, names, SqlServerNotReady)
    return tuple(sorted(left_out, key=lambda each: each.table))


def judge_preparation(
    lake: Lake,
    source: SqlServerSource,
    server: ServerFacts,
    tables: Sequence[TableFacts],
    untaken: Sequence[TableName],
) -> None:
    """Judge whether Debezium's user has all it needs. Raises SqlServerNotReady with all that is missing."""
    missing = [one.found for one in _of_the_database(server)]
    missing += _missing_captures(lake, source, tables, frozenset(untaken))
    if missing:
        raise SqlServerNotReady(
            "the database is not prepared for Debezium",
            where=f"source {source.name}, as {connector_user(lake, source)}",
            found="; ".join(missing[:_MOST_SHOWN])
            + (f"; and {len(missing) - _MOST_SHOWN} more" if len(missing) > _MOST_SHOWN else ""),
            remedy=[
                "Name an admin_user in the lake file and start the pipeline again. Without an admin_user, "
                "the start writes the SQL to a file, for an administrator to run.",
                BringUp(),
            ],
        )


_MOST_SHOWN = 10
_MAY_NOT_SEE = (
    "If the table exists, Debezium's user may not see it yet: let an administrator run the SQL that the "
    "start has written."
)


def _of_the_server(source: SqlServerSource, server: ServerFacts) -> Iterator[Finding]:
    if server.engine_edition not in _WITH_CDC or "Web Edition" in server.edition:
        kinds = {_EXPRESS: "the Express edition", _AZURE_SQL_DATABASE: "Azure SQL Database"}
        yield Finding(
            kinds.get(server.engine_edition, server.edition),
            "the Standard, Developer or Enterprise edition, or Azure SQL Managed Instance, which have "
            "change data capture and SQL Server Agent",
            "Move the database to such a server.",
        )
    if server.engine_edition != _MANAGED_INSTANCE and server.release < OLDEST_RELEASE:
        yield Finding(f"version {server.version}", "SQL Server 2017 (14.0) or newer", "Upgrade the server.")
    if server.agent_runs is False:
        yield Finding(
            "SQL Server Agent does not run",
            "a running SQL Server Agent, whose jobs capture the changes and clean up",
            "Start the service, and let it start with the server (on Linux: mssql-conf set "
            "sqlagent.enabled true).",
        )
    if server.is_read_only:
        yield Finding(
            "a database that is read-only, such as a secondary replica",
            "the primary replica, on which Debezium writes its signals",
            f"Change [source.{source.name}.connection].host, for example to the listener of the "
            "availability group.",
        )


def _of_the_database(server: ServerFacts) -> Iterator[Finding]:
    if not server.is_cdc_enabled:
        yield Finding(
            "change data capture is off in the database",
            "change data capture",
            "Let an administrator run the SQL that the start writes.",
        )
    elif server.seconds_behind is not None and server.seconds_behind > LONGEST_SILENCE_SECONDS:
        yield Finding(
            f"the capture job has recorded nothing for {server.seconds_behind // 60} minutes",
            "a running capture job, which records a place of the log every five minutes at least",
            "See what the job cdc.…_capture of SQL Server Agent says (sys.dm_cdc_errors), and start it: "
            "EXEC sys.sp_cdc_start_job;",
        )
    if not server.snapshot_isolation:
        yield Finding(
            "the database does not allow snapshot isolation",
            "ALLOW_SNAPSHOT_ISOLATION ON, so that a snapshot reads all tables as they are at one moment",
            "Let an administrator run the SQL that the start writes.",
        )


def _warnings_of_server(server: ServerFacts) -> Iterator[str]:
    minutes = server.retention_minutes
    if minutes is not None and minutes < SHORTEST_RETENTION_MINUTES:
        yield (
            f"SQL Server keeps captured changes for {minutes / 60:g} hours only. If the connector stops for "
            "longer, the changes are lost and all tables have to be read again. Keep them for some days: "
            "EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 4320;"
        )
    if server.keeps_updates:
        yield (
            "The trace flag 8207 is on. A change of a key then comes without the unchanged values of its "
            "large columns, and goes to quarantine. DBCC TRACEOFF (8207, -1);"
        )


def _table_problems(lake: Lake, source: SqlServerSource, facts: TableFacts) -> Iterator[SqlServerNotReady]:
    name = TableName(source.name, facts.schema, facts.table)
    leave_out = f'leave the table out with the pattern "!{facts.schema}.{facts.table}"'

    def problem(what: str, found: str, expected: str | None, remedy: str) -> SqlServerNotReady:
        return SqlServerNotReady(what, where=f"table {name}", found=found, expected=expected, remedy=remedy)

    yield from topic_problems(lake, source, name, leave_out, SqlServerNotReady)
    if {*facts.schema + facts.table} & {*"[]"}:
        remedy = f"Rename the table, or {leave_out}."
        yield problem(
            "Debezium takes brackets in a name for quotes", f"{facts.schema}.{facts.table}", None, remedy
        )
    if facts.kind:
        remedy = f"Change the table, or {leave_out}."
        yield problem("change data capture cannot record it", facts.kind, "an ordinary table", remedy)
    yield from _capture_problems(name, facts, leave_out)
    yield from _key_problems(lake, name, facts, leave_out)
    lower = [column.lower() for column in facts.taken]
    if twice := sorted({column for column in lower if lower.count(column) > 1}):
        remedy = f"Rename one of the columns, or {leave_out}."
        yield problem("Debezium takes two of its columns for one", twice[0], "names that differ", remedy)
    key = lake.policy(name).key or facts.primary_key
    yield from column_problems(lake, name, facts.taken, key, leave_out, SqlServerNotReady, _ABSENT)


def _capture_problems(name: TableName, facts: TableFacts, leave_out: str) -> Iterator[SqlServerNotReady]:
    captures = facts.captures
    if captures is None or captures.newest is None or captures.is_current:
        return
    oldest, newest = captures.instances[0], captures.newest
    if captures.is_full:
        # One of the two is gone when Debezium has read it to its end. Nobody but a person knows that.
        drop = oldest if newest.is_ours else newest
        yield SqlServerNotReady(
            "its columns have changed, and SQL Server can record it in no further form",
            where=f"table {name}",
            found=f"the capture instances {oldest.name} and {newest.name}",
            expected=f"room for the capture instance {captures.wanted}",
            remedy=f"Once Debezium has read all changes, end one of them: "
            f"{removal_of(facts.schema, facts.table, drop.name)} Or {leave_out}.",
        )


def _key_problems(
    lake: Lake, name: TableName, facts: TableFacts, leave_out: str
) -> Iterator[SqlServerNotReady]:
    entry = f'[table."{name}"].key'
    given = lake.policy(name).key
    if given is None and not facts.primary_key:
        yield without_key(name, leave_out, SqlServerNotReady)
        return
    key, columns = (facts.primary_key if given is None else given), facts.by_name
    if missing := [column for column in key if column not in columns]:
        yield no_such_column(entry, missing[0], facts.taken, SqlServerNotReady, _ABSENT)
        return
    is_identity = given is None or any(unique == frozenset(key) for unique in facts.unique_keys)
    # Of other columns, SQL Server records a change of the key as an update of the row.
    expected = None if is_identity else "exactly the columns of a unique index over all rows"
    nullable = [column for column in key if columns[column].is_nullable]
    if unfit := unfit_key(entry, key, SqlServerNotReady, expected=expected, nullable=nullable):
        yield unfit
    for column in key:
        found = columns[column]
        if not found.is_taken:
            what = "a computed column" if found.is_computed else f"of type {found.type or 'unknown'}"
            yield lossy_key(
                name,
                leave_out,
                f"the key column {column}, {what}, which CDC does not record",
                SqlServerNotReady,
            )
        elif found.type in _WITH_SECONDS and found.scale > _MOST_PLACES_IN_A_KEY:
            has = f"{found.type}({found.scale}), of which the lake has six decimal places"
            yield lossy_key(name, leave_out, f"the key column {column}, {has}", SqlServerNotReady)


_WITH_SECONDS = ("time", "datetime2", "datetimeoffset")


def _table_warnings(facts: TableFacts) -> Iterator[str]:
    table = f"{facts.schema}.{facts.table}"
    untaken = [column for column in facts.columns if not column.is_taken]
    if untaken:
        named = ", ".join(
            f"{column.name} ({'computed' if column.is_computed else column.type or 'unknown'})"
            for column in untaken
        )
        yield f"These columns of {table} do not reach the lake, because Debezium gets no values: {named}."
    if facts.captures is not None and facts.captures.is_full and facts.captures.is_current:
        oldest = facts.captures.instances[0]
        yield (
            f"{table} has two capture instances. The server fills both, and the next change of its columns "
            "needs room for another one. Once Debezium has read the older one to its end, end it: "
            f"{removal_of(facts.schema, facts.table, oldest.name)}"
        )


def _missing_captures(
    lake: Lake, source: SqlServerSource, tables: Sequence[TableFacts], untaken: frozenset[TableName]
) -> Iterator[str]:
    by_name = {(facts.schema, facts.table): facts for facts in tables}
    own = own_tables(lake, source)
    yield from (
        f"there is no table {'.'.join(one)} that the user may read" for one in own if one not in by_name
    )
    for facts in tables:
        is_own = (facts.schema, facts.table) in own
        is_followed = source.matches(facts.schema, facts.table)
        if not is_own and (not is_followed or TableName(source.name, facts.schema, facts.table) in untaken):
            continue
        name = f"{facts.schema}.{facts.table}"
        if facts.captures is None or facts.captures.newest is None:
            yield f"the changes of {name} are not captured"
        elif not facts.captures.is_current:
            yield f"{name} has other columns now than its capture instance {facts.captures.newest.name}"


_ABSENT = "a column that does not exist, or that does not reach the lake"
