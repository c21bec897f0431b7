"""What a deployment builds to rotate a password: with which permissions, when, and what watches it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stacks.functions.rotation.databases import PASSWORD
from stacks.functions.rotation.main import AGE, TARGET, UNREAD, Target
from stacks.synthesized import rendered
from tests.stacks.conftest import Synthesized

ROTATING = {
    "production": {"web": ("postgres", 5432)},
    "rotation-without-nat": {"web": ("postgres", 5432)},
    "aurora-mysql-in-production": {"web": ("postgres", 5432), "orders": ("mysql", 3306)},
    "rds-sql-server-in-production": {
        "web": ("postgres", 5432),
        "erp": ("sqlserver", 1433),
        "web_shop": ("sqlserver", 1433),
    },
}
"""The engines and ports of the databases whose passwords rotate, by settings and source."""

everywhere = pytest.mark.parametrize("settings", ROTATING)


def _resources(synthesized: Synthesized, settings: str, kind: str, stack: str = "Database") -> dict[str, Any]:
    found = synthesized(settings).templates[stack]["Resources"]
    return {name: each for name, each in found.items() if each["Type"] == kind}


def _functions(synthesized: Synthesized, settings: str) -> dict[str, Any]:
    functions = _resources(synthesized, settings, "AWS::Lambda::Function")
    return {
        name: each
        for name, each in functions.items()
        if TARGET in each["Properties"].get("Environment", {}).get("Variables", {})
    }


def _targets(synthesized: Synthesized, settings: str) -> dict[str, Target]:
    found = [
        Target.from_json(rendered(each["Properties"]["Environment"]["Variables"][TARGET]))
        for each in _functions(synthesized, settings).values()
    ]
    return {target.source: target for target in found}


@everywhere
def test_each_of_the_lakes_own_databases_has_a_rotation(synthesized: Synthesized, settings: str) -> None:
    targets = _targets(synthesized, settings)
    assert {
        name: (target.address.engine, target.address.port) for name, target in targets.items()
    } == ROTATING[settings]
    for name, target in targets.items():
        assert target.connector == f"tributary-shop-{name}-debezium"
        assert target.user == f"tributary_shop__{name}"
        assert target.user in target.statement
        assert target.statement.count(PASSWORD) == 1
        assert target.address.is_verified


@everywhere
def test_secrets_manager_calls_the_function_as_often_as_the_lake_file_says(
    synthesized: Synthesized, settings: str
) -> None:
    functions = _functions(synthesized, settings)
    schedules = [
        each
        for each in _resources(synthesized, settings, "AWS::SecretsManager::RotationSchedule").values()
        if "RotationLambdaARN" in each["Properties"]
    ]
    days = {each["Properties"]["RotationRules"]["AutomaticallyAfterDays"] for each in schedules}
    assert days == {7 if settings == "rotation-without-nat" else 30}
    assert len(schedules) == len(functions) == len(ROTATING[settings])
    prepared = {
        name
        for name, each in synthesized(settings).templates["Database"]["Resources"].items()
        if each["Type"].startswith("Custom::TributaryPrepared")
    }
    for schedule in schedules:
        assert schedule["Properties"]["RotationLambdaARN"]["Fn::GetAtt"][0] in functions
        # The user has its first password, and the function may be called.
        assert prepared & set(schedule["DependsOn"])
        assert {"AWS::Lambda::Permission", "AWS::IAM::ManagedPolicy"} <= {
            synthesized(settings).templates["Database"]["Resources"][each]["Type"]
            for each in schedule["DependsOn"]
        }
    for permission in _resources(synthesized, settings, "AWS::Lambda::Permission").values():
        if permission["Properties"]["Principal"] == "secretsmanager.amazonaws.com":
            assert permission["Properties"]["SourceAccount"] == {"Ref": "AWS::AccountId"}


@everywhere
def test_a_function_reaches_its_own_secrets_and_its_own_connector_alone(
    synthesized: Synthesized, settings: str
) -> None:
    targets = _targets(synthesized, settings)
    policies = [
        each["Properties"]
        for each in _resources(synthesized, settings, "AWS::IAM::ManagedPolicy").values()
        if str(each["Properties"].get("Description", "")).startswith("Rotates the password of ")
    ]
    assert len(policies) == len(targets)
    for policy in policies:
        target = targets[policy["Description"].removeprefix("Rotates the password of ")]
        by_action: dict[str, set[str]] = {}
        for statement in policy["PolicyDocument"]["Statement"]:
            actions, resources = statement["Action"], statement["Resource"]
            for action in [actions] if isinstance(actions, str) else actions:
                listed = resources if isinstance(resources, list) else [resources]
                by_action.setdefault(action, set()).update(map(rendered, listed))
        for action in ("DescribeSecret", "PutSecretValue", "UpdateSecretVersionStage"):
            assert by_action[f"secretsmanager:{action}"] == {target.secret}
        assert by_action["secretsmanager:GetSecretValue"] == {target.secret, target.admin_secret}
        (restarted,) = by_action["kafkaconnect:RestartConnector"]
        assert restarted.endswith(f":connector/{target.connector}/*")
        (operations,) = by_action["kafkaconnect:DescribeConnectorOperation"]
        assert operations.endswith(f":connector-operation/{target.connector}/*")
        assert "rds-data:ExecuteStatement" not in by_action


def test_without_days_nothing_rotates_and_the_finding_says_so(synthesized: Synthesized) -> None:
    for settings in ("small", "existing-database"):
        assert _functions(synthesized, settings) == {}
    assert [
        each.construct
        for each in synthesized("small").acknowledged
        if each.rule == "AwsSolutions-SMG4" and "rotation_days is 0" in each.reason
    ] == ["Database/Web/ReplicationSecret"]
    assert not any(
        each.rule == "AwsSolutions-SMG4" and "ReplicationSecret" in each.construct
        for each in synthesized("production").acknowledged
    )


def test_turning_the_rotation_on_does_not_make_another_first_password(synthesized: Synthesized) -> None:
    """CloudFormation would generate another password, unseen by the database, if these properties changed."""

    def generated(settings: str) -> Any:
        (secret,) = (
            each["Properties"]["GenerateSecretString"]
            for each in _resources(synthesized, settings, "AWS::SecretsManager::Secret").values()
            if each["Properties"].get("Name") == "tributary/shop/web/replication"
        )
        return secret

    assert generated("small") == generated("rotation-without-nat") == generated("production")


@everywhere
def test_no_variable_of_the_function_holds_a_secret(synthesized: Synthesized, settings: str) -> None:
    for function in _functions(synthesized, settings).values():
        text = json.dumps(function)
        assert "{{resolve" not in text
        assert "SecretString" not in text
        assert set(function["Properties"]["Environment"]["Variables"]) == {TARGET}


def test_alarms_watch_the_age_of_each_password_and_whether_it_was_read(synthesized: Synthesized) -> None:
    alarms = [
        each["Properties"]
        for each in _resources(
            synthesized, "rds-sql-server-in-production", "AWS::CloudWatch::Alarm", "Observability"
        ).values()
    ]
    found = {
        (each["MetricName"], each["AlarmName"]): each
        for each in alarms
        if each.get("MetricName") in (AGE, UNREAD)
    }
    assert {name for _, name in found} == {
        f"tributary-shop-password-rotation-{source}{end}"
        for source in ("web", "erp", "web_shop")
        for end in ("", "-unread")
    }
    age = found[AGE, "tributary-shop-password-rotation-web"]
    assert (age["Threshold"], age["Period"]) == (32, 300)
    unread = found[UNREAD, "tributary-shop-password-rotation-web-unread"]
    assert (unread["Threshold"], unread["EvaluationPeriods"], unread["TreatMissingData"]) == (
        0,
        6,
        "breaching",
    )


def test_without_a_nat_gateway_an_endpoint_leads_to_msk_connect(synthesized: Synthesized) -> None:
    def endpoints(settings: str) -> list[str]:
        return [
            rendered(each["Properties"]["ServiceName"])
            for each in _resources(synthesized, settings, "AWS::EC2::VPCEndpoint", "Network").values()
        ]

    leads = "com.amazonaws.us-east-1.kafkaconnect"
    assert leads in endpoints("rotation-without-nat")
    assert leads not in endpoints("endpoints-and-no-nat")
    assert leads not in endpoints("production")
