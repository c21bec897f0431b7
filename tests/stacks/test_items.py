"""Sources of items on AWS: a stream and tables of the lake's own, and a lake without Kafka."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from spark_app.run.arguments import parse_arguments
from stacks.cost import charges, sum_of
from stacks.picture import as_mermaid
from stacks.synthesized import rendered, resources_of
from tests.stacks.conftest import Synthesized
from tests.stacks.lakes import write_lake_file
from tributary.aws.spark_submit import Addresses, Job, app_arguments
from tributary.contract.lake import read_lake
from tributary.operations.aws.deployed_lake import outputs_for_jobs

ALONE = ("items-alone", "existing-items-alone")


def _of_type(synthesized: Synthesized, settings: str, kind: str) -> list[dict[str, Any]]:
    found = resources_of(synthesized(settings).templates)
    return [resource.get("Properties", {}) for _, _, resource in found if resource["Type"] == kind]


@pytest.mark.parametrize("settings", ALONE)
def test_a_lake_of_items_alone_has_neither_kafka_nor_connectors(
    synthesized: Synthesized, settings: str
) -> None:
    templates = synthesized(settings).templates
    kinds = {resource["Type"] for _, _, resource in resources_of(templates)}
    assert not [
        kind for kind in kinds if kind.startswith(("AWS::MSK::", "AWS::KafkaConnect::", "AWS::RDS::"))
    ]
    assert "Streaming" not in templates
    assert "Connect" not in templates
    assert ("Database" in templates) == (settings == "items-alone")
    assert "kafka" not in json.dumps(templates["Processing"]).lower()


@pytest.mark.parametrize("settings", ALONE)
def test_only_aws_s_own_addresses_are_open_to_a_lake_of_items_alone(
    synthesized: Synthesized, settings: str
) -> None:
    ports = {
        rule["ToPort"]
        for group in _of_type(synthesized, settings, "AWS::EC2::SecurityGroup")
        for rule in group.get("SecurityGroupEgress", ())
        if rule.get("CidrIp") != "255.255.255.255/32"
    }
    assert ports == {443}


def test_a_lake_of_items_alone_costs_less(synthesized: Synthesized) -> None:
    alone, small = (charges(synthesized(settings).templates) for settings in ("items-alone", "small"))
    assert sum_of(alone)[0] < sum_of(small)[0] - 0.3
    assert ("kinesis-on-demand-stream", 1) in [(each.what, each.least) for each in alone]


def test_an_own_table_sends_every_change_to_the_own_stream_with_its_microsecond(
    synthesized: Synthesized,
) -> None:
    (table,) = _of_type(synthesized, "own-items", "AWS::DynamoDB::Table")
    (stream_id,) = (
        logical_id
        for _, logical_id, resource in resources_of(synthesized("own-items").templates)
        if resource["Type"] == "AWS::Kinesis::Stream"
    )
    assert table["TableName"] == "orders"
    assert table["KinesisStreamSpecification"] == {
        "ApproximateCreationDateTimePrecision": "MICROSECOND",
        "StreamArn": {"Fn::GetAtt": [stream_id, "Arn"]},
    }
    assert {each["AttributeName"]: each["KeyType"] for each in table["KeySchema"]} == {
        "customer": "HASH",
        "placed_at": "RANGE",
    }
    assert {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]} == {
        "customer": "S",
        "placed_at": "N",
    }


def test_an_own_stream_has_the_capacity_and_the_time_of_the_lake_file(synthesized: Synthesized) -> None:
    (provisioned,) = _of_type(synthesized, "own-items", "AWS::Kinesis::Stream")
    assert (provisioned["Name"], provisioned["ShardCount"], provisioned["RetentionPeriodHours"]) == (
        "web-items",
        2,
        168,
    )
    (on_demand,) = _of_type(synthesized, "items-alone", "AWS::Kinesis::Stream")
    assert on_demand["StreamModeDetails"] == {"StreamMode": "ON_DEMAND"}
    assert "ShardCount" not in on_demand


def test_the_account_s_own_key_encrypts_streams_and_tables_and_the_job_may_read_through_them(
    synthesized: Synthesized,
) -> None:
    (stream,), (table,) = (
        _of_type(synthesized, "own-items", kind) for kind in ("AWS::Kinesis::Stream", "AWS::DynamoDB::Table")
    )
    assert "Fn::GetAtt" in json.dumps(stream["StreamEncryption"]["KeyId"])
    assert table["SSESpecification"]["KMSMasterKeyId"] == stream["StreamEncryption"]["KeyId"]
    assert _decrypting_services(synthesized("own-items").templates["Processing"]) == [
        "dynamodb.us-east-1.amazonaws.com",
        "kinesis.us-east-1.amazonaws.com",
    ]
    (of_aws,) = _of_type(synthesized, "items-alone", "AWS::Kinesis::Stream")
    assert of_aws["StreamEncryption"]["KeyId"] == "alias/aws/kinesis"


def _decrypting_services(template: Mapping[str, Any]) -> list[str]:
    """The services other than S3 through which the job may decrypt."""
    return sorted(
        service
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
        for statement in resource["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "kms:Decrypt"
        for service in statement["Condition"]["StringEquals"]["kms:ViaService"]
    )


def test_the_job_may_read_the_files_of_the_exports_that_the_lake_file_names_and_of_no_other(
    synthesized: Synthesized,
) -> None:
    statements = [
        json.dumps(statement)
        for policy in _of_type(synthesized, "items", "AWS::IAM::ManagedPolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        if "shop-exports" in json.dumps(statement)
    ]
    assert statements
    for statement in statements:
        assert "shop-exports/daily/AWSDynamoDB/01764000000000-0123abcd/*" in statement
        assert json.loads(statement)["Action"] == "s3:GetObject"


@pytest.mark.parametrize("settings", [*ALONE, "items"])
def test_the_job_may_change_the_records_in_bronze_without_an_entry_of_the_lake_file(
    synthesized: Synthesized, settings: str
) -> None:
    statements = [
        statement
        for policy in _of_type(synthesized, settings, "AWS::IAM::ManagedPolicy")
        for statement in policy["PolicyDocument"]["Statement"]
    ]

    def may(action: str) -> str:
        return json.dumps([each["Resource"] for each in statements if action in each["Action"]])

    assert "shop-bronze" in may("s3:DeleteObject")
    assert "shop-quarantine" in may("s3:DeleteObject")
    assert "table/shop_bronze/web_items_records" in may("glue:UpdateTable")


def test_every_stream_and_every_table_with_one_is_watched(synthesized: Synthesized) -> None:
    alarms = _of_type(synthesized, "own-items", "AWS::CloudWatch::Alarm")
    named = {alarm["AlarmName"]: alarm for alarm in alarms}
    for metric, alarm in {
        "GetRecords.IteratorAgeMilliseconds": "stream-age-web-items",
        "ReadProvisionedThroughputExceeded": "stream-throttled-web-items-reads",
        "WriteProvisionedThroughputExceeded": "stream-throttled-web-items-writes",
    }.items():
        assert named[f"tributary-shop-{alarm}"]["MetricName"] == metric
    queries = {
        name: alarm["Metrics"][0]["Expression"]
        for name, alarm in named.items()
        if name.startswith("tributary-shop-not-replicated")
    }
    of_all = 'SELECT SUM(FailedToReplicateRecordCount) FROM "AWS/DynamoDB"'
    assert queries == {
        "tributary-shop-not-replicated-orders": f"{of_all} WHERE TableName = 'orders'",
        "tributary-shop-not-replicated": of_all,
    }


def test_the_picture_shows_the_way_from_the_table_to_the_app(synthesized: Synthesized) -> None:
    templates = synthesized("items-alone").templates
    ids = {
        resource["Type"]: f"{stack}{logical_id}" for stack, logical_id, resource in resources_of(templates)
    }
    table, stream, cluster = (
        ids[kind] for kind in ("AWS::DynamoDB::Table", "AWS::Kinesis::Stream", "AWS::EMR::Cluster")
    )
    lines = as_mermaid(templates).splitlines()
    assert {f"  {table} --> {stream}", f"  {stream} --> {cluster}"} <= set(lines)


@pytest.mark.parametrize("settings", ALONE)
def test_a_job_of_a_lake_of_items_alone_needs_only_outputs_that_exist(
    synthesized: Synthesized, settings: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake = read_lake(write_lake_file(settings, tmp_path_factory.mktemp("lake")))
    assert lake.aws is not None
    wanted = {(kind.title(), key) for kind, keys in outputs_for_jobs(lake).items() for key in keys}
    outputs = {
        (stack, key): rendered(output["Value"])
        for stack, template in synthesized(settings).templates.items()
        for key, output in template.get("Outputs", {}).items()
    }
    assert wanted <= outputs.keys()
    found = {key: outputs[stack, key] for stack, key in wanted}
    addresses = Addresses.of_outputs(lake.name, lake.aws, found, has_kafka=False)
    options = parse_arguments(app_arguments(Job("ingest", follow=True), addresses))
    assert (options.kafka, options.has_msk_iam, options.bronze_table) == (None, False, None)
