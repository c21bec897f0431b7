"""What the console shows of a lake at one moment, and how often it is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from connectors.engines.database_log import DatabaseLog
from tributary.contract.acceleration import ChosenSteps
from tributary.contract.table_name import TableName
from tributary.operations.table_states import TableState

Value = TypeVar("Value")


@dataclass(frozen=True)
class Part:
    """A server, a connector or a job.

    state    in the words of whatever runs it, such as "running", "RUNNING" or "COMPLETED"
    runs     whether it works now
    problem  what a person has to know; None: nothing
    remedy   what to do about it
    log      its name on the page of logs, if it has a log there
    facts    what else is known of it, by title
    """

    name: str
    state: str
    runs: bool = True
    problem: str | None = None
    remedy: str = ""
    log: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    resident_bytes: int | None = None


@dataclass(frozen=True)
class Pipeline:
    """What brings the changes to the lake.

    is_well     whether everything runs that has to
    connectors  of Debezium, and the sink of bronze
    kafka       None: not known, or the lake has none
    spark       the job that applies the changes; None: there is none
    title       of the list `servers`
    servers     all servers, or all jobs
    """

    is_well: bool
    connectors: tuple[Part, ...]
    kafka: Part | None
    spark: Part | None
    title: str
    servers: tuple[Part, ...]

    @property
    def to_look_at(self) -> tuple[Part, ...]:
        """The parts that somebody has to do something about."""
        return tuple(part for part in (*self.connectors, *self.servers) if part.problem is not None)


@dataclass(frozen=True)
class OpenAlert:
    """An alert that is not over.

    rule     that is broken
    subject  the table, connector, server or alarm
    since    in ISO 8601
    channel  how it was told
    """

    rule: str
    subject: str
    text: str
    since: str
    channel: str


MUCH = 1_000
"""A table with at least so many events to apply is shown as one that catches up."""
_NOT_APPLIED = ("blocked", "left out", "paused", "orphan", "kept")
"""The states of tables that an ingest leaves as they are."""


@dataclass(frozen=True)
class CatchingUp:
    """A table that has many events to apply.

    applied  how many events it holds
    read     how many events Kafka has
    total    how many Kafka will have, if the connector reads the table now: about as many as it has rows
    is_new   whether it is part of a first snapshot
    """

    table: TableName
    applied: int
    read: int
    total: int
    is_new: bool = False


@dataclass(frozen=True)
class LakeView:
    """A lake as it was at a time.

    at        when it was read, UTC
    problem   why the tables could not be read; None if they were
    steps     the steps that the last ingest of the Spark app has chosen
    logs      the logs of the sources' databases, by source, as far as they are known
    quarantined  how many events of each table are in quarantine; None: that is not known
    """

    at: datetime
    pipeline: Pipeline
    tables: tuple[TableState, ...]
    problem: str | None = None
    steps: ChosenSteps | None = None
    logs: Mapping[str, DatabaseLog] = field(default_factory=dict)
    quarantined: Mapping[TableName, int] | None = None

    def catching_up(self, also: Collection[TableName] = ()) -> tuple[CatchingUp, ...]:
        """Return the tables of a first snapshot, and all that have much to apply, the largest first.

        also  tables of a first snapshot that may be through with it
        """
        expected = {table: rows for log in self.logs.values() for table, rows in (log.first or {}).items()}
        states = {one.table: one for one in self.tables}
        found = []
        for table in expected.keys() | states.keys():
            state = states.get(table)
            if state is not None and (state.state in _NOT_APPLIED or state.ended is None):
                continue
            read = 0 if state is None else state.ended or 0
            behind = 0 if state is None else state.behind or 0
            is_new = table in expected or state is None or state.commit is None
            if behind >= MUCH or table in also or (is_new and (read or table in expected)):
                total = max(read, expected.get(table, 0))
                found.append(CatchingUp(table, read - behind, read, total, is_new))
        return tuple(sorted(found, key=lambda one: (-one.total, one.table)))

    def table(self, name: str) -> TableState | None:
        """Return the state of the table with this whole name; None: the lake has none."""
        return next((one for one in self.tables if str(one.table) == name), None)

    @property
    def is_well(self) -> bool:
        """Return whether no part of the lake needs a person."""
        tables_are_well = all(table.is_well for table in self.tables)
        return self.problem is None and self.pipeline.is_well and tables_are_well

    @property
    def to_look_at(self) -> tuple[TableState, ...]:
        """The tables that somebody has to do something about."""
        return tuple(table for table in self.tables if not table.is_well)
