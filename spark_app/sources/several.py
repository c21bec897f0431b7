"""Several sources as one: each topic belongs to one of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from pyspark.sql import DataFrame

from spark_app.sources.event import Dated, EventSource, OffsetRange, TopicExtent
from spark_app.sources.passing_failures import PASSING_FAILURES
from tributary.contract.errors import TributaryError

SECONDS_BETWEEN_WARNINGS = 60.0
"""How often a run says that a source still cannot be read."""


@runtime_checkable
class InBackground(Protocol):
    """A source that works until it is closed."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class SeveralSources:
    """The topics of several sources.

    sources   by name
    owner_of  returns the name of the source that has a topic
    follows   the run continues although one source or more cannot say which topics they have
    """

    keeps_headers: ClassVar[bool] = True

    sources: Mapping[str, EventSource]
    owner_of: Callable[[str], str]
    follows: bool = False
    clock: Callable[[], float] = time.monotonic
    _told: dict[str, tuple[str, float]] = field(default_factory=dict, init=False)

    def topics(self) -> frozenset[str]:
        """Return the topics of all sources.

        A run that follows leaves out those of a source that does not answer, and says so on standard error.
        If none answers, or in another run, raises what the first of them raises."""
        found: set[str] = set()
        errors: dict[str, Exception] = {}
        for name, source in self.sources.items():
            try:
                found |= {topic for topic in source.topics() if self.owner_of(topic) == name}
            except (TributaryError, *PASSING_FAILURES) as error:
                errors[name] = error
        if errors and not (self.follows and len(errors) < len(self.sources)):
            raise next(iter(errors.values()))
        self._tell(errors)
        return frozenset(found)

    def _tell(self, errors: Mapping[str, Exception]) -> None:
        """Say at once what is new about the sources that do not answer, and then once a minute."""
        now = self.clock()
        for name in self._told.keys() - errors.keys():
            del self._told[name]
        for name, error in errors.items():
            told, at = self._told.get(name, ("", now))
            if told != str(error) or now - at >= SECONDS_BETWEEN_WARNINGS:
                self._told[name] = (str(error), now)
                print(f"The source {name} cannot be read now: {error}", file=sys.stderr, flush=True)

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        return {
            topic: extent
            for source, owned in self._owners(topics)
            for topic, extent in source.extents(owned).items()
        }

    def newest(self, topics: frozenset[str]) -> Mapping[str, int]:
        return {
            topic: newest
            for source, owned in self._owners(topics)
            if isinstance(source, Dated)
            for topic, newest in source.newest(owned).items()
        }

    def _owners(self, topics: frozenset[str]) -> Iterator[tuple[EventSource, frozenset[str]]]:
        by_owner: dict[str, set[str]] = {}
        for topic in topics:
            by_owner.setdefault(self.owner_of(topic), set()).add(topic)
        for name, owned in by_owner.items():
            yield self.sources[name], frozenset(owned)

    def close(self) -> None:
        """Stop the sources that work in the background."""
        for source in self.sources.values():
            if isinstance(source, InBackground):
                source.close()

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        return self.sources[self.owner_of(topic)].read(topic, ranges)
