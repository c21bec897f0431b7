"""EMR Studio: notebooks on the lake's own EMR, by setting, that can only read silver."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from stacks.synthesized import rendered
from tests.stacks.conftest import Synthesized
from tests.stacks.iam_statements import Statement, statements

STUDIOS = ("studio", "serverless-studio")
NOTEBOOK_POLICIES = {"studio": "RolesNotebookPolicy", "serverless-studio": "EmrNotebookPolicy"}


def _resources(synthesized: Synthesized, settings: str) -> Mapping[str, Mapping[str, Any]]:
    resources: Mapping[str, Mapping[str, Any]] = synthesized(settings).templates["Processing"]["Resources"]
    return resources


def _only(synthesized: Synthesized, settings: str, kind: str) -> Mapping[str, Any]:
    (found,) = (
        each["Properties"] for each in _resources(synthesized, settings).values() if each["Type"] == kind
    )
    assert isinstance(found, dict)
    return found


def _rights(synthesized: Synthesized, settings: str, policy: str) -> list[Statement]:
    found = [
        each
        for each in statements({"Processing": synthesized(settings).templates["Processing"]})
        if each.holder.startswith(f"Processing/{policy}")
    ]
    assert found
    return found


@pytest.mark.parametrize("settings", ["small", "emr-serverless"])
def test_without_the_setting_there_is_no_studio_and_nothing_for_notebooks(
    synthesized: Synthesized, settings: str
) -> None:
    text = json.dumps(_resources(synthesized, settings))
    assert not re.search("AWS::EMR::Studio|Livy|Jupyter|InteractiveConfiguration|Notebook", text)


@pytest.mark.parametrize("settings", STUDIOS)
def test_people_log_in_with_iam_and_notebooks_are_kept_in_the_lake_s_own_bucket(
    synthesized: Synthesized, settings: str
) -> None:
    studio = _only(synthesized, settings, "AWS::EMR::Studio")
    assert studio["AuthMode"] == "IAM"
    assert rendered(studio["DefaultS3Location"]) == ("s3://shop-artifacts-{AWS::AccountId}-us-east-1/studio/")
    assert ("EncryptionKeyArn" in studio) == (settings == "studio")


@pytest.mark.parametrize("settings", STUDIOS)
def test_a_notebook_can_read_silver_and_write_nothing_but_logs(
    synthesized: Synthesized, settings: str
) -> None:
    rights = _rights(synthesized, settings, NOTEBOOK_POLICIES[settings])
    reading = re.compile(r"(s3|glue):(Get|List)|kms:")
    assert {
        (action, resource.rpartition("/")[0])
        for each in rights
        for action in each.actions
        if not reading.match(action)
        for resource in each.resources
    } <= {("s3:PutObject", "arn:{AWS::Partition}:s3:::shop-logs-{AWS::AccountId}-us-east-1/emr-serverless")}
    buckets = {resource for each in rights if "s3:GetObject" in each.actions for resource in each.resources}
    assert buckets == {"arn:{AWS::Partition}:s3:::shop-silver-{AWS::AccountId}-us-east-1/*"}


@pytest.mark.parametrize("settings", STUDIOS)
def test_a_user_can_run_code_only_as_the_notebook_s_role(synthesized: Synthesized, settings: str) -> None:
    rights = _rights(synthesized, settings, "StudioUserPolicy")
    roles = {
        resource: each.content["Condition"]["StringEquals"]["iam:PassedToService"]
        for each in rights
        if each.actions == ("iam:PassRole",)
        for resource in each.resources
    }
    services = {re.sub(r"\{(\D+)\w{8}\.Arn\}", r"\1", role): service for role, service in roles.items()}
    if settings == "studio":
        assert services == {"StudioService": "elasticmapreduce.amazonaws.com"}
        (session,) = (
            each for each in rights if "elasticmapreduce:GetClusterSessionCredentials" in each.actions
        )
        (role,) = session.content["Condition"]["StringEquals"].values()
        assert rendered(role).startswith("{RolesNotebook")
    else:
        assert services == {
            "StudioService": "elasticmapreduce.amazonaws.com",
            "EmrNotebookRole": "emr-serverless.amazonaws.com",
        }
    actions = {action for each in rights for action in each.actions}
    assert not [action for action in actions if re.search("RunJobFlow|AddJobFlowSteps|StartJobRun", action)]


def test_the_cluster_gets_what_notebooks_need_and_its_nodes_may_assume_their_role(
    synthesized: Synthesized,
) -> None:
    cluster = _only(synthesized, "studio", "AWS::EMR::Cluster")
    assert [each["Name"] for each in cluster["Applications"]] == ["Spark", "JupyterEnterpriseGateway", "Livy"]
    (assumes,) = (
        each
        for each in _rights(synthesized, "studio", "RolesNodesPolicy")
        if "sts:AssumeRole" in each.actions
    )
    assert any("RolesNotebook" in role for role in assumes.resources)


def test_the_application_is_open_to_notebooks_of_studio_alone(synthesized: Synthesized) -> None:
    application = _only(synthesized, "serverless-studio", "AWS::EMRServerless::Application")
    assert application["InteractiveConfiguration"] == {"StudioEnabled": True}


def test_only_notebooks_reach_the_engine_and_nobody_reaches_notebooks(synthesized: Synthesized) -> None:
    resources = _resources(synthesized, "studio")
    ingress = [
        each["Properties"] for each in resources.values() if each["Type"] == "AWS::EC2::SecurityGroupIngress"
    ]

    def into(group: str) -> list[tuple[int, str]]:
        return [
            (rule["FromPort"], rendered(rule["SourceSecurityGroupId"]))
            for rule in ingress
            if rendered(rule["GroupId"]).startswith(f"{{Studio{group}")
        ]

    ((port, source),) = into("Engine")
    assert port == 18888
    assert source.startswith("{StudioWorkspace")
    assert into("Workspace") == []
    for name, each in resources.items():
        if name.startswith(("StudioEngine", "StudioWorkspace")) and each["Type"] == "AWS::EC2::SecurityGroup":
            tags = {tag["Key"]: tag["Value"] for tag in each["Properties"]["Tags"]}
            assert tags["for-use-with-amazon-emr-managed-policies"] == "true"


def test_the_service_of_studio_for_serverless_only_stores_notebooks(synthesized: Synthesized) -> None:
    rights = _rights(synthesized, "serverless-studio", "StudioServicePolicy")
    assert {action.partition(":")[0] for each in rights for action in each.actions} == {"s3"}


@pytest.mark.parametrize("settings", STUDIOS)
def test_the_outputs_say_where_to_go_and_which_policy_and_role_to_take(
    synthesized: Synthesized, settings: str
) -> None:
    outputs = synthesized(settings).templates["Processing"]["Outputs"]
    assert {"StudioUrl", "StudioUserPolicyArn", "NotebookRoleArn"} <= set(outputs)


def test_with_lake_formation_a_notebook_gets_select(synthesized: Synthesized) -> None:
    grants = [
        each["Properties"]["Permissions"]
        for name, each in _resources(synthesized, "studio").items()
        if each["Type"] == "AWS::LakeFormation::PrincipalPermissions" and "Notebook" in name
    ]
    assert sorted(grants) == [["DESCRIBE"], ["DESCRIBE", "SELECT"]]
