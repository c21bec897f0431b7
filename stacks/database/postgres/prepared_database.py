"""Prepare a PostgreSQL in a deployment, and publish new tables every minute."""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import Aws, CustomResource, Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from connectors.engines.postgres.names import publication, replication_slot, replication_user
from connectors.engines.postgres.preparation import (
    later_statements,
    readable_parts_query,
    removal_statements,
    setup_statements,
)
from connectors.engines.postgres.publication import unpublished_tables_query
from connectors.engines.postgres.taken_tables import left_out_query, patterns_without_table_query
from stacks.base import TributaryStack
from stacks.database.aurora import AuroraCluster
from stacks.database.bootstrap_function import BootstrapFunction
from stacks.database.schedule import call_regularly
from stacks.functions.bootstrap.preparation import Preparation
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake


class PreparedDatabase(Construct):
    """A database that is prepared for Debezium. A schedule publishes new tables every minute.

    remarks  text for a person, available once the database is prepared
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        lake: Lake,
        source: PostgresSource,
        database: AuroraCluster,
        bootstrap: BootstrapFunction,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        properties = {
            "Cluster": database.cluster.cluster_arn,
            "Database": source.database,
            "AdminSecret": database.secret.secret_arn,
            "ReplicationSecret": database.replication.secret_arn,
            "ParameterGroup": database.parameter_group,
            "SlotMegabytes": str(stack.aws.database.slot_wal_gb * 1024),
            "Preparation": preparation(lake, source, has_demo=stack.aws.database.demo_schema).to_json(),
        }
        resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::TributaryPreparedDatabase",
            service_token=bootstrap.function.function_arn,
            service_timeout=Duration.minutes(16),
            properties=properties,
        )
        # The cluster as a whole, with the instance that answers.
        resource.node.add_dependency(database.cluster, bootstrap.permission)
        self.remarks = resource.get_att_string("Remarks")
        call_regularly(
            self,
            bootstrap.function,
            stack.to_json_string(properties),
            resource,
            description="Publishes new tables",
            permits="Calls the function that publishes new tables",
        )


def preparation(lake: Lake, source: PostgresSource, *, has_demo: bool) -> Preparation:
    """Return the SQL and names with which the function prepares a source."""
    return Preparation(
        role=replication_user(lake, source),
        publication=publication(lake, source),
        slot=replication_slot(lake, source),
        setup=setup_statements(lake, source),
        later=later_statements(lake, source),
        removal=removal_statements(lake, source),
        unpublished=unpublished_tables_query(lake, source),
        readable_parts=readable_parts_query(lake, source),
        left_out=left_out_query(lake, source),
        patterns_without_table=patterns_without_table_query(source),
        has_demo=has_demo,
    )


def parameter_rights(region: str, clusters: Iterable[AuroraCluster]) -> iam.PolicyStatement:
    """Return the permission to limit the log that a slot may hold back."""
    return iam.PolicyStatement(
        actions=["rds:ModifyDBClusterParameterGroup"],
        resources=[
            f"arn:{Aws.PARTITION}:rds:{region}:{Aws.ACCOUNT_ID}:cluster-pg:{each.parameter_group}"
            for each in clusters
        ],
    )
