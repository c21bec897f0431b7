"""The state of each table of a lake on this machine, and what a person has to do about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from spark_app.run.outcome import Outcome
from tributary.api.timeline import Commit
from tributary.contract.derived import DERIVED_SOURCE
from tributary.contract.lake import Lake
from tributary.contract.online_snapshot import Record
from tributary.contract.pause import Pause
from tributary.contract.table_name import TableName
from tributary.local import connect, spark
from tributary.local.left_out import LeftOutTable
from tributary.local.status import PipelineStatus
from tributary.operations.left_out_tables import left_out_tables
from tributary.operations.orphans import Orphan, read_orphans
from tributary.operations.pauses import pause_files
from tributary.operations.snapshots.keeper import record_files
from tributary.operations.snapshots.view import is_different, state_of
from tributary.operations.table_lag import QuietTables, TableLag, read_derived, read_lags
from tributary.operations.table_outcomes import read_outcomes
from tributary.operations.verify.record import Verification, VerificationFiles
from tributary.operations.verify.view import is_different as is_found_different
from tributary.operations.workspace import Workspace

CUT_OFF = "cut off"


@dataclass(frozen=True)
class TableState:
    """The state of a table.

    behind    how many events of its topic it has not applied; None: Kafka does not answer, or has no topic of
              the table
    outcome   the error with which a run left it, if any
    left_out  why the lake cannot take it, if it cannot
    ingests   whether an ingest is running
    snapshot  the online snapshot that is under way or that somebody has to ask for, if any
    orphan    why the lake no longer follows it, and what was decided about it, if so
    paused    since when somebody has paused it, if so
    verified  what the last verification found, if there was one
    commit    the last commit that applied events, if there is one and its server runs
    ended     the sum of the offsets at which its topic's partitions end, if that is known
    cut_off   whether its source's connector does not run, so that no change of the database arrives
    """

    table: TableName
    behind: int | None
    outcome: Outcome | None
    left_out: LeftOutTable | None = None
    ingests: bool = False
    snapshot: Record | None = None
    orphan: Orphan | None = None
    commit: Commit | None = None
    paused: Pause | None = None
    verified: Verification | None = None
    ended: int | None = None
    cut_off: bool = False

    @property
    def state(self) -> str:
        """The state in a word or two, such as "well" or "blocked"."""
        if self.left_out is not None:
            return "left out"
        if self.orphan is not None and self.orphan.decision is not None:
            return self.orphan.state
        if self.outcome is not None and self.outcome.state == "blocked":
            return self.outcome.state
        if self.paused is not None:
            return "paused"
        if self.outcome is not None:
            return self.outcome.state
        if self.orphan is not None:
            return self.orphan.state
        if self.snapshot is not None:
            return state_of(self.snapshot)
        if is_found_different(self.verified):
            return "differs"
        if self.behind and not self.ingests:
            return "waiting"
        if self.behind and self.commit is None:
            return "loading"
        return CUT_OFF if self.cut_off else "well"

    @property
    def is_well(self) -> bool:
        """Return whether the table needs no person."""
        if self.orphan is not None and self.orphan.decision is not None:
            return self.orphan.state != "removal interrupted"
        is_blocked = self.outcome is not None and self.outcome.state == "blocked"
        is_stale = self.snapshot is not None and is_different(self.snapshot)
        # A snapshot that is under way mends what the verification has found.
        differs = self.snapshot is None and is_found_different(self.verified)
        return not (is_blocked or is_stale or self.left_out or differs)


def read_table_states(
    workspace: Workspace, found: PipelineStatus, quiet: QuietTables
) -> tuple[TableState, ...]:
    """Return the states of all tables, by name, as far as the servers that run can tell.

    quiet  what an earlier look has kept
    """
    running = {service.name for service in found.services if service.state == "running"}
    needed = {"kafka", "s3"} if workspace.lake.connected_sources else {"s3"}
    lags = read_lags(workspace, quiet) if needed <= running else ()
    derived = read_derived(workspace, quiet.commits) if "s3" in running else ()
    outcomes = read_outcomes(workspace) if "s3" in running else {}
    # The reason of a derived table that the lake file no longer has concerns nobody.
    names = dict(workspace.lake.derived)
    outcomes = {
        table: outcome
        for table, outcome in outcomes.items()
        if table.source != DERIVED_SOURCE or table.table in names
    }
    left_out = left_out_tables(workspace)
    files = record_files(workspace) if "s3" in running else None
    applied = {lag.snapshot for lag in lags}
    records = {} if files is None else {t: r for t, r in files.read().items() if r.request.id not in applied}
    paused = {} if "s3" not in running else pause_files(workspace).read()
    verified = {} if files is None else _verified(workspace)
    orphans = {} if files is None else read_orphans(workspace, [lag.table for lag in lags])
    states = table_states(
        (*lags, *derived), outcomes, left_out, orphans, records, ingests=spark.SERVICE in running
    )
    at_work = {connector.name for connector in found.connectors if connector.is_running}
    # A worker that runs and does not tell its connectors is starting.
    is_known = found.connectors or connect.SERVICE not in running
    cut_off = cut_off_sources(workspace.lake, at_work) if is_known else frozenset()
    return tuple(
        replace(
            state,
            paused=paused.get(state.table),
            verified=verified.get(state.table),
            cut_off=state.table.source in cut_off,
        )
        for state in states
    )


def cut_off_sources(lake: Lake, at_work: Collection[str]) -> frozenset[str]:
    """Return the names of the sources whose connector is not among those `at_work`."""
    connected = lake.connected_sources
    return frozenset(one.name for one in connected if lake.source_names(one).connector not in at_work)


def _verified(workspace: Workspace) -> Mapping[TableName, Verification]:
    lake = workspace.open_lake
    return VerificationFiles(lake.files.filesystem, lake.lake.names, lake.quarantine).read()


def table_states(
    lags: Sequence[TableLag],
    outcomes: Mapping[TableName, Outcome],
    left_out: Mapping[TableName, LeftOutTable],
    orphans: Mapping[TableName, Orphan],
    records: Mapping[TableName, Record],
    *,
    ingests: bool,
) -> tuple[TableState, ...]:
    """Return the states of the tables that any of these knows, by name, without orphans that are gone.

    records  the online snapshots that are not over. Of one that a person has to ask for again, the table is
             shown although the lake does not have it.
    """
    lag_of = {lag.table: lag for lag in lags}
    different = {table for table, record in records.items() if is_different(record)}
    gone = {table for table, orphan in orphans.items() if orphan.is_gone}
    known = lag_of.keys() | outcomes.keys() | left_out.keys() | orphans.keys() | different
    return tuple(
        TableState(
            table,
            None if (lag := lag_of.get(table)) is None else lag.behind,
            outcomes.get(table),
            left_out.get(table),
            ingests,
            snapshot=records.get(table),
            orphan=orphans.get(table),
            commit=None if lag is None else lag.commit,
            ended=None if lag is None else lag.ended,
        )
        for table in sorted(known - gone)
    )
