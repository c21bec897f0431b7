"""EMR Studio: notebooks in the browser on the lake's own EMR, for people who log in with IAM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aws_cdk import Aws, CfnOutput, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_emr as emr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.kafka.access import Access
from stacks.lake.bucket import bucket_name
from stacks.network import HTTPS_PORT, NetworkStack
from stacks.processing.emr_service_access import EMR_TAG
from stacks.processing.spark_access import bucket_arn, objects_finding

NOTEBOOKS = "studio/"
"""The folder of the notebooks in the bucket for artifacts. Nothing there expires."""

_LIST_CLUSTERS, _LIST_APPLICATIONS = "elasticmapreduce:ListClusters", "emr-serverless:ListApplications"

_ENGINE_PORT = 18888
"""The port on a cluster's primary node for notebooks (EMR Management Guide, "EMR Studio security groups")."""


class LakeStudio(Construct):
    """The Studio, and the policy of its users, which an administrator attaches to people.

    place     the ARN of the cluster or of the EMR Serverless application
    notebook  the role of a notebook's Spark session
    """

    def __init__(
        self,
        stack: TributaryStack,
        construct_id: str,
        network: NetworkStack,
        lake_key: kms.IKey | None,
        place: str,
        notebook: iam.IRole,
    ) -> None:
        super().__init__(stack, construct_id)
        self._stack, self._place, self._notebook = stack, place, notebook
        self._on_cluster = stack.aws.processing.on == "emr"
        engine, workspace = self._groups(network)
        service = iam.Role(
            self,
            "Service",
            description=f"What EMR Studio of lake {stack.lake.name} may do",
            assumed_by=iam.ServicePrincipal(
                "elasticmapreduce.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnLike": {"aws:SourceArn": f"{_emr(stack)}:*"},
                },
            ),
        )
        access = self._service_access(network, lake_key, engine, workspace)
        policy = iam.ManagedPolicy(
            self,
            "ServicePolicy",
            description=f"What EMR Studio of lake {stack.lake.name} may do",
            statements=list(access.statements),
            roles=[service],
        )
        acknowledge(policy, access.acknowledged)
        studio = emr.CfnStudio(
            self,
            "Studio",
            name=stack.names.resource,
            description=f"Notebooks on lake {stack.lake.name}",
            auth_mode="IAM",
            vpc_id=network.vpc.vpc_id,
            subnet_ids=network.vpc.select_subnets(subnets=network.private.subnets).subnet_ids,
            engine_security_group_id=engine.security_group_id,
            workspace_security_group_id=workspace.security_group_id,
            service_role=service.role_arn,
            default_s3_location=f"s3://{bucket_name(stack, 'artifacts')}/{NOTEBOOKS}",
            encryption_key_arn=None if lake_key is None else lake_key.key_arn,
        )
        studio.node.add_dependency(policy)
        users = self._users(studio, service)
        CfnOutput(stack, "StudioUrl", description="Where to open EMR Studio", value=studio.attr_url)
        CfnOutput(
            stack,
            "StudioUserPolicyArn",
            description="The policy for the people who may open EMR Studio",
            value=users.managed_policy_arn,
        )
        CfnOutput(
            stack,
            "NotebookRoleArn",
            description="The runtime role to choose for a notebook",
            value=notebook.role_arn,
        )

    def _groups(self, network: NetworkStack) -> tuple[ec2.SecurityGroup, ec2.SecurityGroup]:
        """Return the groups that EMR Studio gives to the primary node and to notebooks, besides their own."""
        of_lake = f"of lake {self._stack.lake.name}"
        engine, workspace = (
            ec2.SecurityGroup(
                self,
                name,
                vpc=network.vpc,
                description=f"{what} {of_lake}",
                allow_all_outbound=False,
                disable_inline_rules=True,
            )
            for name, what in (
                ("Engine", "EMR primary node, for notebooks"),
                ("Workspace", "EMR Studio notebooks"),
            )
        )
        why = "notebooks run code"
        engine.add_ingress_rule(workspace, ec2.Port.tcp(_ENGINE_PORT), why)
        workspace.add_egress_rule(engine, ec2.Port.tcp(_ENGINE_PORT), why)
        workspace.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(HTTPS_PORT), "AWS services")
        for group in (engine, workspace):
            Tags.of(group).add(*EMR_TAG)
        return engine, workspace

    def _service_access(
        self,
        network: NetworkStack,
        lake_key: kms.IKey | None,
        engine: ec2.SecurityGroup,
        workspace: ec2.SecurityGroup,
    ) -> Access:
        """Return the Studio's permissions: it stores notebooks, and connects them with a cluster.

        It connects nothing in the VPC for EMR Serverless. Git repositories are left out, because their
        passwords would be secrets that every user could read.
        """
        bucket = bucket_arn(self._stack, "artifacts")
        statements = [
            iam.PolicyStatement(
                actions=["s3:GetEncryptionConfiguration", "s3:ListBucket"], resources=[bucket]
            ),
            iam.PolicyStatement(
                actions=["s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
                resources=[f"{bucket}/{NOTEBOOKS}*"],
            ),
        ]
        if lake_key is not None:
            statements.append(
                iam.PolicyStatement(
                    actions=[
                        "kms:Decrypt",
                        "kms:DescribeKey",
                        "kms:GenerateDataKey",
                        "kms:ReEncryptFrom",
                        "kms:ReEncryptTo",
                    ],
                    resources=[lake_key.key_arn],
                )
            )
        findings = {objects_finding(self._stack, "artifacts", f"{NOTEBOOKS}*"): _OWN_FOLDER}
        if self._on_cluster:
            statements += self._network_access(network, engine, workspace)
            place = f"arn:<AWS::Partition>:ec2:{self._stack.aws.region}:<AWS::AccountId>"
            findings |= {
                f"AwsSolutions-IAM5[Resource::{place}:instance/*]": _ANY_INSTANCE,
                f"AwsSolutions-IAM5[Resource::{place}:network-interface/*]": _TAGGED,
                "AwsSolutions-IAM5[Resource::*]": _DESCRIBES,
            }
        return Access(tuple(statements), findings)

    def _network_access(
        self, network: NetworkStack, engine: ec2.SecurityGroup, workspace: ec2.SecurityGroup
    ) -> Iterator[iam.PolicyStatement]:
        """Yield what connects notebooks with the cluster (EMR's guide, "EMR Studio service role")."""
        place = f"arn:{Aws.PARTITION}:ec2:{self._stack.aws.region}:{Aws.ACCOUNT_ID}"
        interfaces = f"{place}:network-interface/*"
        groups = [f"{place}:security-group/{group.security_group_id}" for group in (engine, workspace)]
        subnets = network.vpc.select_subnets(subnets=network.private.subnets).subnet_ids
        asked_for = {"StringEquals": {f"aws:RequestTag/{EMR_TAG[0]}": EMR_TAG[1]}}
        owned = {"StringEquals": {f"aws:ResourceTag/{EMR_TAG[0]}": EMR_TAG[1]}}
        yield iam.PolicyStatement(
            actions=[
                "elasticmapreduce:DescribeCluster",
                "elasticmapreduce:ListInstances",
                "elasticmapreduce:ListSteps",
            ],
            resources=[self._place],
        )
        yield iam.PolicyStatement(
            actions=["ec2:CreateNetworkInterface"],
            resources=[*(f"{place}:subnet/{subnet}" for subnet in subnets), *groups],
        )
        yield iam.PolicyStatement(
            actions=["ec2:CreateNetworkInterface"], resources=[interfaces], conditions=asked_for
        )
        yield iam.PolicyStatement(
            actions=["ec2:CreateTags"],
            resources=[interfaces],
            conditions={"StringEquals": {"ec2:CreateAction": "CreateNetworkInterface"}},
        )
        yield iam.PolicyStatement(
            actions=[
                "ec2:CreateNetworkInterfacePermission",
                "ec2:DeleteNetworkInterface",
                "ec2:DeleteNetworkInterfacePermission",
            ],
            resources=[interfaces],
            conditions=owned,
        )
        # It adds the engine's group to the primary node. The guide says that EC2 ignores tags here.
        yield iam.PolicyStatement(
            actions=["ec2:ModifyNetworkInterfaceAttribute"],
            resources=[f"{place}:instance/*", interfaces, *groups],
        )
        yield iam.PolicyStatement(
            actions=[
                "ec2:AuthorizeSecurityGroupEgress",
                "ec2:AuthorizeSecurityGroupIngress",
                "ec2:RevokeSecurityGroupEgress",
                "ec2:RevokeSecurityGroupIngress",
            ],
            resources=groups,
        )
        yield iam.PolicyStatement(
            actions=[
                "ec2:DescribeInstances",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
                "ec2:DescribeTags",
                "ec2:DescribeVpcs",
            ],
            resources=["*"],
        )

    def _users(self, studio: emr.CfnStudio, service: iam.Role) -> iam.ManagedPolicy:
        """Add the policy for users. They write notebooks, and run them only as the notebook's role."""
        editors = f"{_emr(self._stack)}:editor/*"
        on_cluster = [self._place] if self._on_cluster else []
        statements = [
            iam.PolicyStatement(
                actions=["elasticmapreduce:CreateStudioPresignedUrl", "elasticmapreduce:DescribeStudio"],
                resources=[studio.attr_arn],
            ),
            iam.PolicyStatement(
                actions=[
                    f"elasticmapreduce:{action}"
                    for action in (
                        *("AttachEditor", "CreateEditor", "DeleteEditor", "DescribeEditor"),
                        *("DetachEditor", "OpenEditorInConsole", "StartEditor", "StopEditor"),
                    )
                ],
                resources=[studio.attr_arn, editors, *on_cluster],
            ),
            iam.PolicyStatement(
                actions=[
                    "elasticmapreduce:ListEditors",
                    "elasticmapreduce:ListStudios",
                    _LIST_CLUSTERS if self._on_cluster else _LIST_APPLICATIONS,
                ],
                resources=["*"],
            ),
            _passing(service, "elasticmapreduce"),
            *(self._use_of_cluster() if self._on_cluster else self._use_of_application()),
        ]
        policy = iam.ManagedPolicy(
            self,
            "UserPolicy",
            description=f"What a user of EMR Studio of lake {self._stack.lake.name} may do",
            statements=statements,
        )
        place = f"arn:<AWS::Partition>:elasticmapreduce:{self._stack.aws.region}:<AWS::AccountId>"
        acknowledge(
            policy,
            {
                f"AwsSolutions-IAM5[Resource::{place}:editor/*]": _ANY_EDITOR,
                "AwsSolutions-IAM5[Resource::*]": _LISTS,
            },
        )
        return policy

    def _use_of_cluster(self) -> Iterator[iam.PolicyStatement]:
        yield iam.PolicyStatement(
            actions=[
                "elasticmapreduce:DescribeCluster",
                "elasticmapreduce:GetOnClusterAppUIPresignedURL",
                "elasticmapreduce:ListBootstrapActions",
                "elasticmapreduce:ListInstanceGroups",
                "elasticmapreduce:ListSteps",
            ],
            resources=[self._place],
        )
        yield iam.PolicyStatement(
            actions=["elasticmapreduce:GetClusterSessionCredentials"],
            resources=[self._place],
            conditions={"StringEquals": {"elasticmapreduce:ExecutionRoleArn": self._notebook.role_arn}},
        )

    def _use_of_application(self) -> Iterator[iam.PolicyStatement]:
        yield iam.PolicyStatement(
            actions=[
                "emr-serverless:AccessInteractiveEndpoints",
                "emr-serverless:GetApplication",
                "emr-serverless:StartApplication",
            ],
            resources=[self._place],
        )
        yield _passing(self._notebook, "emr-serverless")


def _passing(role: iam.IRole, service: str) -> iam.PolicyStatement:
    conditions: Mapping[str, object] = {"StringEquals": {"iam:PassedToService": f"{service}.amazonaws.com"}}
    return iam.PolicyStatement(actions=["iam:PassRole"], resources=[role.role_arn], conditions=conditions)


def _emr(stack: TributaryStack) -> str:
    return f"arn:{Aws.PARTITION}:elasticmapreduce:{stack.aws.region}:{Aws.ACCOUNT_ID}"


_OWN_FOLDER = "EMR Studio names the files after its workspaces. The folder holds nothing else."
_ANY_INSTANCE = (
    "EMR Studio adds a security group to the cluster's primary node, whose id changes with each cluster. "
    "It may use only its own two groups."
)
_TAGGED = "EC2 chooses the ids. EMR Studio may create and delete only interfaces with EMR's tag."
_DESCRIBES = "EC2's Describe actions support no narrower resource. They change nothing."
_ANY_EDITOR = "EMR chooses a workspace's id when somebody creates it. A workspace belongs to a Studio."
_LISTS = "Lists support no narrower resource. They show names and states."
