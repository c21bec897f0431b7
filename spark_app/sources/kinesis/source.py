"""A stream of items as a source of events: its records land in bronze, from which tables read them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame

from spark_app.sources.bronze import BronzeSource
from spark_app.sources.event import OffsetRange, TopicExtent
from spark_app.sources.kinesis.lander import Lander
from spark_app.sources.kinesis.places import StreamPlaces
from spark_app.sources.kinesis.recently_landed import RecentlyLanded
from spark_app.sources.kinesis.shard_reader import LONGEST_WAIT_SECONDS
from spark_app.sources.passing_failures import PASSING_FAILURES
from tributary.contract.errors import TributaryError

POLL_SECONDS = 0.5
SECONDS_BETWEEN_COMMITS = 2.0
RETRY_SECONDS = 5.0
PATIENCE_SECONDS = 120.0
"""How long a run that does not follow lets the stream refuse or fail before it gives up."""

SECONDS_BETWEEN_WARNINGS = 60.0
"""How often the app says that Kinesis refuses requests."""


@dataclass
class KinesisSource:
    """The topics whose records come from one stream.

    bronze   reads the records that have landed
    recent   has the last ones of them, which need not be read
    follows  land records all the time. If not, land once what the stream has.
    """

    keeps_headers: ClassVar[bool] = True

    lander: Lander
    bronze: BronzeSource
    recent: RecentlyLanded
    follows: bool
    clock: Callable[[], float] = time.monotonic
    _places: StreamPlaces = field(default_factory=StreamPlaces, init=False)
    _problem: TributaryError | None = field(default=None, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)
    _is_read: bool = field(default=False, init=False)
    _has_landed: bool = field(default=False, init=False)
    _silent_until: float = field(default=float("-inf"), init=False)

    def topics(self) -> frozenset[str]:
        """Return the topics with records. The first call lands what the stream has, or begins to.

        If no topic is known yet, raises `RecordsLost` and `StreamUnreadable`. Otherwise the tables report
        them."""
        if not self._is_read:
            self._begin()
            self._is_read = True
        if self._thread is not None and not (self._thread.is_alive() or self._stopped.is_set()):
            raise RuntimeError(f"nothing reads {self.lander.name} any more: see the error above")
        if self._problem is not None and not self._places.offsets:
            raise self._problem
        return frozenset(self._places.offsets)

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        """Return what has landed. No request and no Spark job."""
        offsets, problem = self._places.offsets, self._problem
        return {
            topic: TopicExtent(dict.fromkeys(end, 0), end, problem=problem)
            for topic in topics
            for end in [offsets.get(topic, {})]
        }

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        recent = self.recent.read(self.bronze.spark, topic, ranges)
        return self.bronze.read(topic, ranges) if recent is None else recent

    def close(self) -> None:
        """Stop landing. What was read and has not landed is read again at the next start."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _begin(self) -> None:
        if not self.follows:
            self._land_all()
            return
        # The first step shows at once what landed before, or why nothing can.
        self._step()
        self._thread = threading.Thread(target=self._keep_landing, name="lander", daemon=True)
        self._thread.start()

    def _land_all(self) -> None:
        heard = self.clock()
        while not (self._stopped.is_set() or self._problem):
            is_well = self._step()
            if is_well and (self._has_landed or not self.lander.refused):
                heard = self.clock()
            if is_well and self.lander.is_at_end:
                return
            if self.clock() - heard >= PATIENCE_SECONDS:
                raise OSError("the stream did not answer for two minutes: see the messages above")
            pause = 0.0 if self._has_landed else POLL_SECONDS
            self._stopped.wait(pause if is_well else RETRY_SECONDS)

    def _keep_landing(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            if not self._step():
                self._stopped.wait(RETRY_SECONDS)
            elif not self._has_landed:
                self._stopped.wait(POLL_SECONDS)
            elif self.lander.is_at_end:
                # Each commit leaves a file for each shard. With a backlog, the files are large.
                self._stopped.wait(max(0.0, began + SECONDS_BETWEEN_COMMITS - time.monotonic()))

    def _step(self) -> bool:
        """Land one round. Return False if that failed, and say why on standard error."""
        try:
            self._has_landed = self.lander.step()
            self._problem = None
            self._tell_what_is_refused()
        except TributaryError as error:
            self._problem = error
            print(error, file=sys.stderr)
            return False
        except PASSING_FAILURES as error:
            print(f"Records of {self.lander.name} do not land: {error}", file=sys.stderr)
            return False
        finally:
            self._places = self.lander.places
        return True

    def _tell_what_is_refused(self) -> None:
        refused = self.lander.refused
        if refused and self.clock() >= self._silent_until:
            self._silent_until = self.clock() + SECONDS_BETWEEN_WARNINGS
            print(
                f"{self.lander.name} refuses requests for {', '.join(refused)}, because they are too many. "
                f"The app asks again, {LONGEST_WAIT_SECONDS:.0f} seconds later at most. No record is lost.",
                file=sys.stderr,
            )
