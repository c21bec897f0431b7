"""Look up the addresses of an Amazon MSK cluster, which CloudFormation does not return but MSK's API does."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import custom_resources as cr
from constructs import Construct, IConstruct

from stacks.checks.findings import acknowledge, acknowledge_function
from stacks.log_groups import LakeLogGroup


class BootstrapServers(Construct):
    """The addresses of a cluster.

    servers  comma-separated host:port, for clients in the VPC that log in with IAM

    They are looked up once for a cluster. Otherwise adding brokers would replace the connectors.
    """

    def __init__(
        self, scope: Construct, construct_id: str, cluster_arn: str, log_key: kms.IKey | None
    ) -> None:
        super().__init__(scope, construct_id)
        logs = LakeLogGroup(self, "Logs", "bootstrap-servers", log_key)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        policy = iam.ManagedPolicy(
            self,
            "Policy",
            roles=[role],
            statements=[
                iam.PolicyStatement(
                    actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[logs.log_group_arn]
                ),
                iam.PolicyStatement(actions=["kafka:GetBootstrapBrokers"], resources=["*"]),
            ],
        )
        call = cr.AwsSdkCall(
            service="Kafka",
            action="getBootstrapBrokers",
            parameters={"ClusterArn": cluster_arn},
            physical_resource_id=cr.PhysicalResourceId.of(cluster_arn),
            output_paths=[_ANSWER],
        )
        answer = cr.AwsCustomResource(
            self,
            "Answer",
            on_create=call,
            on_update=call,
            role=role,
            log_group=logs,
            install_latest_aws_sdk=False,
        )
        answer.node.add_dependency(policy)
        self.servers = answer.get_response_field(_ANSWER)
        acknowledge(policy, {"AwsSolutions-IAM5[Resource::*]": _NO_RESOURCES})
        acknowledge_function(
            _function_of(self), no_reservation=_ONE_CALL, no_dead_letters=_NO_CALL_LOST, no_vpc=_OUTSIDE
        )


def _function_of(construct: Construct) -> IConstruct:
    """Return the stack's single function that makes the calls of all its AwsCustomResources."""
    return Stack.of(construct).node.find_child("AWS679f53fac002430cb0da5b7982bd2287")


_ANSWER = "BootstrapBrokerStringSaslIam"

_NO_RESOURCES = (
    "kafka:GetBootstrapBrokers reads addresses. It supports no resources (Service Authorization Reference)."
)
_ONE_CALL = (
    "CloudFormation calls it once, after it created the cluster, so there are never two calls at a time."
)
_NO_CALL_LOST = "CloudFormation waits for its answer and fails the deployment without one. No call is lost."
_OUTSIDE = "It calls a public API of AWS, which a VPC without NAT cannot reach, and nothing in the VPC."
