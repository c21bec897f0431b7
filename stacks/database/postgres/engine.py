"""PostgreSQL on AWS: existing databases, and the lake's own Aurora clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import aws_kms as kms

from connectors.engines.postgres.connector import encrypted_on_aws
from connectors.engines.postgres.preparation import password_statement, setup_script
from connectors.engines.postgres.prepared_check import missing_preparation_query
from stacks.base import TributaryStack
from stacks.database.aurora import AuroraCluster
from stacks.database.bootstrap_function import BootstrapFunction
from stacks.database.engine import CreatingEngineOnAws, NameOnAws, SourceDatabase
from stacks.database.existing_database import add_existing_database
from stacks.database.password_rotation import PasswordChange
from stacks.database.postgres.alarms import SECTIONS, graphs, watched
from stacks.database.postgres.aurora_names import aurora_names
from stacks.database.postgres.cluster import aurora_postgres
from stacks.database.postgres.prepared_database import PreparedDatabase, parameter_rights
from stacks.functions.rotation.databases import PASSWORD
from stacks.network import NetworkStack
from stacks.watched import Graph, Watched
from tributary.contract.aws import Aws
from tributary.contract.engines.postgres import ExistingPostgres, PostgresSource


class PostgresOnAws(CreatingEngineOnAws[PostgresSource, ExistingPostgres]):
    """The engine of sources with `engine = "postgres"`."""

    services = ("rds",)
    plugin_construct = "DebeziumPlugin"
    sections = SECTIONS

    def names(self, aws: Aws) -> Iterator[NameOnAws]:
        return aurora_names(aws.database)

    def add_existing(
        self,
        stack: TributaryStack,
        source: PostgresSource,
        database: ExistingPostgres,
        network: NetworkStack,
    ) -> SourceDatabase:
        address = f"-h {database.host} -p {database.port} -d {source.database}"
        return add_existing_database(
            stack,
            source,
            database,
            network,
            script=setup_script(stack.lake, source),
            command=lambda file: f"psql {address} -f {file}",
            login={"Database": source.database, "SslMode": database.sslmode},
            query=missing_preparation_query(stack.lake, source),
            options=encrypted_on_aws(database.sslmode),
        )

    def add_own(
        self,
        stack: TributaryStack,
        sources: Sequence[PostgresSource],
        network: NetworkStack,
        key: kms.IKey | None,
    ) -> Mapping[str, SourceDatabase]:
        clusters = {
            source.name: AuroraCluster(stack, source, network, key, aurora_postgres(stack, source))
            for source in sources
        }
        bootstrap = BootstrapFunction(
            stack,
            "Bootstrap",
            list(clusters.values()),
            key,
            network.log_key,
            handler="main.handle",
            log="bootstrap",
            statements=[parameter_rights(stack.aws.region, clusters.values())],
        )
        return {source.name: _prepared(stack, source, clusters[source.name], bootstrap) for source in sources}

    def watched(self, stack: TributaryStack) -> list[Watched]:
        return watched(stack)

    def graphs(self, stack: TributaryStack) -> list[Graph]:
        return graphs(stack)


def _prepared(
    stack: TributaryStack, source: PostgresSource, cluster: AuroraCluster, bootstrap: BootstrapFunction
) -> SourceDatabase:
    prepared = PreparedDatabase(cluster, "Prepared", stack.lake, source, cluster, bootstrap)
    change = PasswordChange("postgres", source.database, password_statement(stack.lake, source, PASSWORD))
    return cluster.ready_once(prepared, prepared.remarks, change)
