"""The roles of an EMR cluster and their permissions: of EMR itself, the nodes and the jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.kafka.access import Access
from stacks.network import NetworkStack
from stacks.processing.cluster_certificate import ClusterCertificate
from stacks.processing.emr_groups import EmrGroups
from stacks.processing.spark_access import bucket_arn, objects_finding

EMR_TAG = ("for-use-with-amazon-emr-managed-policies", "true")
"""EMR copies a cluster's tags to every resource it creates for the cluster. Its role recognizes this tag."""

LOGS = "emr"
"""The folder of the cluster's logs in the logs bucket."""


class EmrRoles(Construct):
    """The roles of an EMR cluster.

    service  of EMR itself
    profile  the instance profile of the nodes, which assume the jobs' role and write logs
    job  the runtime role of steps, with `job_access`
    """

    def __init__(
        self,
        stack: TributaryStack,
        construct_id: str,
        *,
        network: NetworkStack,
        groups: EmrGroups,
        disk_key: kms.IKey,
        certificate: ClusterCertificate | None,
        job_access: Access,
    ) -> None:
        super().__init__(stack, construct_id)
        self._stack = stack
        clusters = f"arn:{Aws.PARTITION}:elasticmapreduce:{stack.aws.region}:{Aws.ACCOUNT_ID}:*"
        self.service = self._role(
            "Service",
            iam.ServicePrincipal(
                "elasticmapreduce.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnLike": {"aws:SourceArn": clusters},
                },
            ),
            "What EMR may do to run the cluster",
        )
        nodes = self._role("Nodes", iam.ServicePrincipal("ec2.amazonaws.com"), "What the nodes may do")
        self.job = self._role("Job", nodes, "What the Spark app may do")
        assert self.job.assume_role_policy is not None
        self.job.assume_role_policy.add_statements(
            iam.PolicyStatement(actions=["sts:TagSession"], principals=[nodes])
        )
        self.profile = iam.CfnInstanceProfile(self, "Profile", roles=[nodes.role_name])

        region = stack.aws.region
        self.ready: Sequence[iam.ManagedPolicy] = (
            self._policy(
                "ServicePolicy", self.service, self._service_access(network, groups, nodes, disk_key)
            ),
            self._policy("NodesPolicy", nodes, self._nodes_access(disk_key, certificate)),
            self._policy("JobPolicy", self.job, job_access.statements),
        )
        acknowledge(self.ready[0], _findings_of_service(region))
        acknowledge(self.ready[1], self._findings_of_nodes(certificate))
        acknowledge(self.ready[2], job_access.acknowledged)

    def _role(self, construct_id: str, principal: iam.IPrincipal, what: str) -> iam.Role:
        return iam.Role(
            self, construct_id, assumed_by=principal, description=f"{what}, lake {self._stack.lake.name}"
        )

    def _policy(
        self, construct_id: str, role: iam.Role, statements: Iterable[iam.PolicyStatement]
    ) -> iam.ManagedPolicy:
        return iam.ManagedPolicy(
            self,
            construct_id,
            description=role.node.id + f" of the EMR cluster of lake {self._stack.lake.name}",
            statements=list(statements),
            roles=[role],
        )

    def _nodes_access(
        self, disk_key: kms.IKey, certificate: ClusterCertificate | None
    ) -> Iterable[iam.PolicyStatement]:
        """Yield a node's own permissions.

        A node downloads what EMR installs, encrypts its disks, writes logs, and assumes the role of its job.
        """
        yield iam.PolicyStatement(actions=["sts:AssumeRole", "sts:TagSession"], resources=[self.job.role_arn])
        yield iam.PolicyStatement(
            actions=["s3:AbortMultipartUpload", "s3:PutObject"],
            resources=[f"{bucket_arn(self._stack, 'logs')}/{LOGS}/*"],
        )
        installed = f"arn:{Aws.PARTITION}:s3:::{self._stack.aws.region}.elasticmapreduce"
        yield iam.PolicyStatement(actions=["s3:ListBucket"], resources=[installed])
        yield iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{installed}/*"])
        if certificate is not None:
            yield certificate.read_access
        yield from _disk_access(disk_key)

    def _findings_of_nodes(self, certificate: ClusterCertificate | None) -> dict[str, str]:
        installed = f"arn:<AWS::Partition>:s3:::{self._stack.aws.region}.elasticmapreduce/*"
        return {
            **({} if certificate is None else certificate.acknowledged),
            objects_finding(self._stack, "logs", f"{LOGS}/*"): (
                "EMR names the files after the cluster, its nodes and steps; the folder holds nothing else."
            ),
            f"AwsSolutions-IAM5[Resource::{installed}]": (
                "The bucket is EMR's own and open to all: from it nodes install what the release brings."
            ),
        }

    def _service_access(
        self, network: NetworkStack, groups: EmrGroups, nodes: iam.Role, disk_key: kms.IKey
    ) -> Iterable[iam.PolicyStatement]:
        """Yield the permissions of AmazonEMRServicePolicy_v2, restricted to the lake's subnets and groups.

        They leave out what EMR does only for other kinds of clusters: placement groups, capacity reservations
        and EMR's own security groups.
        """
        ec2 = f"arn:{Aws.PARTITION}:ec2:{self._stack.aws.region}:{Aws.ACCOUNT_ID}"
        subnets = network.vpc.select_subnets(subnets=network.private.subnets).subnet_ids
        security_groups = [
            group.security_group_id
            for group in (groups.primary, groups.workers, groups.service, network.spark)
        ]
        launch = ["ec2:CreateFleet", "ec2:RunInstances"]
        templates = ["ec2:CreateLaunchTemplate", "ec2:CreateLaunchTemplateVersion"]
        owned: Mapping[str, object] = {"StringEquals": {f"aws:ResourceTag/{EMR_TAG[0]}": EMR_TAG[1]}}
        asked_for: Mapping[str, object] = {"StringEquals": {f"aws:RequestTag/{EMR_TAG[0]}": EMR_TAG[1]}}
        made = [f"{ec2}:{kind}/*" for kind in ("instance", "launch-template", "network-interface", "volume")]
        yield iam.PolicyStatement(
            actions=["ec2:CreateNetworkInterface", *launch, *templates],
            resources=[
                *(f"{ec2}:subnet/{subnet}" for subnet in subnets),
                *(f"{ec2}:security-group/{group}" for group in security_groups),
            ],
        )
        yield iam.PolicyStatement(
            actions=[*launch, *templates, "ec2:CreateNetworkInterface"],
            resources=made,
            conditions=asked_for,
        )
        yield iam.PolicyStatement(
            actions=[*launch, "ec2:CreateLaunchTemplateVersion"],
            resources=[f"{ec2}:launch-template/*"],
            conditions=owned,
        )
        yield iam.PolicyStatement(
            actions=[*launch, *templates],
            resources=[
                f"{ec2}:fleet/*",
                f"{ec2}:network-interface/*",
                f"arn:{Aws.PARTITION}:ec2:{self._stack.aws.region}::image/ami-*",
            ],
        )
        yield iam.PolicyStatement(
            actions=[
                "ec2:CreateTags",
                "ec2:DeleteLaunchTemplate",
                "ec2:DeleteNetworkInterface",
                "ec2:DeleteTags",
                "ec2:ModifyInstanceAttribute",
                "ec2:TerminateInstances",
            ],
            resources=made,
            conditions=owned,
        )
        yield iam.PolicyStatement(
            actions=["ec2:CreateTags"],
            resources=made,
            conditions={
                "StringEquals": {
                    "ec2:CreateAction": [
                        "CreateFleet",
                        "CreateLaunchTemplate",
                        "CreateNetworkInterface",
                        "RunInstances",
                    ]
                }
            },
        )
        yield iam.PolicyStatement(actions=_DESCRIBE, resources=["*"])
        yield iam.PolicyStatement(
            actions=["iam:PassRole"],
            resources=[nodes.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        )
        yield from _disk_access(disk_key)
        yield iam.PolicyStatement(
            actions=["kms:CreateGrant"],
            resources=[disk_key.key_arn],
            conditions={"Bool": {"kms:GrantIsForAWSResource": "true"}},
        )


def _disk_access(disk_key: kms.IKey) -> Iterable[iam.PolicyStatement]:
    yield iam.PolicyStatement(
        actions=[
            "kms:Decrypt",
            "kms:DescribeKey",
            "kms:Encrypt",
            "kms:GenerateDataKey",
            "kms:GenerateDataKeyWithoutPlaintext",
            "kms:ReEncryptFrom",
            "kms:ReEncryptTo",
        ],
        resources=[disk_key.key_arn],
    )


_DESCRIBE = [
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribeNetworkAcls",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVolumeStatus",
    "ec2:DescribeVolumes",
    "ec2:DescribeVpcAttribute",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
]


def _findings_of_service(region: str) -> dict[str, str]:
    place = f"arn:<AWS::Partition>:ec2:{region}:<AWS::AccountId>"
    tagged = "EC2 makes up the ids; EMR may touch only what carries, or is made with, the tag of its cluster."
    launched = (
        "EC2 makes up the ids; EMR needs them to start instances, which it can in the lake's subnets only."
    )
    reasons = {
        "*": "EC2's Describe actions know no narrower resource; they read and change nothing.",
        **{f"{place}:{kind}/*": tagged for kind in ("instance", "launch-template", "volume")},
        f"{place}:network-interface/*": launched,
        f"{place}:fleet/*": launched,
        f"arn:<AWS::Partition>:ec2:{region}::image/ami-*": "EMR chooses the image of its release.",
    }
    return {f"AwsSolutions-IAM5[Resource::{resource}]": reason for resource, reason in reasons.items()}
