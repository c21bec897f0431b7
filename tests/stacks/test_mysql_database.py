"""The lake's own Aurora MySQL cluster: what it is, who reaches it, and how it is prepared."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from stacks.functions.bootstrap.mysql import MySqlPreparation
from stacks.synthesized import rendered
from tests.stacks.conftest import Synthesized
from tests.stacks.one_stack import lake_with
from tributary.contract.lake import LakeFileError

OWN, PRODUCTION = "aurora-mysql", "aurora-mysql-in-production"


def _resources(synthesized: Synthesized, settings: str, kind: str) -> list[dict[str, Any]]:
    found = synthesized(settings).templates["Database"]["Resources"].values()
    return [resource["Properties"] for resource in found if resource["Type"] == kind]


def _cluster(synthesized: Synthesized, settings: str) -> dict[str, Any]:
    (found,) = (
        each
        for each in _resources(synthesized, settings, "AWS::RDS::DBCluster")
        if each["Engine"] == "aurora-mysql"
    )
    return found


def _preparation(synthesized: Synthesized, settings: str) -> MySqlPreparation:
    (found,) = _resources(synthesized, settings, "Custom::TributaryPreparedMySql")
    return MySqlPreparation.from_json(found["Preparation"])


def test_the_cheapest_cluster_is_one_serverless_instance_beside_the_postgresql(
    synthesized: Synthesized,
) -> None:
    cluster = _cluster(synthesized, OWN)
    assert cluster["EngineVersion"] == "8.0.mysql_aurora.3.10.3"
    assert cluster["DBClusterIdentifier"] == "tributary-shop-orders"
    assert cluster["ServerlessV2ScalingConfiguration"] == {"MinCapacity": 0.5, "MaxCapacity": 4}
    assert cluster["EnableHttpEndpoint"] is True
    engines = [each["Engine"] for each in _resources(synthesized, OWN, "AWS::RDS::DBCluster")]
    assert sorted(engines) == ["aurora-mysql", "aurora-postgresql"]


def test_its_binary_log_has_whole_rows_and_nobody_logs_in_without_tls(synthesized: Synthesized) -> None:
    (group,) = (
        each["Parameters"]
        for each in _resources(synthesized, OWN, "AWS::RDS::DBClusterParameterGroup")
        if each["Family"] == "aurora-mysql8.0"
    )
    assert group["binlog_format"] == "ROW"
    assert group["require_secure_transport"] == "ON"
    assert (group["gtid-mode"], group["enforce_gtid_consistency"]) == ("ON", "ON")


def test_in_production_a_reader_takes_over_and_the_log_is_kept_as_long_as_asked(
    synthesized: Synthesized,
) -> None:
    of_mysql = [
        each["DBInstanceClass"]
        for each in _resources(synthesized, PRODUCTION, "AWS::RDS::DBInstance")
        if each["Engine"] == "aurora-mysql"
    ]
    assert of_mysql == ["db.r7g.large", "db.r7g.large"]
    assert _cluster(synthesized, PRODUCTION)["BackupRetentionPeriod"] == 14
    assert _preparation(synthesized, PRODUCTION).binlog_hours == 5 * 24
    assert _preparation(synthesized, OWN).binlog_hours == 3 * 24


def test_only_clients_of_the_lake_reach_it(synthesized: Synthesized) -> None:
    from_clients = {
        each["Description"]
        for each in _resources(synthesized, OWN, "AWS::EC2::SecurityGroupIngress")
        if each["ToPort"] == 3306
    }
    assert from_clients == {"Debezium", "rotation of the secret"}


def test_debezium_gets_the_endpoint_and_verifies_the_certificate(synthesized: Synthesized) -> None:
    connectors = synthesized(OWN).templates["Connect"]["Resources"].values()
    (config,) = (
        one["Properties"]["ConnectorConfiguration"]
        for one in connectors
        if one["Type"] == "AWS::KafkaConnect::Connector"
        and "orders" in str(one["Properties"]["ConnectorName"])
    )
    assert "OrdersCluster" in rendered(config["database.hostname"])
    assert config["database.ssl.mode"] == "verify_identity"
    assert config["database.password"] == "${secretsmanager:tributary/shop/orders/replication:password}"


def test_the_function_may_ask_this_database_and_read_its_secrets_and_nothing_else(
    synthesized: Synthesized,
) -> None:
    (policy,) = (
        resource["Properties"]["PolicyDocument"]["Statement"]
        for name, resource in synthesized(OWN).templates["Database"]["Resources"].items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy" and name.startswith("MySqlBootstrapPolicy")
    )
    actions = {action for one in policy for action in _as_list(one["Action"])}
    services = {action.partition(":")[0] for action in actions}
    assert services == {"logs", "rds-data", "secretsmanager"}
    places = {rendered(place) for one in policy for place in _as_list(one["Resource"])}
    assert not [place for place in places if place == "*" or re.search(r"\bWeb", place)]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_a_lake_of_mysql_alone_has_no_postgresql(synthesized: Synthesized) -> None:
    functions = [
        name
        for name, resource in synthesized("mysql-alone").templates["Database"]["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function" and "Bootstrap" in name
    ]
    assert len(functions) == 1
    assert [one["Engine"] for one in _resources(synthesized, "mysql-alone", "AWS::RDS::DBCluster")] == [
        "aurora-mysql"
    ]


def test_the_properties_of_the_preparation_survive_cloudformation(synthesized: Synthesized) -> None:
    (found,) = _resources(synthesized, OWN, "Custom::TributaryPreparedMySql")
    assert json.loads(found["Preparation"])["user"] == "'tributary_shop__orders'@'%'"
    assert found["Preparation"].isascii()


def test_mariadb_still_needs_a_server_that_exists() -> None:
    with pytest.raises(LakeFileError, match=r"\[source\.stock\].*creates no server"):
        lake_with(more='[source.stock]\nengine = "mariadb"\ntables = ["stock.*"]')
