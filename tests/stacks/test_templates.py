"""Claims about the templates of every lake of the matrix."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from stacks.synthesized import Templates, read_templates, rendered, resources_of
from tests.committed import assert_committed
from tests.stacks.cfn_lint import lint
from tests.stacks.conftest import Synthesized
from tests.stacks.iam_statements import Statement, managed_policies, statements
from tests.stacks.lakes import ACCOUNT, SETTINGS, write_assets, write_lake_file
from tributary.contract.aws_names import StackKind

everywhere = pytest.mark.parametrize("settings", SETTINGS)
ROOT = Path(__file__).parents[2]

WARNINGS_OF_THE_CDK = {
    "W3005": "DependsOn what a property refers to as well: the CDK writes both",
}

NEWER_THAN_CFN_LINT = {
    "restartconnector": "MSK Connect has the action since August 2026 (API reference, RestartConnector)",
}
"""Actions of IAM that this version of cfn-lint does not know yet."""

HOLDS_DATA = frozenset(
    {
        "AWS::DynamoDB::Table",
        "AWS::Glue::Database",
        "AWS::Kinesis::Stream",
        "AWS::KMS::Key",
        "AWS::Glue::Registry",
        "AWS::MSK::Cluster",
        "AWS::MSK::ServerlessCluster",
        "AWS::MSK::Topic",
        "AWS::RDS::DBCluster",
        "AWS::RDS::DBInstance",
        "AWS::S3::Bucket",
        "AWS::SecretsManager::Secret",
    }
)
"""Types whose resources cannot be made again with what was in them."""

MADE_AGAIN = "ReplicationSecret"
"""In the logical id of what Debezium logs in with: the preparation gives the role whatever it is."""

_DESCRIBES = "EC2 checks what is described against no resource"
_LISTS = "a list knows no narrower resource"
_IN_THE_VPC = "what Lambda does so that a function is in the VPC: it has no network interface yet to be named"
ON_ANY_RESOURCE = {
    "kafka:GetBootstrapBrokers": "MSK knows no resource for it",
    "glue:GetSchemaVersion": "Glue knows no resource for a request with a version's id",
    "dynamodb:ListTables": "DynamoDB knows no resource for it",
    "kafkaconnect:ListConnectors": "MSK Connect knows no resource for it",
    "cloudwatch:PutMetricData": "CloudWatch knows no resource for it, and the namespace limits it",
    "ec2:AssignPrivateIpAddresses": _IN_THE_VPC,
    "ec2:CreateNetworkInterface": _IN_THE_VPC,
    "ec2:DeleteNetworkInterface": _IN_THE_VPC,
    "ec2:UnassignPrivateIpAddresses": _IN_THE_VPC,
    "ec2:DescribeAccountAttributes": _DESCRIBES,
    "ec2:DescribeCapacityReservations": _DESCRIBES,
    "ec2:DescribeDhcpOptions": _DESCRIBES,
    "ec2:DescribeImages": _DESCRIBES,
    "ec2:DescribeInstanceTypeOfferings": _DESCRIBES,
    "ec2:DescribeInstances": _DESCRIBES,
    "ec2:DescribeLaunchTemplates": _DESCRIBES,
    "ec2:DescribeNetworkAcls": _DESCRIBES,
    "ec2:DescribeNetworkInterfaces": _DESCRIBES,
    "ec2:DescribePlacementGroups": _DESCRIBES,
    "ec2:DescribeRouteTables": _DESCRIBES,
    "ec2:DescribeSecurityGroups": _DESCRIBES,
    "ec2:DescribeSubnets": _DESCRIBES,
    "ec2:DescribeVolumeStatus": _DESCRIBES,
    "ec2:DescribeVolumes": _DESCRIBES,
    "ec2:DescribeVpcAttribute": _DESCRIBES,
    "ec2:DescribeVpcEndpoints": _DESCRIBES,
    "ec2:DescribeTags": _DESCRIBES,
    "ec2:DescribeVpcs": _DESCRIBES,
    "elasticmapreduce:ListClusters": _LISTS,
    "elasticmapreduce:ListEditors": _LISTS,
    "elasticmapreduce:ListStudios": _LISTS,
    "emr-serverless:ListApplications": _LISTS,
}
"""By action, why a role may do it on `*`."""


WILDCARDS_OF_THE_CDK = {
    "s3:DeleteObject*": "auto_delete_objects empties a bucket that may be deleted, of all versions",
    "s3:GetBucket*": "the same",
    "s3:List*": "the same",
    "kms:GenerateDataKey*": "a grant on a key, in that key's own policy",
    "kms:ReEncrypt*": "the same",
}


def test_every_template_is_what_cloudformation_takes(synthesized: Synthesized, tmp_path: Path) -> None:
    unknown = {f"'{action}' is not one of": action for action in NEWER_THAN_CFN_LINT}
    found, newer = [], set()
    for finding in lint(synthesized.templates, tmp_path, "us-east-1"):
        begin = next((begin for begin in unknown if finding.message.startswith(begin)), None)
        if finding.rule == "W3037" and begin is not None:
            newer.add(unknown[begin])
        elif finding.rule not in WARNINGS_OF_THE_CDK:
            found.append(f"{finding.template}: {finding.rule} {finding.path}: {finding.message}")
    assert not found, "\n".join(found)
    assert newer == NEWER_THAN_CFN_LINT.keys(), "cfn-lint knows the others by now"


def test_what_holds_data_keeps_its_logical_id(synthesized: Synthesized) -> None:
    ids = {
        f"{stack}/{logical_id}": resource["Type"]
        for settings in SETTINGS
        for stack, logical_id, resource in resources_of(synthesized(settings).templates)
        if _holds_data(resource)
    }
    assert_committed("tests/stacks/logical_ids.json", json.dumps(ids, indent=2, sort_keys=True) + "\n")


def _holds_data(resource: Mapping[str, Any]) -> bool:
    # A custom resource whose logical id changes is deleted, and so is what it has made.
    return resource["Type"] in HOLDS_DATA or resource["Type"].startswith(
        ("Custom::", "AWS::CloudFormation::Custom")
    )


@everywhere
def test_data_outlives_its_stack_unless_the_lake_file_says_otherwise(
    synthesized: Synthesized, settings: str
) -> None:
    kept = {"Delete"} if settings == "deletable" else {"RetainExceptOnCreate"}
    assert [
        (stack, logical_id, resource.get("DeletionPolicy"))
        for stack, logical_id, resource in resources_of(synthesized(settings).templates)
        if resource["Type"] in HOLDS_DATA
        and MADE_AGAIN not in logical_id
        and resource.get("DeletionPolicy", "Delete") not in kept
    ] == []


@everywhere
def test_a_failed_first_deployment_leaves_nothing_that_the_next_one_would_meet(
    synthesized: Synthesized, settings: str
) -> None:
    """A rollback keeps what is plainly retained, and fails on what is protected against deletion."""
    resources = resources_of(synthesized(settings).templates)
    assert [
        (stack, logical_id)
        for stack, logical_id, resource in resources
        if resource.get("DeletionPolicy") in ("Retain", "Snapshot")
        or (_cannot_be_deleted(resource) and not _is_protected(settings))
    ] == []


def _cannot_be_deleted(resource: Mapping[str, Any]) -> bool:
    """RDS and DynamoDB call it differently."""
    properties = resource.get("Properties", {})
    return bool(properties.get("DeletionProtection") or properties.get("DeletionProtectionEnabled"))


@everywhere
def test_stacks_are_protected_only_where_the_lake_file_says_so(
    synthesized: Synthesized, settings: str
) -> None:
    """The command cdk protects a stack before it creates it, and cannot delete it if that fails."""
    manifest = json.loads((synthesized(settings).folder / "manifest.json").read_text())
    protected = {
        bool(artifact["properties"].get("terminationProtection"))
        for artifact in manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    assert protected == {_is_protected(settings)}


def _is_protected(settings: str) -> bool:
    return "protected = true" in SETTINGS[settings]


@everywhere
def test_what_outlives_its_stack_also_outlives_its_replacement(
    synthesized: Synthesized, settings: str
) -> None:
    assert [
        (stack, logical_id)
        for stack, logical_id, resource in resources_of(synthesized(settings).templates)
        if resource.get("DeletionPolicy") == "RetainExceptOnCreate"
        and resource.get("UpdateReplacePolicy") != "Retain"
    ] == []


def test_every_iam_statement_has_been_reviewed(synthesized: Synthesized) -> None:
    assert_committed("tests/stacks/iam_statements.md", "\n".join(_reviewed(synthesized)) + "\n")


def _reviewed(synthesized: Synthesized) -> Iterator[str]:
    yield "# Who may do what"
    yield ""
    yield "Every IAM statement of the templates, by the settings of tests/stacks/lakes.py. What a lake has in"
    yield "common with one above it is not repeated."
    seen: set[tuple[str, str]] = set()
    for settings in SETTINGS:
        by_holder: dict[str, list[str]] = {}
        for holder, text in _rights(synthesized(settings).templates):
            if (holder, text) not in seen:
                by_holder.setdefault(holder, []).append(text)
            seen.add((holder, text))
        if by_holder:
            yield from ("", f"## {settings}")
        for holder in sorted(by_holder):
            yield from ("", f"### {holder}", "", "```", *by_holder[holder], "```")


def _rights(templates: Templates) -> Iterator[tuple[str, str]]:
    """Who, and what; where the lake file names the account, as if it did not."""
    for statement in statements(templates):
        text = "\n".join(statement.lines()).replace(ACCOUNT, "{AWS::AccountId}")
        yield f"{statement.holder} ({statement.kind})", text
    for role, policy in managed_policies(templates):
        yield f"{role} (AWS::IAM::Role)", f"AWS's own {policy}"


def test_an_action_on_any_resource_has_a_reason(synthesized: Synthesized) -> None:
    """In the policy of a key or a bucket, `*` is that very key or bucket."""
    allowed = {
        action: statement.holder
        for settings in SETTINGS
        for statement in statements(synthesized(settings).templates)
        if statement.kind.startswith("AWS::IAM::") and statement.is_allowed and "*" in statement.resources
        for action in statement.actions
    }
    assert {action: holder for action, holder in allowed.items() if action not in ON_ANY_RESOURCE} == {}
    assert set(ON_ANY_RESOURCE) - set(allowed) == set()


def test_no_action_has_a_wildcard(synthesized: Synthesized) -> None:
    allowed = {
        action: statement.holder
        for settings in SETTINGS
        for statement in statements(synthesized(settings).templates)
        if statement.is_allowed
        and not _administers_itself(statement.content)
        and not _limits_an_endpoint(statement)
        for action in statement.actions
        if "*" in action
    }
    assert {action: holder for action, holder in allowed.items() if action not in WILDCARDS_OF_THE_CDK} == {}
    assert set(WILDCARDS_OF_THE_CDK) - set(allowed) == set()


@everywhere
def test_a_policy_is_no_longer_than_iam_takes(synthesized: Synthesized, settings: str) -> None:
    lengths = {
        logical_id: len(
            json.dumps(_written_out(resource["Properties"]["PolicyDocument"]), separators=(",", ":"))
        )
        for _, logical_id, resource in resources_of(synthesized(settings).templates)
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }
    assert lengths
    assert {logical_id: length for logical_id, length in lengths.items() if length > 6144} == {}


def _written_out(value: Any) -> Any:
    """With something in place of references: an account has 12 characters, MSK's id 39, an ARN around 80."""
    match value:
        case {"Ref": _} | {"Fn::GetAtt": _} | {"Fn::Join": _} | {"Fn::ImportValue": _} | {"Fn::Sub": _}:
            short = re.sub(r"\{AWS::[^}]*\}", "x" * 12, rendered(value))
            return re.sub(r"\{[^}]*\}", "x" * 60, short)
        case dict():
            return {key: _written_out(below) for key, below in value.items()}
        case list():
            return [_written_out(below) for below in value]
    return value


def _limits_an_endpoint(statement: Statement) -> bool:
    """Return whether it lets through an endpoint what the account's own policies allow, and nobody else."""
    own = {"StringEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}}}
    return statement.kind == "AWS::EC2::VPCEndpoint" and statement.content.get("Condition") == own


def _administers_itself(statement: Mapping[str, Any]) -> bool:
    """Return whether the statement leaves a key to the account's own policies."""
    return statement["Action"] == "kms:*" and ":root" in json.dumps(statement["Principal"])


@everywhere
def test_no_template_holds_a_secret(synthesized: Synthesized, settings: str) -> None:
    assert [
        found for template in synthesized(settings).templates.values() for found in _secrets(template)
    ] == []


def _secrets(value: Any, under: str = "") -> Iterator[tuple[str, str]]:
    """Yield texts under keys whose names suggest a password, except references to where the password is."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _secrets(below, key)
    elif isinstance(value, list):
        for below in value:
            yield from _secrets(below, under)
    elif (
        isinstance(value, str)
        and re.search(r"password$|secretstring$|\btoken$|private.?key$", under, re.IGNORECASE)
        and not re.match(r"\{\{resolve:|\$\{secretManager:|\$\{secretsmanager:|\$\{certificates:", value)
    ):
        yield under, value


@everywhere
def test_no_template_holds_an_account(synthesized: Synthesized, settings: str) -> None:
    accounts = {
        found
        for template in synthesized(settings).templates.values()
        for text in _strings(template)
        for found in re.findall(r"(?<![0-9a-zA-Z])[0-9]{12}(?![0-9a-zA-Z])", text)
    }
    stated_by_the_lake_file = {ACCOUNT} if ACCOUNT in SETTINGS[settings] else set()
    assert accounts - stated_by_the_lake_file == set()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from _strings(below)


def test_the_app_makes_the_same_templates_in_another_process_and_without_the_command_cdk(
    synthesized: Synthesized, tmp_path: Path
) -> None:
    """With another order of Python's sets."""
    lake_file = write_lake_file("production", tmp_path)
    context = {"lake": str(lake_file), "assets": str(write_assets(tmp_path))}
    out = tmp_path / "cdk.out"
    environment = {
        **os.environ,
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_OUTDIR": str(out),
        "PYTHONHASHSEED": "1",
    }
    subprocess.run([sys.executable, ROOT / "app.py"], check=True, cwd=tmp_path, env=environment)
    here = synthesized("production").texts
    assert {name: (out / f"{name}.template.json").read_text() for name in here} == here
    assert set(read_templates(out)) == set(here)


def test_every_stack_is_made_by_a_setting_and_in_the_order_of_deployment(
    synthesized: Synthesized,
) -> None:
    kinds = [kind.title() for kind in get_args(StackKind)]
    found = [list(synthesized(settings).texts) for settings in ("dbt", "verify")]
    assert found == [[kind for kind in kinds if kind in stacks] for stacks in found]
    assert {kind for stacks in found for kind in stacks} == set(kinds)


@everywhere
def test_every_alarm_and_rule_names_a_section_of_the_runbook(synthesized: Synthesized, settings: str) -> None:
    runbook = (ROOT / "docs" / "operate-aws.md").read_text()
    sections = {_anchor(heading) for heading in re.findall(r"^#+ (.+)$", runbook, re.MULTILINE)}
    named = {
        logical_id: re.findall(r"docs/operate-aws\.md#([a-z-]+)", json.dumps(resource["Properties"]))
        for _, logical_id, resource in resources_of(synthesized(settings).templates)
        if resource["Type"] in ("AWS::CloudWatch::Alarm", "AWS::Events::Rule")
    }
    assert named
    assert {name: found for name, found in named.items() if not found or set(found) - sections} == {}


def _anchor(heading: str) -> str:
    """GitHub's for a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_every_role_of_the_lake_has_the_boundary_that_the_lake_file_names(synthesized: Synthesized) -> None:
    boundaries = {
        rendered(resource["Properties"].get("PermissionsBoundary", "none"))
        for _, _, resource in resources_of(synthesized("everything-else").templates)
        if resource["Type"] == "AWS::IAM::Role"
    }
    assert boundaries == {f"arn:aws:iam::{ACCOUNT}:policy/company-boundary"}


def test_the_tags_of_the_lake_file_are_on_what_costs_money(synthesized: Synthesized) -> None:
    kinds = ("AWS::RDS::DBCluster", "AWS::MSK::Cluster", "AWS::EMR::Cluster", "AWS::S3::Bucket")
    tags = {
        resource["Type"]: _tags(resource["Properties"]["Tags"])
        for _, _, resource in resources_of(synthesized("everything-else").templates)
        if resource["Type"] in kinds
    }
    assert tags.keys() == set(kinds)
    for kind, found in tags.items():
        assert found.items() >= {("cost-center", "4711"), ("tributary:lake", "shop")}, kind


def _tags(found: Any) -> dict[str, str]:
    """Some types have a map, most a list."""
    return dict(found) if isinstance(found, dict) else {tag["Key"]: tag["Value"] for tag in found}


def test_a_bootstrap_with_its_own_qualifier_is_used(synthesized: Synthesized) -> None:
    manifest = json.loads((synthesized("everything-else").folder / "manifest.json").read_text())
    roles = {
        artifact["properties"]["assumeRoleArn"]
        for artifact in manifest["artifacts"].values()
        if "assumeRoleArn" in artifact.get("properties", {})
    }
    assert roles
    assert all("cdk-company-" in role for role in roles)
