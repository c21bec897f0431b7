"""The resources of a template that have a price, and how often they count."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_kms as kms

import stacks
from stacks.cost import NoPrice, as_table, charges
from stacks.synthesized import read_templates
from tests.stacks.conftest import FLAGS


def _counted(**resources: tuple[str, dict[str, Any]]) -> dict[str, tuple[float, float]]:
    content = {
        name: {"Type": kind, "Properties": properties} for name, (kind, properties) in resources.items()
    }
    return {each.what: (each.least, each.most) for each in charges({"Stack": {"Resources": content}})}


def test_a_connector_costs_its_least_workers_to_its_most() -> None:
    scaled = {"AutoScaling": {"McuCount": 2, "MinWorkerCount": 1, "MaxWorkerCount": 4}}
    fixed = {"ProvisionedCapacity": {"McuCount": 4, "WorkerCount": 1}}
    connectors = {
        "Sink": ("AWS::KafkaConnect::Connector", {"Capacity": scaled}),
        "Source": ("AWS::KafkaConnect::Connector", {"Capacity": fixed}),
    }
    assert _counted(**connectors) == {"connect-unit": (6, 12)}


def test_a_serverless_database_costs_its_least_capacity_to_its_most() -> None:
    capacity = {"MinCapacity": 0.5, "MaxCapacity": 8}
    database = {"DBInstanceClass": "db.serverless", "DBClusterIdentifier": {"Ref": "Cluster"}}
    assert _counted(
        Cluster=("AWS::RDS::DBCluster", {"ServerlessV2ScalingConfiguration": capacity}),
        Writer=("AWS::RDS::DBInstance", database),
    ) == {"aurora-capacity-unit": (0.5, 8)}


def test_an_endpoint_costs_in_each_of_its_zones_and_s3_s_nothing() -> None:
    assert _counted(
        Glue=("AWS::EC2::VPCEndpoint", {"VpcEndpointType": "Interface", "SubnetIds": ["a", "b", "c"]}),
        S3=("AWS::EC2::VPCEndpoint", {"VpcEndpointType": "Gateway"}),
    ) == {"interface-endpoint": (3, 3)}


def test_a_fleet_costs_its_dearest_instances_up_to_what_it_may_grow_to() -> None:
    def fleet(count: int, *instances: str) -> dict[str, Any]:
        configs = [{"InstanceType": instance} for instance in instances]
        return {"TargetOnDemandCapacity": count, "InstanceTypeConfigs": configs}

    cluster = {
        "ManagedScalingPolicy": {
            "ComputeLimits": {"MinimumCapacityUnits": 2, "MaximumCapacityUnits": 7},
        },
        "Instances": {
            "MasterInstanceFleet": fleet(1, "m7g.xlarge"),
            "CoreInstanceFleet": fleet(2, "m6g.xlarge"),
            "TaskInstanceFleets": [fleet(1, "m7g.2xlarge", "r7g.2xlarge")],
        },
    }
    counted = _counted(Cluster=("AWS::EMR::Cluster", cluster))
    assert counted == {
        "m7g.xlarge": (1, 1),
        "m6g.xlarge": (2, 2),
        "r7g.2xlarge": (1, 5),
        "disk-gigabyte": (0, 0),
    }


def test_a_resource_that_nobody_has_thought_of_is_not_free() -> None:
    with pytest.raises(NoPrice, match="AWS::Redshift::Cluster"):
        _counted(Cluster=("AWS::Redshift::Cluster", {}))


def test_every_price_has_a_source_and_its_date_or_is_unconfirmed() -> None:
    prices = tomllib.loads((Path(stacks.__file__).parent / "prices.toml").read_text())
    entries = {**prices["hourly"], **prices["monthly"], **prices["used"]}
    assert len(entries) > 20
    for what, entry in entries.items():
        assert entry["page"].startswith("https://aws.amazon.com/"), what
        if "source" in entry:
            assert isinstance(entry["read"], date), what
            assert "unconfirmed" not in entry, what
        else:
            assert entry["unconfirmed"] is True, what


def test_a_table_has_cents_marks_unconfirmed_prices_and_says_what_it_leaves_out() -> None:
    content = {
        "Alarm": {"Type": "AWS::CloudWatch::Alarm"},
        "Nat": {"Type": "AWS::EC2::NatGateway"},
    }
    table = as_table(charges({"Stack": {"Resources": content}}))
    assert "| Stack | alarm | 1 | 0.0001 ? | <0.01 |" in table
    assert "| Stack | nat-gateway | 1 | 0.0450 | 0.04 |" in table
    assert "not counted" in table
    assert "I/O" in table


def test_a_stack_of_an_earlier_synth_costs_nothing(tmp_path: Path) -> None:
    for names in (("Network", "Streaming"), ("Network",)):
        app = App(outdir=str(tmp_path / "cdk.out"), context=FLAGS)
        for name in names:
            kms.Key(Stack(app, name), "Key")
        app.synth()
    assert (tmp_path / "cdk.out" / "Streaming.template.json").exists()
    assert [each.stack for each in charges(read_templates(tmp_path / "cdk.out"))] == ["Network"]


@pytest.mark.parametrize("module", ["stacks.cost", "stacks.picture"])
def test_a_folder_without_templates_is_refused(module: str, tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-m", module, tmp_path], capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert f"{tmp_path}: there are no templates: expected the output of cdk synth." in ran.stderr
    assert "Traceback" not in ran.stderr
