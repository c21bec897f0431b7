"""SQL Server on AWS: servers that exist already."""

from __future__ import annotations

from connectors.engines.sqlserver.connector import ENCRYPTED, VERIFIED_ON_AWS
from connectors.engines.sqlserver.preparation import setup_script
from connectors.engines.sqlserver.prepared_check import missing_preparation_query
from stacks.base import TributaryStack
from stacks.database.engine import EngineOnAws, SourceDatabase
from stacks.database.existing_database import add_existing_database
from stacks.network import NetworkStack
from tributary.contract.engines.sqlserver import ExistingSqlServer, SqlServerSource


class SqlServerOnAws(EngineOnAws[SqlServerSource, ExistingSqlServer]):
    """The engine of sources with `engine = "sqlserver"`. Tributary creates no server of it on AWS."""

    plugin_construct = "SqlServerPlugin"

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
