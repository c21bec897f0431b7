"""Kafka on AWS: only clients of the lake, only with IAM, and every topic that is known beforehand."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from stacks.functions import topics
from stacks.kafka.settings import server_properties, topic_policy
from stacks.kafka.stack import StreamingStack
from stacks.lake_function import write_main_and_wheels
from stacks.network import NetworkStack
from tests.stacks.conftest import Synthesized
from tests.stacks.one_stack import lake_with, template_of
from tributary.contract.aws import Kafka

PRODUCTION = 'profile = "production"'
EXPRESS = f'{PRODUCTION}\n[aws.kafka]\nbroker = "express.m7g.large"'
SERVERLESS = '[aws.kafka]\nkind = "serverless"'
THREE_DAYS = '[aws.kafka]\nretention = "3d"'
NAMED = """
[source.crm]
engine = "postgres"
database = "crm"
tables = ["sales.order_items", "sales.invoice_*"]
partitions = 3
"""
CLUSTER, TOPIC = "AWS::MSK::Cluster", "AWS::MSK::Topic"

Streaming = Callable[..., Template]


@pytest.fixture(scope="module")
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Streaming:
    """The streaming stack's template, by what the lake file says."""
    made: dict[tuple[str, str], Template] = {}

    def of(aws: str = "", more: str = "") -> Template:
        def make(app: App) -> StreamingStack:
            lake = lake_with(aws, more=more)
            return StreamingStack(app, lake, NetworkStack(app, lake))

        if (aws, more) not in made:
            made[aws, more] = template_of(make, tmp_path_factory.mktemp("cdk"))
        return made[aws, more]

    return of


def test_clients_log_in_with_iam_and_in_no_other_way(streaming: Streaming) -> None:
    (cluster,) = _properties(streaming(), CLUSTER)
    ways = cluster["ClientAuthentication"]
    assert ways == {
        "Sasl": {"Iam": {"Enabled": True}, "Scram": {"Enabled": False}},
        "Unauthenticated": {"Enabled": False},
    }


def test_all_that_is_sent_is_encrypted(streaming: Streaming) -> None:
    (cluster,) = _properties(streaming(), CLUSTER)
    assert cluster["EncryptionInfo"]["EncryptionInTransit"] == {"ClientBroker": "TLS", "InCluster": True}


@pytest.mark.parametrize(("aws", "keys"), [("", 0), (PRODUCTION, 1)])
def test_the_volumes_have_a_key_of_the_lakes_own_by_setting(
    streaming: Streaming, aws: str, keys: int
) -> None:
    (cluster,) = _properties(streaming(aws), CLUSTER)
    streaming(aws).resource_count_is("AWS::KMS::Key", keys)
    assert ("EncryptionAtRest" in cluster["EncryptionInfo"]) == bool(keys)


def test_the_lakes_clients_reach_the_brokers_and_nobody_else_does(streaming: Streaming) -> None:
    rules = _properties(streaming(), "AWS::EC2::SecurityGroupIngress")
    assert {(rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) for rule in rules} == {(9098, 9098, "tcp")}
    assert all("SourceSecurityGroupId" in rule and "CidrIp" not in rule for rule in rules)
    whose = {rule["Description"].split(":")[0] for rule in rules}
    assert whose == {"debezium", "sink", "spark", "functions"}
    (group,) = _properties(streaming(), "AWS::EC2::SecurityGroup")
    assert "SecurityGroupIngress" not in group


@pytest.mark.parametrize(("aws", "replicas", "in_sync"), [("", "2", "1"), (PRODUCTION, "3", "2")])
def test_the_brokers_keep_as_many_replicas_as_the_lake_file_says(
    streaming: Streaming, aws: str, replicas: str, in_sync: str
) -> None:
    server = _server_properties(streaming(aws))
    assert server["default.replication.factor"] == replicas
    assert server["min.insync.replicas"] == in_sync
    assert server["transaction.state.log.min.isr"] == in_sync
    assert server["unclean.leader.election.enable"] == "false"


def test_brokers_producers_and_topics_take_the_largest_event_that_the_lake_file_allows() -> None:
    assert server_properties(Kafka(), 32)["message.max.bytes"] == str(32 * 2**20)
    assert topic_policy(Kafka(), 32).config["max.message.bytes"] == str(32 * 2**20)
    assert topic_policy(Kafka(kind="serverless"), 4).max_event_mb == 4


def test_no_client_makes_a_topic_by_asking_for_it(streaming: Streaming) -> None:
    assert _server_properties(streaming())["auto.create.topics.enable"] == "false"


def test_the_brokers_let_the_largest_event_through(streaming: Streaming) -> None:
    server = _server_properties(streaming())
    assert server["message.max.bytes"] == server["replica.fetch.max.bytes"] == str(16 * 2**20)


def test_volumes_grow_as_far_as_the_lake_file_says_and_never_shrink(streaming: Streaming) -> None:
    template = streaming(PRODUCTION)
    template.has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalableTarget",
        {"MaxCapacity": 2000, "ScalableDimension": "kafka:broker-storage:VolumeSize"},
    )
    template.has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        {"TargetTrackingScalingPolicyConfiguration": Match.object_like({"DisableScaleIn": True})},
    )


def test_express_brokers_are_told_nothing_that_is_their_own(streaming: Streaming) -> None:
    template = streaming(EXPRESS)
    (cluster,) = _properties(template, CLUSTER)
    assert "StorageInfo" not in cluster["BrokerNodeGroupInfo"]
    template.resource_count_is("AWS::ApplicationAutoScaling::ScalableTarget", 0)
    assert _server_properties(template).keys() == {
        "auto.create.topics.enable",
        "log.retention.ms",
        "message.max.bytes",
        "replica.fetch.max.bytes",
        "offsets.retention.minutes",
    }


def test_the_brokers_logs_are_kept_with_the_lakes(streaming: Streaming) -> None:
    (cluster,) = _properties(streaming(), CLUSTER)
    assert cluster["LoggingInfo"]["BrokerLogs"]["CloudWatchLogs"]["Enabled"] is True
    streaming().has_resource_properties("AWS::Logs::LogGroup", {"LogGroupName": "/tributary/shop/kafka"})


def test_metrics_are_open_to_prometheus_only_where_the_lake_file_says_so(streaming: Streaming) -> None:
    for aws, is_open in (("", False), ("[aws.kafka]\nopen_monitoring = true", True)):
        (cluster,) = _properties(streaming(aws), CLUSTER)
        assert cluster["OpenMonitoring"]["Prometheus"] == {
            "JmxExporter": {"EnabledInBroker": is_open},
            "NodeExporter": {"EnabledInBroker": is_open},
        }


def test_the_topics_of_tables_named_in_full_are_declared_and_others_are_not(streaming: Streaming) -> None:
    assert set(_topics(streaming(more=NAMED))) == {
        "__tributary.shop.web.connect-offsets",
        "__tributary.shop.crm.connect-offsets",
        "__debezium-heartbeat.shop.web",
        "__debezium-heartbeat.shop.crm",
        "__tributary.shop.web.notifications",
        "__tributary.shop.crm.notifications",
        "__tributary.shop.bronze-control",
        "shop.crm.sales.order_u005fitems",
    }


def test_a_tables_topic_is_as_the_lake_file_has_it(streaming: Streaming) -> None:
    topic = _topics(streaming(THREE_DAYS, NAMED))["shop.crm.sales.order_u005fitems"]
    assert (topic["PartitionCount"], topic["ReplicationFactor"]) == (3, 2)
    assert _config(topic) == {
        "cleanup.policy": "delete",
        "retention.ms": str(3 * 24 * 60 * 60 * 1000),
        "max.message.bytes": str(16 * 2**20),
    }


def test_where_debezium_goes_on_is_never_dropped(streaming: Streaming) -> None:
    topic = _topics(streaming())["__tributary.shop.web.connect-offsets"]
    assert _config(topic) == {"cleanup.policy": "compact"}


def test_the_commits_of_bronze_have_one_partition_and_so_one_order(streaming: Streaming) -> None:
    assert _topics(streaming())["__tributary.shop.bronze-control"]["PartitionCount"] == 1


@pytest.mark.parametrize(
    ("aws", "fate"),
    [("", "RetainExceptOnCreate"), ('on_destroy = "delete"\ndelete_data_of = "shop"', "Delete")],
)
def test_cluster_and_topics_go_only_where_two_settings_agree(
    streaming: Streaming, aws: str, fate: str
) -> None:
    for kind in (CLUSTER, TOPIC, "AWS::MSK::Configuration", "AWS::EC2::SecurityGroup"):
        resources = streaming(aws).find_resources(kind).values()
        assert {resource.get("DeletionPolicy", "Delete") for resource in resources} == {fate}


def test_serverless_is_in_the_private_subnets_and_for_iam_only(streaming: Streaming) -> None:
    template = streaming(SERVERLESS)
    template.resource_count_is(CLUSTER, 0)
    (cluster,) = _properties(template, "AWS::MSK::ServerlessCluster")
    assert cluster["ClientAuthentication"] == {"Sasl": {"Iam": {"Enabled": True}}}
    (place,) = cluster["VpcConfigs"]
    assert (len(place["SubnetIds"]), len(place["SecurityGroups"])) == (2, 1)


def test_on_serverless_a_function_makes_the_topics_that_are_declared_elsewhere(streaming: Streaming) -> None:
    (made,) = _properties(streaming(SERVERLESS, NAMED), "Custom::TributaryTopics")
    topics = {topic["name"]: topic for topic in json.loads(made["Topics"])}
    assert topics.keys() == _topics(streaming(more=NAMED)).keys()
    table = topics["shop.crm.sales.order_u005fitems"]
    assert table["partitions"] == 3
    assert table["config"]["max.message.bytes"] == str(8 * 1024 * 1024)


def test_the_function_may_make_these_topics_and_no_others(streaming: Streaming) -> None:
    template = streaming(SERVERLESS, NAMED)
    (made,) = _properties(template, "Custom::TributaryTopics")
    (resources,) = (
        statement["Resource"]
        for policy in _properties(template, "AWS::IAM::ManagedPolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        if "kafka-cluster:CreateTopic" in statement["Action"]
    )
    ends = {json.dumps(resource).rstrip(']}"').rpartition("/")[2] for resource in resources}
    assert ends == {topic["name"] for topic in json.loads(made["Topics"])}


def test_the_function_is_in_the_private_subnets_with_what_it_calls(
    streaming: Streaming, tmp_path: Path
) -> None:
    (function,) = (
        function
        for function in _properties(streaming(SERVERLESS), "AWS::Lambda::Function")
        if function["Handler"] == "main.handle"
    )
    assert len(function["VpcConfig"]["SubnetIds"]) == 2
    write_main_and_wheels(Path(topics.__path__[0]), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"main.py", "kafka"}


def test_the_addresses_are_those_for_clients_that_log_in_with_iam(streaming: Streaming) -> None:
    for aws in ("", SERVERLESS):
        (output,) = streaming(aws).find_outputs("BootstrapServers").values()
        assert output["Value"]["Fn::GetAtt"][1] == "BootstrapBrokerStringSaslIam"


def test_more_brokers_do_not_change_the_addresses(streaming: Streaming) -> None:
    """A connector keeps its addresses: MSK Connect takes other ones for a new connector only."""
    few, many = (_lookup(streaming(aws)) for aws in ("", "[aws.kafka]\nbrokers = 4"))
    assert few == many


def _properties(template: Template, kind: str) -> list[Mapping[str, Any]]:
    return [resource["Properties"] for resource in template.find_resources(kind).values()]


def _server_properties(template: Template) -> dict[str, str]:
    (configuration,) = _properties(template, "AWS::MSK::Configuration")
    return dict(line.split("=") for line in configuration["ServerProperties"].splitlines())


def _topics(template: Template) -> dict[str, Mapping[str, Any]]:
    return {topic["TopicName"]: topic for topic in _properties(template, TOPIC)}


def _config(topic: Mapping[str, Any]) -> Any:
    return json.loads(base64.b64decode(topic["Configs"]))


def _lookup(template: Template) -> Any:
    (lookup,) = _properties(template, "Custom::AWS")
    return lookup


def test_an_existing_cluster_gets_the_lakes_topics_and_lets_its_clients_in(synthesized: Synthesized) -> None:
    resources = synthesized("existing-kafka").templates["Streaming"]["Resources"].values()
    assert {resource["Type"] for resource in resources} == {
        "AWS::EC2::SecurityGroupIngress",
        "AWS::MSK::Topic",
    }
    rules = [each["Properties"] for each in resources if each["Type"] == "AWS::EC2::SecurityGroupIngress"]
    assert {(rule["GroupId"], rule["FromPort"]) for rule in rules} == {("sg-0123456789abcdef0", 9098)}
    assert len(rules) == 4
    topics = [each["Properties"] for each in resources if each["Type"] == "AWS::MSK::Topic"]
    assert {topic["ClusterArn"].rpartition("cluster/")[2].split("/")[0] for topic in topics} == {"company"}


def test_the_alarms_of_an_existing_cluster_have_its_name(synthesized: Synthesized) -> None:
    text = json.dumps(synthesized("existing-kafka").templates["Observability"])
    assert "company" in text
    assert "'tributary-shop'" not in text
