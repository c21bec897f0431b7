"""An entry of [aws] that changes nothing is refused. What a profile brings may have no effect."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.contract.lake_files import toml
from tests.contract.test_aws import CLUSTER, SECRET, SERVERLESS_CLUSTER, VPC
from tributary.contract.lake import Lake, LakeFileError, parse_lake, read_lake

_WEB = {"engine": "postgres", "database": "web", "tables": ["public.*"]}
_ITEMS = {"engine": "dynamodb", "tables": ["orders"], "stream": "items"}
_EXISTING = {"web": {"host": "db.example.org", "secret": SECRET}}
_SERVERLESS = {"kind": "serverless"}

UNUSED: Mapping[str, tuple[dict[str, Any], str, Any, str]] = {
    "NAT gateways in an existing VPC": ({"network": {"vpc": VPC}}, "network.nat_gateways", 1, "existing VPC"),
    "endpoints in an existing VPC": (
        {"network": {"vpc": VPC}},
        "network.interface_endpoints",
        True,
        "existing VPC",
    ),
    "flow logs in an existing VPC": ({"network": {"vpc": VPC}}, "network.flow_logs", False, "existing VPC"),
    "addresses of an existing VPC": (
        {"network": {"vpc": VPC}},
        "network.cidr",
        "10.9.0.0/16",
        "existing VPC",
    ),
    "a number of zones in an existing VPC": (
        {"network": {"vpc": VPC}},
        "network.availability_zones",
        2,
        "existing VPC",
    ),
    "zones beside those of an existing VPC": (
        {"network": {"vpc": VPC}},
        "network.zones",
        ["euw1-az1", "euw1-az2"],
        "existing VPC",
    ),
    "a number of zones beside the zones": (
        {"network": {"zones": ["euw1-az1", "euw1-az2"]}},
        "network.availability_zones",
        2,
        "zones already says",
    ),
    "brokers of an existing cluster": (
        {"network": {"vpc": VPC}, "kafka": {"cluster": CLUSTER}},
        "kafka.broker",
        "kafka.m7g.large",
        "existing cluster",
    ),
    "replicas in sync of an existing cluster": (
        {"network": {"vpc": VPC}, "kafka": {"cluster": CLUSTER}},
        "kafka.min_insync",
        1,
        "existing cluster",
    ),
    "disks of Express brokers": (
        {
            "network": {"availability_zones": 3},
            "kafka": {"broker": "express.m7g.large", "replication": 3, "min_insync": 2},
        },
        "kafka.storage_gb",
        100,
        "Express brokers",
    ),
    "brokers of MSK Serverless": (
        {"kafka": _SERVERLESS},
        "kafka.broker",
        "kafka.m7g.large",
        "MSK Serverless",
    ),
    "replicas of MSK Serverless": ({"kafka": _SERVERLESS}, "kafka.replication", 2, "MSK Serverless"),
    "replicas of an existing MSK Serverless": (
        {"network": {"vpc": VPC}, "kafka": {**_SERVERLESS, "cluster": SERVERLESS_CLUSTER}},
        "kafka.replication",
        2,
        "MSK Serverless",
    ),
    "the size of a database that exists": (
        {"source": _EXISTING},
        "database",
        {"readers": 1},
        "creates no database for a source of the engine postgres",
    ),
    "the alarm of a database that exists": (
        {"source": _EXISTING},
        "alarms.slot_lag_gb",
        3,
        "creates no database",
    ),
    "a rotation in a database that exists": (
        {"source": _EXISTING},
        "connect.rotation_days",
        30,
        "existing database",
    ),
    "a database of an engine without a source": ({}, "mysql", {"readers": 1}, "engine mysql"),
    "an instance of an engine without a source": ({}, "sqlserver", {"standby": True}, "engine sqlserver"),
    "capacity of instances of one size": (
        {"database": {"instance": "db.r7g.large"}},
        "database.capacity_max",
        8.0,
        "one size",
    ),
    "instances of EMR Serverless": (
        {"processing": {"on": "emr-serverless"}},
        "processing.core",
        "m7g.xlarge",
        "EMR Serverless",
    ),
    "Spot on EMR Serverless": (
        {"processing": {"on": "emr-serverless"}},
        "processing.spot",
        True,
        "EMR Serverless",
    ),
    "certificates of EMR Serverless": (
        {"processing": {"on": "emr-serverless"}},
        "processing.tls",
        True,
        "EMR Serverless",
    ),
    "Spot without instances that come and go": (
        {"processing": {"core_count": 3, "units_max": 3}},
        "processing.spot",
        True,
        "no instances come and go",
    ),
}
"""By what has no effect: beside which entries, the entry, its value, and the reason that the error gives."""

ONLY_ITEMS: Mapping[str, tuple[str, Any]] = {
    "Kafka": ("kafka", {"retention": "3d"}),
    "an existing cluster": ("kafka", {"cluster": CLUSTER}),
    "connectors": ("connect", {"debezium_mcus": 2}),
    "the sink's lag": ("alarms.sink_lag", 5),
}


@pytest.mark.parametrize("case", UNUSED)
def test_an_entry_without_effect_is_refused_with_the_reason(case: str) -> None:
    beside, path, value, reason = UNUSED[case]
    assert _parse(beside)
    _assert_refused(beside, path, value, reason)


@pytest.mark.parametrize("case", ONLY_ITEMS)
def test_a_lake_without_kafka_has_no_settings_of_it(case: str) -> None:
    path, value = ONLY_ITEMS[case]
    assert _parse({}, _ITEMS)
    _assert_refused({}, path, value, "no source of the lake sends its changes through Kafka", _ITEMS)


@pytest.mark.parametrize(
    "aws",
    [
        {"network": {"vpc": VPC}, "kafka": {"replication": 2, "min_insync": 1}},
        {"network": {"vpc": VPC}, "kafka": _SERVERLESS},
        {"network": {"vpc": VPC}, "kafka": {"cluster": CLUSTER}},
        {"network": {"zones": ["euw1-az1", "euw1-az2"]}, "kafka": {"replication": 2, "min_insync": 1}},
        {"kafka": {"broker": "express.m7g.large"}},
        {"source": _EXISTING},
        {"processing": {"on": "emr-serverless"}},
        {"processing": {"units_max": 2}},
        {"processing": {"groups": "groups"}},
    ],
    ids=str,
)
def test_a_profile_may_bring_what_has_no_effect(aws: dict[str, Any]) -> None:
    assert _parse({"profile": "production", **aws})


def test_more_nat_gateways_than_zones_are_refused() -> None:
    with pytest.raises(LakeFileError, match=r"\[aws\.network\]\.nat_gateways: .*found 3, expected at most 2"):
        _parse({"network": {"nat_gateways": 3}})


def test_a_second_type_of_instances_in_a_group_is_refused() -> None:
    types = ["m7g.xlarge", "m6g.xlarge"]
    with pytest.raises(
        LakeFileError, match=r'\[aws\.processing\]\.task: .*expected \["m7g.xlarge"\], or groups'
    ):
        _parse({"processing": {"task": types}})
    assert _parse({"processing": {"task": types, "groups": "fleets"}})


def test_what_an_environment_makes_useless_is_refused_with_both_files(tmp_path: Path) -> None:
    lake_file = tmp_path / "shop.toml"
    lake_file.write_text(toml(_file({"kafka": {"broker": "kafka.m7g.large"}}, _WEB)))
    (tmp_path / "shop.staging.toml").write_text('[aws.kafka]\nkind = "serverless"\n')
    assert read_lake(lake_file)
    with pytest.raises(
        LakeFileError, match=r"shop\.toml with shop\.staging\.toml, entry \[aws\.kafka\]\.broker"
    ):
        read_lake(lake_file, "staging")


def _assert_refused(
    beside: Mapping[str, Any], path: str, value: Any, reason: str, source: Mapping[str, Any] = _WEB
) -> None:
    section, _, entry = path.partition(".")
    aws = deepcopy(dict(beside))
    if entry:
        aws[section] = {**aws.get(section, {}), entry: value}
    else:
        aws[section] = value
    with pytest.raises(LakeFileError) as caught:
        _parse(aws, source)
    assert caught.value.where == f"lake.toml, entry [aws.{section}]{entry and f'.{entry}'}"
    assert "without effect" in caught.value.what
    assert reason in str(caught.value.expected)


def _parse(aws: Mapping[str, Any], source: Mapping[str, Any] = _WEB) -> Lake:
    return parse_lake(toml(_file(aws, source)))


def _file(aws: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "lake": {"name": "shop"},
        "source": {"web": source},
        "aws": {"region": "eu-west-1", **aws},
    }
