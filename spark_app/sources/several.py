"""Several sources as one: each topic belongs to one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from pyspark.sql import DataFrame

from spark_app.sources.event import Dated, EventSource, OffsetRange, TopicExtent


@runtime_checkable
class InBackground(Protocol):
    """A source that works until it is closed."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class SeveralSources:
    """The topics of several sources.

    sources   by name
    owner_of  returns the name of the source that has a topic
    """

    keeps_headers: ClassVar[bool] = True

    sources: Mapping[str, EventSource]
    owner_of: Callable[[str], str]

    def topics(self) -> frozenset[str]:
        found = ((name, topic) for name, source in self.sources.items() for topic in source.topics())
        return frozenset(topic for name, topic in found if self.owner_of(topic) == name)

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
