"""The verification stack: a job that compares the lake with its databases, if the lake file asks for it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aws_cdk import CfnOutput
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from stacks.base import TributaryStack, deployment_of
from stacks.log_groups import LakeLogGroup
from stacks.processing.spark_package import LakeFiles
from stacks.scheduled_build import PYTHON, InNetwork, ScheduledJob, add_scheduled_job
from stacks.verification.access import job_access
from stacks.verification.package import REQUIREMENTS, write_package
from tributary.contract.aws_names import Output
from tributary.contract.lake import Lake

if TYPE_CHECKING:
    from stacks.database.stack import DatabaseStack
    from stacks.kafka.stack import StreamingStack
    from stacks.lake.stack import LakeStack
    from stacks.network import NetworkStack

COMMANDS = """
status=0
python -m tributary.cli verify --aws --publish || status=1
python -m tributary.cli snapshot --aws || status=1
test $status = 0
"""
"""What a run does: compare, then let the connectors read again what has to be. Neither stops the other."""


class VerificationStack(TributaryStack):
    """The verification stack. Its job runs in the lake's network, and holds no data."""

    def __init__(
        self,
        scope: Construct,
        lake: Lake,
        network: NetworkStack,
        lake_stack: LakeStack,
        database: DatabaseStack,
        streaming: StreamingStack,
        lake_files: LakeFiles,
    ) -> None:
        super().__init__(scope, "verification", lake, "comparison of the lake with its databases")
        job = self.aws.verify
        assert job is not None, "only a lake with [aws.verify] has this stack"
        assert network.verify is not None
        name = f"{self.names.resource}-verify"
        place = Construct(self, "Verify")
        with tempfile.TemporaryDirectory() as staged:
            write_package(lake_files, Path(staged))
            package = assets.Asset(place, "Package", path=staged)
        secrets = [
            *database.secrets.values(),
            *([] if database.hash_salt is None else [database.hash_salt]),
        ]
        add_scheduled_job(
            place,
            ScheduledJob(
                name=name,
                run="verification",
                does=f"Compares lake {lake.name} with its databases",
                phases=_PHASES,
                schedule=job.schedule,
                time_zone=job.time_zone,
                time_limit=job.time_limit,
                source=package,
                access=job_access(self, lake_stack, streaming.kafka, secrets),
                log=LakeLogGroup(place, "Logs", "verify", network.log_key),
                variables={},
                place=InNetwork(network, network.verify),
            ),
        )
        CfnOutput(self, Output.VERIFY_PROJECT, value=name)

    @staticmethod
    def is_needed(lake: Lake) -> bool:
        return deployment_of(lake).verify is not None


_PHASES: Mapping[str, Any] = {
    "install": {
        "runtime-versions": {"python": PYTHON},
        "commands": [
            f"pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r {REQUIREMENTS}"
        ],
    },
    "build": {"commands": [COMMANDS.strip()]},
}
