"""The connectors on AWS: those that run locally, with the rights that they use, made after what they need."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from aws_cdk import App
from aws_cdk.assertions import Template
from botocore.model import StringShape
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from connectors import iceberg_sink
from connectors.engines.postgres import connector as debezium_postgres
from stacks.connect.connector_plugin import ConnectPlugins, PluginZip, find_plugins
from stacks.connect.stack import ConnectStack
from stacks.database.stack import DatabaseStack
from stacks.kafka.stack import StreamingStack
from stacks.lake.stack import LakeStack
from stacks.network import NetworkStack
from tests.connectors.deployments import local_deployment
from tests.postgres_source import postgres_source
from tests.stacks.conftest import FLAGS
from tests.stacks.one_stack import lake_with
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake, LakeFileError

ADDRESSES_OF_DEBEZIUM = {"database.hostname", "database.password", "database.sslmode"}
RETENTION_AND_SIZE = {
    *(
        f"topic.creation.{group}.{option}"
        for group in ("default", "own")
        for option in ("retention.ms", "max.message.bytes")
    ),
    "producer.override.max.request.size",
    "max.queue.size.in.bytes",
}
"""Where the lake file, or MSK Serverless, has other values than one machine."""
ADDRESSES_OF_SINK = {
    "iceberg.catalog.catalog-impl",
    "iceberg.catalog.warehouse",
    "iceberg.catalog.client.region",
    "iceberg.kafka.bootstrap.servers",
    "iceberg.kafka.security.protocol",
    "iceberg.kafka.sasl.mechanism",
    "iceberg.kafka.sasl.jaas.config",
    "iceberg.kafka.sasl.client.callback.handler.class",
    "iceberg.kafka.reconnect.backoff.ms",
    "iceberg.kafka.reconnect.backoff.max.ms",
}
ONLY_LOCAL = {
    "iceberg.catalog.uri",
    "iceberg.catalog.jdbc.user",
    "iceberg.catalog.jdbc.password",
    "iceberg.catalog.jdbc.schema-version",
    "iceberg.catalog.retryable_status_codes",
    "iceberg.catalog.s3.endpoint",
    "iceberg.catalog.s3.path-style-access",
}

PRODUCTION = 'profile = "production"'
KMS = '[aws.storage]\nencryption = "kms"'
THREE_DAYS = '[aws.kafka]\nretention = "3d"'
SERVERLESS = '[aws.kafka]\nkind = "serverless"'
REMOVED = "[aws.connect]\nrunning = false"
OWN_SINK = f"""
[aws.connect.sink]
plugin = "own-sink.zip"
sha256 = "{hashlib.sha256(b"own").hexdigest()}"
[aws.connect.sink.config]
"connector.class" = "org.example.S3Sink"
"s3.bucket" = "{{bucket}}"
"s3.region" = "{{region}}"
"""
TWO_SOURCES = """
[source.crm]
engine = "postgres"
database = "crm"
tables = ["sales.customer"]
"""
CONNECTOR = "AWS::KafkaConnect::Connector"


@dataclass(frozen=True)
class Connect:
    """The connect stack of a lake, synthesized."""

    lake: Lake
    template: Template

    def connector(self, name: str) -> Mapping[str, Any]:
        """The resource whose connector's name ends so."""
        (found,) = (
            resource
            for resource in self.template.find_resources(CONNECTOR).values()
            if resource["Properties"]["ConnectorName"].endswith(name)
        )
        return dict(found)

    def config(self, name: str) -> dict[str, Any]:
        return dict(self.connector(name)["Properties"]["ConnectorConfiguration"])

    def worker(self, name: str) -> tuple[str, dict[str, str]]:
        """Name and properties of the worker configuration."""
        reference = self.connector(name)["Properties"]["WorkerConfiguration"]["WorkerConfigurationArn"]
        worker = self._resource(reference["Fn::GetAtt"][0])["Properties"]
        lines = base64.b64decode(worker["PropertiesFileContent"]).decode().splitlines()
        return worker["Name"], dict(line.split("=", 1) for line in lines)

    def role(self, name: str) -> tuple[str, Mapping[str, Any]]:
        reference = self.connector(name)["Properties"]["ServiceExecutionRoleArn"]["Fn::GetAtt"][0]
        return reference, self._resource(reference)["Properties"]

    def policy(self, name: str) -> tuple[str, list[dict[str, Any]]]:
        """Logical id and statements of the one policy of the connector's role."""
        role, _ = self.role(name)
        ((logical_id, policy),) = (
            (logical_id, policy)
            for logical_id, policy in self.template.find_resources("AWS::IAM::ManagedPolicy").items()
            if {"Ref": role} in policy["Properties"]["Roles"]
        )
        return logical_id, policy["Properties"]["PolicyDocument"]["Statement"]

    def rights(self, name: str, service: str) -> set[tuple[str, str]]:
        """Action and resource, as text, of the actions of one service."""
        return {
            (action, json.dumps(resource))
            for statement in self.policy(name)[1]
            for action in _listed(statement["Action"])
            for resource in _listed(statement["Resource"])
            if action.startswith(f"{service}:")
        }

    def _resource(self, logical_id: str) -> Mapping[str, Any]:
        return dict(self.template.to_json()["Resources"][logical_id])


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Connect]:
    made: dict[tuple[str, str], Connect] = {}

    def of(aws: str = "", more: str = "") -> Connect:
        if (aws, more) not in made:
            lake = lake_with(aws, more=more)
            made[aws, more] = Connect(lake, _template(lake, tmp_path_factory.mktemp("cdk")))
        return made[aws, more]

    return of


def test_debezium_is_told_what_it_is_told_locally_but_for_addresses(connect: Callable[..., Connect]) -> None:
    for aws in ("", THREE_DAYS, SERVERLESS):
        there = connect(aws)
        source = postgres_source(there.lake, "web")
        here = debezium_postgres.render(there.lake, source, local_deployment(there.lake)).config
        config = there.config("web-debezium")
        assert config.keys() - here.keys() == {"database.sslrootcert"}
        assert here.keys() <= config.keys()
        different = {option for option in here if here[option] != config[option]}
        assert ADDRESSES_OF_DEBEZIUM <= different <= ADDRESSES_OF_DEBEZIUM | RETENTION_AND_SIZE


def test_the_sink_is_told_what_it_is_told_locally_but_for_addresses(connect: Callable[..., Connect]) -> None:
    there = connect()
    here = iceberg_sink.render(there.lake, local_deployment(there.lake)).config
    config = there.config("bronze-iceberg")
    assert here.keys() - config.keys() == ONLY_LOCAL
    assert {option for option in config if here.get(option) != config[option]} == ADDRESSES_OF_SINK
    assert config["iceberg.catalog.client.region"] == "eu-west-1"


def test_a_topic_that_debezium_makes_is_as_the_declared_ones(connect: Callable[..., Connect]) -> None:
    config = connect(THREE_DAYS).config("web-debezium")
    assert config["topic.creation.default.retention.ms"] == str(3 * 24 * 60 * 60 * 1000)


def test_serverless_is_sent_no_event_that_it_would_refuse(connect: Callable[..., Connect]) -> None:
    config = connect(SERVERLESS).config("web-debezium")
    largest = str(8 * 1024 * 1024)
    assert config["topic.creation.default.max.message.bytes"] == largest
    assert config["producer.override.max.request.size"] == largest


def test_a_password_is_only_pointed_at(connect: Callable[..., Connect]) -> None:
    password = connect().config("web-debezium")["database.password"]
    assert password.startswith("${secretsmanager:")
    assert password.endswith(":password}")
    assert "{{resolve:" not in json.dumps(connect().template.to_json())


def test_there_is_a_connector_for_each_source_and_one_sink(connect: Callable[..., Connect]) -> None:
    names = {
        resource["Properties"]["ConnectorName"]
        for resource in connect(more=TWO_SOURCES).template.find_resources(CONNECTOR).values()
    }
    assert names == {
        "tributary-shop-web-debezium",
        "tributary-shop-crm-debezium",
        "tributary-shop-bronze-iceberg",
    }


@pytest.mark.parametrize("name", ["web-debezium", "bronze-iceberg"])
def test_a_connector_is_made_after_its_policy(connect: Callable[..., Connect], name: str) -> None:
    policy, _ = connect().policy(name)
    assert policy in connect().connector(name)["DependsOn"]


def test_the_connectors_are_made_after_topics_database_and_catalog(tmp_path: Path) -> None:
    before = _order(lake_with(), tmp_path)["Connect"]
    assert {"Streaming", "Database", "Lake"} <= before


def test_a_role_is_assumed_for_its_own_connector_only(connect: Callable[..., Connect]) -> None:
    _, role = connect().role("web-debezium")
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "kafkaconnect.amazonaws.com"}
    assert statement["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    whose = json.dumps(statement["Condition"]["ArnLike"]["aws:SourceArn"])
    assert ":connector/tributary-shop-web-debezium/*" in whose


def test_a_source_reads_its_own_secret_and_no_other(connect: Callable[..., Connect]) -> None:
    there = connect(more=TWO_SOURCES)
    web, crm = (there.rights(f"{name}-debezium", "secretsmanager") for name in ("web", "crm"))
    assert {action for action, _ in web | crm} == {"secretsmanager:GetSecretValue"}
    assert len(web) == len(crm) == 1
    assert web != crm


def test_only_the_sink_may_write_bronze_and_only_the_tables_folder(connect: Callable[..., Connect]) -> None:
    there = connect()
    assert not there.rights("web-debezium", "s3") | there.rights("web-debezium", "glue")
    (where,) = (
        resource for action, resource in there.rights("bronze-iceberg", "s3") if "PutObject" in action
    )
    assert "s3:::shop-bronze-" in where
    assert where.rstrip("]}\"' ").endswith("/events/*")


def test_the_sink_may_register_one_table_in_a_database_that_is_there(connect: Callable[..., Connect]) -> None:
    rights = connect().rights("bronze-iceberg", "glue")
    assert {action for action, _ in rights} == {
        "glue:CreateTable",
        "glue:GetDatabase",
        "glue:GetTable",
        "glue:UpdateTable",
    }
    assert any("table/shop_bronze/events" in resource for _, resource in rights)


@pytest.mark.parametrize(
    ("name", "service", "actions"),
    [
        ("bronze-iceberg", "s3", {"kms:Decrypt", "kms:GenerateDataKey"}),
        ("web-debezium", "secretsmanager", {"kms:Decrypt"}),
    ],
)
def test_a_key_is_used_through_its_service_only(
    connect: Callable[..., Connect], name: str, service: str, actions: set[str]
) -> None:
    assert not connect().rights(name, "kms")
    (statement,) = (
        statement
        for statement in connect(KMS).policy(name)[1]
        if all(action.startswith("kms:") for action in _listed(statement["Action"]))
    )
    assert set(_listed(statement["Action"])) == actions
    through = {"kms:ViaService": f"{service}.eu-west-1.amazonaws.com"}
    assert statement["Condition"] == {"StringEquals": through}


def test_no_right_is_on_everything(connect: Callable[..., Connect]) -> None:
    for name in ("web-debezium", "bronze-iceberg"):
        for statement in connect(KMS).policy(name)[1]:
            assert "*" not in _listed(statement["Resource"])
            assert not [action for action in _listed(statement["Action"]) if "*" in action]


def test_where_a_source_goes_on_is_a_topic_of_a_fixed_name(connect: Callable[..., Connect]) -> None:
    _, properties = connect().worker("web-debezium")
    assert properties["offset.storage.topic"] == "__tributary.shop.web.connect-offsets"


def test_only_workers_of_sources_resolve_secrets_and_certificates(connect: Callable[..., Connect]) -> None:
    assert connect().worker("web-debezium")[1]["config.providers"] == "secretsmanager,certificates"
    assert "config.providers" not in connect().worker("bronze-iceberg")[1]


def test_a_worker_configuration_is_named_after_its_content(connect: Callable[..., Connect]) -> None:
    there = connect(more=TWO_SOURCES)
    names = [there.worker(name)[0] for name in ("web-debezium", "crm-debezium", "bronze-iceberg")]
    assert len({name.rpartition("-")[2] for name in names}) == 3
    assert there.worker("web-debezium") == connect().worker("web-debezium")


def test_a_plugin_is_named_after_its_content(connect: Callable[..., Connect]) -> None:
    plugins = connect().template.find_resources("AWS::KafkaConnect::CustomPlugin").values()
    assert {plugin["Properties"]["Name"] for plugin in plugins} == {
        "tributary-shop-debezium-connector-postgres-0123456789ab",
        "tributary-shop-iceberg-sink-ba9876543210",
    }


def test_a_source_has_one_worker_and_the_sink_as_many_as_it_needs(connect: Callable[..., Connect]) -> None:
    there = connect(PRODUCTION)
    source, sink = (
        there.connector(name)["Properties"]["Capacity"] for name in ("web-debezium", "bronze-iceberg")
    )
    assert source == {"ProvisionedCapacity": {"McuCount": 2, "WorkerCount": 1}}
    scaling = sink["AutoScaling"]
    assert (scaling["McuCount"], scaling["MinWorkerCount"], scaling["MaxWorkerCount"]) == (2, 1, 4)


def test_a_commit_of_bronze_has_no_more_parts_than_the_sink_may_have_workers(
    connect: Callable[..., Connect],
) -> None:
    for there, tasks in ((connect(PRODUCTION), 4), (connect(more=OWN_SINK), None)):
        scaling = there.connector("bronze-iceberg")["Properties"]["Capacity"]["AutoScaling"]
        assert scaling.get("MaxAutoscalingTaskCount") == tasks


@pytest.mark.parametrize("name", ["web-debezium", "bronze-iceberg"])
def test_a_connector_logs_in_with_iam_over_tls_and_its_log_is_kept(
    connect: Callable[..., Connect], name: str
) -> None:
    properties = connect().connector(name)["Properties"]
    assert properties["KafkaClusterClientAuthentication"] == {"AuthenticationType": "IAM"}
    assert properties["KafkaClusterEncryptionInTransit"] == {"EncryptionType": "TLS"}
    assert properties["LogDelivery"]["WorkerLogDelivery"]["CloudWatchLogs"]["Enabled"] is True
    connect().template.has_resource_properties(
        "AWS::Logs::LogGroup", {"LogGroupName": f"/tributary/shop/connect/tributary-shop-{name}"}
    )


def test_removed_connectors_leave_all_that_they_go_on_from(connect: Callable[..., Connect]) -> None:
    there, removed = connect().template.to_json(), connect(REMOVED).template.to_json()
    gone = there["Resources"].keys() - removed["Resources"].keys()
    assert {there["Resources"][each]["Type"] for each in gone} == {CONNECTOR}
    assert removed["Resources"].keys() <= there["Resources"].keys()


def test_another_sink_gets_the_lakes_topics_and_the_bronze_bucket(connect: Callable[..., Connect]) -> None:
    there = connect(more=OWN_SINK)
    config = there.config("bronze-iceberg")
    assert config["connector.class"] == "org.example.S3Sink"
    assert config["topics.regex"] == there.lake.table_topics_regex
    assert config["s3.region"] == "eu-west-1"
    assert "shop-bronze-" in json.dumps(config["s3.bucket"])


def test_another_sink_may_write_bronze_but_neither_catalog_nor_control_topic(
    connect: Callable[..., Connect],
) -> None:
    there = connect(more=OWN_SINK)
    assert not there.rights("bronze-iceberg", "glue")
    assert any(action == "s3:PutObject" for action, _ in there.rights("bronze-iceberg", "s3"))
    kafka = there.rights("bronze-iceberg", "kafka-cluster")
    assert not any("bronze-control" in resource for _, resource in kafka)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ('"tasks.max" = "1"', 'config with "connector.class"'),
        ('"connector.class" = "x"\ntopics = "a"', "config without topics"),
    ],
)
def test_another_sink_names_its_class_and_leaves_the_topics_to_the_lake(config: str, problem: str) -> None:
    sink = (
        f'\n[aws.connect.sink]\nplugin = "a.zip"\nsha256 = "{"0" * 64}"\n[aws.connect.sink.config]\n{config}'
    )
    with pytest.raises(LakeFileError, match=problem):
        lake_with(more=sink)


def test_a_plugin_that_has_not_been_built_is_missed_with_the_command_that_builds_it(tmp_path: Path) -> None:
    with pytest.raises(TributaryError, match="tributary plugins build --out"):
        find_plugins(lake_with(), tmp_path / "lake.toml", tmp_path)


def test_of_two_builds_of_a_plugin_none_is_guessed(tmp_path: Path) -> None:
    for digest in ("0123456789ab", "ba9876543210"):
        (tmp_path / f"debezium-connector-postgres-{digest}.zip").touch()
    with pytest.raises(TributaryError, match=r"0123456789ab\.zip and .*ba9876543210\.zip"):
        find_plugins(lake_with(), tmp_path / "lake.toml", tmp_path)


def test_the_built_plugins_are_found_without_building_them(tmp_path: Path) -> None:
    (tmp_path / "debezium-connector-postgres-0123456789ab.zip").touch()
    (tmp_path / "iceberg-sink-ba9876543210.zip").touch()
    plugins = find_plugins(lake_with(), tmp_path / "lake.toml", tmp_path)
    digests = {engine: plugin.digest for engine, plugin in plugins.sources.items()}
    assert (digests, plugins.sink.digest) == ({"postgres": "0123456789ab"}, "ba9876543210")


def test_a_plugin_of_the_users_own_is_the_one_that_the_lake_file_pins(tmp_path: Path) -> None:
    (tmp_path / "debezium-connector-postgres-0123456789ab.zip").touch()
    lake, own = lake_with(more=OWN_SINK), tmp_path / "own-sink.zip"
    with pytest.raises(TributaryError, match=r"\[aws.connect.sink\].plugin"):
        find_plugins(lake, tmp_path / "lake.toml", tmp_path)
    own.write_bytes(b"other")
    with pytest.raises(TributaryError, match=r"\[aws.connect.sink\].sha256"):
        find_plugins(lake, tmp_path / "lake.toml", tmp_path)
    own.write_bytes(b"own")
    assert find_plugins(lake, tmp_path / "lake.toml", tmp_path).sink.path == own


def _template(lake: Lake, folder: Path) -> Template:
    return Template.from_stack(_connect_stack(lake, folder))


def _order(lake: Lake, folder: Path) -> dict[str, set[str]]:
    """Return, by a stack's id, the ids of the stacks that its template depends on."""
    stack = _connect_stack(lake, folder)
    Template.from_stack(stack)
    return {stack.node.id: {each.node.id for each in stack.dependencies}}


def _connect_stack(lake: Lake, folder: Path) -> ConnectStack:
    plugin = folder / "plugin.zip"
    plugin.write_bytes(b"a plugin")
    plugins = ConnectPlugins(
        sources={"postgres": PluginZip("debezium-connector-postgres", plugin, "0123456789ab")},
        sink=PluginZip("iceberg-sink", plugin, "ba9876543210"),
    )
    app = App(outdir=str(folder / "cdk.out"), context=FLAGS)
    network = NetworkStack(app, lake)
    database, streaming = DatabaseStack(app, lake, network), StreamingStack(app, lake, network)
    return ConnectStack(app, lake, network, LakeStack(app, lake), database, streaming, plugins)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_only_options_and_capacity_of_a_connector_change_in_place() -> None:
    """As docs/deploy.md says, by CloudFormation's own schema."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(
        region="us-east-1", resource_type="AWS::KafkaConnect::Connector"
    ).schema
    replaced = {path.rpartition("/")[2] for path in schema["createOnlyProperties"]}
    assert {"Plugins", "WorkerConfiguration", "KafkaConnectVersion", "ServiceExecutionRoleArn"} <= replaced
    assert schema["properties"].keys() - replaced == {
        "Capacity",
        "ConnectorArn",
        "ConnectorConfiguration",
        "Tags",
    }


def test_msk_connect_logs_in_with_iam_or_not_at_all() -> None:
    model = botocore.session.get_session().get_service_model("kafkaconnect")
    ways = model.shape_for("KafkaClusterClientAuthenticationType")
    assert isinstance(ways, StringShape)
    assert set(ways.enum) == {"IAM", "NONE"}
