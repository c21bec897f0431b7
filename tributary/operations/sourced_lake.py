"""A lake together with what reads its sources: what a process needs that compares or mends a lake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from connectors.engines.registry import engine_of
from tributary.api.open_lake import OpenLake
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.operations.kafka_cluster import KafkaCluster

if TYPE_CHECKING:
    from tributary.operations.reconcile.proof import SourceLink


class OpenedLake(Protocol):
    """A lake whose files can be read and written."""

    @property
    def open_lake(self) -> OpenLake: ...


class SourcedLake(OpenedLake, Protocol):
    """A lake on this machine (`Workspace`) or on AWS (`LinkedLake`).

    All members raise a TributaryError if a part of the lake is away."""

    @property
    def lake(self) -> Lake: ...

    @property
    def kafka(self) -> KafkaCluster: ...

    def links(self) -> tuple[SourceLink, ...]:
        """Return a link for each source that Debezium reads."""

    def alone(self, work: str) -> AbstractContextManager[bool]:
        """Return a context that tells whether no other process does this work for the lake."""


def passing_errors(lake: SourcedLake) -> tuple[type[Exception], ...]:
    """Return the errors after which it is worth trying again: those of servers, networks and drivers."""
    of_drivers = (
        error for source in lake.lake.connected_sources for error in engine_of(source).driver_errors
    )
    return (TributaryError, OSError, *of_drivers)


class SeveralSourcesFailed(TributaryError):
    """The work on several sources failed."""


@dataclass
class Failures:
    """The errors of single sources, none of which stops the work on the others."""

    lake: SourcedLake
    _found: list[Exception] = field(default_factory=list, init=False)

    @contextmanager
    def one_source(self) -> Iterator[None]:
        """Keep an error of the work on one source for `raise_all`."""
        try:
            yield
        except passing_errors(self.lake) as error:
            self._found.append(error)

    def raise_all(self) -> None:
        """Raise the error, if there was one, or one that says them all."""
        if len(self._found) > 1:
            raise SeveralSourcesFailed("; ".join(str(error).rstrip(".") for error in self._found))
        if self._found:
            raise self._found[0]
