"""Every valid [aws] part of the lake file keeps its values, and a mistake is reported with its entry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.contract.lake_files import some, toml
from tributary.contract.aws import (
    LOG_DAYS,
    Alarms,
    Aws,
    Bootstrap,
    Connect,
    ExistingCluster,
    ExistingVpc,
    Kafka,
    Network,
    OtherSink,
    Processing,
    Profile,
    Storage,
)
from tributary.contract.aws_analytics import DbtJob, QuickSight
from tributary.contract.aws_items import OwnItems, OwnItemTable
from tributary.contract.aws_names import AwsNames, BucketKind
from tributary.contract.aws_verify import VerifyJob
from tributary.contract.engines.mysql import AuroraMySql
from tributary.contract.engines.postgres import AuroraPostgres, ExistingPostgres
from tributary.contract.engines.sqlserver import RdsSqlServer
from tributary.contract.lake import LakeFileError, parse_lake, read_lake
from tributary.contract.naming import MAX_LAKE_NAME

ROOT = Path(__file__).parents[2]
LAKE: Mapping[str, Any] = {
    "lake": {"name": "shop"},
    "source": {
        "web": {"engine": "postgres", "database": "web", "tables": ["public.*"]},
        "orders": {"engine": "mysql", "tables": ["orders.*"]},
        "erp": {"engine": "sqlserver", "database": "ERP", "tables": ["dbo.*"]},
    },
}
SECRET = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:web-AbCdEf"
KEY = "arn:aws:kms:eu-west-1:111122223333:key/0a1b2c3d-0000-1111-2222-3333aaaa5555"
VPC = {
    "id": "vpc-0123456789abcdef0",
    "private_subnets": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "zones": ["euw1-az1", "euw1-az2"],
}

CLUSTER = {
    "arn": "arn:aws:kafka:eu-west-1:111122223333:cluster/company/0a1b2c3d-0000-1111-2222-333344445555-7",
    "bootstrap_servers": "b-1.company.abc.c2.kafka.eu-west-1.amazonaws.com:9098",
    "security_group": "sg-0123456789abcdef0",
}
SERVERLESS_CLUSTER = {**CLUSTER, "arn": CLUSTER["arn"].removesuffix("-7") + "-s3"}
ANALYST = "arn:aws:quicksight:us-east-1:111122223333:user/default/analyst@example.org"
DAYS = st.integers(1, 3650).map("{}d".format)
INSTANCES = st.sampled_from(["m7g.xlarge", "r7g.2xlarge", "c7gn.large", "m6gd.4xlarge"])
SECTIONS: Mapping[str, st.SearchStrategy[Any]] = {
    "network": some(
        {},
        cidr=st.integers(0, 255).map("10.{}.0.0/16".format),
        availability_zones=st.integers(2, 3),
        nat_gateways=st.integers(1, 3),
        interface_endpoints=st.booleans(),
        flow_logs=st.booleans(),
        vpc=st.just(VPC).map(dict),
    ),
    "database": some(
        {},
        instance=st.sampled_from(["db.serverless", "db.r7g.large", "db.r8g.48xlarge"]),
        capacity_max=st.sampled_from([4.0, 8.5, 256]),
        readers=st.integers(0, 5),
        backup_days=st.integers(1, 35),
        slot_wal_gb=st.integers(6, 1000),
        demo_schema=st.booleans(),
    ),
    "mysql": some(
        {},
        instance=st.sampled_from(["db.serverless", "db.r7g.large"]),
        capacity_max=st.sampled_from([4.0, 8.5, 256]),
        readers=st.integers(0, 5),
        binlog_kept=st.integers(1, 90).map("{}d".format),
    ),
    "sqlserver": some(
        {},
        edition=st.sampled_from(["standard", "enterprise"]),
        instance=st.sampled_from(["db.m5.xlarge", "db.r6i.8xlarge"]),
        storage_gb=st.integers(20, 100),
        storage_max_gb=st.integers(110, 16384),
        standby=st.booleans(),
        backup_days=st.integers(1, 35),
        changes_kept=st.integers(1, 90).map("{}d".format),
    ),
    "kafka": some(
        {"replication": st.just(2), "min_insync": st.just(1)},
        kind=st.sampled_from(["provisioned", "serverless"]),
        broker=st.sampled_from(["kafka.t3.small", "kafka.m7g.large"]),
        brokers=st.sampled_from([6, 12, 60]),
        storage_max_gb=st.integers(2000, 16384),
        retention=DAYS,
    ),
    "connect": some(
        {},
        debezium_mcus=st.sampled_from([1, 2, 4, 8]),
        running=st.booleans(),
        rotation_days=st.integers(0, 365),
    ),
    "storage": some(
        {},
        encryption=st.sampled_from(["kms", "s3"]),
        bronze_cold_after=DAYS,
        logs_kept=st.sampled_from(LOG_DAYS).map("{}d".format),
        scan_limit_gb=st.integers(1, 100_000),
        readers=st.just(["arn:aws:iam::111122223333:role/analyst"]),
    ),
    "processing": some(
        {},
        on=st.sampled_from(["emr", "emr-serverless"]),
        groups=st.sampled_from(["groups", "fleets"]),
        primary=INSTANCES,
        core=INSTANCES,
        task=st.lists(INSTANCES, min_size=1, unique=True),
        units_max=st.integers(8, 1000),
        spot=st.booleans(),
        studio=st.booleans(),
    ),
    "dbt": some(
        {
            "project": st.sampled_from(["warehouse", "examples/tickit-dbt"]),
            "schedule": st.sampled_from(["cron(0 5 ? * MON-FRI *)", "rate(1 day)", "rate(12 hours)"]),
        },
        time_zone=st.sampled_from(["UTC", "Europe/Berlin", "America/Port-au-Prince", "Etc/GMT+5"]),
        commands=st.lists(
            st.sampled_from(["build", "source freshness", "build --select +tag:daily"]), min_size=1
        ),
        time_limit=st.integers(5, 480).map("{}m".format),
    ),
    "quicksight": some(
        {"principal": st.sampled_from([ANALYST, ANALYST.replace(":user/", ":group/")])},
        boards=st.sampled_from(["boards", "examples/sales/boards"]),
    ),
    "verify": some(
        {},
        schedule=st.sampled_from(["cron(0 * * * ? *)", "rate(8 hours)"]),
        time_zone=st.just("Europe/Berlin"),
        time_limit=st.integers(5, 50).map("{}m".format),
    ),
    "alarms": some(
        {},
        email=st.just("lake@example.org"),
        freshness=st.integers(1, 60).map("{}m".format),
        sink_lag=st.integers(1, 10**9),
    ),
    "source": some(
        {},
        web=some({"host": st.just("db.example.org"), "secret": st.just(SECRET)}, port=st.integers(1, 65535)),
    ),
}


def _used(aws: dict[str, Any]) -> dict[str, Any]:
    """Return the part without entries that have no effect beside its others."""
    sections = {name: dict(section) for name, section in aws.items() if isinstance(section, dict)}
    network, kafka, processing = (sections.get(name, {}) for name in ("network", "kafka", "processing"))
    zones = network.get("availability_zones", 3 if aws.get("profile") == "production" else 2)
    if "nat_gateways" in network:
        network["nat_gateways"] = min(network["nat_gateways"], zones)
    if "vpc" in network:
        sections["network"] = {"vpc": network["vpc"]}
    if kafka.get("kind") == "serverless":
        sections["kafka"] = {key: value for key, value in kafka.items() if key in ("kind", "retention")}
    if processing.get("on") == "emr-serverless":
        of_workers = ("on", "units_max", "studio")
        sections["processing"] = {key: value for key, value in processing.items() if key in of_workers}
    elif len(processing.get("task", ())) > 1:
        processing["groups"] = "fleets"
    for name in ("database", "mysql"):
        if sections.get(name, {}).get("instance", "db.serverless") != "db.serverless" or (
            aws.get("profile") == "production" and "instance" not in sections.get(name, {})
        ):
            sections.get(name, {}).pop("capacity_max", None)
    unused = {"database"} if "web" in sections.get("source", {}) else set()
    return {name: sections.get(name, value) for name, value in aws.items() if name not in unused}


FILES = some(
    # The profile "production" requires three zones for Kafka.
    {"region": st.just("eu-west-1"), "kafka": SECTIONS["kafka"]},
    # That of the secret and the cluster.
    account=st.just("111122223333"),
    profile=st.sampled_from(get_args(Profile)),
    **{name: section for name, section in SECTIONS.items() if name != "kafka"},
).map(_used)
"""A valid [aws] part, as the nested values that TOML holds."""


@given(FILES)
def test_every_valid_part_keeps_its_values(aws: dict[str, Any]) -> None:
    _assert_holds(_read(aws), aws)


@given(FILES, st.sampled_from([Network, AuroraPostgres, Kafka, Connect, Storage, Processing, Alarms]))
def test_a_missing_entry_has_the_profile_s_value(aws: dict[str, Any], model: type[BaseModel]) -> None:
    section = next(name for name, field in Aws.model_fields.items() if field.annotation is model)
    profile = _read({"region": "eu-west-1", "profile": aws.get("profile", "small")})
    for key, value in getattr(_read(aws), section):
        if key not in aws.get(section, {}):
            assert value == getattr(getattr(profile, section), key)


@given(FILES, st.data())
def test_an_unknown_key_anywhere_is_refused_by_name(aws: dict[str, Any], data: st.DataObject) -> None:
    paths = [path for path in _sections(aws) if path != ("source",)]
    path = data.draw(st.sampled_from([(), *paths]))
    _at(aws, path)["unknown_key"] = 7
    error = _refused(aws)
    assert error.found == "unknown_key"
    assert ".".join(("aws", *path)) in str(error.where)


@given(FILES, st.data())
def test_a_value_of_a_wrong_type_anywhere_is_refused_by_its_entry(
    aws: dict[str, Any], data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(list(_values(aws))))
    right = _at(aws, path)
    anything: list[Any] = ["no such", [7], {}, 7.25]
    wrong = [value for value in anything if not isinstance(value, type(right))]
    _at(aws, path[:-1])[path[-1]] = data.draw(st.sampled_from(wrong))
    assert path[-1] in str(_refused(aws).where)


def test_the_small_profile_is_the_default() -> None:
    assert _read({"region": "eu-west-1"}) == _read({"region": "eu-west-1", "profile": "small"})


def test_the_production_profile_survives_the_loss_of_a_zone() -> None:
    aws = _read({"region": "eu-west-1", "profile": "production"})
    assert aws.zone_count == aws.network.nat_gateways == aws.brokers == 3
    assert aws.kafka.replication - aws.kafka.min_insync == 1
    assert aws.database.readers > 0
    assert aws.storage.encryption == "kms"


def test_a_lake_of_one_machine_has_no_aws() -> None:
    assert parse_lake(toml(LAKE)).aws is None


def test_an_existing_vpc_brings_its_own_zones() -> None:
    aws = _read(
        {
            "region": "eu-west-1",
            "profile": "production",
            "network": {"vpc": VPC},
            "kafka": {"replication": 2, "min_insync": 1},
        }
    )
    assert aws.zone_count == aws.brokers == 2


MISTAKES: Mapping[str, tuple[dict[str, Any], str, str]] = {
    "no region": ({"region": None}, "[aws].region", "region = "),
    "no region's name": ({"region": "Ireland"}, "[aws].region", "eu-west-1"),
    "an account as a number": ({"account": 111122223333}, "[aws].account", "quotes"),
    "a profile of its own": ({"profile": "big"}, "[aws].profile", "production"),
    "one key of two": ({"on_destroy": "delete"}, "[aws].delete_data_of", '"shop"'),
    "the other lake's key": (
        {"on_destroy": "delete", "delete_data_of": "stock"},
        "[aws].delete_data_of",
        '"shop"',
    ),
    "no way out": ({"network": {"nat_gateways": 0}}, "[aws.network]", "interface_endpoints"),
    "a network of no addresses": (
        {"network": {"cidr": "10.999.0.0/16"}},
        "[aws.network].cidr",
        "10.42.0.0/16",
    ),
    "a network too small": ({"network": {"cidr": "10.0.0.0/24"}}, "[aws.network].cidr", "65,536"),
    "a VPC without private subnets": (
        {"network": {"vpc": {**VPC, "private_subnets": []}}},
        "[aws.network.vpc]",
        "two or three private subnets",
    ),
    "a VPC that does not say its private subnets": (
        {"network": {"vpc": {key: value for key, value in VPC.items() if key != "private_subnets"}}},
        "[aws.network.vpc].private_subnets",
        "private_subnets",
    ),
    "a subnet twice": (
        {"network": {"vpc": {**VPC, "private_subnets": ["subnet-01234567", "subnet-01234567"]}}},
        "[aws.network.vpc]",
        "two or three private subnets",
    ),
    "a zone of another region": (
        {"network": {"vpc": {**VPC, "zones": ["euw1-az1", "eun1-az2"]}}},
        "[aws.network.vpc].zones",
        "euw1-az1",
    ),
    "a zone of another region for an own VPC": (
        {"network": {"zones": ["euw1-az1", "use1-az1"]}},
        "[aws.network].zones",
        "euw1-az1",
    ),
    "an existing cluster of another region": (
        {
            "network": {"vpc": VPC},
            "kafka": {"cluster": {**CLUSTER, "arn": CLUSTER["arn"].replace("eu", "us")}},
        },
        "[aws.kafka.cluster].arn",
        "eu-west-1",
    ),
    "an existing cluster of another account": (
        {"account": "444455556666", "network": {"vpc": VPC}, "kafka": {"cluster": CLUSTER}},
        "[aws.kafka.cluster].arn",
        "the account 444455556666",
    ),
    "an existing serverless cluster as a provisioned one": (
        {"network": {"vpc": VPC}, "kafka": {"cluster": SERVERLESS_CLUSTER}},
        "[aws.kafka].kind",
        'kind = "serverless"',
    ),
    "an existing provisioned cluster as a serverless one": (
        {"network": {"vpc": VPC}, "kafka": {"kind": "serverless", "cluster": CLUSTER}},
        "[aws.kafka].kind",
        'kind = "provisioned"',
    ),
    "an existing cluster in a new VPC": (
        {"kafka": {"cluster": CLUSTER}},
        "[aws.kafka.cluster]",
        "[aws.network.vpc]",
    ),
    "addresses for clients without IAM": (
        {
            "network": {"vpc": VPC},
            "kafka": {"cluster": {**CLUSTER, "bootstrap_servers": "b-1.company.example.org:9094"}},
        },
        "[aws.kafka.cluster].bootstrap_servers",
        "9098",
    ),
    "addresses for clients with SCRAM": (
        {
            "network": {"vpc": VPC},
            "kafka": {
                "cluster": {**CLUSTER, "bootstrap_servers": "b-1.example.org:9098,b-2.example.org:9096"}
            },
        },
        "[aws.kafka.cluster].bootstrap_servers",
        "IAM listener, with port 9098",
    ),
    "a budget of which nobody would hear": ({"alarms": {"budget": 900}}, "[aws.alarms].budget", "email ="),
    "a boundary by its ARN": (
        {"permissions_boundary": "arn:aws:iam::111122223333:policy/b"},
        "[aws].permissions_boundary",
        "not its ARN",
    ),
    "a tag's key that IAM refuses": ({"tags": {"cost#center": "x"}}, "[aws].tags", "not cost#center"),
    "a tag's value that IAM refuses": ({"tags": {"team": "<lake>"}}, "[aws].tags", "not <lake>"),
    "a tag that AWS keeps for itself": ({"tags": {"aws:x": "y"}}, "[aws].tags", "aws:"),
    "a zone by its name": (
        {"network": {"zones": ["eu-west-1a", "euw1-az2"]}},
        "[aws.network].zones[0]",
        "euw1-az1",
    ),
    "one zone": ({"network": {"zones": ["euw1-az1"]}}, "[aws.network]", "two or three"),
    "a lake that is protected and to be deleted": (
        {"on_destroy": "delete", "delete_data_of": "shop", "protected": True},
        "[aws].protected",
        "retain",
    ),
    "a capacity between the units": (
        {"database": {"capacity_max": 0.7}},
        "[aws.database].capacity_max",
        "a multiple of 0.5",
    ),
    "a capacity upside down": ({"database": {"capacity_min": 8.0}}, "[aws.database]", "capacity_min"),
    "a database of no source": (
        {"source": {"wep": {"host": "db", "secret": SECRET}}},
        "[aws.source.wep]",
        "web",
    ),
    "a secret of another region": (
        {"source": {"web": {"host": "db", "secret": SECRET.replace("eu-west", "us-west")}}},
        "[aws.source.web].secret",
        "eu-west-1",
    ),
    "a secret of another account": (
        {"account": "444455556666", "source": {"web": {"host": "db", "secret": SECRET}}},
        "[aws.source.web].secret",
        "the account 444455556666",
    ),
    "the ARN of a secret without its end": (
        {"source": {"web": {"host": "db", "secret": SECRET.removesuffix("-AbCdEf")}}},
        "[aws.source.web].secret",
        "six characters",
    ),
    "an alias for a key": (
        {"source": {"web": {"host": "db", "secret": SECRET, "secret_key": KEY.replace("key/", "alias/")}}},
        "[aws.source.web].secret_key",
        "not alias/",
    ),
    "a key of another region": (
        {
            "source": {
                "web": {"host": "db", "secret": SECRET, "secret_key": KEY.replace("eu-west", "us-west")}
            }
        },
        "[aws.source.web].secret_key",
        "eu-west-1",
    ),
    "a bootstrap key of another region": (
        {"bootstrap": {"key": KEY.replace("eu-west", "us-west")}},
        "[aws.bootstrap].key",
        "eu-west-1",
    ),
    "a group that reads": (
        {"storage": {"readers": ["arn:aws:iam::111122223333:group/analysts"]}},
        "[aws.storage].readers[0]",
        "role or user",
    ),
    "a password for a secret": (
        {"source": {"web": {"host": "db", "secret": "hunter2"}}},
        "[aws.source.web].secret",
        "the whole ARN of a secret",
    ),
    "brokers for some zones only": ({"kafka": {"brokers": 3}}, "[aws.kafka].brokers", "multiple of the 2"),
    "more replicas than brokers": ({"kafka": {"replication": 3}}, "[aws.kafka].replication", "at most 2"),
    "replicas that must all be there": (
        {"kafka": {"min_insync": 2}},
        "[aws.kafka].min_insync",
        "less than replication",
    ),
    "Express brokers with replicas of one's own choice": (
        {"kafka": {"broker": "express.m7g.large"}},
        "[aws.kafka]",
        "replication = 3, min_insync = 2",
    ),
    "a Kafka without topics as resources": (
        {"kafka": {"version": "3.5.1"}},
        "[aws.kafka].version",
        "3.6 or later",
    ),
    "a sink that chooses its topics": (
        {
            "connect": {
                "sink": {
                    "plugin": "sink.zip",
                    "sha256": "0" * 64,
                    "config": {"connector.class": "org.example.Sink", "topics": "orders"},
                }
            }
        },
        "[aws.connect.sink]",
        "config without topics",
    ),
    "storage that shrinks": (
        {"kafka": {"storage_gb": 500}},
        "[aws.kafka].storage_max_gb",
        "at least storage_gb",
    ),
    "an alarm that comes too late": (
        {"alarms": {"slot_lag_gb": 20}},
        "[aws.alarms].slot_lag_gb",
        "less than [aws.database].slot_wal_gb, 20",
    ),
    "days and hours": (
        {"storage": {"bronze_cold_after": "36h"}},
        "[aws.storage].bronze_cold_after",
        "whole days",
    ),
    "a span that CloudWatch has not": ({"storage": {"logs_kept": "100d"}}, "[aws.storage].logs_kept", "90d"),
    "instances of two architectures": (
        {"processing": {"core": "m7i.xlarge"}},
        "[aws.processing]",
        'the architecture "arm64"',
    ),
    "a dbt project elsewhere": (
        {"dbt": {"project": "/srv/dbt", "schedule": "rate(1 day)"}},
        "[aws.dbt].project",
        "from the lake file's folder",
    ),
    "a schedule of cron's": (
        {"dbt": {"project": "dbt", "schedule": "0 5 * * *"}},
        "[aws.dbt].schedule",
        'such as "cron(0 5 * * ? *)"',
    ),
    "a schedule with both days": (
        {"verify": {"schedule": "cron(0 5 1 * MON *)"}},
        "[aws.verify].schedule",
        "a ? for the day of the month",
    ),
    "a schedule with neither day": (
        {"dbt": {"project": "dbt", "schedule": "cron(0 5 ? * ? *)"}},
        "[aws.dbt].schedule",
        "not for both",
    ),
    "a command of the shell": (
        {"dbt": {"project": "dbt", "schedule": "rate(1 day)", "commands": ["build; curl x"]}},
        "[aws.dbt].commands[0]",
        'what follows "dbt"',
    ),
    "dbt twice": (
        {"dbt": {"project": "dbt", "schedule": "rate(1 day)", "commands": ["dbt build"]}},
        "[aws.dbt].commands[0]",
        'what follows "dbt"',
    ),
    "no command of dbt": (
        {"dbt": {"project": "dbt", "schedule": "rate(1 day)", "commands": []}},
        "[aws.dbt].commands",
        "at least",
    ),
    "a run of a day": (
        {"dbt": {"project": "dbt", "schedule": "rate(1 day)", "time_limit": "1d"}},
        "[aws.dbt].time_limit",
        'from "5m" to "8h"',
    ),
    "an IAM user for QuickSight": (
        {"quicksight": {"principal": "arn:aws:iam::111122223333:user/analyst"}},
        "[aws.quicksight].principal",
        "a user or group of QuickSight",
    ),
    "boards outside the lake's folder": (
        {"quicksight": {"principal": ANALYST, "boards": "~/boards"}},
        "[aws.quicksight].boards",
        "from the lake file's folder",
    ),
    "a dbt project without a schedule": ({"dbt": {"project": "dbt"}}, "[aws.dbt].schedule", "schedule = "),
    "a binary log that Aurora would not keep as long": (
        {"mysql": {"binlog_kept": "91d"}},
        "[aws.mysql].binlog_kept",
        "90d",
    ),
    "a binary log kept for minutes": ({"mysql": {"binlog_kept": "90m"}}, "[aws.mysql].binlog_kept", "hours"),
    "a version of another Aurora": (
        {"mysql": {"engine_version": "16.11"}},
        "[aws.mysql].engine_version",
        "Aurora MySQL 3",
    ),
    "a disk that could not grow by a tenth": (
        {"sqlserver": {"storage_gb": 100, "storage_max_gb": 105}},
        "[aws.sqlserver]",
        "a tenth above",
    ),
    "changes kept for minutes": (
        {"sqlserver": {"changes_kept": "30m"}},
        "[aws.sqlserver].changes_kept",
        '"1h" to "90d"',
    ),
    "an edition without CDC": (
        {"sqlserver": {"edition": "express"}},
        "[aws.sqlserver].edition",
        "standard",
    ),
    "a version of an older SQL Server": (
        {"sqlserver": {"engine_version": "13.00.6470.1.v1"}},
        "[aws.sqlserver].engine_version",
        "SQL Server 2017 to 2022",
    ),
    "a verification that could install nothing": (
        {"verify": {}, "network": {"nat_gateways": 0, "interface_endpoints": True}},
        "[aws.network].nat_gateways",
        "1 or more",
    ),
    "a verification that would not end": (
        {"verify": {"time_limit": "9h"}},
        "[aws.verify].time_limit",
        '"8h"',
    ),
    "a verification that is still active at the next": (
        {"verify": {"schedule": "rate(30 minutes)"}},
        "[aws.verify]",
        "time_limit that ends a run before the next one",
    ),
    "a dbt run that is still active at the next": (
        {"dbt": {"project": "dbt", "schedule": "rate(1 hour)", "time_limit": "2h"}},
        "[aws.dbt]",
        "time_limit that ends a run before the next one",
    ),
    "less than is always there": ({"processing": {"core_count": 4}}, "[aws.processing]", "units_max = 4"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_with_its_entry_and_what_was_expected(mistake: str) -> None:
    said, entry, expected = MISTAKES[mistake]
    error = _refused(
        {key: value for key, value in {"region": "eu-west-1", **said}.items() if value is not None}
    )
    assert str(error.where) == f"lake.toml, entry {entry}"
    assert expected in str(error.expected)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("source", "aws"),
    [
        ({"web": {"engine": "dynamodb", "tables": ["orders"], "stream": "items"}}, {}),
        (
            {"web": {"engine": "sqlserver", "database": "ERP", "tables": ["dbo.*"]}},
            {"source": {"web": {"host": "erp.example.org", "secret": SECRET}}},
        ),
    ],
)
def test_a_lake_without_tables_that_can_be_verified_has_no_such_job(
    source: dict[str, Any], aws: dict[str, Any]
) -> None:
    aws = {"region": "eu-west-1", "verify": {}, **aws}
    with pytest.raises(LakeFileError, match=r"\[aws\.verify\].*tributary reconcile --aws"):
        parse_lake(toml({**LAKE, "source": source, "aws": aws}))


def test_tags_hold_what_iam_takes() -> None:
    tags = {"cost center": "Äpfel", "team/part:x": "a@b.org = 1+1-0_"}
    assert _read({"region": "eu-west-1", "tags": tags}).tags == tags


def test_two_agreeing_entries_allow_data_to_be_deleted() -> None:
    assert _read({"region": "eu-west-1", "on_destroy": "delete", "delete_data_of": "shop"}).deletes_data
    assert not _read({"region": "eu-west-1", "delete_data_of": "shop"}).deletes_data


def test_no_two_lakes_share_a_name() -> None:
    one, other = (AwsNames(name) for name in ("shop", "shop-2"))
    for name in ("resource", "stacks"):
        assert getattr(one, name) != getattr(other, name)
    assert not set(one.stacks) & set(other.stacks)
    assert one.log_group("kafka") != other.log_group("kafka")


@pytest.mark.parametrize("kind", get_args(BucketKind))
def test_the_longest_bucket_name_is_valid_for_s3(kind: BucketKind) -> None:
    longest = AwsNames("a" * MAX_LAKE_NAME).bucket(kind, "111122223333", "ap-southeast-1")
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", longest)


def test_a_bucket_s_name_differs_between_accounts_and_regions() -> None:
    names = AwsNames("shop")
    assert (
        len({names.bucket("bronze", account, region) for account in "12" for region in ("a-1", "b-1")}) == 4
    )


DOCUMENTED: Mapping[str, type[BaseModel]] = {
    "aws": Aws,
    "aws.network": Network,
    "aws.network.vpc": ExistingVpc,
    "aws.database": AuroraPostgres,
    "aws.mysql": AuroraMySql,
    "aws.sqlserver": RdsSqlServer,
    "aws.source.NAME": ExistingPostgres,
    "aws.items.NAME": OwnItems,
    "aws.items.NAME.tables.TABLE": OwnItemTable,
    "aws.kafka": Kafka,
    "aws.kafka.cluster": ExistingCluster,
    "aws.bootstrap": Bootstrap,
    "aws.connect": Connect,
    "aws.connect.sink": OtherSink,
    "aws.storage": Storage,
    "aws.processing": Processing,
    "aws.alarms": Alarms,
    "aws.dbt": DbtJob,
    "aws.quicksight": QuickSight,
    "aws.verify": VerifyJob,
}


@pytest.mark.parametrize("section", DOCUMENTED)
def test_the_reference_has_every_entry_and_its_default_in_both_profiles(section: str) -> None:
    rows = _reference(section)
    model = DOCUMENTED[section]
    below = {path.rpartition(".")[2] for path in DOCUMENTED if path.rpartition(".")[0] == section} | {
        "source",
        "items",
        "tables",
    }
    assert rows.keys() | below == model.model_fields.keys() | below
    small, production = (_section(section, profile) for profile in get_args(Profile))
    for name, (in_small, in_production) in rows.items():
        if model.model_fields[name].is_required():
            assert in_small == "required"
            continue
        assert in_small == _as_documented(getattr(small, name)), name
        differs = getattr(production, name) != getattr(small, name) and name != "profile"
        assert in_production == (_as_documented(getattr(production, name)) if differs else ""), name


def test_the_project_s_own_lake_file_can_be_deployed() -> None:
    aws = read_lake(ROOT / "lake.toml").aws
    assert aws is not None
    assert aws.database.demo_schema


def _read(aws: Mapping[str, Any]) -> Aws:
    read = parse_lake(toml({**LAKE, "aws": aws})).aws
    assert read is not None
    return read


def test_msk_serverless_takes_no_event_of_more_than_8_mib() -> None:
    of_serverless = {**LAKE, "aws": {"region": "eu-west-1", "kafka": {"kind": "serverless"}}}
    assert parse_lake(toml({**of_serverless, "lake": {"name": "shop", "max_event_mb": 8}})).max_event_mb == 8
    with pytest.raises(LakeFileError, match=r"\[lake\]\.max_event_mb.*found 9.*8 at most"):
        parse_lake(toml({**of_serverless, "lake": {"name": "shop", "max_event_mb": 9}}))


def _refused(aws: Mapping[str, Any]) -> LakeFileError:
    with pytest.raises(LakeFileError) as caught:
        parse_lake(toml({**LAKE, "aws": aws}))
    return caught.value


def _assert_holds(read: Any, said: Any) -> None:
    """Check that `read` has all of `said`. The unit of a duration may differ."""
    match said:
        case dict():
            for key, value in said.items():
                _assert_holds(read[key] if isinstance(read, dict) else getattr(read, key), value)
        case list():
            assert read == tuple(said)
        case str() if isinstance(read, timedelta):
            assert read == timedelta(**{{"d": "days", "m": "minutes"}[said[-1]]: int(said[:-1])})
        case _:
            assert read == said


def _sections(file: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in file.items():
        if isinstance(value, dict):
            yield (*path, key)
            yield from _sections(value, (*path, key))


def _values(file: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in file.items():
        if isinstance(value, dict):
            yield from _values(value, (*path, key))
        else:
            yield (*path, key)


def _at(file: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        file = file[key]
    return file


def _reference(section: str) -> dict[str, tuple[str, str]]:
    """Return the reference's defaults for the section's entries: in the small profile, and in production."""
    text = (ROOT / "docs" / "lake-file.md").read_text()
    part = re.split(r"^#+ ", text.partition(f"# `[{section}]`\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*)\| ", part, re.MULTILINE)
    return {
        name: (small.strip().strip("`"), production.strip().strip("`")) for name, small, production in rows
    }


def _section(section: str, profile: str) -> Any:
    part: Any = _read({"region": "eu-west-1", "profile": profile})
    for name in section.split(".")[1:]:
        part = getattr(part, name, None)
    return part or _required_only(section)


def _required_only(section: str) -> BaseModel:
    """Return the section with only its required values, because it has no default as a whole."""
    if section == "aws.source.NAME":
        return ExistingPostgres(host="db", secret=SECRET)
    if section == "aws.items.NAME.tables.TABLE":
        return OwnItemTable(partition_key="id")
    if section == "aws.items.NAME":
        return OwnItems()
    return DOCUMENTED[section].model_construct()


def _as_documented(value: Any) -> str:
    match value:
        case None | ():
            return "none"
        case dict() if not value:
            return "none"
        case timedelta():
            return f'"{value.days}d"' if value.days else f'"{value.seconds // 60}m"'
        case bool():
            return str(value).lower()
        case tuple():
            return "[" + ", ".join(f'"{item}"' for item in value) + "]"
        case str():
            return f'"{value}"'
        case float():
            return f"{value:g}"
        case _:
            return str(value)
