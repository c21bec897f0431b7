"""Alarms of a lake: who gets them, what they say, and which section of the runbook they link to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

import spark_app.run.metrics
from stacks.functions.restart.main import METRIC as FOLLOW_DEATHS
from stacks.observability.alarms import SECTIONS
from stacks.observability.stack import ObservabilityStack
from stacks.watched import RUNBOOK
from tests.stacks.test_processing import build
from tributary.contract.aws_names import METRICS_NAMESPACE

Observed = Callable[[str], Template]


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """The template of the observability stack, by the settings' name."""
    made: dict[str, Template] = {}

    def template(settings: str) -> Template:
        if settings not in made:
            made[settings] = _template(settings, tmp_path_factory.mktemp(settings))
        return made[settings]

    return template


def _template(settings: str, folder: Path) -> Template:
    processing = build(settings, folder)
    return Template.from_stack(
        ObservabilityStack(cast(App, processing.node.root), processing.lake, processing)
    )


def alarms(template: Template) -> dict[str, dict[str, Any]]:
    """By their names."""
    found = template.find_resources("AWS::CloudWatch::Alarm").values()
    return {one["Properties"]["AlarmName"]: one["Properties"] for one in found}


def test_every_alarm_leads_to_a_section_of_the_runbook(observed: Observed) -> None:
    for name, alarm in alarms(observed("small")).items():
        (section,) = re.findall(rf"{re.escape(RUNBOOK)}#([a-z-]+)$", alarm["AlarmDescription"])
        assert section in SECTIONS
        assert name.startswith(f"tributary-shop-{section}")


_WITH_ALL = ("small", "production", "items", "own-items", "dbt", "verify", "rds-sql-server")


def test_every_section_is_led_to(observed: Observed) -> None:
    text = json.dumps([observed(settings).to_json() for settings in _WITH_ALL])
    assert {section for section in SECTIONS if f"{RUNBOOK}#{section}" not in text} == set()


def test_every_alarm_tells_the_topic_when_it_is_raised_and_when_it_is_over(observed: Observed) -> None:
    (topic,) = observed("small").find_resources("AWS::SNS::Topic")
    for alarm in alarms(observed("small")).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": topic}]


def test_a_slot_that_holds_back_too_much_log_is_told_of_the_writer(observed: Observed) -> None:
    alarm = alarms(observed("small"))["tributary-shop-slot-lag-web"]
    assert (alarm["MetricName"], alarm["Threshold"]) == ("OldestReplicationSlotLag", 5e9)
    assert {one["Name"]: one["Value"] for one in alarm["Dimensions"]} == {
        "DBClusterIdentifier": "tributary-shop-web",
        "Role": "WRITER",
    }


def test_the_log_s_alarm_comes_before_postgresql_gives_the_slot_up(observed: Observed) -> None:
    assert alarms(observed("small"))["tributary-shop-database-disk-web-log"]["Threshold"] == 0.8 * 20e9


def test_an_existing_database_has_no_alarms_of_aurora(observed: Observed) -> None:
    names = alarms(observed("existing-database"))
    assert not [name for name in names if "slot-lag" in name or "database-disk" in name]


def test_a_connector_without_a_running_task_is_told_also_where_it_sends_nothing(observed: Observed) -> None:
    found = alarms(observed("small"))
    for connector in ("tributary-shop-web-debezium", "tributary-shop-bronze-iceberg"):
        stopped = found[f"tributary-shop-connector-failed-{connector}-stopped"]
        assert (stopped["MetricName"], stopped["TreatMissingData"]) == ("RunningTaskCount", "breaching")


def test_the_sink_s_lag_is_that_of_its_consumer_group_whatever_the_topics(observed: Observed) -> None:
    (metric,) = alarms(observed("small"))["tributary-shop-sink-lag"]["Metrics"]
    assert metric["Expression"].endswith("\"Consumer Group\" = 'connect-tributary-shop-bronze-iceberg'")


def test_what_the_spark_app_is_watched_by_it_also_sends(observed: Observed) -> None:
    sent = set(spark_app.run.metrics.UNITS)
    watched = {
        one["MetricName"]
        for one in alarms(observed("small")).values()
        if one.get("Namespace") == METRICS_NAMESPACE
    }
    assert watched == {
        "Freshness",
        "Blocked",
        "Quarantined",
        "MissingClasses",
        "NotAccelerated",
        FOLLOW_DEATHS,
    }
    assert watched - {FOLLOW_DEATHS} <= sent
    assert ("Lake",) in spark_app.run.metrics.DIMENSIONS


def test_silence_of_the_spark_app_is_told_too(observed: Observed) -> None:
    freshness = alarms(observed("small"))["tributary-shop-freshness"]
    assert freshness["InsufficientDataActions"] == freshness["AlarmActions"]
    assert freshness["Threshold"] == 300


def test_a_dbt_run_that_fails_or_never_starts_rings_an_alarm(observed: Observed) -> None:
    assert not [name for name in alarms(observed("small")) if "dbt" in name]
    found = alarms(observed("dbt"))
    failed, not_started = (found[f"tributary-shop-dbt-failed{of}"] for of in ("", "-not-started"))
    assert (failed["Namespace"], failed["MetricName"]) == ("AWS/CodeBuild", "FailedBuilds")
    assert failed["Dimensions"] == [{"Name": "ProjectName", "Value": "tributary-shop-dbt"}]
    assert (not_started["Namespace"], not_started["MetricName"]) == (
        "AWS/Scheduler",
        "InvocationDroppedCount",
    )
    assert not_started["Dimensions"] == [{"Name": "ScheduleGroup", "Value": "tributary-shop-dbt"}]
    assert failed["Threshold"] == not_started["Threshold"] == failed["DatapointsToAlarm"] - 1 == 0


def test_rows_that_differ_ring_an_alarm_until_a_verification_finds_none(observed: Observed) -> None:
    assert not [name for name in alarms(observed("small")) if "verify" in name or "differ" in name]
    found = alarms(observed("verify"))
    differ = found["tributary-shop-rows-differ"]
    assert (differ["Namespace"], differ["MetricName"]) == (METRICS_NAMESPACE, "DifferingRows")
    assert differ["Dimensions"] == [{"Name": "Lake", "Value": "shop"}]
    assert (differ["Threshold"], differ["TreatMissingData"]) == (0, "ignore")
    failed, not_started = (found[f"tributary-shop-verify-failed{of}"] for of in ("", "-not-started"))
    assert failed["Dimensions"] == [{"Name": "ProjectName", "Value": "tributary-shop-verify"}]
    assert not_started["Dimensions"] == [{"Name": "ScheduleGroup", "Value": "tributary-shop-verify"}]


def test_serverless_kafka_has_no_brokers_to_watch(observed: Observed) -> None:
    assert [name for name in alarms(observed("small")) if "kafka" in name]
    assert not [name for name in alarms(observed("serverless-kafka")) if "kafka" in name]


def test_a_step_of_the_lake_s_that_has_failed_is_told(observed: Observed) -> None:
    observed("small").has_resource_properties(
        "AWS::Events::Rule",
        {
            "EventPattern": {
                "source": ["aws.emr"],
                "detail-type": ["EMR Step Status Change"],
                "detail": {"name": [{"prefix": "tributary-shop-"}], "state": ["CANCELLED", "FAILED"]},
            }
        },
    )


def test_a_job_run_that_has_failed_is_told_of_this_application_only(observed: Observed) -> None:
    observed("emr-serverless").has_resource_properties(
        "AWS::Events::Rule",
        {
            "EventPattern": {
                "source": ["aws.emr-serverless"],
                "detail-type": ["EMR Serverless Job Run State Change"],
                "detail": {"applicationId": [Match.any_value()], "state": ["CANCELLED", "FAILED"]},
            }
        },
    )


def test_a_cluster_can_be_replaced_as_no_other_stack_uses_its_id(observed: Observed) -> None:
    assert "ImportValue" not in json.dumps(observed("small").to_json())


def test_the_topic_is_encrypted_with_a_key_that_its_senders_may_use(observed: Observed) -> None:
    template = observed("small")
    (key,) = template.find_resources("AWS::KMS::Key")
    template.has_resource_properties(
        "AWS::SNS::Topic",
        {"KmsMasterKeyId": {"Fn::GetAtt": [key, "Arn"]}, "TopicName": "tributary-shop-alarms"},
    )
    senders = json.dumps(template.find_resources("AWS::KMS::Key")[key]["Properties"]["KeyPolicy"])
    assert all(sender in senders for sender in ("cloudwatch.amazonaws.com", "events.amazonaws.com"))


def test_a_person_is_told_by_mail_where_the_lake_file_has_an_address(observed: Observed) -> None:
    observed("small").resource_count_is("AWS::SNS::Subscription", 0)
    observed("everything-else").has_resource_properties(
        "AWS::SNS::Subscription", {"Protocol": "email", "Endpoint": "lake@example.org"}
    )


def test_the_dashboard_has_a_line_for_each_table_whenever_it_comes(observed: Observed) -> None:
    (dashboard,) = observed("small").find_resources("AWS::CloudWatch::Dashboard").values()
    body = json.dumps(dashboard["Properties"]["DashboardBody"]).replace("\\", "")
    for name in ("Freshness", "Lag", "Events", "Quarantined", "Blocked", "CommitTime"):
        assert f'{{Tributary,Lake,Table}} Lake="shop" MetricName="{name}"' in body


def test_a_budget_of_the_lake_tells_the_topic_before_the_money_is_spent(observed: Observed) -> None:
    observed("small").resource_count_is("AWS::Budgets::Budget", 0)
    template = observed("everything-else")
    (topic,) = template.find_resources("AWS::SNS::Topic")
    (found,) = template.find_resources("AWS::Budgets::Budget").values()
    budget = found["Properties"]["Budget"]
    assert budget["BudgetLimit"] == {"Amount": 900, "Unit": "USD"}
    assert budget["CostFilters"] == {"TagKeyValue": ["user:tributary:lake$shop"]}
    told = found["Properties"]["NotificationsWithSubscribers"]
    assert [one["Notification"]["NotificationType"] for one in told] == ["ACTUAL", "FORECASTED"]
    assert all(one["Subscribers"] == [{"Address": {"Ref": topic}, "SubscriptionType": "SNS"}] for one in told)
    policies = json.dumps(template.find_resources("AWS::SNS::TopicPolicy"))
    keys = json.dumps(template.find_resources("AWS::KMS::Key"))
    assert "budgets.amazonaws.com" in policies
    assert "budgets.amazonaws.com" in keys
