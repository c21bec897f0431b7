"""The tables of a run: which topics they belong to, and where their rows, bad events and keys are."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.registry import SOURCE_LOGS
from spark_app.run.arguments import Arguments
from spark_app.run.event_sources import item_source_of, older_source
from spark_app.run.lake_file import WatchedLakeFile
from spark_app.schema_registry.registry import SchemaRegistry
from spark_app.sources.event import EventSource
from spark_app.table.connector_keys import ConnectorKeyEvents
from spark_app.table.deleted_keys import DeletedKeys
from spark_app.table.item_keys import ItemKeyEvents
from spark_app.table.key_events import KeyEvents
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tributary.contract.item_stream import DELETED_KEYS_FOLDER
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName


@dataclass(frozen=True)
class LakeTables:
    """Opens the tables that the run works on. `registry` has the schemas of Avro events."""

    spark: SparkSession
    lake_file: WatchedLakeFile
    arguments: Arguments
    source: EventSource
    registry: SchemaRegistry | None

    def of_topic(self, topic: str) -> TableIngest | None:
        """Return the topic's table; None if it is not a table of the lake, or not one to work on.

        A run that follows takes up what the lake file says by now."""
        follows = self.arguments.is_following_ingest
        lake = self.lake_file.current() if follows else self.lake_file.lake
        table = lake.table_of_topic(topic)
        if table is None or not self._is_wanted(lake, table):
            return None
        path, of_source = lake.names.table_path(table), lake.source(table.source)
        has_items = of_source.item_stream is not None
        return TableIngest(
            name=str(table),
            topic=topic,
            source=self.source,
            hudi=HudiTable(
                self.spark, f"{self.arguments.silver}/{path}", path.replace("/", "_"), lake.policy(table)
            ),
            quarantine_path=f"{self.arguments.quarantine}/{path}",
            form=TopicForm(
                SOURCE_LOGS[of_source.engine],
                written=of_source.events,
                registry=self.registry,
                items=of_source.item_rules(table.table),
            ),
            older=None if has_items else older_source(self.spark, self.arguments),
            deleted_path=self._deleted_path(lake, table),
        )

    def key_events(self, table: TableIngest) -> KeyEvents:
        """Return the events of a table as its source writes them."""
        name, lake = TableName.parse(table.name), self.lake_file.lake
        own = item_source_of(self.source, name.source)
        if own is None:
            return ConnectorKeyEvents.of(table)
        rules = lake.source(name.source).item_rules(name.table)
        assert rules is not None, "a stream brings items"
        return ItemKeyEvents(
            name=table.name,
            topic=table.topic,
            nameless=lake.source_names(lake.source(name.source)).topic_prefix,
            table=name.table,
            source=own,
            deleted=DeletedKeys(self.spark, self._deleted_path(lake, name), rules.remembered),
        )

    def catalog_has(self, topic: str) -> bool:
        """Return whether the catalog of the topic's source can have its table."""
        lake = self.lake_file.lake
        table = lake.names.table_of_topic(topic, map(lake.source_names, lake.sources))
        return table is not None and not any(
            source.name == table.source and source.routes_to(table.schema) for source in lake.sources
        )

    def _is_wanted(self, lake: Lake, table: TableName) -> bool:
        is_of_lake = any(
            source.name == table.source
            and (source.matches(table.schema, table.table) or source.routes_to(table.schema))
            for source in lake.sources
        )
        return is_of_lake and (not self.arguments.named or table in self.arguments.named)

    def _deleted_path(self, lake: Lake, table: TableName) -> str:
        return f"{self.arguments.quarantine}/{DELETED_KEYS_FOLDER}/{lake.names.table_path(table)}"
