"""The commands that remove events and states from the lake: `erase` and `maintain`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from tributary.api.tables import resolve_names
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
    from tributary.operations.erasure import Erasure, Key


_MOST_NAMED = 5


def erase(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Such as sales or shop.public.sales.")],
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="A value, such as 7, or columns, such as order=7,line=2."),
    ] = None,
    keys_file: Annotated[
        Path | None,
        typer.Option(
            "--keys",
            metavar="FILE",
            help="A CSV file with more keys. Its first line names the columns of the key.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    on_aws: Annotated[
        bool, typer.Option("--aws", help="Erase from the deployed lake, with a job on its EMR.")
    ] = False,
    purges: Annotated[
        bool,
        typer.Option(
            "--purge-versions",
            help="With --aws: also remove the noncurrent versions of the table's removed files now, and "
            "those of bronze's metadata, which is that of all topics. Nobody can restore these files then.",
        ),
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Forget rows that were deleted in the source: in bronze, in the table and its history, in quarantine.

    The keys' events in bronze lose their content and keep their offsets. The table's files are rewritten
    without the rows, and time travel of this table starts again. Afterwards the command searches all files
    and says what it found. Kafka, or the stream of a DynamoDB source, keeps its copy of the events until
    their retention ends.

    No ingest may run meanwhile. If a row is still in the lake's table, no key is erased: delete it in the
    source and run tributary ingest. Many keys in one call take as long as one, because each file is read
    once.

    A key of a DynamoDB table is refused for some time after its last change (deletes_remembered), because an
    older record could still bring the row back. Binary keys are in base64.

    With --aws, the command starts a job, waits for its end and searches with your credentials. No other job
    of the lake may be active. The keys reach the job as an object in the quarantine bucket. The command
    removes it, also after Ctrl-C and if the job failed. If the command itself is killed, a lifecycle rule of
    the bucket removes the object within four days. S3 keeps removed files as noncurrent versions for some
    days, and the command says how long.

    The exit status is 0 only if no file holds a key any more, and nothing failed.

    Example: tributary erase users 7 8
    """
    from tributary.operations.erasure import keys_of_texts, read_keys

    if not keys and keys_file is None:
        raise typer.BadParameter("erase needs a key, or a file of keys with --keys", param_hint="KEY")
    if purges and not on_aws:
        raise typer.BadParameter("only S3 on AWS keeps versions", param_hint="--purge-versions")
    wanted = (*keys_of_texts(keys or ()), *(() if keys_file is None else read_keys(keys_file)))
    if on_aws:
        from tributary.cli.aws.erasing import erase_on_aws

        erasure = erase_on_aws(lake, environment, table, wanted, purges=purges)
    else:
        erasure = _erase_here(Workspace.open(lake, state), table, wanted)
    _tell(erasure, as_json=as_json, purges=purges)
    if not erasure.is_complete:
        raise typer.Exit(1)


def maintain(
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Keep bronze small: remove old events, merge small files, and remove snapshots that nobody needs.

    Events go once they are older than [bronze].retention in the lake file, and their table has applied them.
    Without that entry all events stay. The sink keeps writing meanwhile, but no ingest may run. Bronze has a
    table of its own for each DynamoDB source. All of this is done there, too.
    """
    from spark_app.reports import BronzeServiced, Trimmed
    from tributary.cli.run_watch import watch_run
    from tributary.operations.runs.ingest_run import start_ingest

    workspace = Workspace.open(lake, state)
    workspace.require("s3", "postgres")
    run = start_ingest(workspace, messages, "maintain", "bronze")
    watch_run(run, messages, is_shown=False)
    reports = run.progress.upkeep
    if as_json:
        print_json([{"event": report.event, **asdict(report)} for report in reports])
        return
    trimmed = [report for report in reports if isinstance(report, Trimmed) and report.events]
    if trimmed:
        rows = [
            (one.table, f"{one.events:,}", ", ".join(f"{p}:{o}" for p, o in one.kept_from.items()))
            for one in trimmed
        ]
        print_table(("table", "events removed", "first one kept"), rows, (False, True, False))
    for report in reports:
        if isinstance(report, BronzeServiced):
            _say(
                f"Bronze, {report.table}: {report.merged_files:,} small files merged, "
                f"{report.expired_snapshots:,} snapshots and {report.orphan_files:,} files without a "
                "snapshot removed."
            )
    if not reports:
        _say("Bronze holds no events yet.")


def _erase_here(workspace: Workspace, table: str, keys: Sequence[Key]) -> Erasure:
    """Erase keys from the lake on this machine. Raises IngestFailed and PipelineDown."""
    from connectors.deployment import TopicPolicy
    from spark_app.reports import Erased
    from tributary.cli.run_watch import watch_run
    from tributary.local import dynamodb, kinesis
    from tributary.operations.erasure import Erasure, log_of, one_table, search
    from tributary.operations.known_tables import known_tables
    from tributary.operations.runs.ingest_run import start_ingest

    workspace.require("s3", "postgres")
    name = one_table(table, resolve_names([table], known_tables(workspace)))
    source = workspace.lake.source(name.source)
    if source.item_stream in kinesis.streams_here(workspace.lake):
        workspace.require(kinesis.SERVICE, dynamodb.SERVICE)
    # Keys are personal data, so they are in no argument of a process, and in a file of the owner alone.
    with NamedTemporaryFile("w", prefix="tributary-keys-", suffix=".json", encoding="utf-8") as file:
        json.dump(keys, file)
        file.flush()
        run = start_ingest(workspace, messages, "erase", "kafka", [name], options=["--keys", file.name])
        watch_run(run, messages, is_shown=False)
    (erased,) = (report for report in run.progress.upkeep if isinstance(report, Erased))
    remains = search(workspace.open_lake, name, erased.keys)
    return Erasure(erased, remains, log_of(source, erased, TopicPolicy().retention, datetime.now(UTC)))


def _tell(erasure: Erasure, *, as_json: bool, purges: bool) -> None:
    erased, remains = erasure.erased, erasure.remains
    if as_json:
        versions, log = erasure.versions_until, erasure.log
        print_json(
            {
                **asdict(erased),
                "remains": remains and asdict(remains),
                "in_kafka_until": log.until.isoformat(timespec="seconds") if log.is_kafka else None,
                "in_versions_until": versions and versions.isoformat(timespec="seconds"),
                "purged_versions": erasure.purged,
                "failures": erasure.failures,
            }
        )
        return
    _say(
        f"{erased.table}: erased {erased.events:,} events in bronze, {erased.rows:,} rows and "
        f"{erased.quarantined:,} events in quarantine."
    )
    if erased.unknown:
        first = erased.unknown[:_MOST_NAMED]
        named = "; ".join(", ".join(f"{n}={v}" for n, v in key.items()) for key in first)
        more = f" and {len(erased.unknown) - len(first):,} more" if len(erased.unknown) > len(first) else ""
        _say(f"Bronze had no event of {named}{more}. Is this right?")
    if remains is None:
        _say("The search for the keys failed. To search again, run the command again.")
    elif remains.is_empty:
        keys = "the key is" if len(erased.keys) == 1 else f"the {len(erased.keys):,} keys are"
        _say(f"Searched bronze, the quarantine and {remains.searched:,} files of silver: {keys} in none.")
    else:
        found = (*remains.files, *remains.unsearched)
        _say(
            f"Still there: {remains.events:,} events in bronze, {remains.quarantined:,} in quarantine, "
            f"{remains.remembered:,} among the deleted keys, and in silver {', '.join(found) or 'nothing'}. "
            "Files of an interrupted commit to bronze go after three days, with: tributary maintain"
        )
    if remains is not None and remains.in_timeline:
        columns = ", ".join(remains.in_timeline)
        _say(f"Hudi's timeline still has the values of {columns}, which are names of the table's folders.")
    for other in erased.linked:
        _say(f"A row also had the key {other}. Erase that key, too, if it is about the same person.")
    log = erasure.log
    if log.until > datetime.now(UTC):
        _say(f"{log.name} holds the events until {log.until:%Y-%m-%d %H:%M} UTC at the latest.")
    else:
        _say(f"{log.name} holds no event of the keys any more.")
    if erasure.purged is not None:
        _say(f"Removed {erasure.purged:,} noncurrent versions of removed files.")
    if erasure.versions_until is not None:
        until = f"{erasure.versions_until:%Y-%m-%d %H:%M} UTC"
        how = _how_to_purge(erasure, purges=purges)
        _say(f"S3 keeps the removed files as noncurrent versions until {until}. {how}")
    for failure in erasure.failures:
        messages.print(
            f"The keys were erased, but then this failed: {failure}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _how_to_purge(erasure: Erasure, *, purges: bool) -> str:
    if not purges:
        return "To remove them now, run the command again with --purge-versions."
    if erasure.failures:
        return "Not all of them were removed, because something failed."
    return "They were not removed, because a file still holds a key."


def _say(text: str) -> None:
    output.print(text, markup=False, highlight=False, soft_wrap=True)
