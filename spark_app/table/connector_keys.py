"""Find and blank the events of keys that a connector wrote to Kafka, each with its key as JSON or Avro."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.schema_registry.framing import SchemaId
from spark_app.schema_registry.registry import SchemaRegistry, SchemaUnknown
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import (
    BronzeUpkeep,
    key_condition,
    places_condition,
    text_of_document,
    text_of_key,
)
from spark_app.table.key_events import Key, NotErased, Place
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.avro_record import avro_reading
from spark_app.wire.avro_schema import UnreadableAvro, read_avro_schema
from spark_app.wire.registry_avro import record_json, schema_id
from spark_app.wire.schema_version import AvroReading

_KEY = "key_as_json"


@dataclass(frozen=True)
class ConnectorKeyEvents:
    """The events of a topic of Kafka in `bronze` (`key_events.KeyEvents`). `registry` has schemas of keys."""

    bronze: BronzeSource
    topic: str
    registry: SchemaRegistry | None = None

    @classmethod
    def of(cls, table: TableIngest) -> ConnectorKeyEvents:
        """Return the events of a table that reads bronze, at least for its older events.

        Raises `NotErased`."""
        source = table.parts.reader.older or table.source
        if not isinstance(source, BronzeSource):
            raise NotErased(what="A key can only be erased from bronze", where=table.name)
        return cls(source, table.topic, table.form.registry)

    def check(self) -> None:
        """Do nothing: the offsets that the sink keeps hold no key."""

    def find(self, keys: Sequence[Key]) -> FoundConnectorKeys:
        """Raises `NotErased` if a key cannot be read, and what the registry raises."""
        upkeep = BronzeUpkeep(self.bronze.spark, self.bronze.table)
        documents = KeyDocuments(self._readings(upkeep.events(self.topic)))
        events = _events_of(keys, upkeep.events(self.topic), documents)
        rows = events.select("k_partition", "k_offset", "text").collect()
        return FoundConnectorKeys(
            upkeep,
            self.topic,
            tuple(keys),
            documents,
            places=tuple((row["k_partition"], row["k_offset"]) for row in rows),
            texts=frozenset(row["text"] for row in rows),
        )

    def _readings(self, events: DataFrame) -> Mapping[str, AvroReading]:
        """Return how to read the keys in Avro, by the ids of their schemas."""
        if self.registry is None:
            return {}
        ids = events.select(schema_id(F.col("key")).alias("id")).where("id IS NOT NULL").distinct().collect()
        try:
            return {
                row["id"]: avro_reading(read_avro_schema(self.registry.schema(SchemaId.parse(row["id"]))))
                for row in ids
            }
        except SchemaUnknown as error:
            raise NotErased(
                what="The keys of some events cannot be read, because the registry lacks their schema",
                where=f"topic {self.topic}",
                found=str(error),
                remedy="Put the schema back into the registry with the same id, and erase again.",
            ) from error
        except UnreadableAvro as error:
            raise NotErased(
                what="The keys of some events cannot be read",
                where=f"topic {self.topic}",
                found=str(error),
            ) from error


@dataclass(frozen=True)
class KeyDocuments:
    """Reads keys as JSON. `readings` are those of keys in Avro, by the ids of their schemas."""

    readings: Mapping[str, AvroReading]

    def of(self, key: Column) -> Column:
        """Return the JSON of a key's bytes."""
        from_avro = [record_json(key, text, reading) for text, reading in self.readings.items()]
        return F.coalesce(*from_avro, F.decode(key, "UTF-8"))


def _events_of(keys: Sequence[Key], events: DataFrame, documents: KeyDocuments) -> DataFrame:
    """Return the events with one of the keys, whose `text_of_key` is in the added column `text`."""
    read = events.select("*", documents.of(F.col("key")).alias(_KEY))
    told = read.select("*", F.expr(text_of_document(tuple(keys[0]), _KEY)).alias("text"))
    return told.where(F.col("text").isin([text_of_key(key) for key in keys]))


@dataclass(frozen=True)
class FoundConnectorKeys:
    """Where the events of keys are (`key_events.FoundKeys`). `texts` are the keys with an event."""

    in_stream_until: ClassVar[datetime | None] = None

    upkeep: BronzeUpkeep
    topic: str
    keys: tuple[Key, ...]
    documents: KeyDocuments
    places: tuple[Place, ...]
    texts: frozenset[str]

    @property
    def events(self) -> int:
        return len(self.places)

    @property
    def unknown(self) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if text_of_key(key) not in self.texts)

    @cached_property
    def linked(self) -> tuple[str, ...]:
        if not self.places:
            return ()
        events = _events_of(self.keys, self.upkeep.events(self.topic), self.documents)
        found = set()
        for name in (name for name in ("moved_to", "moved_from") if name in events.columns):
            text = F.expr(f"decode({name}, 'UTF-8')")
            other = F.coalesce(F.get_json_object(text, "$.payload"), text)
            is_same = F.coalesce(F.expr(key_condition(self.keys, name)), F.lit(False))
            others = events.where(F.col(name).isNotNull() & ~is_same)
            found |= {row[0] for row in others.select(other).distinct().collect()}
        return tuple(sorted(found))

    def of_rows(self) -> Column:
        return self._are_keys(F.col(name).cast("string") for name in self.keys[0])

    def of_quarantined(self) -> Column:
        document = self.documents.of(F.col("key"))
        values = (
            F.coalesce(*[F.get_json_object(document, f"$.{place}{name}") for place in ("payload.", "")])
            for name in self.keys[0]
        )
        return F.coalesce(self._are_keys(values), F.lit(False))

    def _are_keys(self, values: Iterable[Column]) -> Column:
        """Return whether these values of a key's columns are one of the keys (`text_of_key`)."""
        parts = [part for value in values for part in (F.char_length(value), F.lit(":"), value)]
        return F.concat(*parts).isin([text_of_key(key) for key in self.keys])

    def check(self, rows: DataFrame | None) -> None:
        """Do nothing: Kafka keeps the order of a key's events, and the table has applied all of them."""

    def forget(self) -> None:
        if self.places:
            # The statement can search JSON by itself. There may be very many places.
            is_json = not self.documents.readings
            self.upkeep.blank(
                self.topic, key_condition(self.keys) if is_json else places_condition(self.places)
            )
        self.upkeep.expire_all_snapshots_but_one()
