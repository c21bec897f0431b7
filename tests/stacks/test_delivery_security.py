"""Security packs, checkov and cfn-lint over the pipeline, which deploys into one account or into two."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from stacks.delivery import DeliveryStack, Repository, cdk_version, lakes_of
from tests.stacks.cfn_lint import lint
from tests.stacks.checkov import checkov_findings, skipped
from tests.stacks.lakes import ACCOUNT, write_assets, write_lake_file
from tests.stacks.synthesis import PACKS, Synthesis, synthesize_app

_REPOSITORY = Repository(
    "example/lake", "main", f"arn:aws:codeconnections:us-east-1:{ACCOUNT}:connection/0a1b2c3d-0000"
)
_BOOTSTRAP = f"""
account = "{ACCOUNT}"
permissions_boundary = "company-boundary"
tags = {{ "cost-center" = "4711" }}

[aws.bootstrap]
qualifier = "company"
"""
ENVIRONMENTS = {
    "one-account": ("", ""),
    "two-accounts": (f"[aws]{_BOOTSTRAP}", '[aws]\naccount = "444455556666"\n'),
}
"""What the lake files of the first and of the second environment say."""

STYLE = ("E3703", "Prefer using Fn::Sub over Fn::Join with an empty delimiter")
"""A matter of style, which this version of cfn-lint calls an error. The CDK itself writes the value."""

everywhere = pytest.mark.parametrize("environments", ENVIRONMENTS)


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Synthesis]:
    return {name: _pipeline(name, tmp_path_factory.mktemp(name)) for name in ENVIRONMENTS}


def _pipeline(environments: str, folder: Path) -> Synthesis:
    lake_file = write_lake_file("small", folder)
    for name, text in zip(("staging", "production"), ENVIRONMENTS[environments], strict=True):
        (folder / f"lake.{name}.toml").write_text(text)
    lakes, assets = lakes_of(lake_file, ["staging", "production"]), write_assets(folder)

    def build(app: App) -> None:
        DeliveryStack(app, lakes, lake_file, assets, _REPOSITORY, {"lake": "lake.toml"})

    return synthesize_app(environments, folder, build)


@everywhere
@pytest.mark.parametrize("pack", PACKS)
def test_every_finding_of_a_pack_is_acknowledged(
    pipelines: Mapping[str, Synthesis], environments: str, pack: str
) -> None:
    pipeline = pipelines[environments]
    assert [
        finding
        for finding in pipeline.findings[pack]
        if not any(acknowledged.covers(finding) for acknowledged in pipeline.acknowledged)
    ] == []


@everywhere
def test_every_acknowledgement_is_of_a_finding_that_is_there(
    pipelines: Mapping[str, Synthesis], environments: str
) -> None:
    pipeline = pipelines[environments]
    findings = [finding for found in pipeline.findings.values() for finding in found]
    assert [
        acknowledged
        for acknowledged in pipeline.acknowledged
        if not any(acknowledged.covers(finding) for finding in findings)
    ] == []


@pytest.fixture(scope="module")
def templates(pipelines: Mapping[str, Synthesis]) -> dict[str, dict[str, Any]]:
    return {name: _template(pipeline) for name, pipeline in pipelines.items()}


def _template(pipeline: Synthesis) -> dict[str, Any]:
    template: dict[str, Any] = json.loads((pipeline.folder / "Delivery.template.json").read_text())
    return template


def test_checkov_finds_only_what_is_skipped_beside_its_cause(
    templates: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    assert checkov_findings(templates, tmp_path) == {finding for finding, _ in skipped(templates)}


def test_the_template_is_what_cloudformation_takes(
    templates: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    assert [
        finding
        for finding in lint(templates, tmp_path, "us-east-1")
        if finding.rule != "W3005" and (finding.rule, finding.message) != STYLE
    ] == []


@everywhere
def test_a_failed_first_deployment_leaves_nothing_that_the_next_one_would_meet(
    templates: dict[str, dict[str, Any]], environments: str
) -> None:
    assert {
        logical_id
        for logical_id, resource in templates[environments]["Resources"].items()
        if resource.get("DeletionPolicy") in ("Retain", "Snapshot")
    } == set()


def test_the_pipeline_keeps_the_boundary_the_tags_and_the_bootstrap_of_the_first_environment(
    pipelines: Mapping[str, Synthesis], templates: dict[str, dict[str, Any]]
) -> None:
    resources = templates["two-accounts"]["Resources"].values()
    roles = [each["Properties"] for each in resources if each["Type"] == "AWS::IAM::Role"]
    assert roles
    for role in roles:
        assert "company-boundary" in json.dumps(role["PermissionsBoundary"])
        assert {"Key": "cost-center", "Value": "4711"} in role["Tags"]
    manifest = json.loads((pipelines["two-accounts"].folder / "manifest.json").read_text())
    assert "cdk-company-deploy-role" in manifest["artifacts"]["Delivery"]["properties"]["assumeRoleArn"]


def test_the_pipeline_runs_pinned_commands_and_one_build_uploads_all_files(
    pipelines: Mapping[str, Synthesis], templates: dict[str, dict[str, Any]]
) -> None:
    """A new account may run only few builds at a time, and CodePipeline does not queue them."""
    builds = {
        logical_id: json.dumps(resource["Properties"])
        for logical_id, resource in templates["one-account"]["Resources"].items()
        if resource["Type"] == "AWS::CodeBuild::Project"
    }
    assert len(builds) == 3
    (uploads,) = pipelines["one-account"].folder.glob("buildspec-*")
    texts = "\n".join([*builds.values(), uploads.read_text()])
    assert f"aws-cdk@{cdk_version()}" in texts
    assert "@latest" not in texts
