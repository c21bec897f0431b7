"""A pipeline of AWS CodePipeline that deploys each pushed commit: one environment after the other.

cdk deploy --app ".venv/bin/python -m stacks.delivery" -c lake=shop.toml -c environments=staging,production \
  -c repository=owner/name -c connection=arn:aws:codeconnections:…

Context: `lake` and `assets` as for app.py; `environments`, in the order of deployment; `repository`, and
`branch` (main); `connection`, the ARN of the connection through which AWS reads the repository.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import stacks  # (before aws_cdk, which starts the Node.js that this import chooses)

# isort: split
from aws_cdk import App, DefaultStackSynthesizer, Environment, Stack, Stage, Tags, Token, pipelines
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.artifact_store import ArtifactStore
from stacks.assembly import assemble
from stacks.base import LAKE_TAG, deployment_of, limit_roles
from stacks.checks.findings import acknowledge, skip
from stacks.scheduled_build import PYTHON
from tributary.contract.aws_names import AwsNames
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake, read_lake

_PROJECT = Path(stacks.__file__).parents[1]
_PLATFORMS = {"arm64": "linux-arm64", "x86_64": "linux-amd64"}
_APP = ".venv/bin/python -m stacks.delivery"

_CDK = _PROJECT / "stacks" / "cdk_cli" / "package.json"
_CDK_ASSETS = "4.7.3"
"""The version of cdk-assets, which uploads the files of a cloud assembly."""

_NODE = "22"


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
            synthesizer=DefaultStackSynthesizer(qualifier=aws.bootstrap.qualifier),
        )
        for key, value in {**aws.tags, LAKE_TAG: first.name}.items():
            Tags.of(self).add(key, value)
        limit_roles(self, aws)
        source = pipelines.CodePipelineSource.connection(
            repository.name, repository.branch, connection_arn=repository.connection
        )
        store = ArtifactStore(self, "Store")
        pipeline = pipelines.CodePipeline(
            self,
            "Pipeline",
            pipeline_name=name,
            artifact_bucket=store.bucket,
            cli_version=cdk_version(),
            cdk_assets_cli_version=_CDK_ASSETS,
            # A project for each file would be more builds at a time than a new account may run.
            publish_assets_in_parallel=False,
            code_build_defaults=pipelines.CodeBuildOptions(partial_build_spec=_with_runtime("nodejs", _NODE)),
            synth=pipelines.ShellStep(
                "Synth",
                input=source,
                commands=list(_commands(lakes, context)),
                primary_output_directory="cdk.out",
            ),
            synth_code_build_defaults=pipelines.CodeBuildOptions(
                partial_build_spec=_with_runtime("python", PYTHON),
                build_environment=codebuild.BuildEnvironment(compute_type=codebuild.ComputeType.LARGE),
            ),
            cross_account_keys=len({deployment_of(lake).account for lake in lakes.values()}) > 1,
        )
        for environment, lake in lakes.items():
            pipeline.add_stage(
                LakeStage(self, environment, lake, lake_file, assets),
                pre=[pipelines.ManualApprovalStep(f"Approve-{environment}")] if lake is not first else [],
            )
        pipeline.build_pipeline()
        acknowledge(pipeline, dict(_findings(self, store.bucket)))
        for policy in _policies_of_uploads(pipeline):
            skip(policy, {"CKV_AWS_111": _ANY_BUILD})


def _findings(stack: Stack, bucket: s3.IBucket) -> Iterator[tuple[str, str]]:
    """Yield what the security packs find in the CDK's own roles and builds of a pipeline, with the reason."""
    # A pack shows a reference in angle brackets.
    account = "<AWS::AccountId>" if Token.is_unresolved(stack.account) else stack.account
    builds = [each for each in stack.node.find_all() if isinstance(each, codebuild.CfnProject)]
    named = [stack.get_logical_id(build) for build in builds if "Assets" not in build.node.path]
    for pack in _PACKS_WITH_INLINE:
        yield f"{pack}-IAMNoInlinePolicy", _BY_THE_CDK
    for pack in _PACKS_WITH_SOURCES:
        yield f"{pack}-CodeBuildProjectSourceRepoUrl", _FROM_THE_PIPELINE
    for action in _GRANTED:
        yield f"AwsSolutions-IAM5[Action::{action}]", _ONE_BUCKET
    (content,) = [each for each in bucket.node.children if isinstance(each, s3.CfnBucket)]
    yield f"AwsSolutions-IAM5[Resource::<{stack.get_logical_id(content)}.Arn>/*]", _ONE_BUCKET
    here = f"{stack.region}:{account}"
    for name in ("*", *(f"<{each}>:*" for each in map(str, map(stack.resolve, named)))):
        yield (
            f"AwsSolutions-IAM5[Resource::arn:{stack.partition}:logs:{here}:log-group:/aws/codebuild/{name}]",
            _OWN_LOGS,
        )
    for name in ("*", *(f"<{each}>-*" for each in map(str, map(stack.resolve, named)))):
        yield (
            f"AwsSolutions-IAM5[Resource::arn:{stack.partition}:codebuild:{here}:report-group/{name}]",
            _OWN_LOGS,
        )
    yield f"AwsSolutions-IAM5[Resource::arn:*:iam::{account}:role/*]", _ROLES_OF_THE_BOOTSTRAP
    yield "AwsSolutions-IAM5[Resource::*]", _ANY_BUILD


_PACKS_WITH_INLINE = ("NIST.800.53.R5", "HIPAA.Security", "PCI.DSS.321")
_PACKS_WITH_SOURCES = ("HIPAA.Security", "PCI.DSS.321")
_GRANTED = (
    "kms:GenerateDataKey*",
    "kms:ReEncrypt*",
    "s3:Abort*",
    "s3:DeleteObject*",
    "s3:GetBucket*",
    "s3:GetObject*",
    "s3:List*",
)
_BY_THE_CDK = "CDK Pipelines creates these roles, and keeps the permissions of each in a policy of its own."
_FROM_THE_PIPELINE = (
    "The source is an artifact of the pipeline. The rule is about repositories, whose address could hold a "
    "password."
)
_ONE_BUCKET = "The statement names one bucket and its key, which hold only this pipeline's artifacts."
_OWN_LOGS = (
    "CodeBuild names the log group and the report groups after the build. The builds that upload files share "
    "a role, which CDK Pipelines creates before it knows their names."
)
_ROLES_OF_THE_BOOTSTRAP = (
    "A condition limits the statement to roles with the tags that cdk bootstrap gives its own. The pipeline "
    "needs them to update itself."
)
_ANY_BUILD = (
    "CDK Pipelines knows neither the names of the builds that it starts, nor those of the stack and the "
    "bucket of cdk bootstrap. The statements allow to start builds, to describe stacks and to list buckets."
)


def _policies_of_uploads(pipeline: pipelines.CodePipeline) -> Iterator[iam.CfnPolicy]:
    """Yield the policies of the role with which builds upload files."""
    for each in pipeline.node.find_all():
        if isinstance(each, iam.CfnPolicy) and "/Assets/" in each.node.path:
            yield each


def cdk_version() -> str:
    """Return the pinned version of the command cdk, with which the pipeline updates itself."""
    version: str = json.loads(_CDK.read_text())["dependencies"]["aws-cdk"]
    return version


def _with_runtime(name: str, version: str) -> codebuild.BuildSpec:
    """Return a part of a build's specification. Without a version, CodeBuild's default changes over time."""
    return codebuild.BuildSpec.from_object({"phases": {"install": {"runtime-versions": {name: version}}}})


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
    """Return the lake in each environment. Raise TributaryError if one pipeline cannot deploy them all."""
    twice = {each for each in environments if environments.count(each) > 1}
    if twice:
        raise TributaryError(
            "the pipeline would deploy an environment twice",
            where="cdk -c environments",
            found=", ".join(environments),
            expected="each environment once, in the order of deployment",
        )
    lakes = {environment: read_lake(lake_file, environment) for environment in environments}
    regions = {deployment_of(lake).region for lake in lakes.values()}
    if len(regions) > 1:
        raise TributaryError(
            "one pipeline deploys into one region",
            where=str(lake_file),
            found=" and ".join(sorted(regions)),
            expected="one pipeline for each region, with -c environments=… of that region",
        )
    accounts = {environment: deployment_of(lake).account for environment, lake in lakes.items()}
    without = [environment for environment, account in accounts.items() if account is None]
    if without and len(without) < len(accounts):
        raise TributaryError(
            "some environments of the pipeline name their account, and others do not",
            where=str(lake_file),
            found=f"no [aws].account in {' and '.join(without)}",
            expected="an [aws].account in every environment, or in none if all are in the same account",
        )
    return lakes


def repository_of(context: Mapping[str, str]) -> Repository:
    """Return the repository that the context names. Raise TributaryError if it is none."""
    for key, (form, example) in _FORMS.items():
        if not re.fullmatch(form, context[key]):
            raise TributaryError(
                f"the context {key} has another form", where="cdk -c", found=context[key], expected=example
            )
    return Repository(context["repository"], context["branch"], context["connection"])


_FORMS = {
    "repository": (r"[\w.-]+(/[\w.-]+)+", "owner/name"),
    "connection": (
        r"arn:[\w-]+:(codeconnections|codestar-connections):[\w-]+:\d{12}:connection/[\w-]+",
        "an ARN such as arn:aws:codeconnections:eu-west-1:111122223333:connection/0a1b2c3d-…",
    ),
}
"""By key of the context, a pattern and an example."""


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
        environments = [each.strip() for each in context["environments"].split(",")]
        lakes, repository = lakes_of(lake_file, environments), repository_of(context)
        assets = _PROJECT / (app.node.try_get_context("assets") or "dist")
        DeliveryStack(app, lakes, lake_file, assets, repository, context)
    except TributaryError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
