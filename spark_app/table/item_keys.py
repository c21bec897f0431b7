"""Find and blank the records of items in bronze, by the keys in the records themselves.

Records come in another order than the changes. So a key can only be forgotten once no older record of its
item can come any more: nothing else would keep that record from bringing the row back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from spark_app.columns.app_columns import RECORD_KEY
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import BronzeUpkeep, places_condition
from spark_app.sources.kinesis.source import KinesisSource
from spark_app.table.deleted_keys import RESOLUTION, DeletedKeys
from spark_app.table.key_events import Key, NotErased, Place
from spark_app.wire.items.wanted_keys import WantedKeys
from tributary.contract.remedies import EditLakeFile, Ingest

CONTENT = ("value", "partition_key")
"""The columns of bronze that say what a record is about. The others say where the stream had it."""

_SOURCE_TIME = "_source_ts"
_MOST_NAMED = 5


@dataclass(frozen=True)
class ItemKeyEvents:
    """The records of one table of items (`key_events.KeyEvents`).

    name      of the table in the lake
    topic     of its records
    nameless  the topic of records that do not say their table's name
    table     its name in the database
    source    reads the stream
    deleted   the table's deleted keys, also if the table does not use them any more
    """

    name: str
    topic: str
    nameless: str
    table: str
    source: KinesisSource
    deleted: DeletedKeys

    @property
    def bronze(self) -> BronzeSource:
        return self.source.bronze

    def check(self) -> None:
        """Raises `NotErased` while the table's items are read: the place up to which they were is a key."""
        if self.source.lander.reads_items_of(self.table):
            raise NotErased(
                what="The items of the table are still being read",
                where=self.name,
                expected="a table whose initial load is over",
                remedy=[Ingest(), "Erase again once all items have been read."],
            )

    def find(self, keys: Sequence[Key]) -> FoundItemKeys:
        upkeep = BronzeUpkeep(self.bronze.spark, self.bronze.table)
        wanted = WantedKeys(tuple(keys), self.table)
        found: dict[str, list[Place]] = {}
        arrived: dict[int, datetime] = {}
        for topic in (self.topic, self.nameless):
            rows = upkeep.events(topic).where(F.col("value").isNotNull())
            key = _number(wanted.in_record, "value").alias("key")
            records = rows.select("k_partition", "k_offset", "k_timestamp", key)
            for row in records.where(F.col("key").isNotNull()).collect():
                found.setdefault(topic, []).append((row["k_partition"], row["k_offset"]))
                at = datetime.fromtimestamp((row["k_timestamp"] or 0) / 1000, UTC)
                arrived[row["key"]] = max(at, arrived.get(row["key"], at))
        return FoundItemKeys(self, upkeep, wanted, found, arrived)


@dataclass(frozen=True)
class FoundItemKeys:
    """Where the records of items with some keys are (`key_events.FoundKeys`).

    found    the places of records, by topic
    arrived  when the last record of a key came into the stream, by the key's number
    """

    of: ItemKeyEvents
    upkeep: BronzeUpkeep
    wanted: WantedKeys
    found: Mapping[str, Sequence[Place]]
    arrived: Mapping[int, datetime]

    @property
    def events(self) -> int:
        return sum(map(len, self.found.values()))

    @property
    def places(self) -> Sequence[Place]:
        return self.found.get(self.of.topic, ())

    @property
    def unknown(self) -> tuple[Key, ...]:
        found = self.arrived.keys()
        return tuple(key for key in self.wanted.keys if found.isdisjoint(self.wanted.numbers_of(key)))

    @property
    def linked(self) -> tuple[str, ...]:
        """No other key: the key of an item never changes."""
        return ()

    @property
    def in_stream_until(self) -> datetime:
        arrived = [*self.arrived.values(), *([datetime.now(UTC)] if self.unknown else [])]
        return max(arrived) + self.of.source.lander.retention

    def of_rows(self) -> Column:
        return _number(self.wanted.in_record_key, RECORD_KEY).isNotNull()

    def of_quarantined(self) -> Column:
        return _number(self.wanted.in_record, "value").isNotNull()

    def check(self, rows: DataFrame | None) -> None:
        """Raises `NotErased` if an older record of a key may still come.

        Such a record comes at most `deletes_remembered` after the last one of its item. Bronze says when that
        one came. If bronze no longer has it, the time when the table applied the delete counts."""
        last = {**self._applied(rows), **self.arrived}
        now, remembered = datetime.now(UTC), self.of.deleted.remembered
        early = {number: at for number, at in last.items() if at + remembered > now}
        if not early:
            return
        latest = sorted(early, key=lambda number: early[number], reverse=True)[:_MOST_NAMED]
        named = (f"{_named(self.wanted.keys[n])}, last changed {early[n]:%Y-%m-%d %H:%M} UTC" for n in latest)
        raise NotErased(
            what="An older record of a deleted item may still come, and would bring its row back",
            where=self.of.name,
            found="; ".join(named),
            expected=f"keys without a change for {_written(remembered)} (deletes_remembered)",
            remedy=[
                f"Erase again after {max(early.values()) + remembered:%Y-%m-%d %H:%M} UTC.",
                EditLakeFile("lower deletes_remembered of the source if no record comes that late"),
            ],
        )

    def forget(self) -> None:
        self.of.deleted.erase([each.text for each in self._deleted])
        for topic, places in self.found.items():
            self.upkeep.blank(topic, places_condition(places), CONTENT)
        self.upkeep.expire_all_snapshots_but_one()
        # During the initial load, the place in a snapshot's summary was a key.
        self.upkeep.remove_earlier_metadata()

    def _applied(self, rows: DataFrame | None) -> Mapping[int, datetime]:
        """Return about when the last change of the keys was, as far as the table itself remembers it."""
        found = [(each.number, each.at + RESOLUTION) for each in self._deleted]
        if rows is not None:
            number, at = _number(self.wanted.in_record_key, RECORD_KEY), F.unix_timestamp(_SOURCE_TIME)
            timed = rows.where(F.col(_SOURCE_TIME).isNotNull()).select(number, at).collect()
            found += [(row[0], datetime.fromtimestamp(row[1], UTC)) for row in timed]
        # Of several times of a key, the last one is the latest.
        return dict(sorted(found, key=lambda each: each[1]))

    @cached_property
    def _deleted(self) -> Sequence[_DeletedKey]:
        latest = self.of.deleted.latest()
        if latest is None:
            return ()
        number = _number(self.wanted.in_record_key, "key").alias("number")
        keys = latest.select("key", number, F.unix_timestamp("deleted_at").alias("at"))
        return [
            _DeletedKey(row["key"], row["number"], datetime.fromtimestamp(row["at"], UTC))
            for row in keys.where(F.col("number").isNotNull()).collect()
        ]


@dataclass(frozen=True)
class _DeletedKey:
    """A key that `DeletedKeys` has, the number of the wanted key, and when it was deleted."""

    text: str
    number: int
    at: datetime


def _number(find: Callable[[Any], int | None], column: str) -> Column:
    """Return the number of the wanted key that is found in a column. It is looked for once in each row."""
    return F.udf(find, IntegerType()).asNondeterministic()(column)


def _written(duration: timedelta) -> str:
    """Return a duration as the lake file writes it."""
    minutes = int(duration.total_seconds() // 60)
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"


def _named(key: Key) -> str:
    return ", ".join(f"{name}={value}" for name, value in key.items())
