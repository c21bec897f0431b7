"""The commands `derive` and `lineage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import messages, output, print_json, print_table
from tributary.contract.errors import TributaryError

if TYPE_CHECKING:
    from tributary.contract.lake import Lake


class UnknownDerivedTable(TributaryError):
    """A name that no derived table has."""


def derive(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Only these derived tables, such as totals. Default: all."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep running until Ctrl-C, and pick up every change.")
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Bring the derived tables up to date: the results of queries over the lake's tables and Kafka's topics.

    The sections `[derived.NAME]` of the lake file have the queries. Each table comes after the tables
    that it reads. It may run beside tributary ingest --follow.

    Each table starts from the record in its last commit, so you can stop a run at any time. A query that
    changed is applied from the beginning. A table with an error keeps its rows, and all others continue.

    The exit status is 0 only if no table has an error. With --json, each report of the Spark app is a line of
    JSON.
    """
    from spark_app.reports import DerivedRow
    from tributary.cli.run_watch import print_dropped, watch_run
    from tributary.operations.runs.ingest_run import start_ingest
    from tributary.operations.runs.run_progress import parse_report
    from tributary.operations.workspace import Workspace

    workspace = Workspace.open(lake, state)
    chosen = known_names(workspace.lake, names or ())

    def show(line: str) -> None:
        if as_json:
            typer.echo(line)
            return
        report = parse_report(line)
        if isinstance(report, DerivedRow):
            typer.echo(f"{report.table} {report.key} {report.value or 'deleted'}")

    run = start_ingest(
        workspace,
        messages,
        command="derive",
        follow=follow,
        on_line=show,
        options=[argument for name in chosen for argument in ("--derived", name)],
    )
    try:
        watch_run(run, messages if as_json else output, is_shown=not as_json)
    finally:
        if not as_json:
            print_dropped(run.progress, messages)


def lineage(lake: LakeFile = DEFAULT_LAKE_FILE, as_json: AsJson = False) -> None:
    """Show which derived table reads which table or topic, in the order in which they are derived.

    The command only reads the lake file and the files with queries. A table whose query cannot be used is
    listed with the reason, and the exit status is then 1.
    """
    from tributary.contract.derivations import StreamDerivation, lineage, read_derivations
    from tributary.contract.lake import read_lake

    the_lake = read_lake(lake)
    found = read_derivations(the_lake, lake.absolute().parent)
    if as_json:
        print_json(
            {
                "derived": [
                    {
                        "table": one.name,
                        "reads": [str(read) for read in one.inputs],
                        "key": one.key,
                        "kind": "stream" if isinstance(one, StreamDerivation) else "tables",
                    }
                    for one in found.ordered
                ],
                "errors": {name: error.reason for name, error in found.errors.items()},
            }
        )
    elif not the_lake.derived:
        output.print("The lake file has no derived tables. docs/derived.md says how to write one.")
    else:
        print_table(("derived table", "reads"), list(lineage(found.ordered)))
        for name, error in found.errors.items():
            messages.print(f"{name}: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
    if found.errors:
        raise typer.Exit(1)


def known_names(lake: Lake, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of derived tables. Raises UnknownDerivedTable."""
    known = dict(lake.derived)
    if not known:
        raise UnknownDerivedTable(
            "the lake has no derived tables", where=f"lake {lake.name}", expected="a section [derived.NAME]"
        )
    plain = tuple(dict.fromkeys(name.rpartition(".")[2] for name in names))
    if unknown := [name for name in plain if name not in known]:
        raise UnknownDerivedTable(
            "the lake has no derived table of this name",
            found=", ".join(unknown),
            expected=f"one of {', '.join(known)}",
        )
    return plain
