"""The events of keys in bronze, as an erasure needs them. Each form of events finds and blanks its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pyspark.sql import Column, DataFrame

from spark_app.sources.bronze import BronzeSource
from tributary.contract.errors import TributaryError

Key = Mapping[str, str]
"""A text for each column of a table's key."""

Place = tuple[int, int]
"""A partition and an offset of the table's topic."""


class NotErased(TributaryError):
    """The keys cannot be forgotten now. Nothing was changed."""


class FoundKeys(Protocol):
    """Where the events of some keys are.

    events    how many events of the keys there are, without blank ones
    places    of these events in the table's topic
    unknown   the keys without an event
    linked    other keys that rows of these keys had before or got later, as JSON
    in_stream_until  when the stream that brought the events has deleted the last one; None: no stream did
    """

    @property
    def events(self) -> int: ...

    @property
    def places(self) -> Sequence[Place]: ...

    @property
    def unknown(self) -> tuple[Key, ...]: ...

    @property
    def linked(self) -> tuple[str, ...]: ...

    @property
    def in_stream_until(self) -> datetime | None: ...

    def of_rows(self) -> Column:
        """Return whether a row of the table, in the form in which it is written, has one of the keys."""

    def of_quarantined(self) -> Column:
        """Return whether an event in quarantine has one of the keys; not null."""

    def check(self, rows: DataFrame | None) -> None:
        """Raise `NotErased` if an event can still come that brings one of the keys back.

        `rows` are the keys' rows in the table."""

    def forget(self) -> None:
        """Blank the events, and remove all earlier states of bronze, also without events: an interrupted
        erasure may have left those."""


class KeyEvents(Protocol):
    """The events of one table in bronze. `bronze` reads them."""

    @property
    def bronze(self) -> BronzeSource: ...

    def check(self) -> None:
        """Raise `NotErased` if what brings the events into bronze may still hold a key."""

    def find(self, keys: Sequence[Key]) -> FoundKeys:
        """Look for keys that all have the columns of the table's key. Reads all events of the topic."""
