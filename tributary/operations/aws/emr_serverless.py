"""The lake's jobs as job runs of its EMR Serverless application."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tributary.aws.session import AwsSession
from tributary.aws.spark_submit import Addresses, Job, job_driver
from tributary.contract.aws import Processing
from tributary.contract.aws_names import AwsNames
from tributary.operations.aws.jobs import Call, JobRun, NothingToRunOn, State

if TYPE_CHECKING:
    from mypy_boto3_emr_serverless.literals import JobRunStateType
    from mypy_boto3_emr_serverless.type_defs import ApplicationTypeDef, JobRunSummaryTypeDef, JobRunTypeDef

_STATES: Mapping[str, State] = {
    "SUBMITTED": "waiting",
    "PENDING": "waiting",
    "QUEUED": "waiting",
    "SCHEDULED": "waiting",
    "RUNNING": "running",
    "CANCELLING": "running",
    "SUCCESS": "ended",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
}
_ACTIVE: Sequence[JobRunStateType] = ("SUBMITTED", "PENDING", "QUEUED", "SCHEDULED", "RUNNING", "CANCELLING")
_RECENTLY = timedelta(days=7)
_ENDLESS = 0
_LONGEST_BATCH = 7 * 24 * 60
"""Minutes. The default is 12 hours, and since EMR 7.11 a batch run must have a limit (StartJobRun)."""
_SECONDS_TO_STOP = 120
"""The time that a stopped job gets to finish its current commits."""


@dataclass(frozen=True)
class ServerlessApplication:
    """An EMR Serverless application. `role` is the ARN of the job runs' role."""

    session: AwsSession
    names: AwsNames
    processing: Processing
    application: str
    role: str

    @property
    def name(self) -> str:
        return f"EMR Serverless application {self.application}"

    def require_usable(self) -> None:
        found = self._description
        if found["state"] == "TERMINATED":
            raise self._gone(
                "the application is terminated",
                f"TERMINATED since {found['updatedAt'].astimezone(UTC):%Y-%m-%d %H:%M} UTC",
            )

    def start_call(self, job: Job, addresses: Addresses) -> Call:
        return start_run_call(self.application, self.role, job, addresses, self.processing)

    def start(self, call: Call) -> str:
        parameters: Any = call.parameters
        return self.session.emr_serverless.start_job_run(**parameters)["jobRunId"]

    def read(self, job_id: str) -> JobRun:
        found = self.session.emr_serverless.get_job_run(applicationId=self.application, jobRunId=job_id)
        return self._run(found["jobRun"], job_id)

    def active(self) -> Iterator[JobRun]:
        pages = self.session.emr_serverless.get_paginator("list_job_runs")
        for page in pages.paginate(applicationId=self.application, states=_ACTIVE):
            yield from self._own(page["jobRuns"])

    def recent(self) -> Iterator[JobRun]:
        found = self.session.emr_serverless.list_job_runs(
            applicationId=self.application, createdAtAfter=datetime.now(UTC) - _RECENTLY
        )
        yield from self._own(found["jobRuns"])

    def stop_call(self, run: JobRun) -> Call:
        return stop_run_call(self.application, run.id)

    def stop(self, call: Call) -> None:
        parameters: Any = call.parameters
        self.session.emr_serverless.cancel_job_run(**parameters)

    @cached_property
    def _description(self) -> ApplicationTypeDef:
        try:
            found = self.session.emr_serverless.get_application(applicationId=self.application)
        except ClientError as error:
            if error.response["Error"].get("Code") != "ResourceNotFoundException":
                raise
            message = error.response["Error"].get("Message")
            raise self._gone("the EMR Serverless application does not exist", message) from error
        return found["application"]

    def _own(self, runs: Sequence[JobRunSummaryTypeDef]) -> Iterator[JobRun]:
        prefix = f"{self.names.resource}-"
        return (self._run(run, run["id"]) for run in runs if run.get("name", "").startswith(prefix))

    def _gone(self, what: str, found: str | None) -> NothingToRunOn:
        return NothingToRunOn(
            what,
            where=f"{self.name}, of stack {self.names.stack('processing')}",
            found=found,
            remedy="cdk deploy alone does not notice that it is gone. Destroy the stack, which holds no "
            "data, and recreate it with cdk deploy --all.",
        )

    def _run(self, run: JobRunTypeDef | JobRunSummaryTypeDef, run_id: str) -> JobRun:
        state = _STATES.get(run["state"], "failed")
        has_ended = state not in ("waiting", "running")
        return JobRun(
            id=run_id,
            name=run.get("name", run_id),
            kind="job run",
            state=state,
            aws_state=run["state"],
            created=run["createdAt"].astimezone(UTC),
            ended=run["updatedAt"].astimezone(UTC) if has_ended else None,
            reason=run.get("stateDetails") or None,
            logs=self._logs(run_id),
        )

    def _logs(self, run_id: str) -> tuple[str, ...]:
        monitoring = self._description.get("monitoringConfiguration", {})
        uri = monitoring.get("s3MonitoringConfiguration", {}).get("logUri")
        return (f"{uri.rstrip('/')}/applications/{self.application}/jobs/{run_id}/",) if uri else ()


def stop_run_call(application: str, run: str) -> Call:
    """Return the request that ends a job run."""
    parameters = {
        "applicationId": application,
        "jobRunId": run,
        "shutdownGracePeriodInSeconds": _SECONDS_TO_STOP,
    }
    return Call("emr-serverless", "CancelJobRun", parameters)


def start_run_call(
    application: str, role: str, job: Job, addresses: Addresses, processing: Processing
) -> Call:
    """Return the request that starts the job as a job run."""
    parameters = {
        "applicationId": application,
        "executionRoleArn": role,
        "name": job.name(addresses.lake),
        # EMR Serverless restarts a streaming run that fails.
        "mode": "STREAMING" if job.follow else "BATCH",
        "executionTimeoutMinutes": _ENDLESS if job.follow else _LONGEST_BATCH,
        "jobDriver": job_driver(job, addresses, processing),
    }
    return Call("emr-serverless", "StartJobRun", parameters)
