"""A pipeline deploys each environment in order, with the stacks that a deployment by hand would have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from stacks.delivery import lakes_of, repository_of
from tests.stacks.lakes import write_assets, write_lake_file
from tributary.contract.aws_names import StackKind
from tributary.contract.errors import TributaryError

ROOT = Path(__file__).parents[2]
CONNECTION = "arn:aws:codeconnections:us-east-1:111122223333:connection/0a1b2c3d-0000-1111-2222-333344445555"

RULES = {"AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress", "AWS::Lambda::Permission"}


def _context(lake_file: Path, assets: Path) -> dict[str, str]:
    return {
        "lake": str(lake_file),
        "assets": str(assets),
        "environments": "staging,production",
        "repository": "example/lake",
        "connection": CONNECTION,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("delivery")
    lake_file = write_lake_file("dbt", folder)
    # Now it has every stack that a lake can have.
    lake_file.write_text(f"{lake_file.read_text()}\n[aws.verify]\n")
    (folder / "lake.staging.toml").write_text("")
    (folder / "lake.production.toml").write_text("[aws.kafka]\nstorage_gb = 20\n")
    write_assets(folder)
    return folder


@pytest.fixture(scope="module")
def out(folder: Path) -> Path:
    """The cloud assembly of the pipeline."""
    out = folder / "cdk.out"
    _run("-m", "stacks.delivery", context=_context(folder / "lake.toml", folder / "assets"), out=out)
    return out


def _run(*app: str, context: dict[str, str], out: Path) -> None:
    environment = {**os.environ, "CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(out)}
    subprocess.run([sys.executable, *app], env=environment, check=True, cwd=ROOT, capture_output=True)


def _pipeline(out: Path) -> dict[str, Any]:
    template = json.loads((out / "Delivery.template.json").read_text())
    (found,) = (
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::CodePipeline::Pipeline"
    )
    assert isinstance(found, dict)
    return found


def test_environments_are_deployed_in_order_and_a_person_approves_the_second(out: Path) -> None:
    stages = {stage["Name"]: stage["Actions"] for stage in _pipeline(out)["Stages"]}
    assert [name for name in stages if name in ("Staging", "Production")] == ["Staging", "Production"]
    approvals = {
        name: [action["Name"] for action in actions if action["ActionTypeId"]["Category"] == "Approval"]
        for name, actions in stages.items()
    }
    assert {name for name, found in approvals.items() if found} == {"Production"}


def test_the_pipeline_deploys_the_stacks_that_a_deployment_by_hand_has(
    folder: Path, out: Path, tmp_path: Path
) -> None:
    """Only rules have other ids: the CDK derives them from the path of what they let in."""
    context = {"lake": str(folder / "lake.toml"), "assets": str(folder / "assets"), "env": "staging"}
    _run("app.py", context=context, out=tmp_path)
    (nested,) = out.glob("assembly-*Staging")
    by_hand, by_pipeline = _ids(tmp_path), _ids(nested)
    assert set(by_hand) == {f"tributary-shop-staging-{kind}" for kind in get_args(StackKind)}
    assert by_pipeline.keys() == by_hand.keys()
    for stack, ids in by_hand.items():
        differing = {kind for _, kind in ids ^ by_pipeline[stack]}
        assert differing <= RULES, stack


def _ids(assembly: Path) -> dict[str, set[tuple[str, str]]]:
    """Return the logical ids and types of each stack's resources, by the stack's name."""
    artifacts = json.loads((assembly / "manifest.json").read_text())["artifacts"].values()
    stacks = [each["properties"] for each in artifacts if each["type"] == "aws:cloudformation:stack"]
    return {
        stack["stackName"]: {
            (logical_id, resource["Type"])
            for logical_id, resource in json.loads((assembly / stack["templateFile"]).read_text())[
                "Resources"
            ].items()
        }
        for stack in stacks
    }


def test_the_pipeline_builds_what_the_stacks_upload_and_synthesizes_itself(out: Path) -> None:
    text = json.dumps(json.loads((out / "Delivery.template.json").read_text())).replace("\\", "")
    for command in ("make setup cdk", "plugins build", "package --platform linux-arm64", "stacks.delivery"):
        assert command in text, command
    assert f"connection={CONNECTION}" in text


def test_environments_in_two_regions_are_refused(tmp_path: Path) -> None:
    lake_file = write_lake_file("small", tmp_path)
    (tmp_path / "lake.one.toml").write_text("")
    (tmp_path / "lake.two.toml").write_text('[aws]\nregion = "eu-west-1"\n')
    with pytest.raises(TributaryError, match="eu-west-1 and us-east-1"):
        lakes_of(lake_file, ["one", "two"])


def test_an_environment_that_comes_twice_is_refused(tmp_path: Path) -> None:
    lake_file = write_lake_file("small", tmp_path)
    (tmp_path / "lake.one.toml").write_text("")
    with pytest.raises(TributaryError, match=r"deploy an environment twice.*found one, one"):
        lakes_of(lake_file, ["one", "one"])


def test_an_account_in_one_environment_alone_is_refused(tmp_path: Path) -> None:
    """The CDK cannot let roles of an unknown account in."""
    lake_file = write_lake_file("small", tmp_path)
    (tmp_path / "lake.one.toml").write_text("")
    (tmp_path / "lake.two.toml").write_text('[aws]\naccount = "111122223333"\n')
    with pytest.raises(TributaryError, match=r"found no \[aws\].account in one,"):
        lakes_of(lake_file, ["one", "two"])


@pytest.mark.parametrize(("key", "found"), [("repository", "lake"), ("connection", "arn:aws:s3:::bucket")])
def test_what_names_no_repository_is_refused(key: str, found: str) -> None:
    context = {"repository": "example/lake", "branch": "main", "connection": CONNECTION}
    assert repository_of(context).name == "example/lake"
    with pytest.raises(TributaryError, match=f"the context {key} has another form.*found {found}"):
        repository_of({**context, key: found})
