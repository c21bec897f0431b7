"""The job that compares a deployed lake with its databases: when it runs, where, what, and what it may do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from stacks.processing.spark_package import LakeFiles
from stacks.synthesized import rendered
from stacks.verification.package import write_package
from tests.stacks.conftest import Synthesized
from tests.stacks.iam_statements import statements
from tests.stacks.lakes import write_lake_file

GUARD = """
import sys

class Guard:
    missing = set(sys.argv[1].split(","))

    def find_spec(self, name, path=None, target=None):
        if path is None and name in self.missing:
            raise ModuleNotFoundError(f"the requirements do not bring {name}", name=name)
        return None

sys.meta_path.insert(0, Guard())
"""
RUN = """
import tributary.cli.main
import tributary.cli.commands.snapshot, tributary.cli.commands.verify
import tributary.cli.aws.linked_lake, tributary.operations.aws.linked_lake
import tributary.api.rows, tributary.operations.aws.verification_metrics
import tributary.operations.snapshots.asking, tributary.operations.verify.rounds
import hudi
from connectors.engines.registry import engine_of
from tributary.contract.lake import read_lake
from pathlib import Path
lake = read_lake(Path("lake.toml"))
print(lake.name, *(engine_of(source).title for source in lake.connected_sources))
"""


def _only(synthesized: Synthesized, settings: str, kind: str) -> dict[str, Any]:
    resources = synthesized(settings).templates["Verification"]["Resources"].values()
    (found,) = (resource["Properties"] for resource in resources if resource["Type"] == kind)
    assert isinstance(found, dict)
    return found


def _phases(synthesized: Synthesized) -> Mapping[str, Any]:
    found = json.loads(_only(synthesized, "verify", "AWS::CodeBuild::Project")["Source"]["BuildSpec"])
    phases = found["phases"]
    assert isinstance(phases, dict)
    return phases


@pytest.mark.parametrize("settings", ["small", "production", "items-alone"])
def test_a_lake_without_the_section_has_no_such_stack(synthesized: Synthesized, settings: str) -> None:
    assert "Verification" not in synthesized(settings).texts


def test_the_schedule_is_that_of_the_lake_file(synthesized: Synthesized) -> None:
    hourly = _only(synthesized, "verify", "AWS::Scheduler::Schedule")
    assert (hourly["ScheduleExpression"], hourly["ScheduleExpressionTimezone"]) == ("rate(1 hour)", "UTC")
    other = _only(synthesized, "verify-three-engines", "AWS::Scheduler::Schedule")
    assert (other["ScheduleExpression"], other["ScheduleExpressionTimezone"]) == (
        "cron(0 * * * ? *)",
        "Europe/Berlin",
    )
    assert _only(synthesized, "verify-three-engines", "AWS::CodeBuild::Project")["TimeoutInMinutes"] == 30


def test_a_run_is_in_the_private_subnets_with_a_group_that_kafka_and_the_databases_let_in(
    synthesized: Synthesized,
) -> None:
    templates = synthesized("verify").templates
    place = rendered(_only(synthesized, "verify", "AWS::CodeBuild::Project")["VpcConfig"])
    assert "VpcPrivateSubnet1Subnet" in place
    assert "VpcPrivateSubnet2Subnet" in place
    (group,) = re.findall(r"ExportsOutputFnGetAttVerify\w+GroupId\w+", place)
    let_in = {
        (stack, resource["Properties"]["ToPort"])
        for stack, template in templates.items()
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::EC2::SecurityGroupIngress"
        and group in rendered(resource["Properties"]["SourceSecurityGroupId"])
    }
    assert let_in == {("Database", 5432), ("Streaming", 9098)}


def test_an_existing_database_is_told_whom_to_let_in(synthesized: Synthesized) -> None:
    outputs = synthesized("verify-three-engines").templates["Network"]["Outputs"]
    assert {"DebeziumSecurityGroup", "VerifySecurityGroup"} <= outputs.keys()
    assert "VerifySecurityGroup" not in synthesized("three-engines").templates["Network"]["Outputs"]


def test_the_project_waits_for_its_rights(synthesized: Synthesized) -> None:
    resources = synthesized("verify").templates["Verification"]["Resources"]
    (project,) = (one for one in resources.values() if one["Type"] == "AWS::CodeBuild::Project")
    waits = " ".join(project["DependsOn"])
    assert re.search(r"\bVerifyPolicy", waits)
    assert re.search(r"\bVerifyNetworkPolicy", waits)


def test_a_run_compares_and_then_mends_and_neither_stops_the_other(synthesized: Synthesized) -> None:
    phases = _phases(synthesized)
    (install,) = phases["install"]["commands"]
    assert install.endswith("--require-hashes --no-deps -r requirements.txt")
    (script,) = phases["build"]["commands"]
    for ends, expected in {(0, 0): 0, (1, 0): 1, (0, 1): 1, (1, 1): 1}.items():
        commands = re.findall(r"python -m (tributary.cli \S+ --aws.*?) \|\|", script)
        assert commands == ["tributary.cli verify --aws --publish", "tributary.cli snapshot --aws"]
        simulated = script
        for command, end in zip(commands, ends, strict=True):
            simulated = simulated.replace(f"python -m {command}", f"(echo ran; exit {end})")
        done = subprocess.run(["sh", "-c", simulated], check=False, capture_output=True, text=True)
        assert (done.stdout, done.returncode) == ("ran\nran\n", expected)


def test_what_codebuild_unpacks_runs_with_the_pinned_packages_alone(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    write_package(LakeFiles(write_lake_file("verify-three-engines", tmp_path)), folder)
    pinned = re.findall(r"^([A-Za-z0-9_.-]+)==", (folder / "requirements.txt").read_text(), re.MULTILINE)
    names = {_normal(name) for name in pinned}
    here = {path.name for path in folder.iterdir() if path.is_dir()}
    missing = {
        module
        for module, distributions in packages_distributions().items()
        if not names & set(map(_normal, distributions)) and module not in here
    }
    assert {"pyspark", "aws_cdk", "nicegui"} <= missing
    done = subprocess.run(
        [sys.executable, "-c", GUARD + RUN, ",".join(missing)],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.stderr[-2000:], done.stdout) == ("", "shop PostgreSQL MySQL\n")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_a_run_reads_the_lake_and_writes_only_its_own_records(synthesized: Synthesized) -> None:
    rights = [
        statement
        for statement in statements({"Verification": synthesized("verify").templates["Verification"]})
        if "VerifyPolicy" in statement.holder
    ]
    changing = re.compile(r"s3:(Put|Delete|Abort)|kafka-cluster:(Write|Create|Delete|Alter)|dynamodb:|glue:")
    changed = {
        resource
        for statement in rights
        if any(map(changing.match, statement.actions))
        for resource in statement.resources
    }
    kafka = "arn:{AWS::Partition}:kafka:us-east-1:{AWS::AccountId}"
    assert changed == {
        "arn:{AWS::Partition}:s3:::shop-quarantine-{AWS::AccountId}-us-east-1/*",
        f"{kafka}:group/tributary-shop/{{tributary-shop-streaming-kafka-uuid}}/tributary-questions",
    }
