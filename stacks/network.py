"""The lake's network: private subnets, their routes to AWS, and the clients' security groups.

The security groups here belong to clients. A server's group is in the server's own stack and has the rules
that let clients in. Rules here that name a server's group would make the two stacks depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import Annotations, Aws, CfnOutput
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from connectors.engines.registry import engine_of
from stacks.admin_host import AdminHost
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip_in_functions_of_the_cdk
from stacks.checks.zones import zone_ids, zone_names
from stacks.log_groups import LakeLogGroup, LogKey
from tributary.contract.aws_checks import IAM_PORT as KAFKA_PORT
from tributary.contract.lake import Lake

HTTPS_PORT = 443

_MOST_ZONES = 3
"""The number of zones with reserved addresses. So a zone that is added later moves no subnet."""

_ANY_ADDRESS = "0.0.0.0/0"

Destinations = frozenset[tuple[str, int]]
"""Networks and ports that clients may call."""

_ENDPOINTS = {
    "Glue": ec2.InterfaceVpcEndpointAwsService.GLUE,
    "Sts": ec2.InterfaceVpcEndpointAwsService.STS,
    "SecretsManager": ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER,
    "Logs": ec2.InterfaceVpcEndpointAwsService.CLOUDWATCH_LOGS,
    "Monitoring": ec2.InterfaceVpcEndpointAwsService.CLOUDWATCH_MONITORING,
    "Kms": ec2.InterfaceVpcEndpointAwsService.KMS,
}
"""The services, except S3, that a connector or the Spark app calls at run time."""

_ENDPOINTS_OF_SESSIONS = {
    "Ssm": ec2.InterfaceVpcEndpointAwsService.SSM,
    "SsmMessages": ec2.InterfaceVpcEndpointAwsService.SSM_MESSAGES,
    "Ec2Messages": ec2.InterfaceVpcEndpointAwsService.EC2_MESSAGES,
}
"""The services that the agent on the admin host calls."""

_ENDPOINTS_OF_ROTATION = {"KafkaConnect": ec2.InterfaceVpcEndpointAwsService.KAFKA_CONNECT}
"""The services that the rotation of Debezium's password calls, if no NAT gateway leads there."""

_ENDPOINTS_OF_ITEMS = {"Kinesis": ec2.InterfaceVpcEndpointAwsService.KINESIS_STREAMS}
"""The services that the Spark app calls if it reads a stream of items."""


class NetworkStack(TributaryStack):
    """The network stack.

    vpc        the lake's own, or the existing one of `[aws.network.vpc]`
    private    the subnets of all the lake's resources, one in each availability zone
    log_key    for the log groups of every stack. None if `[aws.storage].encryption` is "s3".
    debezium, sink, spark, functions  the security groups of the clients: each kind of connector, the Spark
               app, and the functions that prepare databases and topics. A lake without Kafka has only the
               Spark app.
    admin      the security group of the admin host. None if `[aws.network].admin_host` is false.

    An existing VPC stays unchanged: it gets no endpoints, flow logs or NAT gateway.
    """

    def __init__(self, scope: Construct, lake: Lake) -> None:
        super().__init__(scope, "network", lake, "VPC, endpoints and the clients' security groups")
        self.log_key: kms.IKey | None = (
            LogKey(self, "LogKey") if self.aws.storage.encryption == "kms" else None
        )
        self.vpc: ec2.IVpc = self._own_vpc() if self.aws.network.vpc is None else self._existing_vpc()
        self.private = _private_subnets(self.vpc)

        own = self._near(
            {
                engine_of(source).port
                for source in lake.connected_sources
                if source.name not in self.aws.source
            }
        )
        existing = _anywhere({database.port for database in self.aws.source.values()})
        kafka = _anywhere({KAFKA_PORT}) if self.aws.kafka.cluster else self._near({KAFKA_PORT})
        port = None if lake.registry is None else lake.registry.port
        schemas = frozenset() if port in (None, HTTPS_PORT) else _anywhere({port})
        if not lake.connected_sources:
            self.spark = self._clients("Spark", "the Spark app", schemas)
            self.admin = self._admin_host(frozenset())
            skip_in_functions_of_the_cdk(self)
            return
        self.debezium = self._clients("Debezium", "Debezium connectors", kafka | own | existing | schemas)
        self.sink = self._clients("Sink", "S3 sink connectors", kafka)
        self.sink.connections.allow_internally(ec2.Port.all_tcp(), "workers of one connector")
        self.spark = self._clients("Spark", "the Spark app", kafka | schemas)
        self.functions = self._clients("Functions", "functions of a deployment", kafka | own)
        self.admin = self._admin_host(kafka | own | existing)
        if self.aws.source:
            CfnOutput(
                self,
                "DebeziumSecurityGroup",
                description="The security group that existing databases must let in",
                value=self.debezium.security_group_id,
            )
        skip_in_functions_of_the_cdk(self)

    @property
    def availability_zones(self) -> list[str]:
        """The zones of the lake. Without this property, the CDK would ask AWS for them at synth."""
        return zone_names(self.aws)

    @property
    def private_subnet_ids(self) -> list[str]:
        return self.vpc.select_subnets(subnets=self.private.subnets).subnet_ids

    def _own_vpc(self) -> ec2.Vpc:
        network = self.aws.network
        private = ec2.SubnetConfiguration(
            name="Private",
            subnet_type=(
                ec2.SubnetType.PRIVATE_WITH_EGRESS
                if network.nat_gateways
                else ec2.SubnetType.PRIVATE_ISOLATED
            ),
            cidr_mask=19,
        )
        public = ec2.SubnetConfiguration(
            name="Public", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=24, map_public_ip_on_launch=False
        )
        vpc = ec2.Vpc(
            self,
            "Vpc",
            vpc_name=self.names.resource,
            ip_addresses=ec2.IpAddresses.cidr(network.cidr),
            availability_zones=self.availability_zones,
            reserved_azs=_MOST_ZONES - self.aws.zone_count,
            nat_gateways=min(network.nat_gateways, self.aws.zone_count),
            subnet_configuration=[private, public] if network.nat_gateways else [private],
            restrict_default_security_group=True,
        )
        _place(vpc, zone_ids(self.aws))
        for subnet in vpc.public_subnets:
            acknowledge(subnet, _ROUTE_OF_NAT)
        s3 = vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        for statement in (_of_this_account(), *_of_clusters(self.aws.region)):
            s3.add_to_policy(statement)
        if self.lake.item_sources:
            dynamodb = vpc.add_gateway_endpoint("DynamoDb", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB)
            dynamodb.add_to_policy(_of_this_account())
        if network.interface_endpoints:
            self._add_endpoints(vpc)
        if network.flow_logs:
            self._add_flow_logs(vpc)
        else:
            acknowledge(vpc, _NO_FLOW_LOGS)
        return vpc

    def _existing_vpc(self) -> ec2.IVpc:
        existing = self.aws.network.vpc
        assert existing is not None
        vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=existing.id,
            availability_zones=list(existing.zones),
            private_subnet_ids=list(existing.private_subnets),
        )
        for subnet in vpc.private_subnets:
            Annotations.of(subnet).acknowledge_warning(
                "@aws-cdk/aws-ec2:noSubnetRouteTableId",
                "No route is added to an existing network.",
            )
        return vpc

    def _add_endpoints(self, vpc: ec2.Vpc) -> None:
        group = ec2.SecurityGroup(
            self,
            "Endpoints",
            vpc=vpc,
            description=f"Private endpoints of lake {self.lake.name} for AWS services",
            allow_all_outbound=False,
        )
        # The construct's own rule has a token as its port, which no security pack can read.
        group.add_ingress_rule(
            ec2.Peer.ipv4(self.aws.network.cidr), ec2.Port.tcp(HTTPS_PORT), "all of the VPC"
        )
        of_items = _ENDPOINTS_OF_ITEMS if self.lake.item_sources else {}
        of_sessions = _ENDPOINTS_OF_SESSIONS if self.aws.network.admin_host else {}
        of_rotation = _ENDPOINTS_OF_ROTATION if self._rotates_without_nat else {}
        for name, service in {**_ENDPOINTS, **of_items, **of_sessions, **of_rotation}.items():
            endpoint = vpc.add_interface_endpoint(
                f"{name}Endpoint",
                service=service,
                subnets=_private_subnets(vpc),
                security_groups=[group],
                open=False,
            )
            endpoint.add_to_policy(_of_this_account())

    @property
    def _rotates_without_nat(self) -> bool:
        own = [source for source in self.lake.connected_sources if source.name not in self.aws.source]
        return bool(own and self.aws.connect.rotation_days) and self.aws.network.nat_gateways == 0

    def _admin_host(self, destinations: Destinations) -> ec2.SecurityGroup | None:
        """Create the admin host, and return its group; None: the lake file asks for no such host."""
        if not self.aws.network.admin_host:
            return None
        group = self._clients("Admin", "the admin host", destinations)
        AdminHost(self, "AdminHost", self.vpc, self.private, group)
        return group

    def _add_flow_logs(self, vpc: ec2.Vpc) -> None:
        group = LakeLogGroup(self, "FlowLogs", "flow-logs", self.log_key)
        role = iam.Role(self, "FlowLogRole", assumed_by=iam.ServicePrincipal("vpc-flow-logs.amazonaws.com"))
        policy = iam.ManagedPolicy(
            self,
            "FlowLogPolicy",
            description=f"Writes the flow logs of lake {self.lake.name}",
            statements=[
                iam.PolicyStatement(
                    actions=["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
                    resources=[group.log_group_arn],
                )
            ],
            roles=[role],
        )
        flow_log = vpc.add_flow_log(
            "FlowLog",
            # Otherwise the construct would add an inline policy to the role.
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(group, role.without_policy_updates()),
            traffic_type=ec2.FlowLogTrafficType.ALL,
        )
        flow_log.node.add_dependency(policy)

    def _near(self, ports: Iterable[int]) -> Destinations:
        """Return these ports in the VPC. The addresses of an existing VPC may have been extended."""
        if self.aws.network.vpc is not None:
            return _anywhere(ports)
        return frozenset((self.aws.network.cidr, port) for port in ports)

    def _clients(self, name: str, whose: str, destinations: Destinations) -> ec2.SecurityGroup:
        """Create a group whose members may call AWS and the destinations. Nobody may call the members."""
        group = ec2.SecurityGroup(
            self,
            name,
            vpc=self.vpc,
            description=f"Connections of {whose} of lake {self.lake.name}",
            allow_all_outbound=False,
        )
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(HTTPS_PORT), "AWS services")
        for addresses, port in sorted(destinations, key=lambda each: (each[1], each[0])):
            group.add_egress_rule(ec2.Peer.ipv4(addresses), ec2.Port.tcp(port), "Kafka and databases")
        return group


def _anywhere(ports: Iterable[int]) -> Destinations:
    return frozenset((_ANY_ADDRESS, port) for port in ports)


def _of_this_account() -> iam.PolicyStatement:
    """Return the statement of an endpoint with which another account's credentials are of no use here."""
    return iam.PolicyStatement(
        principals=[iam.AnyPrincipal()],
        actions=["*"],
        resources=["*"],
        conditions={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
    )


def _of_clusters(region: str) -> tuple[iam.PolicyStatement, ...]:
    """Return what the nodes of EMR 7 do in S3 without the account's credentials.

    They load packages, and hand over what AWS's support and the Spark UI outside the cluster show (EMR
    Management Guide, "Sample policies for private subnets that access Amazon S3").
    """
    buckets = f"arn:{Aws.PARTITION}:s3:::"
    return (
        iam.PolicyStatement(
            principals=[iam.AnyPrincipal()],
            actions=["s3:GetObject"],
            resources=[
                f"{buckets}al2023-repos-{region}-de612dc2/*",
                f"{buckets}repo.{region}.emr.amazonaws.com/*",
            ],
        ),
        iam.PolicyStatement(
            principals=[iam.AnyPrincipal()],
            actions=["s3:GetObject", "s3:PutObject"],
            resources=[
                f"{buckets}aws157-logs-prod-{region}/*",
                f"{buckets}prod.{region}.appinfo.src/*",
            ],
        ),
    )


def attachment_to_the_vpc() -> iam.PolicyStatement:
    """Return the permissions with which Lambda attaches a function to a VPC, under the function's role."""
    return iam.PolicyStatement(
        actions=[
            "ec2:AssignPrivateIpAddresses",
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:UnassignPrivateIpAddresses",
        ],
        resources=["*"],
    )


ANY_INTERFACE = (
    "Lambda attaches a function to a VPC with the function's role. It requires these permissions on any "
    "network interface, because the interface does not exist yet."
)
"""Why `attachment_to_the_vpc` is on any resource."""


def _place(vpc: ec2.Vpc, zones: Sequence[str]) -> None:
    """Put the subnets in the zones of these ids. The CDK's own property takes only names."""
    for subnets in (vpc.public_subnets, vpc.private_subnets, vpc.isolated_subnets):
        for subnet, zone in zip(subnets, zones, strict=False):
            resource = subnet.node.default_child
            assert isinstance(resource, ec2.CfnSubnet)
            resource.availability_zone, resource.availability_zone_id = None, zone


def _private_subnets(vpc: ec2.IVpc) -> ec2.SubnetSelection:
    """Return the private subnets, which the CDK calls isolated if there is no NAT gateway."""
    return ec2.SubnetSelection(subnets=[*vpc.private_subnets, *vpc.isolated_subnets])


_NO_FLOW_LOGS = dict.fromkeys(
    (
        "AwsSolutions-VPC7",
        "NIST.800.53.R5-VPCFlowLogsEnabled",
        "HIPAA.Security-VPCFlowLogsEnabled",
        "PCI.DSS.321-VPCFlowLogsEnabled",
    ),
    "[aws.network].flow_logs is false, because whoever deploys the lake does not want to pay for them.",
)
_ROUTE_OF_NAT = {
    f"{pack}-VPCNoUnrestrictedRouteToIGW": "The subnet holds only the NAT gateway, which needs this route. "
    "Nothing else starts here, and the subnet assigns no public addresses."
    for pack in ("NIST.800.53.R5", "HIPAA.Security", "PCI.DSS.321")
}
