"""MySQL and MariaDB on AWS: servers that exist already."""

from __future__ import annotations

from typing import ClassVar

from connectors.engines.binlog.engine import BinlogEngine
from connectors.engines.binlog.preparation import setup_script
from connectors.engines.binlog.prepared_check import missing_preparation_query
from connectors.engines.mariadb.engine import MariaDbEngine
from stacks.base import TributaryStack
from stacks.database.engine import EngineOnAws, SourceDatabase
from stacks.database.existing_database import add_existing_database
from stacks.network import NetworkStack
from tributary.contract.engines.binlog import BinlogSource, ExistingBinlogDatabase


class BinlogOnAws(EngineOnAws[BinlogSource, ExistingBinlogDatabase]):
    """An engine whose connector reads a binary log."""

    engine: ClassVar[BinlogEngine]

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
            options=(
                self.engine.verified_on_aws()
                if database.ssl_mode == "verified"
                else self.engine.encryption(is_required=True)
            ),
        )


class MariaDbOnAws(BinlogOnAws):
    """The engine of sources with `engine = "mariadb"`. Tributary creates no server of it on AWS."""

    plugin_construct = "MariaDbPlugin"
    engine = MariaDbEngine()
