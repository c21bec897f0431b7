"""SQL Server on AWS: existing servers, and the lake's own RDS instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import aws_kms as kms

from connectors.engines.sqlserver.connector import ENCRYPTED, VERIFIED_ON_AWS
from connectors.engines.sqlserver.preparation import setup_script
from connectors.engines.sqlserver.prepared_check import missing_preparation_query
from stacks.base import TributaryStack
from stacks.database.engine import CreatingEngineOnAws, NameOnAws, SourceDatabase
from stacks.database.existing_database import add_existing_database
from stacks.database.sqlserver.alarms import SECTIONS, graphs, watched
from stacks.database.sqlserver.instance import SqlServerInstance
from stacks.database.sqlserver.instance_classes import rds_names
from stacks.database.sqlserver.prepared_instance import SqlServerBootstrap, prepared
from stacks.network import NetworkStack
from stacks.watched import Graph, Watched
from tributary.contract.aws import Aws
from tributary.contract.engines.sqlserver import ExistingSqlServer, SqlServerSource


class SqlServerOnAws(CreatingEngineOnAws[SqlServerSource, ExistingSqlServer]):
    """The engine of sources with `engine = "sqlserver"`."""

    services = ("rds",)
    servers = "instance"
    plugin_construct = "SqlServerPlugin"
    sections = SECTIONS

    def names(self, aws: Aws) -> Iterator[NameOnAws]:
        return rds_names(aws.sqlserver)

    def add_existing(
        self,
        stack: TributaryStack,
        source: SqlServerSource,
        database: ExistingSqlServer,
        network: NetworkStack,
    ) -> SourceDatabase:
        return add_existing_database(
            stack,
            source,
            database,
            network,
            script=setup_script(stack.lake, source),
            command=lambda file: (
                f"sqlcmd -b -I -S {database.host},{database.port} -U ADMINISTRATOR -i {file}"
            ),
            login={"Driver": "pymssql", "SslMode": database.ssl_mode, "Database": source.database},
            query=missing_preparation_query(stack.lake, source),
            options=VERIFIED_ON_AWS if database.ssl_mode == "verified" else ENCRYPTED,
        )

    def add_own(
        self,
        stack: TributaryStack,
        sources: Sequence[SqlServerSource],
        network: NetworkStack,
        key: kms.IKey | None,
    ) -> Mapping[str, SourceDatabase]:
        servers = {source.name: SqlServerInstance(stack, source, network, key) for source in sources}
        function = SqlServerBootstrap(stack, "SqlServerBootstrap", list(servers.values()), network, key)
        return {source.name: prepared(stack, source, servers[source.name], function) for source in sources}

    def watched(self, stack: TributaryStack) -> list[Watched]:
        return watched(stack)

    def graphs(self, stack: TributaryStack) -> list[Graph]:
        return graphs(stack)
