"""The commands that read the lake without Spark: `query`, `tables`, `history` and `events`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from connectors.engines.database_log import size_text
from tributary.api.open_lake import TableSummary
from tributary.api.row_events import RowEvent
from tributary.api.timeline import Commit
from tributary.api.values import rows_of
from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.left_out_view import left_out_facts, print_left_out
from tributary.cli.rendering import (
    duration_text,
    moment_text,
    output,
    positions_text,
    print_answer,
    print_json,
    print_table,
)
from tributary.operations.pauses import pause_files
from tributary.operations.verify.view import verification_facts, verified_text
from tributary.operations.workspace import Workspace


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One statement, in DuckDB's dialect.")],
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="Show the tables as they were at this instant (see tributary history) or UTC time.",
        ),
    ] = None,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Query the lake in SQL. The answer comes from the latest commit of each table, without Spark.

    With --as-of, it comes from the latest commit that had begun by then. `history` in lake.toml sets how far
    back you can go.

    A table is called sales, public.sales or shop.public.sales. In addition to the source's columns it has _op
    and _seq (the last change and its order), _source_ts (when the source committed it), and _topic,
    _partition and _offset (its event).

    Example: tributary query "SELECT state, count(*) FROM users GROUP BY ALL ORDER BY 2 DESC LIMIT 5"
    """
    from tributary.api.tables import UnknownTable
    from tributary.operations.rowless_tables import as_rowless

    workspace = Workspace.open(lake, state)
    try:
        found = workspace.open_lake.sql(sql, as_of)
    except UnknownTable as error:
        raise as_rowless(workspace, error) from error
    if as_json:
        print_json([dict(zip(found.column_names, row, strict=True)) for row in rows_of(found)])
    else:
        print_answer(found)


def tables(
    lake: LakeFile = DEFAULT_LAKE_FILE, state: StateFolderPath = DEFAULT_STATE_FOLDER, as_json: AsJson = False
) -> None:
    """List the tables of the lake: rows, last commit, and the position that each has reached in Kafka.

    A paused table is marked. Its rows are as old as the pause. An orphan is marked, too: its source no longer
    has it (see tributary orphans).

    The lake gets a table with its first row. Until then, the table is named above the list.

    A table is left out if it cannot be taken. Once it is mended, it comes in by itself within a minute
    while an ingest runs that follows, and otherwise at the next tributary up.

    "Verified as of" is the time as of which tributary verify found all rows equal to the source's.
    """
    from tributary.operations.kept_commits import FILE as COMMITS
    from tributary.operations.kept_commits import kept_commits
    from tributary.operations.left_out_tables import left_out_tables
    from tributary.operations.orphans import read_orphans
    from tributary.operations.quarantine_counts import read_quarantine_counts
    from tributary.operations.row_counts import FILE as COUNTS
    from tributary.operations.row_counts import read_row_counts
    from tributary.operations.rowless_tables import rowless_tables
    from tributary.operations.verify.record import VerificationFiles

    workspace = Workspace.open(lake, state)
    with kept_commits(workspace.state.path / COMMITS) as commits:
        summaries = workspace.open_lake.tables(commits)
    counts = read_row_counts(workspace.state.path / COUNTS, summaries)
    quarantined = read_quarantine_counts(workspace.open_lake)
    found = [_facts(one, counts[one.name], quarantined.get(one.name, 0)) for one in summaries]
    paused = {str(table): one.since for table, one in pause_files(workspace).read().items()}
    verified = {
        str(table): one
        for table, one in VerificationFiles(
            workspace.files.filesystem, workspace.lake.names, workspace.open_lake.quarantine
        )
        .read()
        .items()
    }
    orphans = {str(name): one.state for name, one in read_orphans(workspace, ()).items()}
    found = [
        {
            **each,
            "orphan": orphans.get(each["table"]),
            "paused_since": paused.get(each["table"]),
            "verified": verification_facts(verified.get(each["table"])),
        }
        for each in found
    ]
    left_out, rowless = left_out_tables(workspace), rowless_tables(workspace)
    if as_json:
        missing = [
            {"table": str(name), **left_out_facts(one)}
            for name, one in left_out.items()
            if str(name) not in {each["table"] for each in found}
        ]
        states = {str(name): left_out_facts(one) for name, one in left_out.items()}
        empty = [{"table": str(name), "state": "no row yet", "rows": 0} for name in rowless]
        print_json([*({**each, **states.get(each["table"], {})} for each in found), *missing, *empty])
        return
    for one in left_out.values():
        print_left_out(one, output)
    if rowless:
        names = ", ".join(map(str, rowless))
        output.print(f"Without a row so far, so not in the lake yet: {names}.", markup=False, soft_wrap=True)
    if not found:
        output.print("The lake has no tables yet. To fill it, run tributary ingest.")
        return
    columns = (
        "table",
        "storage",
        "rows",
        "position",
        "last commit (UTC)",
        "fresh p95",
        "quarantined",
        "verified as of (UTC)",
    )
    rows = [
        (
            _marked(one),
            one["storage"].replace("_", " "),
            f"{one['rows']:,}",
            positions_text(one["positions"]),
            moment_text(one["last_commit"]) if one["last_commit"] else "-",
            duration_text(one["freshness_p95_ms"]),
            f"{one['quarantined']:,}",
            verified_text(verified.get(one["table"])),
        )
        for one in found
    ]
    print_table(columns, rows, [False, False, True, True, False, True, True, False])


def _marked(facts: Mapping[str, Any]) -> str:
    """Return a table's name, with why its rows can be old."""
    if (state := facts["orphan"]) is not None:
        return f"{facts['table']} ({'orphan, kept' if state == 'kept' else state})"
    return f"{facts['table']} (paused)" if facts["paused_since"] else str(facts["table"])


def history(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Such as sales or shop.public.sales.")],
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="How many commits to list, latest first.")
    ] = 20,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """List a table's commits: time, duration, number of rows, bytes, position, and freshness.

    Times, durations and freshness have the precision of S3, one second. At least the last 20 commits are
    available. Older ones eventually leave the table's timeline.
    """
    commits = Workspace.open(lake, state).open_lake.table(table).history(limit)
    if as_json:
        print_json([_commit_facts(commit) for commit in commits])
        return
    columns = (
        "instant",
        "completed (UTC)",
        "took",
        "events",
        "rows",
        "deletes",
        "written",
        "quarantined",
        "position",
        "p50",
        "p95",
    )
    rows = [
        (
            commit.instant,
            moment_text(commit.completed),
            f"{commit.took.total_seconds():.0f} s",
            f"{commit.events:,}",
            f"{commit.rows:,}",
            f"{commit.deletes:,}",
            size_text(commit.written),
            f"{commit.quarantined:,}",
            positions_text(commit.positions),
            duration_text(commit.freshness.p50 if commit.freshness else None),
            duration_text(commit.freshness.p95 if commit.freshness else None),
        )
        for commit in commits
    ]
    print_table(columns, rows, [False, False, *[True] * 9])


def _facts(summary: TableSummary, rows: int, quarantined: int) -> dict[str, Any]:
    commit = summary.last_commit
    return {
        "table": str(summary.name),
        "storage": summary.storage,
        "deletes": summary.deletes,
        "rows": rows,
        "positions": commit.positions if commit else {},
        "last_commit": commit.completed if commit else None,
        "freshness_p95_ms": commit.freshness.p95 if commit and commit.freshness else None,
        "quarantined": quarantined,
    }


def _commit_facts(commit: Commit) -> dict[str, Any]:
    freshness = commit.freshness
    return {
        "instant": commit.instant,
        "completed": commit.completed,
        "seconds": commit.took.total_seconds(),
        "events": commit.events,
        "rows": commit.rows,
        "deletes": commit.deletes,
        "bytes_written": commit.written,
        "quarantined": commit.quarantined,
        "topic": commit.topic,
        "positions": commit.positions,
        "freshness_ms": None
        if freshness is None
        else {"p50": freshness.p50, "p95": freshness.p95, "max": freshness.max},
    }


def events(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Such as sales or shop.public.sales.")],
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="A value, such as 7, or columns, such as order=7,line=2.")
    ],
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """List every event of a row, from bronze: its operation, when Kafka got it, and what changed.

    Bronze is some seconds behind Kafka. Values are as Debezium sent them.

    Example: tributary events users 7
    """
    found = Workspace.open(lake, state).open_lake.row_events(table, key)
    if as_json:
        facts = map(asdict, found)
        # `previous` repeats what another event has.
        print_json([{name: each[name] for name in each if name != "previous"} for each in facts])
        return
    if not found:
        output.print("Bronze has no event of this key.")
        return
    rows = [
        (f"{event.partition}:{event.offset}", moment_text(event.at), event.kind, _change(event))
        for event in found
    ]
    print_table(("position", "at (UTC)", "event", "row or change"), rows)


def _change(event: RowEvent) -> str:
    if event.changed:
        return ", ".join(f"{name}: {old} → {new}" for name, (old, new) in event.changed.items())
    row = event.after or event.before or {}
    return ", ".join(f"{name}={value}" for name, value in row.items())
