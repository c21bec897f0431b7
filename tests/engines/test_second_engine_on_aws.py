"""The stacks handle a second engine like the first: its plugin, its port, its alarms, its databases."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from aws_cdk import App

from stacks.assembly import assemble
from stacks.available_on_aws import check_known
from stacks.synthesized import Templates, read_templates
from tests.engines.abacus import PORT
from tests.engines.conftest import registered
from tests.engines.lakes import ABACUS, POSTGRES
from tests.stacks.conftest import FLAGS
from tests.stacks.lakes import write_assets
from tributary.contract.errors import TributaryError
from tributary.contract.lake import parse_lake, read_lake

LAKE = f"""{POSTGRES}{ABACUS}
[source.old]
engine = "abacus"
tables = ["counting.*"]

[aws]
region = "us-east-1"

[aws.source.old]
host = "old.example.org"
port = 7778
secret = "arn:aws:secretsmanager:us-east-1:111122223333:secret:old-AbCdEf"
"""


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Templates of a lake with a PostgreSQL, a database of the second engine, and an existing one."""
    folder = tmp_path_factory.mktemp("lake")
    lake_file, assets = folder / "lake.toml", write_assets(folder)
    lake_file.write_text(LAKE)
    (assets / "debezium-connector-abacus-0123456789ab.zip").write_text("abacus")
    app = App(outdir=str(folder / "cdk.out"), context=FLAGS)
    with registered():
        assemble(app, read_lake(lake_file), lake_file, assets)
        app.synth()
    return read_templates(folder / "cdk.out")


def resources(template: Any, kind: str) -> list[dict[str, Any]]:
    return [one["Properties"] for one in template["Resources"].values() if one["Type"] == kind]


def connectors(templates: Templates) -> dict[str, dict[str, Any]]:
    found = resources(templates["Connect"], "AWS::KafkaConnect::Connector")
    return {one["ConnectorName"].removeprefix("tributary-shop-"): one for one in found}


def test_a_second_engine_s_databases_are_read_through_its_own_plugin(templates: Templates) -> None:
    found = connectors(templates)
    for source, address in (("counter", "own.example.org:7777"), ("old", "old.example.org:7778")):
        connector = found[f"{source}-debezium"]
        config = connector["ConnectorConfiguration"]
        assert config["connector.class"] == "org.example.AbacusConnector"
        assert config["abacus.address"] == f"counter-shop@{address}"
        assert "AbacusPlugin" in json.dumps(connector["Plugins"])
    assert "DebeziumPlugin" in json.dumps(found["web-debezium"]["Plugins"])


def test_a_second_engine_s_topics_reach_bronze(templates: Templates) -> None:
    topics = connectors(templates)["bronze-iceberg"]["ConnectorConfiguration"]["topics.regex"]
    for topic in ("shop.counter.counting.beads", "shop.web.public.orders"):
        assert re.fullmatch(topics, topic)


def test_a_second_engine_s_ports_are_open_for_debezium(templates: Templates) -> None:
    groups = resources(templates["Network"], "AWS::EC2::SecurityGroup")
    (debezium,) = (one for one in groups if "Debezium" in one["GroupDescription"])
    assert {rule["ToPort"] for rule in debezium["SecurityGroupEgress"]} == {443, 9098, 5432, PORT, 7778}


def test_a_second_engine_s_databases_have_alarms_and_graphs(templates: Templates) -> None:
    alarms = {
        one["AlarmName"].removeprefix("tributary-shop-"): one
        for one in resources(templates["Observability"], "AWS::CloudWatch::Alarm")
    }
    assert alarms["abacus"]["AlarmDescription"].endswith("docs/operate-aws.md#abacus")
    assert "slot-lag-web" in alarms
    assert not {"slot-lag-counter", "slot-lag-old"} & alarms.keys()
    (page,) = resources(templates["Observability"], "AWS::CloudWatch::Dashboard")
    assert "Beads" in json.dumps(page)


def test_a_name_that_a_second_engine_s_databases_need_is_checked() -> None:
    with registered(), pytest.raises(TributaryError, match=r"\[aws\]\.region.*a region with monks"):
        check_known(parse_lake(f'{POSTGRES}{ABACUS}\n[aws]\nregion = "eu-west-1"\n'))
