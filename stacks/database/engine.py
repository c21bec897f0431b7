"""What an engine builds on AWS: the interface behind which each engine keeps its resources and alarms.

An engine is one folder beside this module, and one line in `stacks.database.registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import IDependable

from connectors.deployment import DatabaseAccess
from stacks.base import TributaryStack
from stacks.network import NetworkStack
from stacks.watched import Graph, Watched
from tributary.contract.aws import Aws
from tributary.contract.source import ExistingDatabase, Source

SourceT = TypeVar("SourceT", bound=Source)
ExistingT = TypeVar("ExistingT", bound=ExistingDatabase)


@dataclass(frozen=True)
class SourceDatabase:
    """The database of one source.

    access  how Debezium reaches it
    secret  holds Debezium's password
    ready   exists once the database is prepared, by the deployment or by its administrator
    """

    access: DatabaseAccess
    secret: secretsmanager.ISecret
    ready: IDependable


@dataclass(frozen=True)
class NameOnAws:
    """A name that AWS must know, and the key of `[aws]` that holds it, such as `database.instance`."""

    setting: str
    found: str
    known: frozenset[str]
    expected: str


class EngineOnAws(ABC, Generic[SourceT, ExistingT]):
    """One engine on AWS, whose databases exist already. The lake file refuses a source without one.

    services         of AWS that its own databases need, as botocore calls them
    plugin_construct the id of the construct that holds its connector's plugin
    sections         of the runbook that its alarms lead to
    """

    services: ClassVar[tuple[str, ...]] = ()
    plugin_construct: ClassVar[str]
    sections: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def add_existing(
        self, stack: TributaryStack, source: SourceT, database: ExistingT, network: NetworkStack
    ) -> SourceDatabase:
        """Check a database that exists already, and say what its administrator has to run."""

    def watched(self, stack: TributaryStack) -> list[Watched]:  # noqa: ARG002
        """Return what to watch of the engine's own databases in the lake."""
        return []

    def graphs(self, stack: TributaryStack) -> list[Graph]:  # noqa: ARG002
        """Return what the dashboard shows of them."""
        return []


class CreatingEngineOnAws(EngineOnAws[SourceT, ExistingT]):
    """An engine of which Tributary also creates databases.

    servers  what RDS calls its servers in the names of their log groups
    """

    servers: ClassVar[Literal["cluster", "instance"]] = "cluster"

    @abstractmethod
    def names(self, aws: Aws) -> Iterator[NameOnAws]:
        """Yield the names in `[aws]` that its own databases need AWS to know."""

    @abstractmethod
    def add_own(
        self,
        stack: TributaryStack,
        sources: Sequence[SourceT],
        network: NetworkStack,
        key: kms.IKey | None,
    ) -> Mapping[str, SourceDatabase]:
        """Create the databases of the sources, prepared for replication; return them by the sources' names.

        `key` encrypts them; None: AWS's own keys do.
        """

    @abstractmethod
    def watched(self, stack: TributaryStack) -> list[Watched]: ...

    @abstractmethod
    def graphs(self, stack: TributaryStack) -> list[Graph]: ...
