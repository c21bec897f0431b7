"""A pipeline of AWS CodePipeline that deploys each pushed commit: one environment after the other.

cdk deploy --app ".venv/bin/python -m stacks.delivery" -c lake=shop.toml -c environments=staging,production \
  -c repository=owner/name -c connection=arn:aws:codeconnections:…

Context: `lake` and `assets` as for app.py; `environments`, in the order of deployment; `repository`, and
`branch` (main); `connection`, the ARN of the connection through which AWS reads the repository.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import stacks  # (before aws_cdk, which starts the Node.js that this import chooses)

# isort: split
from aws_cdk import App, Environment, Stack, Stage, Tags, pipelines
from aws_cdk import aws_codebuild as codebuild
from constructs import Construct

from stacks.assembly import assemble
from stacks.base import LAKE_TAG, deployment_of
from tributary.contract.aws_names import AwsNames
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake, read_lake

_PROJECT = Path(stacks.__file__).parents[1]
_PLATFORMS = {"arm64": "linux-arm64", "x86_64": "linux-amd64"}
_APP = ".venv/bin/python -m stacks.delivery"


@dataclass(frozen=True)
class Repository:
    """The repository of the project, and the connection through which AWS reads it."""

    name: str
    branch: str
    connection: str


class LakeStage(Stage):
    """All stacks of a lake in one environment. They have the same names as without a stage.

    The rules of security groups have other logical ids, so no lake may change from the one to the other.
    """

    def __init__(self, scope: Construct, environment: str, lake: Lake, lake_file: Path, assets: Path) -> None:
        aws = deployment_of(lake)
        super().__init__(scope, environment.title(), env=Environment(account=aws.account, region=aws.region))
        assemble(self, lake, lake_file, assets, environment)


class DeliveryStack(Stack):
    """The pipeline. A person approves each environment except the first one.

    context  what the command cdk gets with `-c` when the pipeline itself runs it
    """

    def __init__(
        self,
        scope: Construct,
        lakes: Mapping[str, Lake],
        lake_file: Path,
        assets: Path,
        repository: Repository,
        context: Mapping[str, str],
    ) -> None:
        first = next(iter(lakes.values()))
        aws = deployment_of(first)
        name = f"{AwsNames(read_lake(lake_file).name).resource}-delivery"
        super().__init__(
            scope,
            "Delivery",
            stack_name=name,
            description=f"Tributary: deploys {', '.join(lakes)} of {lake_file.name}",
            env=Environment(account=aws.account, region=aws.region),
        )
        Tags.of(self).add(LAKE_TAG, first.name)
        source = pipelines.CodePipelineSource.connection(
            repository.name, repository.branch, connection_arn=repository.connection
        )
        pipeline = pipelines.CodePipeline(
            self,
            "Pipeline",
            pipeline_name=name,
            synth=pipelines.ShellStep(
                "Synth",
                input=source,
                commands=list(_commands(lakes, context)),
                primary_output_directory="cdk.out",
            ),
            synth_code_build_defaults=pipelines.CodeBuildOptions(
                partial_build_spec=codebuild.BuildSpec.from_object(
                    {"phases": {"install": {"runtime-versions": {"python": "3.11"}}}}
                ),
                build_environment=codebuild.BuildEnvironment(compute_type=codebuild.ComputeType.LARGE),
            ),
            cross_account_keys=len({deployment_of(lake).account for lake in lakes.values()}) > 1,
        )
        for environment, lake in lakes.items():
            pipeline.add_stage(
                LakeStage(self, environment, lake, lake_file, assets),
                pre=[pipelines.ManualApprovalStep(f"Approve-{environment}")] if lake is not first else [],
            )


def _commands(lakes: Mapping[str, Lake], context: Mapping[str, str]) -> Sequence[str]:
    platforms = {_PLATFORMS[deployment_of(lake).processing.architecture] for lake in lakes.values()}
    kinds = {None if lake.registry is None else lake.registry.kind for lake in lakes.values()} - {None}
    avro = "".join(f" --avro {kind}" for kind in sorted(map(str, kinds)))
    given = " ".join(f"-c {shlex.quote(f'{key}={value}')}" for key, value in context.items())
    return [
        "make setup cdk",
        f".venv/bin/tributary plugins build{avro}",
        *(f".venv/bin/tributary package --platform {platform}" for platform in sorted(platforms)),
        f'.venv/bin/cdk synth --quiet --app "{_APP}" {given}',
    ]


def lakes_of(lake_file: Path, environments: Sequence[str]) -> Mapping[str, Lake]:
    """Return the lake in each environment. Raise TributaryError, also if they are in several regions."""
    lakes = {environment: read_lake(lake_file, environment) for environment in environments}
    regions = {deployment_of(lake).region for lake in lakes.values()}
    if len(regions) > 1:
        raise TributaryError(
            "one pipeline deploys into one region",
            where=str(lake_file),
            found=" and ".join(sorted(regions)),
            expected="one pipeline for each region, with -c environments=… of that region",
        )
    return lakes


def _context(app: App, key: str) -> str:
    value = app.node.try_get_context(key)
    if not value:
        raise TributaryError(
            f"the pipeline needs the context {key}",
            where="cdk -c",
            expected=f"-c {key}=…, see docs/deploy.md",
        )
    return str(value)


def main() -> None:
    flags = json.loads((_PROJECT / "cdk.json").read_text())["context"]
    app = App(context=flags, outdir=os.environ.get("CDK_OUTDIR") or str(_PROJECT / "cdk.out"))
    try:
        keys = ("lake", "environments", "repository", "connection")
        context = {key: _context(app, key) for key in keys}
        context["branch"] = str(app.node.try_get_context("branch") or "main")
        lake_file = _PROJECT / context["lake"]
        lakes = lakes_of(lake_file, context["environments"].split(","))
        repository = Repository(context["repository"], context["branch"], context["connection"])
        assets = _PROJECT / (app.node.try_get_context("assets") or "dist")
        DeliveryStack(app, lakes, lake_file, assets, repository, context)
    except TributaryError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
