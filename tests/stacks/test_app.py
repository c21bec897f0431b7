"""The app as a whole: its build order, its errors, and names that no two lakes and no two regions share."""

from __future__ import annotations

import filecmp
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from aws_cdk import App

from stacks.assembly import assemble
from stacks.synthesized import read_templates, resources_of
from tests.stacks.conftest import FLAGS
from tests.stacks.lakes import write_assets, write_lake_file
from tests.stacks.one_stack import lake_with
from tributary.contract.aws_names import StackKind
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake, parse_lake, read_lake

ROOT = Path(__file__).parents[2]
GLOBAL = ("AWS::S3::", "AWS::IAM::")
"""Services whose names must be unique within an account, or within all of AWS."""

NAMES_SOMETHING_ELSE = ("DatabaseName", "MetricName", "ServiceName")
EVERYTHING = """
[aws.database]
demo_schema = true
[aws.storage]
encryption = "kms"
[aws.verify]

[aws.dbt]
project = "warehouse"
schedule = "rate(1 day)"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: an asset's hash is of its content, and the lake file is one."""
    folder = tmp_path_factory.mktemp("lake")
    write_lake_file("small", folder)
    write_assets(folder)
    return folder


def _assembled(lake: Lake, folder: Path, out: Path) -> Path:
    app = App(outdir=str(out), context=FLAGS)
    assemble(app, lake, folder / "lake.toml", folder / "assets")
    app.synth()
    return out


@pytest.fixture(scope="module")
def shop(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _assembled(lake_with(EVERYTHING), folder, tmp_path_factory.mktemp("shop"))


def test_a_stack_is_built_after_those_that_it_needs(shop: Path) -> None:
    manifest = json.loads((shop / "manifest.json").read_text())["artifacts"]
    kinds = [kind.title() for kind in get_args(StackKind)]
    after = {kind: {name for name in manifest[kind]["dependencies"] if name in kinds} for kind in kinds}
    assert after == {
        "Network": set(),
        "Lake": set(),
        "Database": {"Network"},
        "Streaming": {"Network"},
        "Connect": {"Network", "Lake", "Database", "Streaming"},
        "Processing": {"Network", "Lake", "Streaming"},
        "Analytics": {"Network", "Lake"},
        "Verification": {"Network", "Lake", "Database", "Streaming", "Connect"},
        "Observability": {"Connect", "Processing", "Analytics", "Verification"},
    }


def test_a_stack_cannot_be_destroyed_before_those_that_need_it(shop: Path) -> None:
    """A strong reference: CloudFormation keeps an export while another stack imports it."""
    text = "".join(path.read_text() for path in shop.glob("*.template.json"))
    assert "Fn::ImportValue" in text
    assert "Fn::GetStackOutput" not in text


def test_two_runs_write_the_same_bytes(shop: Path, folder: Path, tmp_path: Path) -> None:
    again = _assembled(lake_with(EVERYTHING), folder, tmp_path / "again")
    names = [path.name for path in shop.iterdir() if path.name.endswith((".template.json", ".assets.json"))]
    assert len(names) == 2 * len(get_args(StackKind))
    assert filecmp.cmpfiles(shop, again, [*names, "manifest.json"], shallow=False)[0] == [
        *names,
        "manifest.json",
    ]


def test_two_lakes_in_one_account_share_no_name(shop: Path, folder: Path, tmp_path: Path) -> None:
    other = _assembled(lake_with(EVERYTHING, name="shop-2"), folder, tmp_path / "other")
    assert len(list(_names(shop))) > 40
    assert sorted(set(_names(shop)) & set(_names(other))) == []
    assert not _exports(shop) & _exports(other)


def test_two_regions_share_no_name_that_has_no_region(shop: Path, folder: Path, tmp_path: Path) -> None:
    other = _assembled(lake_with(EVERYTHING, region="us-east-1"), folder, tmp_path / "other")
    shared = set(_names(shop)) & set(_names(other))
    assert sorted(name for name in shared if name[0].startswith(GLOBAL)) == []


def test_nothing_is_looked_up_in_an_account(folder: Path, tmp_path: Path) -> None:
    """The command cdk would ask AWS for what is missing, and synthesize again."""
    out = _assembled(lake_with('account = "111122223333"\n' + EVERYTHING), folder, tmp_path / "out")
    assert "missing" not in json.loads((out / "manifest.json").read_text())


def test_a_name_that_aws_does_not_know_is_told_before_anything_is_built(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path), context=FLAGS)
    with pytest.raises(TributaryError, match=r"\[aws\]\.region"):
        assemble(app, lake_with(region="eu-mid-1"), tmp_path / "lake.toml", tmp_path)
    assert [
        child.node.id for child in app.node.children if child.node.id in map(str.title, get_args(StackKind))
    ] == []


MISTAKES = {
    "no lake file": ("nowhere.toml", "", "there is no such lake file"),
    "no section [aws]": ("lake.toml", "[aws]", 'expected a section [aws], at least with region = "…"'),
    "a setting": (
        "lake.toml",
        'region = "us-east-1"',
        "[aws].region: this is not a region in which AWS offers kafka",
    ),
    "nothing built": ("lake.toml", "", "tributary plugins build"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_the_app_with_one_paragraph_and_status_1(mistake: str, tmp_path: Path) -> None:
    file, without, message = MISTAKES[mistake]
    text = write_lake_file("small", tmp_path).read_text()
    if without == "[aws]":
        text = text.partition("[aws]")[0]
    elif without:
        text = text.replace(without, 'region = "eu-mid-1"')
    (tmp_path / "lake.toml").write_text(text)
    ran = _run({"lake": str(tmp_path / file), "assets": str(tmp_path / "nothing")}, tmp_path / "out")
    assert ran.returncode == 1
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("key", ["lake", "assets"])
def test_an_empty_path_does_not_stand_for_the_default(key: str, tmp_path: Path) -> None:
    ran = _run({key: ""}, tmp_path / "out")
    assert (ran.returncode, ran.stderr) == (
        1,
        f"cdk -c {key}=: the context is empty: expected a path, or no -c {key}.\n",
    )


def _run(context: Mapping[str, str], out: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(out)}
    return subprocess.run(
        [sys.executable, ROOT / "app.py"], env=environment, capture_output=True, text=True, cwd=out.parent
    )


def _names(assembly: Path) -> Iterator[tuple[str, str]]:
    """Type and name of each resource that is given a name by its template rather than by CloudFormation."""
    for _, _, resource in resources_of(read_templates(assembly)):
        properties = {
            **resource.get("Properties", {}),
            **resource.get("Properties", {}).get("DatabaseInput", {}),
        }
        for key, value in properties.items():
            is_name = key.endswith(("Name", "Identifier")) and key not in NAMES_SOMETHING_ELSE
            if is_name and not _refers_to_a_resource(value) and resource["Type"] != "AWS::Athena::NamedQuery":
                yield resource["Type"], json.dumps(value, sort_keys=True)


def _refers_to_a_resource(value: Any) -> bool:
    match value:
        case {"Ref": str(name)}:
            return not name.startswith("AWS::")
        case {"Fn::GetAtt": _} | {"Fn::ImportValue": _}:
            return True
        case dict():
            return any(_refers_to_a_resource(each) for each in value.values())
        case list():
            return any(_refers_to_a_resource(each) for each in value)
        case _:
            return False


def _exports(assembly: Path) -> set[str]:
    return {
        output["Export"]["Name"]
        for template in read_templates(assembly).values()
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }


def test_an_environment_has_stacks_of_its_own_and_its_own_lake_file_for_the_spark_app(
    tmp_path: Path,
) -> None:
    lake_file = write_lake_file("small", tmp_path)
    (tmp_path / "lake.staging.toml").write_text("[aws.kafka]\nstorage_gb = 20\n[aws.alarms]\nsink_lag = 7\n")
    context = {"lake": str(lake_file), "assets": str(write_assets(tmp_path)), "env": "staging"}
    out = tmp_path / "cdk.out"
    ran = _run(context, out)
    assert ran.returncode == 0, ran.stderr
    artifacts = json.loads((out / "manifest.json").read_text())["artifacts"]
    names = {
        artifact["properties"]["stackName"]
        for artifact in artifacts.values()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    # These two are there only if the lake file asks for them.
    kinds = set(get_args(StackKind)) - {"analytics", "verification"}
    assert names == {f"tributary-shop-staging-{kind}" for kind in kinds}
    (uploaded,) = out.glob("asset.*/lake.toml")
    assert parse_lake(uploaded.read_text()) == read_lake(lake_file, "staging")
    assert read_lake(lake_file, "staging").name == "shop-staging"
