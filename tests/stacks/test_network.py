"""The network: private subnets, few ways out of them, and clients that nobody may call."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from stacks.network import NetworkStack
from tests.stacks.conftest import FLAGS
from tests.stacks.one_stack import lake_with, template_of, templates_of

EXISTING_VPC = """
[aws.network.vpc]
id = "vpc-0123456789abcdef0"
private_subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
zones = ["euw1-az1", "euw1-az2"]
"""
NO_INTERNET = "[aws.network]\nnat_gateways = 0\ninterface_endpoints = true"
PRODUCTION = 'profile = "production"'


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The network stack's template, by what `[aws]` says."""
    return templates_of(NetworkStack, tmp_path_factory)


@pytest.mark.parametrize(("aws", "zones"), [("", 2), (PRODUCTION, 3)])
def test_there_is_a_private_subnet_in_as_many_zones_as_the_lake_file_says(
    network: Any, aws: str, zones: int
) -> None:
    subnets = network(aws).find_resources("AWS::EC2::Subnet").values()
    places = [
        subnet["Properties"]["AvailabilityZone"]["Fn::Select"][0]
        for subnet in subnets
        if any(tag["Value"] == "Private" for tag in subnet["Properties"]["Tags"])
    ]
    assert places == list(range(zones))


def test_the_subnets_are_in_zones_that_are_known_to_fit(tmp_path: Any) -> None:
    def zones(aws: str) -> list[str]:
        template = template_of(
            lambda app: NetworkStack(app, lake_with(aws, region="us-east-1")), tmp_path / "cdk.out"
        )
        subnets = template.find_resources("AWS::EC2::Subnet").values()
        assert not any("AvailabilityZone" in subnet["Properties"] for subnet in subnets)
        return sorted({subnet["Properties"]["AvailabilityZoneId"] for subnet in subnets})

    assert zones("") == ["use1-az2", "use1-az4"]
    assert zones('[aws.network]\nzones = ["use1-az6", "use1-az1", "use1-az5"]') == [
        "use1-az1",
        "use1-az5",
        "use1-az6",
    ]


@pytest.mark.parametrize(("aws", "gateways"), [("", 1), (PRODUCTION, 3), (NO_INTERNET, 0)])
def test_there_are_as_many_nat_gateways_as_the_lake_file_says(network: Any, aws: str, gateways: int) -> None:
    network(aws).resource_count_is("AWS::EC2::NatGateway", gateways)


def test_without_a_nat_gateway_nothing_of_the_network_reaches_the_internet(network: Any) -> None:
    network(NO_INTERNET).resource_count_is("AWS::EC2::InternetGateway", 0)


def test_no_subnet_gives_out_public_addresses(network: Any) -> None:
    for subnet in network(PRODUCTION).find_resources("AWS::EC2::Subnet").values():
        assert subnet["Properties"]["MapPublicIpOnLaunch"] is False


def test_no_subnet_moves_when_a_zone_is_added(network: Any) -> None:
    def addresses(template: Template) -> set[tuple[str, str]]:
        subnets = template.find_resources("AWS::EC2::Subnet").items()
        return {(name, subnet["Properties"]["CidrBlock"]) for name, subnet in subnets}

    two, three = addresses(network()), addresses(network("[aws.network]\navailability_zones = 3"))
    assert len(two) == 4
    assert two < three


def test_private_subnets_keep_their_addresses_when_a_nat_gateway_is_added(network: Any) -> None:
    def private(template: Template) -> dict[str, str]:
        subnets = template.find_resources("AWS::EC2::Subnet").items()
        return {name: subnet["Properties"]["CidrBlock"] for name, subnet in subnets if "Private" in name}

    assert private(network(NO_INTERNET)) == private(network())


@pytest.mark.parametrize("aws", ["", PRODUCTION, NO_INTERNET])
def test_every_private_subnet_has_the_private_way_to_s3(network: Any, aws: str) -> None:
    (endpoint,) = (
        network(aws)
        .find_resources("AWS::EC2::VPCEndpoint", {"Properties": {"VpcEndpointType": "Gateway"}})
        .values()
    )
    tables = {table["Ref"] for table in endpoint["Properties"]["RouteTableIds"]}
    private = {name for name in network(aws).find_resources("AWS::EC2::RouteTable") if "Private" in name}
    assert private
    assert private <= tables


def test_interface_endpoints_are_made_only_where_the_lake_file_asks_for_them(network: Any) -> None:
    of_interfaces = {"Properties": {"VpcEndpointType": "Interface"}}
    assert not network().find_resources("AWS::EC2::VPCEndpoint", of_interfaces)
    names = {
        endpoint["Properties"]["ServiceName"].rpartition("eu-west-1.")[2]
        for endpoint in network(NO_INTERNET).find_resources("AWS::EC2::VPCEndpoint", of_interfaces).values()
    }
    assert names == {"glue", "sts", "secretsmanager", "logs", "monitoring", "kms"}


def test_interface_endpoints_answer_the_vpc_and_nobody_else(network: Any) -> None:
    network(NO_INTERNET).has_resource_properties(
        "AWS::EC2::SecurityGroup",
        {
            "GroupDescription": "Private endpoints of lake shop for AWS services",
            "SecurityGroupIngress": [
                {
                    "CidrIp": "10.42.0.0/16",
                    "Description": "all of the VPC",
                    "FromPort": 443,
                    "IpProtocol": "tcp",
                    "ToPort": 443,
                }
            ],
        },
    )


def test_flow_logs_are_kept_in_a_log_group_of_the_lake(network: Any) -> None:
    group = Match.object_like({"LogGroupName": "/tributary/shop/flow-logs", "RetentionInDays": 90})
    network().has_resource_properties("AWS::Logs::LogGroup", group)
    network().has_resource_properties("AWS::EC2::FlowLog", {"TrafficType": "ALL"})


def test_flow_logs_are_left_out_where_the_lake_file_says_so(network: Any) -> None:
    network("[aws.network]\nflow_logs = false").resource_count_is("AWS::EC2::FlowLog", 0)


def test_log_groups_have_a_key_that_serves_the_lakes_log_groups_only(network: Any) -> None:
    template = network(PRODUCTION)
    (group,) = template.find_resources("AWS::Logs::LogGroup").values()
    (key,) = template.find_resources("AWS::KMS::Key").values()
    assert "KmsKeyId" in group["Properties"]
    (for_logs,) = [
        statement
        for statement in key["Properties"]["KeyPolicy"]["Statement"]
        if statement["Principal"].get("Service") == "logs.eu-west-1.amazonaws.com"
    ]
    (arn,) = for_logs["Condition"]["ArnLike"].values()
    assert arn["Fn::Join"][1][-1] == ":log-group:/tributary/shop/*"


def test_the_default_security_group_lets_nothing_through(network: Any) -> None:
    network().resource_count_is("Custom::VpcRestrictDefaultSG", 1)


def test_an_existing_vpc_gets_security_groups_and_nothing_else(network: Any) -> None:
    kinds = {resource["Type"] for resource in network(EXISTING_VPC).to_json()["Resources"].values()}
    assert kinds == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
    }


def test_all_of_the_lake_is_in_the_private_subnets_of_an_existing_vpc(tmp_path: Any) -> None:
    stack = NetworkStack(App(outdir=str(tmp_path), context=FLAGS), lake_with(EXISTING_VPC))
    assert [subnet.subnet_id for subnet in stack.private.subnets or ()] == [
        "subnet-0123456789abcdef0",
        "subnet-0123456789abcdef1",
    ]


@pytest.mark.parametrize("aws", ["", EXISTING_VPC])
def test_no_client_may_be_called_but_by_workers_of_its_own_connector(network: Any, aws: str) -> None:
    template = network(aws)
    groups = template.find_resources("AWS::EC2::SecurityGroup")
    assert len(groups) == 4
    assert not any("SecurityGroupIngress" in group["Properties"] for group in groups.values())
    (rule,) = template.find_resources("AWS::EC2::SecurityGroupIngress").values()
    assert rule["Properties"]["GroupId"] == rule["Properties"]["SourceSecurityGroupId"]


def test_a_client_calls_aws_kafka_and_the_databases_ports_only(network: Any) -> None:
    database = """
[aws.source.web]
host = "db.example.org"
port = 6432
secret = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:web-AbCdEf"
"""
    here, anywhere = "10.42.0.0/16", "0.0.0.0/0"
    aws, kafka = (anywhere, 443), (here, 9098)
    assert destinations(network(database)) == {
        "Debezium connectors": {aws, kafka, (anywhere, 6432)},
        "S3 sink connectors": {aws, kafka},
        "the Spark app": {aws, kafka},
        "functions of a deployment": {aws, kafka},
    }
    assert destinations(network())["Debezium connectors"] == {aws, kafka, (here, 5432)}


def test_in_an_existing_vpc_clients_reach_all_its_addresses(network: Any) -> None:
    """They may have been extended beyond the CIDR that the lake file names."""
    addresses = {address for found in destinations(network(EXISTING_VPC)).values() for address, _ in found}
    assert addresses == {"0.0.0.0/0"}


def destinations(template: Template) -> dict[str, set[tuple[str, int]]]:
    """By whose group it is: the networks and ports that its members may call."""
    return {
        group["Properties"]["GroupDescription"]
        .removeprefix("Connections of ")
        .removesuffix(" of lake shop"): {
            (rule["CidrIp"], rule["FromPort"]) for rule in group["Properties"]["SecurityGroupEgress"]
        }
        for group in template.find_resources("AWS::EC2::SecurityGroup").values()
    }


OF_ACCOUNT = {"StringEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}}}
OF_AMAZON = {
    ("s3:GetObject", "al2023-repos-eu-west-1-de612dc2"),
    ("s3:GetObject", "repo.eu-west-1.emr.amazonaws.com"),
    *itertools.product(
        ("s3:GetObject", "s3:PutObject"),
        ("aws157-logs-prod-eu-west-1", "prod.eu-west-1.appinfo.src"),
    ),
}


@pytest.mark.parametrize("aws", ["", NO_INTERNET])
def test_an_endpoint_serves_only_the_lakes_account_and_what_emr_needs_of_amazon(
    network: Any, aws: str
) -> None:
    endpoints = network(aws).find_resources("AWS::EC2::VPCEndpoint").values()
    assert endpoints
    policies = [each["Properties"]["PolicyDocument"]["Statement"] for each in endpoints]
    for of_account, *of_amazon in policies:
        assert of_account["Condition"] == OF_ACCOUNT
        allowed = {
            (action, arn["Fn::Join"][1][-1].removeprefix(":s3:::").removesuffix("/*"))
            for statement in of_amazon
            for action in (
                [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
            )
            for arn in statement["Resource"]
        }
        assert allowed <= OF_AMAZON
    assert [len(policy) for policy in policies].count(3) == 1, "the endpoint of S3"


def test_an_admin_host_is_reached_through_systems_manager_only(network: Any) -> None:
    assert not network("").find_resources("AWS::EC2::Instance")
    template = network("[aws.network]\nadmin_host = true")
    (host,) = template.find_resources("AWS::EC2::Instance").values()
    assert "KeyName" not in host["Properties"]
    assert host["Properties"]["BlockDeviceMappings"][0]["Ebs"]["Encrypted"] is True
    ((group_id, group),) = (
        item
        for item in template.find_resources("AWS::EC2::SecurityGroup").items()
        if "admin host" in item[1]["Properties"]["GroupDescription"]
    )
    assert host["Properties"]["SecurityGroupIds"] == [{"Fn::GetAtt": [group_id, "GroupId"]}]
    assert "SecurityGroupIngress" not in group["Properties"]
    assert {rule["ToPort"] for rule in group["Properties"]["SecurityGroupEgress"]} == {443, 5432, 9098}
    metadata = template.find_resources("AWS::EC2::LaunchTemplate").values()
    options = [each["Properties"]["LaunchTemplateData"]["MetadataOptions"] for each in metadata]
    assert [each["HttpTokens"] for each in options] == ["required"]


def test_without_a_way_out_the_admin_host_has_endpoints_for_its_sessions(network: Any) -> None:
    closed = "[aws.network]\nnat_gateways = 0\ninterface_endpoints = true\n"

    def services(settings: str) -> set[str]:
        found = network(settings).find_resources("AWS::EC2::VPCEndpoint").values()
        names = (json.dumps(each["Properties"]["ServiceName"]) for each in found)
        return {name.rpartition(".")[2].strip('"]} ') for name in names}

    assert services(closed + "admin_host = true") - services(closed) == {"ssm", "ssmmessages", "ec2messages"}
