"""Run a job of the deployed lake to its end, for a command that continues afterwards."""

from __future__ import annotations

import time

from tributary.aws.spark_submit import Job
from tributary.cli.aws.job_view import job_view
from tributary.cli.rendering import messages
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.jobs import JobRun, refusal, wait_for

_SECONDS_BETWEEN_LOOKS = 10.0


def run_to_end(deployed: DeployedLake, job: Job, if_interrupted: str) -> JobRun:
    """Start the job, and return it once it has ended in any way. Raises JobRefused.

    if_interrupted  what to tell about a job that may keep running after an interruption
    """
    place = deployed.job_place
    if (refused := refusal(place, job.name(deployed.lake.name))) is not None:
        raise refused
    run = place.read(place.start(place.start_call(job, deployed.addresses)))
    try:
        with job_view(messages) as show:
            return wait_for(place, run.id, lambda _: False, show, _pause)
    except BaseException:
        messages.print(
            f"{run.name} may keep running. {if_interrupted} tributary status --aws shows it.",
            highlight=False,
            soft_wrap=True,
        )
        raise


def _pause() -> None:
    time.sleep(_SECONDS_BETWEEN_LOOKS)
