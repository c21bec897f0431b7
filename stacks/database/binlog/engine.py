"""MySQL and MariaDB on AWS: servers that exist already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from aws_cdk import aws_kms as kms

from connectors.engines.binlog.engine import BinlogEngine
from connectors.engines.binlog.preparation import setup_script
from connectors.engines.binlog.prepared_check import missing_preparation_query
from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.engines.mysql.engine import MySqlEngine
from stacks.base import TributaryStack
from stacks.database.engine import EngineOnAws, NameOnAws, SourceDatabase
from stacks.database.existing_database import add_existing_database
from stacks.network import NetworkStack
from stacks.observability.watched import Graph, Watched
from tributary.contract.aws import Aws
from tributary.contract.engines.binlog import BinlogSource, ExistingBinlogDatabase


class BinlogOnAws(EngineOnAws[BinlogSource, ExistingBinlogDatabase]):
    """An engine whose connector reads a binary log. Tributary creates no server of it on AWS."""

    engine: ClassVar[BinlogEngine]
    services = ()
    sections = ()

    def names(self, aws: Aws) -> Iterator[NameOnAws]:  # noqa: ARG002
        return iter(())

    def add_existing(
        self,
        stack: TributaryStack,
        source: BinlogSource,
        database: ExistingBinlogDatabase,
        network: NetworkStack,
    ) -> SourceDatabase:
        return add_existing_database(
            stack,
            source,
            database,
            network,
            script=setup_script(stack.lake, source),
            command=lambda file: f"{self.engine.client} -h {database.host} -P {database.port} < {file}",
            login={"Driver": "pymysql", "SslMode": database.ssl_mode},
            query=missing_preparation_query(stack.lake, source),
            options=self.engine.encryption(is_required=True),
        )

    def add_own(
        self,
        stack: TributaryStack,
        sources: Sequence[BinlogSource],
        network: NetworkStack,
        key: kms.IKey | None,
    ) -> Mapping[str, SourceDatabase]:
        raise NotImplementedError("the lake file is refused before (BinlogSource.problems_on_aws)")

    def watched(self, stack: TributaryStack) -> list[Watched]:  # noqa: ARG002
        return []

    def graphs(self, stack: TributaryStack) -> list[Graph]:  # noqa: ARG002
        return []


class MySqlOnAws(BinlogOnAws):
    """The engine of sources with `engine = "mysql"`."""

    plugin_construct = "MySqlPlugin"
    engine = MySqlEngine()


class MariaDbOnAws(BinlogOnAws):
    """The engine of sources with `engine = "mariadb"`."""

    plugin_construct = "MariaDbPlugin"
    engine = MariaDbEngine()
