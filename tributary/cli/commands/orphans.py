"""The commands about tables that their source no longer has: `orphans list`, `keep` and `remove`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    Environment,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import messages, output, print_json, print_table
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from tributary.contract.orphan import DecidedOrphan
    from tributary.operations.aws.linked_lake import LinkedLake
    from tributary.operations.orphans import LakeWithOrphans, Orphan

orphans = typer.Typer(
    no_args_is_help=True,
    help="Tables that their source no longer has, or that the lake file excludes: list, keep or remove them.",
)
Tables = Annotated[
    list[str], typer.Argument(metavar="TABLE...", help="Such as sales or 'public.old_*'; one or more.")
]


OnAws = Annotated[bool, typer.Option("--aws", help="For the deployed lake, from a machine in its network.")]


@orphans.command("list")
def list_orphans(
    on_aws: OnAws = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """List the lake's orphans, why each is one, and what was decided about it."""
    from tributary.operations.orphans import look_for_orphans

    with _opened(lake, environment, state, on_aws=on_aws) as opened:
        found = [one for one in look_for_orphans(opened.lake).values() if not one.is_gone]
    if as_json:
        print_json([_facts(one) for one in found])
    elif found:
        rows = [(str(one.table), one.state, one.reason) for one in found]
        print_table(("table", "state", "reason"), rows)
    else:
        output.print("The lake has no orphans.")


@orphans.command()
def keep(
    tables: Tables,
    on_aws: OnAws = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Keep orphans as they are, and say so in the status instead of asking what to do.

    Their rows stay readable. If the source has the table again, the decision is forgotten and the table is
    read again.
    """
    from tributary.operations import orphans as operations

    with _opened(lake, environment, state, on_aws=on_aws) as opened:
        kept = operations.keep(opened.lake, tables)
    if as_json:
        print_json([str(table) for table in kept])
        return
    for table in kept:
        _say(f"{table} is kept.")
    if not kept:
        _say("All of them were kept already.")


@orphans.command()
def remove(
    tables: Tables,
    is_confirmed: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    with_events: Annotated[
        bool,
        typer.Option("--events", help="Also delete the tables' events in bronze, and their topics in Kafka."),
    ] = False,
    on_aws: OnAws = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Remove orphans from the lake: rows, history, quarantine, and what is recorded about them.

    The command lists what it deletes and asks for confirmation. A table that the lake still follows is
    refused. No ingest may run meanwhile. After an interruption, run the command again.

    The events stay in Kafka and bronze until their retention ends, but no ingest makes the table from them
    again. With --events they are deleted, too, and cannot be restored.

    With --aws, no job of the lake may be active. The table's names in Glue go, too. Events are deleted from
    bronze by a job, for whose end the command waits. S3 keeps removed files as noncurrent versions for some
    days.

    Example: tributary orphans remove old_orders
    """
    from tributary.operations import orphans as operations

    with _opened(lake, environment, state, on_aws=on_aws) as opened:
        if with_events:
            opened.require_events()
        found = operations.choose_for_removal(opened.lake, tables)
        storage = opened.lake.storage
        contents = {one.table: storage.contents(one.table) for one in found}
        if not is_confirmed:
            for one in found:
                held = contents[one.table]
                told = f"{held.files:,} files, {held.size / 1_000_000:,.1f} MB"
                messages.print(
                    f"{one.table}: {one.reason}. Silver and quarantine have {told}.", soft_wrap=True
                )
            events = " and their events in bronze and Kafka" if with_events else ""
            typer.confirm(f"Delete {_counted(found)}{events}?", abort=True, err=True)
        removed = [operations.remove(opened.lake, one) for one in found]
        deleted = _delete_events(opened, removed) if with_events else {}
    if as_json:
        print_json(
            [
                {
                    "table": str(one.table),
                    "files": contents[one.table].files,
                    "bytes": contents[one.table].size,
                    "events_in_bronze": deleted.get(str(one.topic)),
                }
                for one in removed
            ]
        )
        return
    for gone in removed:
        held, lost = contents[gone.table], deleted.get(str(gone.topic))
        events = "" if lost is None else f" Bronze lost {lost:,} events."
        if lost is None and str(gone.topic) in deleted:
            events = " Bronze lost its events."
        _say(f"{gone.table} is removed: {held.files:,} files, {held.size / 1_000_000:,.1f} MB.{events}")


class _Opened(Protocol):
    """A lake whose orphans are removed, and how events are deleted from its bronze."""

    @property
    def lake(self) -> LakeWithOrphans: ...

    def require_events(self) -> None:
        """Check that events can be deleted from bronze."""

    def delete_events(self, topics: Sequence[str]) -> Mapping[str, int | None]:
        """Delete the topics' events from bronze, and return how many there were, if that is known."""


class _Here:
    """The lake of this machine, whose servers must run."""

    def __init__(self, workspace: Workspace) -> None:
        from tributary.operations.orphans import orphans_here

        self._workspace = workspace
        self.lake = orphans_here(workspace)

    def require_events(self) -> None:
        self._workspace.require("postgres")

    def delete_events(self, topics: Sequence[str]) -> Mapping[str, int | None]:
        from spark_app.reports import EventsDeleted
        from tributary.cli.run_watch import watch_run
        from tributary.operations.runs.ingest_run import start_ingest

        options = [argument for topic in topics for argument in ("--topic", topic)]
        run = start_ingest(self._workspace, messages, "delete-events", "bronze", options=options)
        watch_run(run, messages, is_shown=False)
        return {one.topic: one.events for one in run.progress.upkeep if isinstance(one, EventsDeleted)}


class _OnAws:
    """The deployed lake."""

    def __init__(self, linked: LinkedLake) -> None:
        from tributary.operations.aws.orphans import orphans_on_aws

        self._deployed = linked.deployed
        self.lake = orphans_on_aws(linked)

    def require_events(self) -> None:
        from tributary.operations.aws.bronze_changes import require_changeable_bronze

        require_changeable_bronze(self._deployed.lake)
        self._deployed.job_place.require_usable()

    def delete_events(self, topics: Sequence[str]) -> Mapping[str, int | None]:
        from tributary.aws.spark_submit import Job
        from tributary.cli.aws.job_run import run_to_end
        from tributary.operations.aws.jobs import failure

        job = Job("delete-events", topics=tuple(topics))
        run = run_to_end(self._deployed, job, "It deletes the events by itself.")
        if run.state != "ended":
            raise failure(self._deployed.job_place.name, run)
        # Only the job's log says how many there were.
        return dict.fromkeys(topics)


@contextmanager
def _opened(lake: Path, environment: str | None, state: Path, *, on_aws: bool) -> Iterator[_Opened]:
    if not on_aws:
        yield _Here(Workspace.open(lake, state))
        return
    from tributary.cli.aws.linked_lake import deployed_lake_with_sources

    with deployed_lake_with_sources(lake, environment, state) as linked:
        yield _OnAws(linked)


def _delete_events(opened: _Opened, removed: Sequence[DecidedOrphan]) -> Mapping[str, int | None]:
    """Delete the events of removed tables in Kafka and bronze. Return how many bronze had, by topic."""
    from tributary.operations.orphans import remove_topic

    # The topic goes first: the sink then lands no more of its events while Spark starts.
    for one in removed:
        remove_topic(opened.lake.lake, one)
    topics = [one.topic for one in removed if one.topic is not None]
    return opened.delete_events(topics) if topics else {}


def _counted(found: Sequence[Orphan]) -> str:
    return "this table" if len(found) == 1 else f"these {len(found)} tables"


def _facts(one: Orphan) -> dict[str, object]:
    return {
        "table": str(one.table),
        "state": one.state,
        "reason": one.reason,
        "since": None if one.decision is None else one.decision.since,
    }


def _say(text: str) -> None:
    output.print(text, markup=False, highlight=False, soft_wrap=True)
