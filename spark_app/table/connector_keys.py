"""Find and blank the events of keys that a connector wrote to Kafka, each with its key as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import (
    BronzeUpkeep,
    has_key,
    key_condition,
    text_of_event_key,
    text_of_key,
)
from spark_app.table.key_events import Key, NotErased, Place
from spark_app.table.table_ingest import TableIngest


@dataclass(frozen=True)
class ConnectorKeyEvents:
    """The events of a topic of Kafka in `bronze` (`key_events.KeyEvents`)."""

    bronze: BronzeSource
    topic: str

    @classmethod
    def of(cls, table: TableIngest) -> ConnectorKeyEvents:
        """Return the events of a table that reads bronze, at least for its older events.

        Raises `NotErased`."""
        source = table.parts.reader.older or table.source
        if not isinstance(source, BronzeSource):
            raise NotErased(what="A key can only be erased from bronze", where=table.name)
        if table.form.registry is not None:
            raise NotErased(
                what="A key cannot be erased from events in Avro yet",
                where=table.name,
                expected="a source whose events are JSON",
                remedy="Remove the events with the whole table, or with [bronze] retention.",
            )
        return cls(source, table.topic)

    def check(self) -> None:
        """Do nothing: the offsets that the sink keeps hold no key."""

    def find(self, keys: Sequence[Key]) -> FoundConnectorKeys:
        upkeep = BronzeUpkeep(self.bronze.spark, self.bronze.table)
        events = upkeep.events(self.topic).where(has_key(keys))
        text = F.expr(text_of_event_key(tuple(keys[0]))).alias("text")
        rows = events.select("k_partition", "k_offset", text).collect()
        return FoundConnectorKeys(
            upkeep,
            self.topic,
            tuple(keys),
            places=tuple((row["k_partition"], row["k_offset"]) for row in rows),
            texts=frozenset(row["text"] for row in rows),
        )


@dataclass(frozen=True)
class FoundConnectorKeys:
    """Where the events of keys are (`key_events.FoundKeys`). `texts` are the keys with an event."""

    in_stream_until: ClassVar[datetime | None] = None

    upkeep: BronzeUpkeep
    topic: str
    keys: tuple[Key, ...]
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
        events = self.upkeep.events(self.topic).where(has_key(self.keys))
        found = set()
        for name in (name for name in ("moved_to", "moved_from") if name in events.columns):
            text = F.expr(f"decode({name}, 'UTF-8')")
            other = F.coalesce(F.get_json_object(text, "$.payload"), text)
            is_same = F.coalesce(F.expr(key_condition(self.keys, name)), F.lit(False))
            others = events.where(F.col(name).isNotNull() & ~is_same)
            found |= {row[0] for row in others.select(other).distinct().collect()}
        return tuple(sorted(found))

    def of_rows(self) -> Column:
        parts = [
            part
            for value in (F.col(name).cast("string") for name in self.keys[0])
            for part in (F.char_length(value), F.lit(":"), value)
        ]
        return F.concat(*parts).isin([text_of_key(key) for key in self.keys])

    def of_quarantined(self) -> Column:
        return F.coalesce(has_key(self.keys), F.lit(False))

    def check(self, rows: DataFrame | None) -> None:
        """Do nothing: Kafka keeps the order of a key's events, and the table has applied all of them."""

    def forget(self) -> None:
        if self.places:
            self.upkeep.blank(self.topic, key_condition(self.keys))
        self.upkeep.expire_all_snapshots_but_one()
