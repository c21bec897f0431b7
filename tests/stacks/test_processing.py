"""Where the Spark app runs: on a cluster or without servers, closed, encrypted, and with narrow rights."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from stacks.database.stack import DatabaseStack
from stacks.kafka.stack import StreamingStack
from stacks.lake.stack import LakeStack
from stacks.network import NetworkStack
from stacks.processing.spark_package import JARS_LOCK, LakeFiles
from stacks.processing.stack import ProcessingStack
from stacks.synthesized import resources_of
from tests.stacks.conftest import FLAGS, Synthesized
from tests.stacks.lakes import write_assets, write_lake_file
from tributary.artifacts.lock import read_lock
from tributary.contract.aws_names import Output
from tributary.contract.errors import TributaryError
from tributary.contract.lake import read_lake

Processing = Callable[[str], Template]
CLUSTER = "AWS::EMR::Cluster"


@pytest.fixture(scope="module")
def processing(tmp_path_factory: pytest.TempPathFactory) -> Processing:
    """The template of the processing stack, by the settings' name."""
    made: dict[str, Template] = {}

    def template(settings: str) -> Template:
        if settings not in made:
            made[settings] = Template.from_stack(build(settings, tmp_path_factory.mktemp(settings)))
        return made[settings]

    return template


def build(settings: str, folder: Path, assets: Path | None = None, more: str = "") -> ProcessingStack:
    app = App(outdir=str(folder / "cdk.out"), context=FLAGS)
    lake_file = write_lake_file(settings, folder)
    lake_file.write_text(lake_file.read_text() + more)
    lake = read_lake(lake_file)
    network, lake_stack = NetworkStack(app, lake), LakeStack(app, lake)
    has_kafka = bool(lake.connected_sources)
    has_database = has_kafka or (lake.aws is not None and bool(lake.aws.items))
    database = DatabaseStack(app, lake, network) if has_database else None
    streaming = StreamingStack(app, lake, network) if has_kafka else None
    built = assets or write_assets(folder)
    return ProcessingStack(app, lake, network, lake_stack, database, streaming, built, LakeFiles(lake_file))


def cluster(template: Template) -> dict[str, Any]:
    (found,) = template.find_resources(CLUSTER).values()
    properties: dict[str, Any] = found["Properties"]
    return properties


def security(template: Template) -> dict[str, Any]:
    (found,) = template.find_resources("AWS::EMR::SecurityConfiguration").values()
    configuration: dict[str, Any] = found["Properties"]["SecurityConfiguration"]
    return configuration


def statements(template: Template, policy: str) -> list[Mapping[str, Any]]:
    found = template.find_resources("AWS::IAM::ManagedPolicy")
    ((_, resource),) = [item for item in found.items() if policy in item[0]]
    document: list[Mapping[str, Any]] = resource["Properties"]["PolicyDocument"]["Statement"]
    return document


def test_the_default_is_a_cluster_on_graviton_that_stays(processing: Processing) -> None:
    found = cluster(processing("small"))
    assert found["ReleaseLabel"] == "emr-7.13.0"
    assert found["Instances"]["CoreInstanceGroup"]["InstanceType"] == "m7g.xlarge"
    assert found["Instances"]["KeepJobFlowAliveWhenNoSteps"] is True
    assert "AutoTerminationPolicy" not in found


def test_managed_scaling_stays_between_the_core_and_units_max(processing: Processing) -> None:
    assert cluster(processing("small"))["ManagedScalingPolicy"]["ComputeLimits"] == {
        "UnitType": "Instances",
        "MinimumCapacityUnits": 1,
        "MaximumCapacityUnits": 2,
        "MaximumCoreCapacityUnits": 1,
        "MaximumOnDemandCapacityUnits": 2,
    }


def test_all_above_the_core_is_spot_in_fleets_with_spot(processing: Processing) -> None:
    found = cluster(processing("production"))
    (task,) = found["Instances"]["TaskInstanceFleets"]
    assert (task["TargetOnDemandCapacity"], task["TargetSpotCapacity"]) == (0, 1)
    assert [one["InstanceType"] for one in task["InstanceTypeConfigs"]] == [
        "r7g.2xlarge",
        "r6g.2xlarge",
        "m7g.2xlarge",
    ]
    core = found["Instances"]["CoreInstanceFleet"]
    assert (core["TargetOnDemandCapacity"], core["TargetSpotCapacity"]) == (2, 0)
    assert found["ManagedScalingPolicy"]["ComputeLimits"]["MaximumOnDemandCapacityUnits"] == 2


def test_the_first_spot_request_in_an_account_may_create_its_role(processing: Processing) -> None:
    def creates_roles(settings: str) -> bool:
        return any(
            statement["Action"] == "iam:CreateServiceLinkedRole"
            for statement in statements(processing(settings), "ServicePolicy")
        )

    assert creates_roles("production")
    assert not creates_roles("small")


def test_emr_may_do_what_its_managed_policy_lets_it_do_for_such_a_cluster(processing: Processing) -> None:
    """AmazonEMRServicePolicy_v2, version 3 of 2024-05-02, as github.com/zoph-io/MAMIP keeps it."""
    allowed = {
        action
        for statement in statements(processing("small"), "ServicePolicy")
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }
    in_managed_policy = {
        *(
            f"ec2:{verb}SecurityGroup{way}"
            for verb in ("Authorize", "Revoke")
            for way in ("Egress", "Ingress")
        ),
        "ec2:CreateFleet",
        "ec2:CreateLaunchTemplate",
        "ec2:CreateLaunchTemplateVersion",
        "ec2:CreateNetworkInterface",
        "ec2:CreateTags",
        "ec2:DeleteLaunchTemplate",
        "ec2:DeleteNetworkInterface",
        "ec2:DeleteTags",
        "ec2:ModifyInstanceAttribute",
        "ec2:RunInstances",
        "ec2:TerminateInstances",
        "iam:PassRole",
    }
    assert {each for each in allowed if not each.startswith(("ec2:Describe", "kms:"))} == in_managed_policy
    assert len([each for each in allowed if each.startswith("ec2:Describe")]) == 18


def test_fleets_may_start_in_any_zone_of_the_lake(processing: Processing) -> None:
    assert len(cluster(processing("production"))["Instances"]["Ec2SubnetIds"]) == 3


def test_disks_and_what_goes_to_s3_are_encrypted(processing: Processing) -> None:
    at_rest = security(processing("small"))["EncryptionConfiguration"]["AtRestEncryptionConfiguration"]
    assert at_rest["S3EncryptionConfiguration"] == {"EncryptionMode": "SSE-S3"}
    assert at_rest["LocalDiskEncryptionConfiguration"]["EnableEbsEncryption"] is True


def test_with_a_key_of_the_account_s_own_it_encrypts_disks_and_s3(processing: Processing) -> None:
    at_rest = security(processing("kms"))["EncryptionConfiguration"]["AtRestEncryptionConfiguration"]
    in_s3 = at_rest["S3EncryptionConfiguration"]
    assert in_s3["EncryptionMode"] == "SSE-KMS"
    assert in_s3["AwsKmsKey"] == at_rest["LocalDiskEncryptionConfiguration"]["AwsKmsKey"]
    (signing,) = processing("kms").find_resources("AWS::KMS::Key").values()
    assert signing["Properties"]["KeyUsage"] == "SIGN_VERIFY"


def test_nodes_talk_by_tls_with_a_certificate_that_the_deployment_makes(processing: Processing) -> None:
    template = processing("small")
    encryption = security(template)["EncryptionConfiguration"]
    assert encryption["EnableInTransitEncryption"] is True
    (made,) = template.find_resources("Custom::TributaryClusterCertificate")
    assert encryption["InTransitEncryptionConfiguration"]["TLSCertificateConfiguration"] == {
        "CertificateProviderType": "PEM",
        "S3Object": {"Fn::GetAtt": [made, "Object"]},
    }
    assert "emr-tls/*" in json.dumps(statements(template, "NodesPolicy"))


def test_the_certificate_is_for_the_names_of_the_region(processing: Processing) -> None:
    processing("small").has_resource_properties(
        "Custom::TributaryClusterCertificate", {"Domain": "ec2.internal"}
    )


def test_without_a_certificate_spark_encrypts_what_its_processes_send(tmp_path: Path) -> None:
    template = Template.from_stack(build("small", tmp_path, more="[aws.processing]\ntls = false\n"))
    assert security(template)["EncryptionConfiguration"]["EnableInTransitEncryption"] is False
    by_name = {
        one["Classification"]: one["ConfigurationProperties"] for one in cluster(template)["Configurations"]
    }
    encrypted = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
    assert by_name["spark-defaults"] == encrypted
    assert encrypted.items() <= by_name["yarn-site"].items()


def test_no_driver_is_on_a_spot_instance(processing: Processing) -> None:
    by_name = {
        one["Classification"]: one["ConfigurationProperties"]
        for one in cluster(processing("production"))["Configurations"]
    }
    assert by_name["yarn-site"]["yarn.node-labels.am.default-node-label-expression"] == "ON_DEMAND"


def test_a_node_s_metadata_needs_a_session(processing: Processing) -> None:
    assert security(processing("small"))["InstanceMetadataServiceConfiguration"] == {
        "MinimumInstanceMetadataServiceVersion": 2,
        "HttpPutResponseHopLimit": 1,
    }


def test_steps_run_as_a_role_that_only_the_nodes_take_on(processing: Processing) -> None:
    template = processing("small")
    authorization = security(template)["AuthorizationConfiguration"]["IAMConfiguration"]
    assert authorization == {"EnableApplicationScopedIAMRole": True}
    roles = template.find_resources("AWS::IAM::Role")
    nodes = next(name for name in roles if "Nodes" in name)
    job = next(role for name, role in roles.items() if "Job" in name)
    (trusted,) = job["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trusted["Principal"] == {"AWS": {"Fn::GetAtt": [nodes, "Arn"]}}
    assert trusted["Action"] == ["sts:AssumeRole", "sts:TagSession"]


def test_a_job_writes_silver_and_quarantine_but_only_reads_bronze(processing: Processing) -> None:
    writable = json.dumps(
        [
            one["Resource"]
            for one in statements(processing("small"), "JobPolicy")
            if "s3:PutObject" in one["Action"]
        ]
    )
    assert "shop-silver" in writable
    assert "shop-quarantine" in writable
    assert "shop-bronze" not in writable


@pytest.mark.parametrize("entry", ['retention = "90d"', "erase = true"])
def test_a_job_changes_bronze_only_if_the_lake_file_says_so(entry: str, tmp_path: Path) -> None:
    template = Template.from_stack(build("everything-else", tmp_path, more=f"\n[bronze]\n{entry}\n"))
    of_job = statements(template, "JobPolicy")
    writable = [one["Resource"] for one in of_job if "s3:DeleteObject" in one["Action"]]
    assert "shop-bronze" in json.dumps(writable)
    updatable = [one["Resource"] for one in of_job if "glue:UpdateTable" in one["Action"]]
    assert "table/shop_bronze/events" in json.dumps(updatable)
    granted = [
        found["Properties"]["Permissions"]
        for found in template.find_resources("AWS::LakeFormation::PrincipalPermissions").values()
        if found["Properties"]["Resource"].get("Table", {}).get("DatabaseName") == "shop_bronze"
    ]
    assert granted == [["ALTER", "DELETE", "DESCRIBE", "INSERT", "SELECT"]]


def test_a_job_reads_of_the_assets_its_own_only(processing: Processing) -> None:
    text = json.dumps(
        [
            one["Resource"]
            for one in statements(processing("small"), "JobPolicy")
            if "s3:GetObject" in one["Action"]
        ]
    )
    objects = re.findall(r"assets-[^/]*/([^\"]*)", text)
    assert objects
    assert all(re.fullmatch(r"[0-9a-f]{64}\.(zip|jar|py)", name) for name in objects)


def test_nodes_write_logs_but_reach_none_of_the_lake_s_data(processing: Processing) -> None:
    text = json.dumps(statements(processing("small"), "NodesPolicy"))
    assert "shop-logs" in text
    assert not [kind for kind in ("bronze", "silver", "quarantine") if f"shop-{kind}" in text]


def test_emr_may_pass_on_the_nodes_role_only_and_only_to_ec2(processing: Processing) -> None:
    (passing,) = [
        one for one in statements(processing("small"), "ServicePolicy") if one["Action"] == "iam:PassRole"
    ]
    assert "Nodes" in json.dumps(passing["Resource"])
    assert passing["Condition"] == {"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}}


def test_the_groups_that_emr_would_add_rules_to_have_them_already(processing: Processing) -> None:
    rules = processing("small").find_resources("AWS::EC2::SecurityGroupIngress").values()
    by_port = sorted((one["Properties"]["IpProtocol"], one["Properties"].get("FromPort")) for one in rules)
    among_nodes = [
        (protocol, port) for protocol, port in (("icmp", -1), ("tcp", 0), ("udp", 0)) for _ in range(4)
    ]
    assert by_port == sorted([*among_nodes, ("tcp", 8443), ("tcp", 8443), ("tcp", 9443)])


def test_the_cluster_comes_after_its_rights_and_its_rules(processing: Processing) -> None:
    (found,) = processing("small").find_resources(CLUSTER).values()
    needed = " ".join(found["DependsOn"])
    assert all(part in needed for part in ("ServicePolicy", "NodesPolicy", "JobPolicy", "Groups"))


def test_serverless_has_an_application_in_place_of_a_cluster(processing: Processing) -> None:
    template = processing("emr-serverless")
    template.resource_count_is(CLUSTER, 0)
    template.has_resource_properties(
        "AWS::EMRServerless::Application",
        {
            "Architecture": "ARM64",
            "ReleaseLabel": "emr-7.13.0",
            "MaximumCapacity": {"Cpu": "4 vCPU", "Memory": "16 GB", "Disk": "40 GB"},
            "AutoStopConfiguration": {"Enabled": True, "IdleTimeoutMinutes": 15},
            "NetworkConfiguration": Match.object_like({"SecurityGroupIds": [Match.any_value()]}),
        },
    )


def test_only_runs_of_this_application_take_on_the_serverless_role(processing: Processing) -> None:
    (role,) = [
        one
        for name, one in processing("emr-serverless").find_resources("AWS::IAM::Role").items()
        if "JobRole" in name
    ]
    (trusted,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert "ApplicationId" in json.dumps(trusted["Condition"]["ArnEquals"]["aws:SourceArn"])


@pytest.mark.parametrize(
    ("settings", "place"), [("small", Output.EMR_CLUSTER), ("emr-serverless", Output.EMR_SERVERLESS)]
)
def test_the_outputs_say_all_that_a_submit_needs(processing: Processing, settings: str, place: str) -> None:
    outputs = set(processing(settings).find_outputs("*"))
    assert outputs >= {
        place,
        Output.RUNTIME_ROLE,
        Output.SPARK_APP,
        Output.SPARK_ENTRY_POINT,
        Output.SPARK_JARS,
        Output.LAKE_FILE,
    }


def test_the_jars_are_those_of_the_lock_and_the_app_s_own(processing: Processing) -> None:
    (jars,) = processing("small").find_outputs(Output.SPARK_JARS).values()
    assert json.dumps(jars["Value"]).count("s3://") == len(read_lock(JARS_LOCK)["emr"]) + 1


def test_a_package_that_is_not_built_is_named_with_the_command_that_builds_it(tmp_path: Path) -> None:
    empty = tmp_path / "dist"
    empty.mkdir()
    with pytest.raises(TributaryError, match="Run tributary package --platform linux-arm64 --out "):
        build("small", tmp_path, empty)


def test_x86_gets_the_package_with_wheels_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "built"
    folder.mkdir()
    assets = write_assets(folder)
    next(assets.glob("*linux-amd64*")).unlink()
    with pytest.raises(TributaryError, match="tributary-spark-app-linux-amd64"):
        build("everything-else", tmp_path, assets)


def test_lake_formation_grants_the_app_what_it_writes_only_where_the_account_needs_it(
    synthesized: Synthesized,
) -> None:
    def grants(settings: str) -> set[tuple[str, str, tuple[str, ...]]]:
        """The stack, the database and the permissions on its tables."""
        return {
            (stack, resource["Properties"]["Resource"]["Table"]["DatabaseName"], tuple(permissions))
            for stack, _, resource in resources_of(synthesized(settings).templates)
            if resource["Type"] == "AWS::LakeFormation::PrincipalPermissions"
            and "Table" in resource["Properties"]["Resource"]
            and (permissions := resource["Properties"]["Permissions"])
            and stack != "Lake"
        }

    writing = ("ALTER", "DELETE", "DESCRIBE", "INSERT", "SELECT")
    assert grants("small") == set()
    assert grants("everything-else") == {
        ("Connect", "shop_bronze", writing),
        ("Processing", "shop_silver", writing),
        ("Processing", "shop_bronze", ("DESCRIBE", "SELECT")),
    }


DERIVED = """
[derived.totals]
key = ["country"]
file = "queries/totals.sql"
folder = "s3://shop-files/totals"
"""


def test_the_files_of_queries_lie_beside_the_lake_file_that_the_app_gets(tmp_path: Path) -> None:
    lake_file = write_lake_file("small", tmp_path)
    lake_file.write_text(lake_file.read_text() + DERIVED)
    query = tmp_path / "queries" / "totals.sql"
    query.parent.mkdir()
    query.write_text("SELECT country FROM customers")
    packed = tmp_path / "packed"
    packed.mkdir()
    LakeFiles(lake_file).write(packed / "lake.toml")
    assert (packed / "queries" / "totals.sql").read_text() == "SELECT country FROM customers"


def test_a_job_may_write_the_folders_of_derived_tables_and_no_other(tmp_path: Path) -> None:
    more = DERIVED.replace('file = "queries/totals.sql"', 'sql = "SELECT country FROM customers"')
    template = Template.from_stack(build("small", tmp_path, more=more))
    documents = [
        resource["Properties"]["PolicyDocument"]
        for resource in template.find_resources("AWS::IAM::ManagedPolicy").values()
    ]
    written = [
        json.dumps(statement["Resource"])
        for document in documents
        for statement in document["Statement"]
        if "s3:PutObject" in statement["Action"] and "shop-files" in json.dumps(statement["Resource"])
    ]
    assert len(written) == 1
    assert ":s3:::shop-files/totals/*" in written[0]


@pytest.mark.parametrize("topic_format", ["json", "avro"])
def test_only_a_job_that_writes_messages_in_avro_may_add_schemas(tmp_path: Path, topic_format: str) -> None:
    more = f'''
[registry]
kind = "glue"
[derived.totals]
key = ["country"]
sql = "SELECT country FROM customers"
topic = "shop.totals"
topic_format = "{topic_format}"
'''
    template = Template.from_stack(build("small", tmp_path, more=more))
    statements = [
        statement
        for resource in template.find_resources("AWS::IAM::ManagedPolicy").values()
        for statement in resource["Properties"]["PolicyDocument"]["Statement"]
    ]
    adding = [statement for statement in statements if "glue:RegisterSchemaVersion" in statement["Action"]]
    assert len(adding) == (1 if topic_format == "avro" else 0)
    for statement in adding:
        assert ":schema/tributary-shop/*" in json.dumps(statement["Resource"])
