"""Names that AWS does not know are refused before anything is built, with the setting that has them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import pytest
from aws_cdk import aws_ec2 as ec2

from stacks.available_on_aws import (
    BROKER_TYPES,
    check_known,
)
from stacks.checks.instance_types import ec2_instance_types
from stacks.checks.zones import FITTING_ZONES
from stacks.database.aurora_classes import MYSQL_FAMILIES, POSTGRES_FAMILIES, database_classes
from stacks.database.sqlserver.instance_classes import ENTERPRISE, STANDARD, classes_of, rds_versions
from tests.stacks.lakes import SETTINGS
from tests.stacks.one_stack import lake_with
from tributary.contract.aws_checks import zone_prefix
from tributary.contract.engines.sqlserver import RdsSqlServer
from tributary.contract.errors import TributaryError
from tributary.contract.lake import LakeFileError

UNKNOWN = {
    "an instance type": ('[aws.processing]\ncore = "m7g.hugo"', "[aws.processing].core", "m7g.large"),
    "one of several": (
        '[aws.processing]\ngroups = "fleets"\ntask = ["m7g.xlarge", "m99g.xlarge"]',
        "[aws.processing].task[1]",
        "an instance type of EC2",
    ),
    "a database's class": (
        '[aws.database]\ninstance = "db.r7g.lage"',
        "[aws.database].instance",
        "db.r7g.large",
    ),
    "a broker's type": ('[aws.kafka]\nbroker = "kafka.m7g.small"', "[aws.kafka].broker", "kafka.t3.small"),
    "a version of Kafka": ('[aws.kafka]\nversion = "3.9.x"', "[aws.kafka].version", "3.9.x.kraft"),
    "a version of Aurora": (
        '[aws.database]\nengine_version = "16.99"',
        "[aws.database].engine_version",
        "16.9",
    ),
    "a class without the edition": (
        '[aws.sqlserver]\nedition = "enterprise"\ninstance = "db.m5.large"\n'
        '[source.erp]\nengine = "sqlserver"\ndatabase = "ERP"\ntables = ["dbo.*"]',
        "[aws.sqlserver].instance",
        "db.m5.xlarge",
    ),
    "a class of the editions without CDC": (
        '[aws.sqlserver]\ninstance = "db.t3.small"\n'
        '[source.erp]\nengine = "sqlserver"\ndatabase = "ERP"\ntables = ["dbo.*"]',
        "[aws.sqlserver].instance",
        "edition standard",
    ),
    "a version of SQL Server": (
        '[aws.sqlserver]\nengine_version = "16.00.4000.1.v1"\n'
        '[source.erp]\nengine = "sqlserver"\ndatabase = "ERP"\ntables = ["dbo.*"]',
        "[aws.sqlserver].engine_version",
        "16.00.4",
    ),
    "a time zone": (
        '[aws.verify]\nschedule = "cron(0 * * * ? *)"\ntime_zone = "Europe/Berln"',
        "[aws.verify].time_zone",
        "Europe/Berlin",
    ),
    "a release of EMR": (
        '[aws.processing]\nrelease = "emr-7.99.0"',
        "[aws.processing].release",
        "Hudi 1.0.2",
    ),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_an_unknown_name_is_told_with_its_setting_and_what_comes_near(what: str) -> None:
    aws, setting, near = UNKNOWN[what]
    with pytest.raises(TributaryError) as caught:
        check_known(lake_with(aws))
    assert str(caught.value).startswith(f"{setting}: ")
    assert near in str(caught.value)
    # AWS knows many a name that a lake cannot use.
    assert re.search(r": this is not an? .* found \"", str(caught.value))


@pytest.mark.parametrize(
    ("aws", "region", "setting"),
    [
        (
            '[aws.network]\nzones = ["use1-az3", "use1-az1"]',
            "us-east-1",
            r"\[aws\.network\]\.zones: .*use1-az3",
        ),
        (
            'profile = "production"',
            "us-west-1",
            r"\[aws\.network\]\.availability_zones: .*usw1-az1 and usw1-az3",
        ),
    ],
)
def test_a_zone_without_the_lakes_services_is_told(aws: str, region: str, setting: str) -> None:
    with pytest.raises(TributaryError, match=setting):
        check_known(lake_with(aws, region=region))


_EXISTING_VPC = """[aws.network.vpc]
id = "vpc-0123456789abcdef0"
private_subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
zones = ["use1-az1", "use1-az3"]
"""


@pytest.mark.parametrize(
    ("aws", "entry", "remedy"),
    [
        ('[aws.network]\nzones = ["use1-az1", "use1-az3"]', "[aws.network].zones", "Name another zone"),
        (_EXISTING_VPC, "[aws.network.vpc].zones", "Choose subnets of the VPC in other zones"),
    ],
)
def test_the_refusal_of_a_zone_lists_those_that_fit_and_says_what_to_do(
    aws: str, entry: str, remedy: str
) -> None:
    with pytest.raises(TributaryError) as caught:
        check_known(lake_with(aws, region="us-east-1"))
    assert str(caught.value).startswith(
        f"{entry}: the zone does not have all services of a lake, such as Amazon MSK and EMR Serverless: "
        'found "use1-az3", expected zones of us-east-1 that have them: '
        f"use1-az1, use1-az2, use1-az4, use1-az5, use1-az6. {remedy}"
    )


def test_the_zones_of_a_region_are_named_after_it() -> None:
    assert {
        region: zone_prefix(region) for region in ("eu-central-1", "ap-southeast-2", "us-gov-west-1")
    } == {
        "eu-central-1": "euc1-az",
        "ap-southeast-2": "apse2-az",
        "us-gov-west-1": "usgw1-az",
    }
    assert all(
        zone.startswith(zone_prefix(region)) for region, zones in FITTING_ZONES.items() for zone in zones
    )


def test_an_unknown_region_is_told() -> None:
    with pytest.raises(TributaryError, match=r"^\[aws\]\.region: .*found \"eu-mid-1\".*eu-west-1"):
        check_known(lake_with(region="eu-mid-1"))


def test_a_region_without_one_of_the_services_is_told_with_the_service() -> None:
    with pytest.raises(TributaryError, match=r"^\[aws\]\.region: .*AWS offers kafkaconnect"):
        check_known(lake_with(region="us-iso-east-1"))


@pytest.mark.parametrize("region", ["eu-central-2", "us-gov-west-1", "cn-north-1", "il-central-1"])
def test_regions_of_every_partition_are_known(region: str) -> None:
    check_known(lake_with(region=region))


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_defaults_and_the_profiles_name_nothing_unknown(settings: str) -> None:
    check_known(lake_with(SETTINGS[settings], region="us-east-1"))


def _extensions(path: str) -> Any:
    """What cfn-lint has read from AWS, by region."""
    return json.loads((files("cfnlint") / "data" / "schemas" / "extensions" / path).read_text())


def _offered(engine: str) -> set[str]:
    """The classes of an engine in any region."""
    return {
        name
        for region in _extensions("aws_rds_dbinstance/dbinstanceclass_enum.json").values()
        for rule in region["allOf"]
        if rule["if"]["properties"]["Engine"]["const"] == engine
        for name in rule["then"]["properties"]["DBInstanceClass"]["enum"]
    }


@pytest.mark.parametrize(
    ("engine", "families"), [("aurora-postgresql", POSTGRES_FAMILIES), ("aurora-mysql", MYSQL_FAMILIES)]
)
def test_every_class_that_aurora_offers_in_these_families_is_known(
    engine: str, families: frozenset[str]
) -> None:
    of_families = {name for name in _offered(engine) if name.split(".")[1] in {*families, "serverless"}}
    assert {name.split(".")[1] for name in of_families} == {*families, "serverless"}
    assert of_families <= database_classes(families)


@pytest.mark.parametrize(
    ("engine", "edition", "families"),
    [("sqlserver-se", "standard", STANDARD), ("sqlserver-ee", "enterprise", ENTERPRISE)],
)
def test_a_class_is_known_for_sql_server_exactly_if_an_edition_with_cdc_has_it(
    engine: str, edition: str, families: Mapping[str, tuple[str, ...]]
) -> None:
    of_families = {name for name in _offered(engine) if name.split(".")[1] in families}
    # One region alone has it.
    assert of_families - {"db.t3.large"} == classes_of(edition)


def test_a_version_of_sql_server_is_one_that_cloudformation_knows() -> None:
    rules = _extensions("aws_rds_dbinstance/engine_version.json")["allOf"]
    (known,) = (
        rule["then"]["properties"]["EngineVersion"]["enum"]
        for rule in rules
        if rule["if"]["properties"]["Engine"].get("const") == "sqlserver-se"
    )
    assert RdsSqlServer().engine_version in known
    assert {one for one in rds_versions() if one >= "14"} <= {*known}


def test_a_broker_is_of_a_size_that_ec2_has() -> None:
    assert {name.partition(".")[2] for name in BROKER_TYPES} <= ec2_instance_types()


def test_an_instance_types_architecture_is_what_the_cdk_says() -> None:
    families = {name.partition(".")[0]: name for name in sorted(ec2_instance_types())}
    readable = [name for family, name in families.items() if re.fullmatch(r"[a-z]+\d{1,2}[a-z]*", family)]
    assert len(readable) > 130
    for name in readable:
        is_arm = ec2.InstanceType(name).architecture == ec2.InstanceArchitecture.ARM_64
        right, wrong = ("arm64", "x86_64") if is_arm else ("x86_64", "arm64")
        all_of_it = f'primary = "{name}"\ncore = "{name}"\ntask = ["{name}"]'
        lake_with(f'[aws.processing]\narchitecture = "{right}"\n{all_of_it}')
        with pytest.raises(LakeFileError, match="architecture"):
            lake_with(f'[aws.processing]\narchitecture = "{wrong}"\n{all_of_it}')
