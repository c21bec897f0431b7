"""Brings a stream's records into bronze, round by round: all shards at once, children after their parents."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from spark_app.sources.kinesis.item_tables import ItemReader, ReadsTables, is_of_items, shard_of_items
from spark_app.sources.kinesis.landing import Landed
from spark_app.sources.kinesis.places import (
    Shard,
    ShardPlace,
    StreamPlaces,
    may_have_lost,
    readable,
    vanished,
)
from spark_app.sources.kinesis.shard_reader import Fetched, ReadsShards, ShardReader
from spark_app.sources.kinesis.stream import StreamFacts
from tributary.contract.errors import TributaryError

AT_ONCE = 8
"""As many shards are asked at the same time."""

MOST_BYTES = 64 << 20
"""After this many bytes, a round lands what it has. It can exceed this by an answer of each shard, 10 MB."""

SECONDS_BETWEEN_LISTS = 10.0
SECONDS_WITHOUT_COMMIT = 600.0
"""After this time, places are committed without records. So after a pause, the app knows until when it has
read the stream, even if nothing came."""


class RecordsLost(TributaryError):
    """The stream has deleted records before they were read, or may have."""


class ReadsStream(ReadsShards, Protocol):
    """The requests of `stream.Stream`."""

    def facts(self) -> StreamFacts: ...

    def shards(self) -> tuple[Shard, ...]: ...


class LandsRecords(Protocol):
    """The part of `landing.Landing` that lands records."""

    def read_places(self) -> StreamPlaces: ...

    def land(self, places: StreamPlaces, landed: Iterable[Landed]) -> StreamPlaces: ...


@dataclass
class Lander:
    """Reads the stream `name` on from where bronze has it. Only one thread may use it.

    tables       the tables whose items are read once, besides their changes; None: no items are read
    allows_gaps  continue after records that the stream has deleted before they were read, and read all items
                 again
    """

    name: str
    stream: ReadsStream
    landing: LandsRecords
    tables: ReadsTables | None = None
    allows_gaps: bool = False
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    _places: StreamPlaces | None = field(default=None, init=False)
    _known: StreamPlaces = field(default_factory=StreamPlaces, init=False)
    _listed: tuple[Shard, ...] = field(default=(), init=False)
    _facts: StreamFacts | None = field(default=None, init=False)
    _readers: dict[str, ShardReader | ItemReader] = field(default_factory=dict, init=False)
    _list_at: float = field(default=0.0, init=False)
    _committed_at: float = field(default=0.0, init=False)
    _turn: int = field(default=0, init=False)
    _reads_items_again: bool = field(default=False, init=False)
    _has_new_places: bool = field(default=False, init=False)

    @property
    def places(self) -> StreamPlaces:
        """How far the stream was read, as bronze has it. After an error, as bronze had it before."""
        return self._known if self._places is None else self._places

    @property
    def is_at_end(self) -> bool:
        """Return whether everything was read that the stream had when its shards were last listed."""
        current = self._current()
        left = [place for place in current.shards if not place.is_over]
        # A child that waits for its parents has records that nobody has asked for yet.
        is_none_waiting = len(left) == len(readable(current, self._listed))
        are_at_end = all(
            place.shard in self._readers and self._readers[place.shard].is_at_end for place in left
        )
        return self.clock() < self._list_at and is_none_waiting and are_at_end

    @property
    def retention(self) -> timedelta:
        """How long the stream keeps its records, as it said last."""
        assert self._facts is not None, "the stream is described before it is read"
        return timedelta(milliseconds=self._facts.retention_ms)

    def reads_items_of(self, table: str) -> bool:
        """Return whether the items of a table have been read in part only."""
        place = self._current().place(shard_of_items(table).id)
        return place is not None and not place.is_over

    @property
    def refused(self) -> tuple[str, ...]:
        """Return the shards, and tables of items, whose last request was refused: there were too many."""
        return tuple(sorted(name for name, reader in self._readers.items() if reader.is_refused))

    def step(self) -> bool:
        """Read all shards once, and land what came. Return whether a record landed.

        Raises `RecordsLost`, `StreamUnreadable` and OSErrors that pass. After an error, the next step reads
        on from where bronze has the stream."""
        try:
            return self._step()
        except BaseException:
            self._places, self._list_at = None, 0.0
            self._readers.clear()
            raise

    def _step(self) -> bool:
        if self._places is None:
            self._places = self._known = self.landing.read_places()
            self._committed_at = self.clock()
        if self.clock() >= self._list_at:
            self._list()
        fetched = self._fetch(readable(self._current(), self._listed))
        for each in fetched:
            self._check_gap(each)
        landed = [Landed(each.place, each.records) for each in fetched if each.records]
        if landed or self._is_commit_due(fetched):
            # The places of the other shards are committed, too: a closed shard can end without a record.
            self._places = self._known = self.landing.land(self._current(), landed)
            self._committed_at, self._has_new_places = self.clock(), False
        if self._reads_items_again or any(each.place.is_over for each in fetched):
            self._list_at = self.clock()
        return bool(landed)

    def _current(self) -> StreamPlaces:
        """Return the places, as far as they were read. Bronze has all of it that has records."""
        return self.places.with_places(reader.place for reader in self._readers.values())

    def _list(self) -> None:
        facts, listed = self.stream.facts(), self.stream.shards()
        places = self.places
        if places.created not in (None, facts.created):
            self._lost(
                f"a stream that was created at {facts.created}", f"the one created at {places.created}"
            )
            places = replace(places, shards=())
        elif gone := [place for place in vanished(places, listed) if not is_of_items(place.shard)]:
            self._lost(
                f"no shard {', '.join(place.shard for place in gone)}",
                "the shards that were not read to their end yet",
            )
            places = places.with_places(replace(place, is_over=True) for place in gone)
        if self._reads_items_again:
            self._forget_items()
            kept = tuple(place for place in places.shards if not is_of_items(place.shard))
            places, self._reads_items_again = replace(places, shards=kept), False
        items = () if self.tables is None else tuple(map(shard_of_items, self.tables.names()))
        places = self._without_unlisted_items(places, items)
        self._facts, self._listed = facts, (*listed, *items)
        self._places = replace(places, created=facts.created).with_shards(self._listed)
        self._list_at = self.clock() + SECONDS_BETWEEN_LISTS

    def _fetch(self, places: Sequence[ShardPlace]) -> list[Fetched]:
        """Ask the shards, each round beginning with another one, until there is enough to land."""
        for place in places:
            if place.shard not in self._readers:
                self._readers[place.shard] = self._reader(place)
        due = [self._readers[place.shard] for place in places if self._readers[place.shard].is_due]
        first = self._turn % len(due) if due else 0
        self._turn += 1
        ordered, found, size = [*due[first:], *due[:first]], [], 0
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="shard") as threads:
            for begin in range(0, len(ordered), AT_ONCE):
                answers = list(threads.map(_fetched, ordered[begin : begin + AT_ONCE]))
                found += [answer for answer in answers if answer is not None]
                size = sum(len(record.data) for answer in found for record in answer.records)
                if size >= MOST_BYTES:
                    break
        return found

    def _reader(self, place: ShardPlace) -> ShardReader | ItemReader:
        if self.tables is not None and is_of_items(place.shard):
            return ItemReader(self.tables, place, self.clock)
        return ShardReader(self.stream, place, self.clock, self.now)

    def _without_unlisted_items(self, places: StreamPlaces, items: Collection[Shard]) -> StreamPlaces:
        """Forget how far items were read that are not to be read any more: they would never come to an end.

        Such a place names a key. So it is not kept in bronze either."""
        names = {shard.id for shard in items}
        gone = [s for s in places.shards if is_of_items(s.shard) and not s.is_over and s.shard not in names]
        if not gone:
            return places
        self._has_new_places = True
        for place in gone:
            self._readers.pop(place.shard, None)
        return replace(places, shards=tuple(place for place in places.shards if place not in gone))

    def _forget_items(self) -> None:
        for shard in [shard for shard in self._readers if is_of_items(shard)]:
            del self._readers[shard]

    def _check_gap(self, fetched: Fetched) -> None:
        before = self.places.place(fetched.place.shard)
        assert self._facts is not None, "a shard is read after the stream was described"
        if fetched.has_gap and before and may_have_lost(before, self.now(), self._facts.retention_ms):
            hours = self._facts.retention_ms // 3_600_000
            self._lost(
                f"no record {before.sequence} in {before.shard} any more; the stream keeps {hours} hours",
                "the record that was read last, or a shorter pause",
            )

    def _lost(self, found: str, expected: str) -> None:
        if self.allows_gaps:
            self._reads_items_again = True
            return
        raise RecordsLost(
            what="The stream has deleted records that were not read yet, or may have",
            where=f"Kinesis stream {self.name}",
            found=found,
            expected=expected,
            remedy=[
                "Continue without these records: start the ingest once with --allow-gaps.",
                "All items are read again then. Rows of items that were deleted meanwhile stay (reconcile).",
                "Let the stream keep its records for longer (RetentionPeriodHours).",
            ],
        )

    def _is_commit_due(self, fetched: Sequence[Fetched]) -> bool:
        is_new_end = any(each.place.is_over for each in fetched)
        return (
            is_new_end or self._has_new_places or self.clock() - self._committed_at >= SECONDS_WITHOUT_COMMIT
        )


def _fetched(reader: ShardReader | ItemReader) -> Fetched | None:
    return reader.fetch()
