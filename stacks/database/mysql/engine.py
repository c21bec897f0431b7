"""MySQL on AWS: existing servers, and the lake's own Aurora clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_kms as kms

from connectors.engines.binlog.names import connector_user
from connectors.engines.binlog.preparation import (
    password_statement,
    removal_statements,
    setup_statements,
    user_at_any_host,
)
from connectors.engines.mysql.engine import MySqlEngine
from stacks.base import TributaryStack
from stacks.database.aurora import AuroraCluster
from stacks.database.binlog.engine import BinlogOnAws
from stacks.database.bootstrap_function import BootstrapFunction
from stacks.database.engine import CreatingEngineOnAws, NameOnAws, SourceDatabase
from stacks.database.mysql.alarms import SECTIONS, graphs, watched
from stacks.database.mysql.aurora_names import aurora_names
from stacks.database.mysql.cluster import aurora_mysql
from stacks.database.password_rotation import PasswordChange
from stacks.functions.bootstrap.mysql import MySqlPreparation
from stacks.functions.rotation.databases import PASSWORD
from stacks.network import NetworkStack
from stacks.watched import Graph, Watched
from tributary.contract.aws import Aws
from tributary.contract.engines.binlog import BinlogSource, ExistingBinlogDatabase
from tributary.contract.lake import Lake


class MySqlOnAws(BinlogOnAws, CreatingEngineOnAws[BinlogSource, ExistingBinlogDatabase]):
    """The engine of sources with `engine = "mysql"`."""

    services = ("rds",)
    plugin_construct = "MySqlPlugin"
    sections = SECTIONS
    engine = MySqlEngine()

    def names(self, aws: Aws) -> Iterator[NameOnAws]:
        return aurora_names(aws.mysql)

    def add_own(
        self,
        stack: TributaryStack,
        sources: Sequence[BinlogSource],
        network: NetworkStack,
        key: kms.IKey | None,
    ) -> Mapping[str, SourceDatabase]:
        kind = aurora_mysql(stack)
        clusters = {source.name: AuroraCluster(stack, source, network, key, kind) for source in sources}
        bootstrap = BootstrapFunction(
            stack,
            "MySqlBootstrap",
            list(clusters.values()),
            key,
            network.log_key,
            handler="mysql.handle",
            log="mysql-bootstrap",
        )
        return {source.name: _prepared(stack, source, clusters[source.name], bootstrap) for source in sources}

    def watched(self, stack: TributaryStack) -> list[Watched]:
        return watched(stack)

    def graphs(self, stack: TributaryStack) -> list[Graph]:
        return graphs(stack)


def _prepared(
    stack: TributaryStack, source: BinlogSource, cluster: AuroraCluster, bootstrap: BootstrapFunction
) -> SourceDatabase:
    prepared = CustomResource(
        cluster,
        "Prepared",
        resource_type="Custom::TributaryPreparedMySql",
        service_token=bootstrap.function.function_arn,
        service_timeout=Duration.minutes(16),
        properties={
            "Cluster": cluster.cluster.cluster_arn,
            # The Data API asks for a database, and the lake's own may not be there yet.
            "Database": "mysql",
            "AdminSecret": cluster.secret.secret_arn,
            "ReplicationSecret": cluster.replication.secret_arn,
            "Preparation": preparation(stack.lake, source, stack.aws.mysql.binlog_hours).to_json(),
        },
    )
    # The cluster as a whole, with the instance that answers.
    prepared.node.add_dependency(cluster.cluster, bootstrap.permission)
    change = PasswordChange("mysql", "", password_statement(stack.lake, source, PASSWORD))
    return cluster.ready_once(prepared, prepared.get_att_string("Remarks"), change)


def preparation(lake: Lake, source: BinlogSource, binlog_hours: int) -> MySqlPreparation:
    """Return the SQL and names with which the function prepares a source."""
    return MySqlPreparation(
        user=user_at_any_host(connector_user(lake, source)),
        setup=setup_statements(lake, source),
        removal=removal_statements(lake, source),
        binlog_hours=binlog_hours,
    )
