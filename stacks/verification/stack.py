"""The verification stack: a job that compares the lake with its databases, if the lake file asks for it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aws_cdk import CfnOutput
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from stacks.base import TributaryStack, deployment_of
from stacks.kafka.access import verification_access
from stacks.lake_function import InVpc
from stacks.log_groups import LakeLogGroup
from stacks.processing.spark_package import LakeFiles
from stacks.scheduled_build import PYTHON, ScheduledJob, add_scheduled_job
from stacks.verification.access import job_access
from stacks.verification.package import REQUIREMENTS, write_package
from tributary.contract.aws_names import Output
from tributary.contract.lake import Lake

if TYPE_CHECKING:
    from stacks.database.stack import DatabaseStack
    from stacks.kafka.stack import StreamingStack
    from stacks.lake.stack import LakeStack
    from stacks.network import NetworkStack

_OF_THE_LIMIT = {"snapshot": 0.15, "verify": 0.5}
"""The parts of a run's time limit for each command. Installing takes a part, too, and so may one table."""


def commands(limit: timedelta) -> str:
    """Return what a run does: mend, compare, and mend what was found. None of the three stops the others.

    Tables that changed without an event are being read again when the comparison begins, so it does not count
    them. The last line but one shows the tracebacks, which would be lost with the machine.
    """
    snapshot, verify = (int(limit.total_seconds() * part) for part in _OF_THE_LIMIT.values())
    mend = f"python -m tributary.cli snapshot --aws --wait {snapshot} || status=1"
    lines = (
        "status=0",
        mend,
        f"python -m tributary.cli verify --aws --publish --within {verify} || status=1",
        mend,
        "cat /tmp/tributary-*.log 2>/dev/null",
        "test $status = 0",
    )
    return "\n".join(lines)


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
                phases=_phases(job.time_limit),
                schedule=job.schedule,
                time_zone=job.time_zone,
                time_limit=job.time_limit,
                source=package,
                access=job_access(self, lake_stack, secrets),
                further={"KafkaPolicy": verification_access(streaming.kafka, lake)},
                log=LakeLogGroup(place, "Logs", "verify", network.log_key),
                variables={},
                # Kafka and the databases let Debezium in, or the lake does not work anyway.
                place=InVpc(network, network.debezium),
                is_enabled=self.aws.connect.running,
            ),
        )
        CfnOutput(self, Output.VERIFY_PROJECT, value=name)

    @staticmethod
    def is_needed(lake: Lake) -> bool:
        return deployment_of(lake).verify is not None


def _phases(limit: timedelta) -> Mapping[str, Any]:
    install = "pip install --quiet --disable-pip-version-check --require-hashes --no-deps"
    return {
        "install": {
            "runtime-versions": {"python": PYTHON},
            "commands": [f"{install} -r {REQUIREMENTS}"],
        },
        "build": {"commands": [commands(limit)]},
    }
