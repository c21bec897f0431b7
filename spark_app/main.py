"""The Spark app's entry point for spark-submit: its commands and exit status."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TextIO

from pyspark.sql import SparkSession

from spark_app.acceleration.choice import SelfTest, choose_steps
from spark_app.catalog.glue import GlueCatalog, glue_client
from spark_app.catalog.sync import CatalogSync
from spark_app.derive.opening import Places as DerivedPlaces
from spark_app.derive.opening import derive
from spark_app.derive.outputs import Kafka
from spark_app.reports import ProgressWriter, StepsChosen, Stopped
from spark_app.run.arguments import Arguments, parse_arguments
from spark_app.run.erasure_files import ErasureFiles
from spark_app.run.event_sources import bronze_source, bronze_tables, kafka_source, open_source
from spark_app.run.lake_file import WatchedLakeFile
from spark_app.run.lake_tables import LakeTables
from spark_app.run.look_files import LookFiles
from spark_app.run.loop import Ingest
from spark_app.run.maintenance import maintain
from spark_app.run.metrics import MeasuredProgress, MetricsSender, logs_client
from spark_app.run.new_tables import NewTables
from spark_app.run.orphan_files import OrphanFiles
from spark_app.run.outcome_files import OutcomeFiles
from spark_app.run.pace import Pace
from spark_app.run.pause_files import PauseFiles
from spark_app.run.preflight import Places, run_preflight
from spark_app.run.self_test import run_self_test
from spark_app.run.session import start_session, tables_at_once
from spark_app.run.snapshot_files import SnapshotFiles
from spark_app.run.steps_files import StepsFiles
from spark_app.run.stop_request import StopRequest
from spark_app.run.table_runs import TableRuns
from spark_app.run.table_task import TableTask, run_for_each_table
from spark_app.schema_registry.opened import open_registry, open_store
from spark_app.sources.bronze_upkeep import BronzeUpkeep
from spark_app.sources.several import SeveralSources
from spark_app.table.erase import erase_keys
from spark_app.table.new_epoch import open_epoch
from spark_app.table.rebuild import rebuild_table
from spark_app.table.replay import replay_table
from spark_app.table.table_ingest import TableIngest
from spark_app.table.trim import delete_events
from tributary.contract.acceleration import ChosenSteps
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.process_signals import handled
from tributary.contract.table_name import TableName

BRONZE_POLL_SECONDS = 2.0
"""Each poll of bronze reads its metadata, and the sink commits only every few seconds."""


@dataclass(frozen=True)
class Run:
    """A run of a command, and what it uses. `metrics` is None if nobody wants them."""

    spark: SparkSession
    lake_file: WatchedLakeFile
    arguments: Arguments
    stop: StopRequest
    metrics: MetricsSender | None
    progress: ProgressWriter
    opened: ExitStack

    @property
    def lake(self) -> Lake:
        return self.lake_file.lake

    def choose_steps(self) -> None:
        """Choose the steps, and tell everybody who looks at the lake which ones they are."""
        files = StepsFiles(self.spark, self.arguments.quarantine)
        test = SelfTest(partial(run_self_test, self.spark, self.arguments.quarantine), files)
        wanted, is_pinned = self.lake.acceleration, self.arguments.has_pinned_jars
        found = choose_steps(self.spark, wanted, is_pinned=is_pinned, self_test=test)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        if self.arguments.command == "ingest":
            files.write(ChosenSteps(found.steps, found.reason, wanted, at))
        self.progress.write(StepsChosen(found.steps, found.reason, wanted))

    def open_tables(self) -> LakeTables:
        """Choose the steps, and open the source of the events."""
        self.choose_steps()
        source = open_source(self.spark, self.lake, self.arguments)
        if isinstance(source, SeveralSources):
            self.opened.callback(source.close)
        registry = open_registry(self.lake.registry, self.arguments.apicurio, self.arguments.glue_endpoint)
        return LakeTables(self.spark, self.lake_file, self.arguments, source, registry)

    def catalog(self) -> CatalogSync | None:
        """Return what shows the tables in Glue; None if the run has no database there."""
        if self.arguments.glue_database is None:
            return None
        return CatalogSync(
            GlueCatalog(glue_client(self.arguments.glue_endpoint), self.arguments.glue_database),
            name_of=lambda table: self.lake.names.glue_table(TableName.parse(table)),
            progress=self.progress,
        )


Command = Callable[[Run], bool]
"""Runs a command, and returns whether every table is healthy at the end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the app. Return 0 if every table is healthy, 1 if not, and 2 for wrong arguments or lake file."""
    try:
        parsed = parse_arguments(arguments)
        lake_file = WatchedLakeFile(parsed.lake)
    except TributaryError as error:
        print(error, file=sys.stderr)
        return 2
    stop = StopRequest()
    with handled((signal.SIGTERM, signal.SIGINT), lambda *_: stop.set()):
        return _run_and_close(lake_file, parsed, stop)


def _run_and_close(lake_file: WatchedLakeFile, arguments: Arguments, stop: StopRequest) -> int:
    """Run the command in a session of its own, and return the exit status."""
    spark = start_session(f"tributary {arguments.command} {lake_file.lake.name}")
    # Derived tables have no alarms.
    group = None if arguments.command == "derive" else arguments.metrics_log_group
    metrics = None if group is None else MetricsSender(logs_client(), group, lake_file.lake.name)
    try:
        with ExitStack() as opened:
            out = opened.enter_context(_output(spark, arguments))
            progress = ProgressWriter(out) if metrics is None else MeasuredProgress(metrics, out)
            run = Run(spark, lake_file, arguments, stop, metrics, progress, opened)
            return 0 if COMMANDS[arguments.command](run) else 1
    except TributaryError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if metrics is not None:
            metrics.close()
        spark.stop()


def _output(spark: SparkSession, arguments: Arguments) -> AbstractContextManager[TextIO]:
    """Return a context with the place of the run's reports."""
    if arguments.command != "erase":
        return nullcontext(sys.stdout)
    files = ErasureFiles(spark, arguments.keys, arguments.report)
    return files.reporting(sys.stdout, ", ".join(map(str, arguments.named)))


def _ingest(run: Run) -> bool:
    spark, quarantine = run.spark, run.arguments.quarantine
    opened = run.open_tables()
    pace = Pace(parallel=tables_at_once(spark))
    tables = TableRuns(
        source=opened.source,
        table_of=opened.of_topic,
        progress=run.progress,
        outcomes=OutcomeFiles(spark),
        follow=run.arguments.follow,
        snapshots=SnapshotFiles(spark, quarantine),
        pauses=PauseFiles(spark, quarantine),
        orphans=OrphanFiles(spark, quarantine),
        new=NewTables(LookFiles(spark, quarantine), run.arguments.awaits_checks, opened.catalog_has),
    )
    return Ingest(
        spark,
        tables,
        catalog=run.catalog(),
        metrics=run.metrics,
        pace=replace(pace, poll_seconds=BRONZE_POLL_SECONDS)
        if run.arguments.events_from == "bronze"
        else pace,
        stop=run.stop,
    ).run()


def _for_each_table(task: TableTask) -> Command:
    def command(run: Run) -> bool:
        opened = run.open_tables()
        outcomes = OutcomeFiles(run.spark)
        return run_for_each_table(opened.source, opened.of_topic, task, run.progress, outcomes)

    return command


def _rebuild(run: Run) -> bool:
    return _for_each_table(partial(rebuild_table, since_snapshot=run.arguments.since_snapshot))(run)


def _erase(run: Run) -> bool:
    opened = run.open_tables()
    keys = ErasureFiles(run.spark, run.arguments.keys, run.arguments.report).read_keys()
    return run_for_each_table(
        opened.source,
        opened.of_topic,
        lambda table: erase_keys(table, keys, opened.key_events(table)),
        run.progress,
        OutcomeFiles(run.spark),
        passing=(ConnectionError,),  # The text of another error may quote a key.
    )


def _maintain(run: Run) -> bool:
    opened = run.open_tables()
    return maintain(
        bronze_tables(run.spark, run.lake, run.arguments, opened.source),
        opened.of_topic,
        run.lake.bronze.retention,
        run.progress,
        OutcomeFiles(run.spark),
        OrphanFiles(run.spark, run.arguments.quarantine).read_removed(),
    )


def _delete_events(run: Run) -> bool:
    run.choose_steps()
    upkeep = BronzeUpkeep(run.spark, bronze_source(run.spark, run.lake, run.arguments).table)
    for topic in run.arguments.topics:
        run.progress.write(delete_events(topic, upkeep))
    run.progress.write(Stopped({}))
    return True


def _derive(run: Run) -> bool:
    run.choose_steps()
    arguments = run.arguments
    places = DerivedPlaces(
        silver=arguments.silver,
        quarantine=arguments.quarantine,
        kafka=None if arguments.kafka is None else Kafka(arguments.kafka, arguments.kafka_client),
        schemas=open_store(run.lake, arguments.apicurio, arguments.glue_endpoint),
    )
    return derive(
        run.spark,
        run.lake_file,
        arguments.derived,
        places,
        run.progress,
        run.catalog(),
        follow=arguments.follow,
        stop=run.stop,
    )


def _preflight(run: Run) -> bool:
    """Try all that the app needs, and print each check."""
    lake, arguments = run.lake, run.arguments
    kafka = kafka_source(run.spark, lake, arguments) if lake.connected_sources else None
    places = Places(
        silver=arguments.silver,
        quarantine=arguments.quarantine,
        topics=None if kafka is None else kafka.topics,
        glue_database=arguments.glue_database,
        glue_endpoint=arguments.glue_endpoint,
        on_aws=arguments.has_msk_iam,
    )
    found = run_preflight(run.spark, arguments.release, places)
    for check in found.checks:
        print(f"{check.state}: {check.name}: {check.detail}", flush=True)
    return found.is_passed


COMMANDS: Mapping[str, Command] = {
    "ingest": _ingest,
    "replay": _for_each_table(replay_table),
    "rebuild": _rebuild,
    "new-epoch": _for_each_table(open_epoch),
    "compact": _for_each_table(TableIngest.serve),
    "maintain": _maintain,
    "preflight": _preflight,
    "derive": _derive,
    "erase": _erase,
    "delete-events": _delete_events,
}


if __name__ == "__main__":
    sys.exit(main())
