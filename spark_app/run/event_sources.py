"""Where a run reads its events: Kafka, bronze, the files of an S3 sink, and streams of items."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_app.run.arguments import FILES, Arguments
from spark_app.run.maintenance import BronzeTables
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import BronzeUpkeep
from spark_app.sources.event import EventSource
from spark_app.sources.files import FilesSource
from spark_app.sources.kafka import KafkaSource
from spark_app.sources.kinesis.item_tables import ItemTables
from spark_app.sources.kinesis.lander import Lander
from spark_app.sources.kinesis.landing import Landing
from spark_app.sources.kinesis.source import KinesisSource
from spark_app.sources.kinesis.stream import Stream
from spark_app.sources.several import SeveralSources
from spark_app.wire.items.record import table_of_record
from spark_app.wire.sink_records import RecordsOfForms
from tributary.contract.errors import TributaryError
from tributary.contract.item_stream import ITEM_SCHEMA, ItemStream
from tributary.contract.lake import Lake, TablePolicy
from tributary.contract.source import Source

CONNECTED = ""
"""The name of Kafka, and of its bronze, among the sources of events. No source of a lake has it."""


class NoServers(TributaryError):
    """The arguments do not say where Kafka is."""


def open_source(spark: SparkSession, lake: Lake, arguments: Arguments) -> EventSource:
    """Return the source of all events of the lake. Raises NoServers."""
    if arguments.events_from.startswith(FILES):

        def policy_of(topic: str) -> TablePolicy:
            table = lake.table_of_topic(topic)
            return TablePolicy() if table is None else lake.policy(table)

        location = arguments.events_from.removeprefix(FILES)
        return FilesSource(spark, location, RecordsOfForms(), policy_of, arguments.allows_gaps)
    sources: dict[str, EventSource] = {
        source.name: _item_source(spark, lake, arguments, source, stream)
        for source in lake.item_sources
        if (stream := source.item_stream) is not None
    }
    if lake.connected_sources:
        from_bronze = arguments.events_from == "bronze"
        sources[CONNECTED] = (
            bronze_source(spark, lake, arguments) if from_bronze else kafka_source(spark, lake, arguments)
        )

    def owner_of(topic: str) -> str:
        table = lake.table_of_topic(topic)
        return table.source if table is not None and table.source in sources else CONNECTED

    if not lake.item_sources:
        return sources[CONNECTED]
    return SeveralSources(sources, owner_of, follows=arguments.is_following_ingest)


def kafka_source(spark: SparkSession, lake: Lake, arguments: Arguments) -> KafkaSource:
    """Return the topics in Kafka. Raises NoServers if the arguments lack its servers."""
    if arguments.kafka is None:
        raise NoServers(
            "The run reads Kafka, and its arguments lack the servers", expected="--kafka HOST:PORT"
        )
    return KafkaSource(
        spark,
        bootstrap_servers=arguments.kafka,
        group_prefix=lake.names.spark_group_prefix,
        client_options=arguments.kafka_client,
        id_prefixes=_topics_with_header_ids(lake),
    )


def bronze_source(spark: SparkSession, lake: Lake, arguments: Arguments) -> BronzeSource:
    """Return the topics of Kafka, as bronze has them."""
    return BronzeSource(spark, arguments.bronze_table or lake.names.spark_bronze_table)


def older_source(spark: SparkSession, arguments: Arguments) -> BronzeSource | None:
    """Return the source of events that Kafka has already deleted; None: the run does not need it."""
    if arguments.events_from != "kafka" or arguments.bronze_table is None:
        return None
    return BronzeSource(spark, arguments.bronze_table)


def bronze_tables(spark: SparkSession, lake: Lake, arguments: Arguments, source: EventSource) -> BronzeTables:
    """Return the table with Kafka's events, and the table with the records of each stream of items."""
    of_kafka = BronzeUpkeep(spark, bronze_source(spark, lake, arguments).table)
    of_items = {
        one.name: BronzeUpkeep(spark, lake.names.spark_records_table(one.name)) for one in lake.item_sources
    }

    def of_topic(topic: str) -> BronzeUpkeep:
        table = lake.table_of_topic(topic)
        return of_kafka if table is None else of_items.get(table.source, of_kafka)

    tables = (*((of_kafka,) if lake.connected_sources else ()), *of_items.values())
    return BronzeTables(source, [each for each in tables if spark.catalog.tableExists(each.table)], of_topic)


def item_source_of(sources: EventSource, name: str) -> KinesisSource | None:
    """Return the stream that brings the items of the lake's source `name`; None if it is not read."""
    own = sources.sources.get(name) if isinstance(sources, SeveralSources) else None
    return own if isinstance(own, KinesisSource) else None


def _item_source(
    spark: SparkSession, lake: Lake, arguments: Arguments, source: Source, stream: ItemStream
) -> EventSource:
    """Return the topics of a source with a stream of items, from the stream itself or from bronze alone."""
    table = lake.names.spark_records_table(source.name)
    bronze = BronzeSource(spark, table)
    if not _reads_stream(arguments, source):
        return bronze
    names = lake.source_names(source)

    def topic_of(data: bytes) -> str | None:
        """Return the topic of a record's table. What no table's name is in, is kept apart."""
        name = table_of_record(data)
        if name is None:
            return names.topic_prefix
        return names.topic_name(ITEM_SCHEMA, name) if source.matches(ITEM_SCHEMA, name) else None

    landing = Landing(spark, table, stream.name, topic_of)
    tables = ItemTables(stream, source.patterns, ITEM_SCHEMA) if stream.initial_load else None
    lander = Lander(stream.name, Stream(stream), landing, tables, allows_gaps=arguments.allows_gaps)
    return KinesisSource(lander, bronze, landing.recent, follows=arguments.is_following_ingest)


def _reads_stream(arguments: Arguments, source: Source) -> bool:
    """Return whether the command lands what the stream has. An erasure must know that nothing comes later."""
    if arguments.command == "erase":
        return any(table.source == source.name for table in arguments.named)
    return arguments.command == "ingest" and arguments.events_from != "bronze"


def _topics_with_header_ids(lake: Lake) -> tuple[str, ...]:
    """Return the beginnings of topics of other connectors, whose converter may be Apicurio's."""
    if lake.registry is None or lake.registry.kind != "apicurio":
        return ()
    prefixes = [source.events.topic_prefix for source in lake.sources]
    return tuple(f"{prefix}." for prefix in prefixes if prefix is not None)
