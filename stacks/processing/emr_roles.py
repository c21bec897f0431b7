"""The roles of an EMR cluster and their permissions: of EMR itself, the nodes and the jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from stacks.processing.emr_service_access import disk_access, findings_of_service, service_access
from stacks.processing.spark_access import bucket_arn, objects_finding

LOGS = "emr"
"""The folder of the cluster's logs in the logs bucket."""


class EmrRoles(Construct):
    """The roles of an EMR cluster.

    service  of EMR itself
    profile  the instance profile of the nodes, which assume the jobs' role and write logs
    job  the runtime role of steps, with `job_access`
    notebook  the runtime role of notebooks, with `notebook_access`. None if that is None
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
        notebook_access: Access | None,
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
        self.job = self._runtime_role("Job", nodes, "What the Spark app may do")
        self.notebook: iam.Role | None = None
        if notebook_access is not None:
            self.notebook = self._runtime_role("Notebook", nodes, "What a notebook may do")
            policy = self._policy("NotebookPolicy", self.notebook, notebook_access.statements)
            acknowledge(policy, notebook_access.acknowledged)
        self.profile = iam.CfnInstanceProfile(self, "Profile", roles=[nodes.role_name])

        self.ready: Sequence[iam.ManagedPolicy] = (
            self._policy(
                "ServicePolicy", self.service, service_access(stack, network, groups, nodes, disk_key)
            ),
            self._policy("NodesPolicy", nodes, self._nodes_access(disk_key, certificate)),
            self._policy("JobPolicy", self.job, job_access.statements),
        )
        acknowledge(self.ready[0], findings_of_service(stack.aws.region))
        acknowledge(self.ready[1], self._findings_of_nodes(certificate))
        acknowledge(self.ready[2], job_access.acknowledged)

    def _role(self, construct_id: str, principal: iam.IPrincipal, what: str) -> iam.Role:
        return iam.Role(
            self, construct_id, assumed_by=principal, description=f"{what}, lake {self._stack.lake.name}"
        )

    def _runtime_role(self, construct_id: str, nodes: iam.Role, what: str) -> iam.Role:
        """Create a role that the nodes assume for a step or a notebook."""
        role = self._role(construct_id, nodes, what)
        assert role.assume_role_policy is not None
        role.assume_role_policy.add_statements(
            iam.PolicyStatement(actions=["sts:TagSession"], principals=[nodes])
        )
        return role

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
        roles = [self.job, *([self.notebook] if self.notebook else [])]
        yield iam.PolicyStatement(
            actions=["sts:AssumeRole", "sts:TagSession"], resources=[role.role_arn for role in roles]
        )
        yield iam.PolicyStatement(
            actions=["s3:AbortMultipartUpload", "s3:PutObject"],
            resources=[f"{bucket_arn(self._stack, 'logs')}/{LOGS}/*"],
        )
        installed = f"arn:{Aws.PARTITION}:s3:::{self._stack.aws.region}.elasticmapreduce"
        yield iam.PolicyStatement(actions=["s3:ListBucket"], resources=[installed])
        yield iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{installed}/*"])
        if certificate is not None:
            yield certificate.read_access
        yield from disk_access(disk_key)

    def _findings_of_nodes(self, certificate: ClusterCertificate | None) -> dict[str, str]:
        installed = f"arn:<AWS::Partition>:s3:::{self._stack.aws.region}.elasticmapreduce/*"
        return {
            **({} if certificate is None else certificate.acknowledged),
            objects_finding(self._stack, "logs", f"{LOGS}/*"): (
                "EMR names the files after the cluster, its nodes and steps. The folder holds nothing else."
            ),
            f"AwsSolutions-IAM5[Resource::{installed}]": (
                "The bucket is EMR's own and public. Nodes install the software of the release from it."
            ),
        }
