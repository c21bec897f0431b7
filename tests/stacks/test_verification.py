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


def test_a_run_is_in_the_private_subnets_with_the_group_that_kafka_and_the_databases_let_in(
    synthesized: Synthesized,
) -> None:
    templates = synthesized("verify").templates
    place = rendered(_only(synthesized, "verify", "AWS::CodeBuild::Project")["VpcConfig"])
    assert "VpcPrivateSubnet1Subnet" in place
    assert "VpcPrivateSubnet2Subnet" in place
    (group,) = re.findall(r"ExportsOutputFnGetAttDebezium\w+GroupId\w+", place)
    let_in = {
        (stack, resource["Properties"]["ToPort"])
        for stack, template in templates.items()
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::EC2::SecurityGroupIngress"
        and group in rendered(resource["Properties"]["SourceSecurityGroupId"])
    }
    assert let_in == {("Database", 5432), ("Streaming", 9098)}


def test_the_job_can_be_removed_because_no_other_stack_uses_or_serves_it_alone(
    synthesized: Synthesized,
) -> None:
    """CloudFormation refuses to drop an export that another stack uses, in whatever order they deploy."""
    exports = {
        settings: {
            output["Export"]["Name"]
            for stack, template in synthesized(settings).templates.items()
            if stack != "Verification"
            for output in template.get("Outputs", {}).values()
            if "Export" in output
        }
        for settings in ("small", "verify")
    }
    others = {stack: text for stack, text in synthesized("verify").texts.items() if stack != "Verification"}
    for export in exports["verify"] - exports["small"]:
        assert not [stack for stack, text in others.items() if f'"Fn::ImportValue": "{export}"' in text]


def test_the_project_waits_for_its_rights(synthesized: Synthesized) -> None:
    resources = synthesized("verify").templates["Verification"]["Resources"]
    (project,) = (one for one in resources.values() if one["Type"] == "AWS::CodeBuild::Project")
    waits = " ".join(project["DependsOn"])
    assert re.search(r"\bVerifyPolicy", waits)
    assert re.search(r"\bVerifyKafkaPolicy", waits)
    assert re.search(r"\bVerifyNetworkPolicy", waits)


def test_a_run_mends_and_compares_within_its_limit_and_no_command_stops_another(
    synthesized: Synthesized,
) -> None:
    phases = _phases(synthesized)
    (install,) = phases["install"]["commands"]
    assert install.endswith("--require-hashes --no-deps -r requirements.txt")
    (script,) = phases["build"]["commands"]
    called = re.findall(r"python -m (tributary\.cli \S+ --aws.*?) \|\|", script)
    snapshot, verify = "tributary.cli snapshot --aws --wait 450", "tributary.cli verify --aws --publish"
    assert called == [snapshot, f"{verify} --within 1500", snapshot]
    seconds = sum(int(number) for number in re.findall(r"--(?:wait|within) (\d+)", script))
    assert seconds <= 0.8 * 60 * _only(synthesized, "verify", "AWS::CodeBuild::Project")["TimeoutInMinutes"]
    for failing in ("", "snapshot", "verify"):
        simulated = re.sub(r"python -m tributary\.cli", "stand_in", script)
        stand_in = f'stand_in() {{ echo "$1"; test "$1" != "{failing}"; }}\n'
        done = subprocess.run(["sh", "-c", stand_in + simulated], check=False, capture_output=True, text=True)
        ran = [line for line in done.stdout.splitlines() if line in ("snapshot", "verify")]
        assert (ran, done.returncode) == (["snapshot", "verify", "snapshot"], int(bool(failing)))


def test_runs_start_only_while_the_connectors_are_there(synthesized: Synthesized) -> None:
    assert "State" not in _only(synthesized, "verify", "AWS::Scheduler::Schedule")
    assert _only(synthesized, "verify-three-engines", "AWS::Scheduler::Schedule")["State"] == "DISABLED"


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
        if statement.kind == "AWS::IAM::ManagedPolicy" and "VerifyNetwork" not in statement.holder
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
