"""Open the derived tables of a lake file, and run over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_app.catalog.sync import CatalogSync
from spark_app.columns.table_columns import APP_COLUMNS, TableColumns
from spark_app.derive.derived_table import DerivedTable
from spark_app.derive.from_events import CHECKPOINTS, FromEvents
from spark_app.derive.from_tables import FromTables
from spark_app.derive.input_tables import InputTables
from spark_app.derive.outputs import Kafka, Outputs
from spark_app.derive.result_rows import OWN
from spark_app.derive.run import Advanced, DeriveRun
from spark_app.derive.topics import read_stream
from spark_app.hudi.hudi_table import HudiTable
from spark_app.reports import ProgressWriter
from spark_app.run.lake_file import WatchedLakeFile
from spark_app.run.outcome_files import OutcomeFiles
from spark_app.run.stop_request import StopRequest
from spark_app.schema_registry.registry import SchemaStore
from spark_app.sources.kafka import KafkaSource
from tributary.contract.derivations import (
    Derivation,
    Derivations,
    LakeInput,
    QueryNotUsable,
    StreamDerivation,
    TableDerivation,
    read_derivations,
)
from tributary.contract.derived import Topic, derived_table
from tributary.contract.lake import Lake
from tributary.contract.remedies import EditLakeFile


@dataclass(frozen=True)
class Places:
    """Addresses of a run. `kafka` is None without Kafka, and `schemas` without a registry."""

    silver: str
    quarantine: str
    kafka: Kafka | None
    schemas: SchemaStore | None


@dataclass(frozen=True)
class _Offered:
    """A derived table as the catalog wants it."""

    name: str
    hudi: HudiTable
    columns: TableColumns | None
    partitions_written: frozenset[str] = frozenset()


def derive(
    spark: SparkSession,
    lake_file: WatchedLakeFile,
    names: Set[str],
    places: Places,
    progress: ProgressWriter,
    catalog: CatalogSync | None,
    *,
    follow: bool,
    stop: StopRequest,
) -> bool:
    """Bring the named derived tables, or all, up to date. Return whether none has an error at the end."""
    opening = _Opening(spark, places, progress, stop)
    keys: dict[str, tuple[str, ...]] = {}

    def read() -> Derivations:
        lake = lake_file.current() if follow else lake_file.lake
        opening.lake = lake
        found = _wanted(read_derivations(lake, lake_file.path.parent), names)
        keys.update({one.name: one.key for one in found.ordered})
        return found

    def offer(table: DerivedTable, may_have_changed: bool) -> None:  # noqa: FBT001 - a callback
        if catalog is None:
            return
        if may_have_changed:
            catalog.offer(_offered(table, keys[table.name.table]))
        catalog.step()

    run = DeriveRun(
        read=read,
        open=opening.open,
        offer=offer,
        progress=progress,
        outcomes=OutcomeFiles(spark),
        quarantine_of=opening.quarantine_of,
        follow=follow,
        is_stopped=stop.is_set,
    )
    try:
        is_well = run.run()
    finally:
        opening.close()
    return is_well and (catalog is None or not catalog.finish())


class _Opening:
    """Opens derived tables. All share what is known of the inputs, and one client of Kafka."""

    lake: Lake

    def __init__(
        self, spark: SparkSession, places: Places, progress: ProgressWriter, stop: StopRequest
    ) -> None:
        self._spark, self._places, self._progress, self._stop = spark, places, progress, stop
        self._source: KafkaSource | None = None

    def open(self, derivation: Derivation) -> Advanced:
        """Return the table of a derivation. Raises QueryNotUsable."""
        name = derived_table(derivation.name)
        inputs = InputTables(self._spark, self.lake, self._places.silver)
        kafka = self._places.kafka
        needs_kafka = not isinstance(derivation, TableDerivation) or derivation.entry.topic is not None
        if kafka is None and needs_kafka:
            raise QueryNotUsable("the lake has no Kafka", where=f"[derived.{derivation.name}]")
        if inputs.has(LakeInput((derivation.name,))):
            raise QueryNotUsable(
                "a table of a source has the same name, so queries could not tell them apart",
                where=f"[derived.{derivation.name}]",
                remedy=EditLakeFile("give the derived table another name"),
            )
        if kafka is not None and derivation.entry.topic is not None:
            self._kafka_source(kafka).create(derivation.entry.topic)
        table = DerivedTable(name, inputs.hudi(name), self.quarantine_of(derivation.name))
        outputs = Outputs(str(name), derivation.entry, kafka, self._progress, self._places.schemas)
        if isinstance(derivation, TableDerivation):
            return FromTables(self._spark, derivation, table, inputs, outputs)
        assert kafka is not None, "the topics are in Kafka"
        return FromEvents(
            spark=self._spark,
            derivation=derivation,
            table=table,
            inputs=inputs,
            outputs=outputs,
            topics=self._kafka_topics(derivation),
            stream=partial(self._stream, dict(self.lake.topics), kafka),
            ends=self._ends(kafka),
            checkpoints=f"{self._places.quarantine}/{CHECKPOINTS}",
            progress=self._progress,
            is_stopped=self._stop.is_set,
        )

    def _kafka_topics(self, derivation: StreamDerivation) -> Mapping[str, str]:
        topics = dict(self.lake.topics)
        return {name: topics[name].topic or name for name in derivation.topics}

    def _stream(self, topics: Mapping[str, Topic], kafka: Kafka, name: str) -> DataFrame:
        return read_stream(
            self._spark, name, topics[name], kafka.spark_options, self.lake.names.spark_group_prefix
        )

    def quarantine_of(self, name: str) -> str:
        return f"{self._places.quarantine}/{self.lake.names.table_path(derived_table(name))}"

    def close(self) -> None:
        if self._source is not None:
            self._source.close()

    def _kafka_source(self, kafka: Kafka) -> KafkaSource:
        if self._source is None:
            prefix = self.lake.names.spark_group_prefix
            self._source = KafkaSource(self._spark, kafka.bootstrap_servers, prefix, kafka.options)
        return self._source

    def _ends(self, kafka: Kafka) -> Callable[[frozenset[str]], Mapping[str, Mapping[int, int]]]:
        source = self._kafka_source(kafka)

        def ends(topics: frozenset[str]) -> Mapping[str, Mapping[int, int]]:
            known = topics & source.topics()
            return {topic: extent.end for topic, extent in source.extents(known).items()}

        return ends


def _wanted(found: Derivations, names: Set[str]) -> Derivations:
    """Return the named derived tables, or all."""
    if not names:
        return found
    return Derivations(
        tuple(one for one in found.ordered if one.name in names),
        {name: error for name, error in found.errors.items() if name in names},
    )


def _offered(table: DerivedTable, key: tuple[str, ...]) -> _Offered:
    columns = table.columns()
    if columns is None:
        return _Offered(str(table.name), table.hudi, None)
    own = StructType([field for field in APP_COLUMNS.fields if field.name in OWN])
    return _Offered(str(table.name), table.hudi, TableColumns(columns.types, key, own))
