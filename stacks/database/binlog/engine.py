"""MySQL and MariaDB on AWS: servers that exist already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from aws_cdk import aws_kms as kms
from constructs import Construct

from connectors.deployment import DatabaseAccess, SecretsManagerSecret
from connectors.engines.binlog.engine import BinlogEngine
from connectors.engines.binlog.names import connector_user
from connectors.engines.binlog.preparation import setup_script
from connectors.engines.binlog.prepared_check import missing_preparation_query
from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.engines.mysql.engine import MySqlEngine
from stacks.base import TributaryStack
from stacks.database.engine import EngineOnAws, NameOnAws, SourceDatabase
from stacks.database.existing_database import ExistingDatabaseCheck, secret_name, secret_of
from stacks.database.outputs import beside_the_templates, construct_id, shown_path, tell
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
        place = Construct(stack, construct_id(source.name))
        secret = secret_of(place, database)
        script = beside_the_templates(stack, f"{source.name}.sql")
        script.write_text(setup_script(stack.lake, source))
        command = f"{self.engine.client} -h {database.host} -P {database.port} < {shown_path(script)}"
        tell(stack, source, "Sql", "What an administrator of the server runs once", command)
        ExistingDatabaseCheck(
            place,
            "Check",
            source=source,
            database=database,
            secret=secret,
            network=network,
            login={"Driver": "pymysql", "SslMode": database.ssl_mode},
            query=missing_preparation_query(stack.lake, source),
            script=script.read_text(),
            remedy=f"An administrator of the server runs the SQL that cdk synth wrote: {command}. "
            "Then deploy again.",
        )
        access = DatabaseAccess(
            host=database.host,
            port=database.port,
            user=connector_user(stack.lake, source),
            password=SecretsManagerSecret(secret_name(database.secret), "password"),
            options=self.engine.encryption(is_required=True),
        )
        return SourceDatabase(access, secret, ready=place)

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
