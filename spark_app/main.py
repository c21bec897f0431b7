"""The Spark app's entry point for spark-submit: its arguments and exit status."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TextIO

from pyspark.sql import SparkSession

from spark_app.acceleration.choice import SelfTest, choose_steps
from spark_app.catalog.glue import GlueCatalog, glue_client
from spark_app.catalog.sync import CatalogSync
from spark_app.derive.opening import Places as DerivedPlaces
from spark_app.derive.opening import derive
from spark_app.derive.outputs import Kafka
from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.registry import SOURCE_LOGS
from spark_app.reports import ProgressWriter, StepsChosen, Stopped
from spark_app.run.erasure_files import ErasureFiles
from spark_app.run.lake_file import WatchedLakeFile
from spark_app.run.look_files import LookFiles
from spark_app.run.loop import Ingest
from spark_app.run.maintenance import BronzeTables, maintain
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
from spark_app.schema_registry.registry import SchemaRegistry
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import BronzeUpkeep
from spark_app.sources.event import EventSource
from spark_app.sources.files import FilesSource
from spark_app.sources.kafka import MSK_IAM, KafkaSource
from spark_app.sources.kinesis.item_tables import ItemTables
from spark_app.sources.kinesis.lander import Lander
from spark_app.sources.kinesis.landing import Landing
from spark_app.sources.kinesis.source import KinesisSource
from spark_app.sources.kinesis.stream import Stream
from spark_app.sources.several import SeveralSources
from spark_app.table.connector_keys import ConnectorKeyEvents
from spark_app.table.deleted_keys import DeletedKeys
from spark_app.table.erase import erase_keys
from spark_app.table.item_keys import ItemKeyEvents
from spark_app.table.key_events import KeyEvents
from spark_app.table.new_epoch import open_epoch
from spark_app.table.rebuild import rebuild_table
from spark_app.table.replay import replay_table
from spark_app.table.table_ingest import TableIngest
from spark_app.table.trim import delete_events
from spark_app.wire.items.record import table_of_record
from spark_app.wire.sink_records import RecordsOfForms
from tributary.contract.acceleration import ChosenSteps
from tributary.contract.errors import TributaryError
from tributary.contract.item_stream import DELETED_KEYS_FOLDER, ITEM_SCHEMA
from tributary.contract.lake import Lake, TablePolicy
from tributary.contract.preflight import Preflight
from tributary.contract.process_signals import handled
from tributary.contract.source import Source
from tributary.contract.table_name import TableName

FILES = "files:"
CONNECTED = ""
"""The name of Kafka, and of its bronze, among the sources of events. No source of a lake has it."""

BRONZE_POLL_SECONDS = 2.0
"""Each poll of bronze reads its metadata, and the sink commits only every few seconds."""

TASKS: Mapping[str, TableTask] = {
    "replay": replay_table,
    "new-epoch": open_epoch,
    "compact": TableIngest.serve,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the app. Return 0 if every table is healthy, 1 if not, and 2 for wrong arguments or lake file."""
    options = _parser().parse_args(arguments)
    try:
        lake_file = WatchedLakeFile(options.lake)
        named = frozenset(map(TableName.parse, options.tables))
    except TributaryError as error:
        print(error, file=sys.stderr)
        return 2
    stop = StopRequest()
    with handled((signal.SIGTERM, signal.SIGINT), lambda *_: stop.set()):
        return _run_and_close(lake_file, named, options, stop)


def _run_and_close(
    lake_file: WatchedLakeFile, named: Set[TableName], options: argparse.Namespace, stop: StopRequest
) -> int:
    """Run the command in a session of its own, and return the exit status."""
    spark = start_session(f"tributary {options.command} {lake_file.lake.name}")
    metrics = _metrics(lake_file.lake, options)
    try:
        with ExitStack() as opened:
            out = opened.enter_context(_output(spark, options))
            return 0 if _run(spark, lake_file, named, options, metrics, stop, out, opened) else 1
    except TributaryError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if metrics is not None:
            metrics.close()
        spark.stop()


def _run(
    spark: SparkSession,
    lake_file: WatchedLakeFile,
    named: Set[TableName],
    options: argparse.Namespace,
    metrics: MetricsSender | None,
    stop: StopRequest,
    out: TextIO,
    opened: ExitStack,
) -> bool:
    """Run the command, write its reports to `out`, and return whether every table is healthy at the end."""
    lake = lake_file.lake
    if options.command == "preflight":
        return _preflight(spark, lake, options).is_passed
    chosen = _chosen_steps(spark, lake, options)
    if options.command == "derive":
        return _derive(spark, lake_file, options, chosen, stop)
    source = _source(spark, lake, options)
    if isinstance(source, SeveralSources):
        opened.callback(source.close)
    progress = ProgressWriter(out) if metrics is None else MeasuredProgress(metrics, out)
    progress.write(StepsChosen(chosen.steps, chosen.reason, chosen.wanted))
    registry = open_registry(lake.registry, options.apicurio, options.glue_endpoint)
    table_of = partial(_table, spark, lake_file, named, options, source, registry)
    if options.command == "maintain":
        bronze = _bronze_tables(spark, lake, options, source)
        retention = lake.bronze.retention
        removed = OrphanFiles(spark, options.quarantine).read_removed()
        return maintain(bronze, table_of, retention, progress, OutcomeFiles(spark), removed)
    if options.command == "delete-events":
        upkeep = BronzeUpkeep(spark, _bronze(spark, lake, options).table)
        for topic in options.topics:
            progress.write(delete_events(topic, upkeep))
        progress.write(Stopped({}))
        return True
    if task := _task(spark, lake, options, source):
        return run_for_each_table(source, table_of, task, progress, OutcomeFiles(spark))
    tables = TableRuns(
        source=source,
        table_of=table_of,
        progress=progress,
        outcomes=OutcomeFiles(spark),
        follow=options.follow,
        snapshots=SnapshotFiles(spark, options.quarantine),
        pauses=PauseFiles(spark, options.quarantine),
        orphans=OrphanFiles(spark, options.quarantine),
        new=NewTables(
            LookFiles(spark, options.quarantine), options.awaits_checks, partial(_is_in_catalog, lake_file)
        ),
    )
    return Ingest(
        spark,
        tables,
        catalog=_catalog(lake, options, progress),
        metrics=metrics,
        pace=_pace(spark, options),
        stop=stop,
    ).run()


def _derive(
    spark: SparkSession,
    lake_file: WatchedLakeFile,
    options: argparse.Namespace,
    chosen: ChosenSteps,
    stop: StopRequest,
) -> bool:
    """Bring derived tables up to date. Return whether none has an error at the end."""
    progress = ProgressWriter()
    progress.write(StepsChosen(chosen.steps, chosen.reason, chosen.wanted))
    places = DerivedPlaces(
        silver=options.silver.rstrip("/"),
        quarantine=options.quarantine.rstrip("/"),
        kafka=None if options.kafka is None else Kafka(options.kafka, _kafka_client(options)),
        schemas=open_store(lake_file.lake, options.apicurio, options.glue_endpoint),
    )
    catalog = _catalog(lake_file.lake, options, progress)
    names = frozenset(options.names)
    return derive(spark, lake_file, names, places, progress, catalog, follow=options.follow, stop=stop)


def _chosen_steps(spark: SparkSession, lake: Lake, options: argparse.Namespace) -> ChosenSteps:
    """Choose the steps, and tell everybody who looks at the lake which ones they are."""
    bucket = options.quarantine.rstrip("/")
    files = StepsFiles(spark, bucket)
    test = SelfTest(partial(run_self_test, spark, bucket), files)
    found = choose_steps(spark, lake.acceleration, is_pinned=options.has_pinned_jars, self_test=test)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    chosen = ChosenSteps(found.steps, found.reason, lake.acceleration, at)
    if options.command == "ingest":
        files.write(chosen)
    return chosen


def _preflight(spark: SparkSession, lake: Lake, options: argparse.Namespace) -> Preflight:
    """Run the preflight, and print each check."""
    kafka = _kafka_source(spark, lake, options) if lake.connected_sources else None
    places = Places(
        silver=options.silver.rstrip("/"),
        quarantine=options.quarantine.rstrip("/"),
        topics=None if kafka is None else kafka.topics,
        glue_database=options.glue_database,
        glue_endpoint=options.glue_endpoint,
        on_aws=options.msk_iam,
    )
    found = run_preflight(spark, options.release, places)
    for check in found.checks:
        print(f"{check.state}: {check.name}: {check.detail}", flush=True)
    return found


def _task(
    spark: SparkSession, lake: Lake, options: argparse.Namespace, source: EventSource
) -> TableTask | None:
    if options.command == "rebuild":
        return partial(rebuild_table, since_snapshot=options.since_snapshot)
    if options.command == "erase":
        keys = ErasureFiles(spark, options.keys, options.report).read_keys()
        return lambda table: erase_keys(table, keys, _key_events(spark, lake, options, source, table))
    return TASKS.get(options.command)


def _key_events(
    spark: SparkSession, lake: Lake, options: argparse.Namespace, source: EventSource, table: TableIngest
) -> KeyEvents:
    """Return the events of a table as its source writes them."""
    name = TableName.parse(table.name)
    own = source.sources.get(name.source) if isinstance(source, SeveralSources) else None
    if not isinstance(own, KinesisSource):
        return ConnectorKeyEvents.of(table)
    rules = lake.source(name.source).item_rules(name.table)
    assert rules is not None, "a stream brings items"
    return ItemKeyEvents(
        name=table.name,
        topic=table.topic,
        nameless=lake.source_names(lake.source(name.source)).topic_prefix,
        table=name.table,
        source=own,
        deleted=DeletedKeys(spark, _deleted_path(lake, options, name), rules.remembered),
    )


def _output(spark: SparkSession, options: argparse.Namespace) -> AbstractContextManager[TextIO]:
    """Return a context with the place of the run's reports."""
    if options.command != "erase":
        return nullcontext(sys.stdout)
    return ErasureFiles(spark, options.keys, options.report).reporting(sys.stdout, ", ".join(options.tables))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="main.py", description="Tributary's Spark application")
    commands = parser.add_subparsers(dest="command", required=True)
    ingest = commands.add_parser("ingest", help="bring the tables up to date with the source")
    _add_common(ingest, default_source="kafka")
    ingest.add_argument("--follow", action="store_true", help="keep running until stopped")
    ingest.add_argument(
        "--await-checks",
        dest="awaits_checks",
        action="store_true",
        help="make a new table only after a look at its source's catalog has found nothing against it",
    )
    ingest.add_argument(
        "--glue-database", metavar="NAME", help="show the tables in this database of the Glue catalog"
    )
    replay = commands.add_parser("replay", help="apply the quarantined events that are readable now")
    _add_common(replay, default_source="bronze")
    rebuild = commands.add_parser("rebuild", help="rebuild tables from their events, each in one commit")
    _add_common(rebuild, default_source="bronze")
    rebuild.add_argument(
        "--since-snapshot", action="store_true", help="use only the last snapshot and the events after it"
    )
    new_epoch = commands.add_parser("new-epoch", help="continue at the start of topics that were recreated")
    _add_common(new_epoch, default_source="kafka")
    compact = commands.add_parser("compact", help="run the table services now; nothing else may write")
    _add_common(compact, default_source="kafka")
    erase = commands.add_parser("erase", help="forget keys of one table; nothing else may write")
    _add_common(erase, default_source="kafka")
    erase.add_argument(
        "--keys",
        required=True,
        metavar="URI",
        help='a file or an object with JSON such as [{"id": "7"}, {"id": "8"}]',
    )
    erase.add_argument(
        "--report", metavar="URI", help="write the reports there, and print nothing that may hold a key"
    )
    derive_tables = commands.add_parser("derive", help="bring the derived tables up to date")
    _add_common(derive_tables, default_source="kafka")
    derive_tables.add_argument("--follow", action="store_true", help="keep running until stopped")
    derive_tables.add_argument(
        "--glue-database", metavar="NAME", help="show the tables in this database of the Glue catalog"
    )
    derive_tables.add_argument(
        "--derived", dest="names", action="append", default=[], metavar="NAME", help="only this derived table"
    )
    delete = commands.add_parser("delete-events", help="delete all events of topics from bronze")
    _add_common(delete, default_source="bronze")
    delete.add_argument("--topic", dest="topics", action="append", required=True, metavar="NAME")
    preflight = commands.add_parser("preflight", help="try all that the app needs, without touching a table")
    _add_common(preflight, default_source="kafka")
    preflight.add_argument(
        "--release", required=True, metavar="NAME", help="the release of EMR; the result is stored under it"
    )
    preflight.add_argument("--glue-database", metavar="NAME", help="list the tables of this Glue database")
    maintain = commands.add_parser("maintain", help="keep bronze small, while the sink keeps writing to it")
    _add_common(maintain, default_source="bronze")
    return parser


def _add_common(command: argparse.ArgumentParser, default_source: str) -> None:
    command.add_argument("--lake", type=Path, required=True, help="the lake file")
    command.add_argument(
        "--from",
        dest="source",
        metavar="kafka|bronze|files:URI",
        type=_events_from,
        default=default_source,
        help="where to read the events; files:URI is a folder that an S3 sink wrote",
    )
    command.add_argument(
        "--allow-gaps",
        action="store_true",
        help="with files: treat offsets that are in no file as offsets without an event; with a stream of "
        "items: continue after records that the stream has deleted",
    )
    command.add_argument("--kafka", metavar="HOST:PORT", help="bootstrap servers, for --from kafka")
    command.add_argument(
        "--kafka-option",
        dest="kafka_options",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_name_and_value,
        help="a property of the Kafka clients, such as security.protocol=SASL_SSL",
    )
    command.add_argument(
        "--msk-iam", action="store_true", help="log in to Amazon MSK as the IAM role that runs the app"
    )
    command.add_argument(
        "--metrics-log-group", metavar="NAME", help="send metrics to CloudWatch through this log group"
    )
    command.add_argument(
        "--bronze-table",
        help="the full name of the Iceberg table of events, for --from bronze and events Kafka has deleted",
    )
    command.add_argument(
        "--silver", required=True, metavar="URI", help="the bucket or folder of the Hudi tables"
    )
    command.add_argument(
        "--quarantine", required=True, metavar="URI", help="the bucket or folder of bad events"
    )
    command.add_argument(
        "--pinned-jars",
        dest="has_pinned_jars",
        action="store_true",
        help="the class path has exactly the jars for which the app's Java was compiled, so do not check it",
    )
    command.add_argument("--glue-endpoint", metavar="URL", help="the address of a Glue other than AWS's")
    command.add_argument(
        "--apicurio",
        metavar="URL",
        help="the address of an Apicurio in place of the registry in the lake file",
    )
    command.add_argument("--tables", action="append", default=[], metavar="SOURCE.SCHEMA.TABLE")


def _events_from(text: str) -> str:
    if text not in ("kafka", "bronze") and not (text.startswith(FILES) and text != FILES):
        raise argparse.ArgumentTypeError(f"{text!r} is none of kafka, bronze and files:URI")
    return text


def _name_and_value(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _is_in_catalog(lake_file: WatchedLakeFile, topic: str) -> bool:
    """Return whether the catalog of the topic's source can have its table."""
    lake = lake_file.lake
    table = lake.names.table_of_topic(topic, map(lake.source_names, lake.sources))
    return table is not None and not any(
        source.name == table.source and source.routes_to(table.schema) for source in lake.sources
    )


def _is_wanted(lake: Lake, named: Set[TableName], table: TableName) -> bool:
    """Return whether the table is one of the lake's tables or, if any are `named`, one of these."""
    is_of_lake = any(
        source.name == table.source
        and (source.matches(table.schema, table.table) or source.routes_to(table.schema))
        for source in lake.sources
    )
    return is_of_lake and (not named or table in named)


def _source(spark: SparkSession, lake: Lake, options: argparse.Namespace) -> EventSource:
    if options.source.startswith(FILES):

        def policy_of(topic: str) -> TablePolicy:
            table = lake.table_of_topic(topic)
            return TablePolicy() if table is None else lake.policy(table)

        location = options.source.removeprefix(FILES)
        return FilesSource(spark, location, RecordsOfForms(), policy_of, options.allow_gaps)
    sources: dict[str, EventSource] = {
        source.name: _item_source(spark, lake, options, source) for source in lake.item_sources
    }
    if lake.connected_sources:
        sources[CONNECTED] = _connected_source(spark, lake, options)

    def owner_of(topic: str) -> str:
        table = lake.table_of_topic(topic)
        return table.source if table is not None and table.source in sources else CONNECTED

    return SeveralSources(sources, owner_of) if lake.item_sources else sources[CONNECTED]


def _connected_source(spark: SparkSession, lake: Lake, options: argparse.Namespace) -> EventSource:
    """Return the topics of the sources that Debezium reads."""
    if options.source == "bronze":
        return BronzeSource(spark, options.bronze_table or lake.names.spark_bronze_table)
    return _kafka_source(spark, lake, options)


def _kafka_source(spark: SparkSession, lake: Lake, options: argparse.Namespace) -> KafkaSource:
    return KafkaSource(
        spark,
        bootstrap_servers=options.kafka,
        group_prefix=lake.names.spark_group_prefix,
        client_options=_kafka_client(options),
        id_prefixes=_topics_with_header_ids(lake),
    )


def _topics_with_header_ids(lake: Lake) -> tuple[str, ...]:
    """Return the beginnings of topics of other connectors, whose converter may be Apicurio's."""
    if lake.registry is None or lake.registry.kind != "apicurio":
        return ()
    prefixes = [source.events.topic_prefix for source in lake.sources]
    return tuple(f"{prefix}." for prefix in prefixes if prefix is not None)


def _kafka_client(options: argparse.Namespace) -> Mapping[str, str]:
    """Return the properties of the Kafka clients."""
    return {**(MSK_IAM if options.msk_iam else {}), **dict(options.kafka_options)}


def _bronze(spark: SparkSession, lake: Lake, options: argparse.Namespace) -> BronzeSource:
    return BronzeSource(spark, options.bronze_table or lake.names.spark_bronze_table)


def _bronze_tables(
    spark: SparkSession, lake: Lake, options: argparse.Namespace, source: EventSource
) -> BronzeTables:
    """Return the table with Kafka's events, and the table with the records of each stream of items."""
    of_kafka = BronzeUpkeep(spark, _bronze(spark, lake, options).table)
    of_items = {
        source.name: BronzeUpkeep(spark, lake.names.spark_records_table(source.name))
        for source in lake.item_sources
    }

    def of_topic(topic: str) -> BronzeUpkeep:
        table = lake.table_of_topic(topic)
        return of_kafka if table is None else of_items.get(table.source, of_kafka)

    tables = (*((of_kafka,) if lake.connected_sources else ()), *of_items.values())
    return BronzeTables(source, [each for each in tables if spark.catalog.tableExists(each.table)], of_topic)


def _item_source(spark: SparkSession, lake: Lake, options: argparse.Namespace, source: Source) -> EventSource:
    """Return the topics of a source with a stream of items, from the stream itself or from bronze alone."""
    table = lake.names.spark_records_table(source.name)
    bronze = BronzeSource(spark, table)
    if not _reads_stream(options, source):
        return bronze
    of = source.item_stream
    assert of is not None, "the source is one with a stream of items"
    names = lake.source_names(source)

    def topic_of(data: bytes) -> str | None:
        """Return the topic of a record's table. What no table's name is in, is kept apart."""
        name = table_of_record(data)
        if name is None:
            return names.topic_prefix
        return names.topic_name(ITEM_SCHEMA, name) if source.matches(ITEM_SCHEMA, name) else None

    landing = Landing(spark, table, of.name, topic_of)
    tables = ItemTables(of, source.patterns, ITEM_SCHEMA) if of.initial_load else None
    lander = Lander(of.name, Stream(of), landing, tables, allows_gaps=options.allow_gaps)
    follows = options.command == "ingest" and options.follow
    return KinesisSource(lander, bronze, landing.recent, follows=follows)


def _reads_stream(options: argparse.Namespace, source: Source) -> bool:
    """Return whether the command lands what the stream has. An erasure must know that nothing comes later."""
    if options.command == "erase":
        return any(TableName.parse(table).source == source.name for table in options.tables)
    return bool(options.command == "ingest" and options.source != "bronze")


def _metrics(lake: Lake, options: argparse.Namespace) -> MetricsSender | None:
    if options.metrics_log_group is None:
        return None
    return MetricsSender(logs_client(), options.metrics_log_group, lake.name)


def _catalog(lake: Lake, options: argparse.Namespace, progress: ProgressWriter) -> CatalogSync | None:
    if options.glue_database is None:
        return None
    return CatalogSync(
        GlueCatalog(glue_client(options.glue_endpoint), options.glue_database),
        name_of=lambda table: lake.names.glue_table(TableName.parse(table)),
        progress=progress,
    )


def _pace(spark: SparkSession, options: argparse.Namespace) -> Pace:
    pace = Pace(parallel=tables_at_once(spark))
    return replace(pace, poll_seconds=BRONZE_POLL_SECONDS) if options.source == "bronze" else pace


def _older(spark: SparkSession, options: argparse.Namespace) -> EventSource | None:
    """Return the source of events that Kafka has already deleted."""
    if options.source != "kafka" or options.bronze_table is None:
        return None
    return BronzeSource(spark, options.bronze_table)


def _table(
    spark: SparkSession,
    lake_file: WatchedLakeFile,
    named: Set[TableName],
    options: argparse.Namespace,
    source: EventSource,
    registry: SchemaRegistry | None,
    topic: str,
) -> TableIngest | None:
    lake = lake_file.current() if options.command == "ingest" and options.follow else lake_file.lake
    table = lake.table_of_topic(topic)
    if table is None or not _is_wanted(lake, named, table):
        return None
    path, of_source = lake.names.table_path(table), lake.source(table.source)
    return TableIngest(
        name=str(table),
        topic=topic,
        source=source,
        hudi=HudiTable(
            spark, f"{options.silver.rstrip('/')}/{path}", path.replace("/", "_"), lake.policy(table)
        ),
        quarantine_path=f"{options.quarantine.rstrip('/')}/{path}",
        log=SOURCE_LOGS[of_source.engine],
        older=_older(spark, options) if of_source.item_stream is None else None,
        written=of_source.events,
        registry=registry,
        items=of_source.item_rules(table.table),
        deleted_path=_deleted_path(lake, options, table),
    )


def _deleted_path(lake: Lake, options: argparse.Namespace, table: TableName) -> str:
    return f"{options.quarantine.rstrip('/')}/{DELETED_KEYS_FOLDER}/{lake.names.table_path(table)}"


if __name__ == "__main__":
    sys.exit(main())
