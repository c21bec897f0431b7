"""What EMR itself may do to run a cluster: AmazonEMRServicePolicy_v2, restricted to one lake's resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from stacks.base import TributaryStack
from stacks.network import NetworkStack
from stacks.processing.emr_groups import EmrGroups

EMR_TAG = ("for-use-with-amazon-emr-managed-policies", "true")
"""EMR copies a cluster's tags to every resource it creates for the cluster. Its role recognizes this tag."""


def service_access(
    stack: TributaryStack, network: NetworkStack, groups: EmrGroups, nodes: iam.Role, disk_key: kms.IKey
) -> Iterable[iam.PolicyStatement]:
    """Yield the permissions of AmazonEMRServicePolicy_v2 (its version 3, May 2024) on the lake's resources.

    They leave out what EMR does only for other kinds of clusters: key pairs, placement groups, capacity
    reservations, dedicated hosts, custom automatic scaling, and security groups that EMR creates itself.
    """
    place = f"arn:{Aws.PARTITION}:ec2:{stack.aws.region}:{Aws.ACCOUNT_ID}"
    subnets = network.vpc.select_subnets(subnets=network.private.subnets).subnet_ids
    own_groups = [
        f"{place}:security-group/{group.security_group_id}"
        for group in (groups.primary, groups.workers, groups.service)
    ]
    clients = f"{place}:security-group/{network.spark.security_group_id}"
    launch = ["ec2:CreateFleet", "ec2:RunInstances"]
    templates = ["ec2:CreateLaunchTemplate", "ec2:CreateLaunchTemplateVersion"]
    owned: Mapping[str, object] = {"StringEquals": {f"aws:ResourceTag/{EMR_TAG[0]}": EMR_TAG[1]}}
    asked_for: Mapping[str, object] = {"StringEquals": {f"aws:RequestTag/{EMR_TAG[0]}": EMR_TAG[1]}}
    made = [f"{place}:{kind}/*" for kind in ("instance", "launch-template", "network-interface", "volume")]
    yield iam.PolicyStatement(
        actions=["ec2:CreateNetworkInterface", *launch, *templates],
        resources=[*(f"{place}:subnet/{subnet}" for subnet in subnets), *own_groups, clients],
    )
    yield iam.PolicyStatement(
        actions=[*launch, *templates, "ec2:CreateNetworkInterface"], resources=made, conditions=asked_for
    )
    yield iam.PolicyStatement(
        actions=[*launch, "ec2:CreateLaunchTemplateVersion"],
        resources=[f"{place}:launch-template/*"],
        conditions=owned,
    )
    yield iam.PolicyStatement(
        actions=[*launch, *templates],
        resources=[
            f"{place}:fleet/*",
            f"{place}:network-interface/*",
            f"arn:{Aws.PARTITION}:ec2:{stack.aws.region}::image/ami-*",
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
    # EMR puts instances into these groups, and adds a rule if it misses one.
    yield iam.PolicyStatement(actions=["ec2:ModifyInstanceAttribute"], resources=[*own_groups, clients])
    yield iam.PolicyStatement(
        actions=[
            "ec2:AuthorizeSecurityGroupEgress",
            "ec2:AuthorizeSecurityGroupIngress",
            "ec2:RevokeSecurityGroupEgress",
            "ec2:RevokeSecurityGroupIngress",
        ],
        resources=own_groups,
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
        # In China, the service's name ends in .cn.
        conditions={"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}},
    )
    if stack.aws.processing.spot:
        yield _first_spot_request()
    yield from disk_access(disk_key)
    yield iam.PolicyStatement(
        actions=["kms:CreateGrant"],
        resources=[disk_key.key_arn],
        conditions={"Bool": {"kms:GrantIsForAWSResource": "true"}},
    )


def _first_spot_request() -> iam.PolicyStatement:
    """Return the permission that the first request for Spot instances in an account needs.

    EC2 then creates its service-linked role (EC2 User Guide, "Service-linked role for Spot").
    """
    role = "role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
    return iam.PolicyStatement(
        actions=["iam:CreateServiceLinkedRole"],
        resources=[f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:{role}"],
        conditions={"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}},
    )


def disk_access(disk_key: kms.IKey) -> Iterable[iam.PolicyStatement]:
    """Yield the permissions to encrypt the disks of instances."""
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


def findings_of_service(region: str) -> dict[str, str]:
    """Return the reasons for the wildcards in `service_access`, by the finding's id."""
    place = f"arn:<AWS::Partition>:ec2:{region}:<AWS::AccountId>"
    tagged = (
        "EC2 chooses the ids. EMR may change only what has the tag of its cluster, or is created with it."
    )
    launched = "EC2 chooses the ids. EMR needs them to start instances, and only in the lake's subnets."
    reasons = {
        "*": "EC2's Describe actions support no narrower resource. They change nothing.",
        **{f"{place}:{kind}/*": tagged for kind in ("instance", "launch-template", "volume")},
        f"{place}:network-interface/*": launched,
        f"{place}:fleet/*": launched,
        f"arn:<AWS::Partition>:ec2:{region}::image/ami-*": "EMR chooses the image for its release.",
    }
    return {f"AwsSolutions-IAM5[Resource::{resource}]": reason for resource, reason in reasons.items()}
