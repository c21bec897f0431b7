"""The connections that the nodes of an EMR cluster need with each other and with EMR.

EMR itself would add missing rules, and CloudFormation could not delete those.
https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-man-sec-groups.html
"""

from __future__ import annotations

from itertools import product

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from stacks.base import TributaryStack
from stacks.network import NetworkStack

_CLUSTER_MANAGER_PORT = 8443
"""The port on each node for EMR."""

_SERVICE_PORT = 9443
"""The port on EMR for the primary node."""


class EmrGroups(Construct):
    """The security groups of an EMR cluster.

    primary  of the node that starts jobs
    workers  of core and task nodes
    service  of EMR itself, in a private subnet
    """

    def __init__(self, stack: TributaryStack, construct_id: str, network: NetworkStack) -> None:
        super().__init__(stack, construct_id)
        of_lake = f"of lake {stack.lake.name}"
        self.primary = self._group("Primary", f"EMR primary node {of_lake}", network.vpc)
        self.workers = self._group("Workers", f"EMR core and task nodes {of_lake}", network.vpc)
        self.service = self._group("Service", f"EMR service, for the nodes {of_lake}", network.vpc)

        nodes = (self.primary, self.workers)
        for receiver, sender in product(nodes, nodes):
            for port in (ec2.Port.all_tcp(), ec2.Port.all_udp(), ec2.Port.all_icmp()):
                self._allow(sender, receiver, port, "nodes among themselves")
        for node in nodes:
            self._allow(self.service, node, ec2.Port.tcp(_CLUSTER_MANAGER_PORT), "EMR manages its nodes")
        self._allow(self.primary, self.service, ec2.Port.tcp(_SERVICE_PORT), "the primary node reports")

    def _group(self, construct_id: str, description: str, vpc: ec2.IVpc) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(
            self,
            construct_id,
            vpc=vpc,
            description=description,
            allow_all_outbound=False,
            disable_inline_rules=True,
        )

    @staticmethod
    def _allow(sender: ec2.SecurityGroup, receiver: ec2.SecurityGroup, port: ec2.Port, why: str) -> None:
        receiver.add_ingress_rule(sender, port, why)
        sender.add_egress_rule(receiver, port, why)
