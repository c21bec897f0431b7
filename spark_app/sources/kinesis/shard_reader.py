"""Reads one shard, answer by answer, at the pace that Kinesis allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from spark_app.sources.kinesis.places import ShardPlace, is_after
from spark_app.sources.kinesis.stream import Answer, IteratorExpired, Record, Throttled

SECONDS_BETWEEN_READS = 0.25
"""Kinesis answers five requests a second and shard, for all who read it."""

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 10.0


class ReadsShards(Protocol):
    """The requests of `stream.Stream` that read a shard."""

    def iterator(self, shard: str, sequence: str | None, *, includes_it: bool = False) -> str: ...

    def read(self, iterator: str) -> Answer: ...


@dataclass(frozen=True)
class Fetched:
    """What came of one request: the records, and the shard's place after them.

    is_at_end  no record was left when Kinesis answered
    has_gap    records that come before these may be missing: the last one that was read is not held any more
    """

    place: ShardPlace
    records: tuple[Record, ...]
    is_at_end: bool
    has_gap: bool = False


@dataclass
class ShardReader:
    """Reads the shard on from `place`, the place that bronze has.

    clock  returns seconds that only grow
    now    returns milliseconds since 1970
    """

    stream: ReadsShards
    place: ShardPlace
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    is_at_end: bool = field(default=False, init=False)
    _iterator: str | None = field(default=None, init=False)
    _is_checked: bool = field(default=False, init=False)
    _not_before: float = field(default=0.0, init=False)
    _refusals: int = field(default=0, init=False)

    @property
    def is_refused(self) -> bool:
        """Return whether Kinesis has refused the last request."""
        return self._refusals > 0

    @property
    def is_due(self) -> bool:
        return self.clock() >= self._not_before

    def fetch(self) -> Fetched | None:
        """Return what one request brings; None if Kinesis refused it, so that it has to be asked later."""
        try:
            answer = self._ask()
        except (Throttled, IteratorExpired) as error:
            self._iterator = None
            # An expired iterator needs a new one, and no wait.
            self._wait(is_refused=isinstance(error, Throttled))
            return None
        self._refusals = 0
        self._wait(is_refused=False)
        last = self.place.sequence
        new = tuple(each for each in answer.records if last is None or is_after(each.sequence, last))
        self.is_at_end = answer.iterator is None or not answer.behind_ms
        # An answer can be empty, although more records follow.
        is_first = not self._is_checked and (bool(answer.records) or self.is_at_end)
        has_gap = is_first and last is not None and not any(each.sequence == last for each in answer.records)
        self._is_checked = self._is_checked or is_first
        self._iterator = answer.iterator
        self.place = replace(
            self.place,
            sequence=new[-1].sequence if new else last,
            is_over=answer.iterator is None,
            until_ms=self.now() - answer.behind_ms,
        )
        return Fetched(self.place, new, self.is_at_end, has_gap)

    def _ask(self) -> Answer:
        if self._iterator is None:
            # The first time, the last record that was read comes again, if no record was lost meanwhile.
            self._iterator = self.stream.iterator(
                self.place.shard, self.place.sequence, includes_it=not self._is_checked
            )
        return self.stream.read(self._iterator)

    def _wait(self, *, is_refused: bool) -> None:
        seconds = SECONDS_BETWEEN_READS
        if is_refused:
            seconds = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2**self._refusals)
            self._refusals += 1
        self._not_before = self.clock() + seconds
