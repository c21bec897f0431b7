"""The lake's jobs as steps of its EMR cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from tributary.aws.session import AwsSession, Unreachable
from tributary.aws.spark_submit import Addresses, Job, submit_arguments
from tributary.contract.aws import Processing
from tributary.contract.aws_names import AwsNames
from tributary.contract.remedies import CheckStatus
from tributary.operations.aws.jobs import STOP, Call, JobRun, NothingToRunOn, NoWayToStop, State, moment

if TYPE_CHECKING:
    from mypy_boto3_emr.literals import StepStateType
    from mypy_boto3_emr.type_defs import (
        ClusterStatusTypeDef,
        ClusterTypeDef,
        StepStatusTypeDef,
        StepSummaryTypeDef,
        StepTypeDef,
    )

_STATES: Mapping[str, State] = {
    "PENDING": "waiting",
    "RUNNING": "running",
    "CANCEL_PENDING": "running",
    "COMPLETED": "ended",
    "CANCELLED": "cancelled",
}
"""EMR's states in Tributary's terms. Every other state is a failure."""
_ACTIVE: Sequence[StepStateType] = ("PENDING", "RUNNING", "CANCEL_PENDING")
_GONE = ("TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS")


@dataclass(frozen=True)
class EmrCluster:
    """An EMR cluster. `role` is the ARN of the steps' runtime role."""

    session: AwsSession
    names: AwsNames
    processing: Processing
    cluster: str
    role: str

    @property
    def name(self) -> str:
        return f"EMR cluster {self.cluster}"

    def require_usable(self) -> None:
        status = self._description["Status"]
        if status.get("State") in _GONE:
            raise self._gone("the cluster is terminated", _reason_of_end(status))

    def start_call(self, job: Job, addresses: Addresses) -> Call:
        return start_step_call(self.cluster, self.role, job, addresses, self.processing)

    def start(self, call: Call) -> str:
        parameters: Any = call.parameters
        try:
            return self.session.emr_once.add_job_flow_steps(**parameters)["StepIds"][0]
        except (ReadTimeoutError, ConnectionClosedError) as error:
            raise Unreachable(
                "EMR has not answered. It may or may not have added the step",
                where=self.name,
                found=str(error),
                remedy=["Check whether the step exists before you submit it again.", CheckStatus()],
            ) from error

    def read(self, job_id: str) -> JobRun:
        return self._run(self.session.emr.describe_step(ClusterId=self.cluster, StepId=job_id)["Step"])

    def active(self) -> Iterator[JobRun]:
        pages = self.session.emr.get_paginator("list_steps")
        for page in pages.paginate(ClusterId=self.cluster, StepStates=_ACTIVE):
            yield from self._own(page["Steps"])

    def recent(self) -> Iterator[JobRun]:
        # EMR lists the latest first, some fifty of them.
        yield from self._own(self.session.emr.list_steps(ClusterId=self.cluster)["Steps"])

    def stop_call(self, run: JobRun) -> Call:
        if run.state == "waiting":
            cancelled = {"ClusterId": self.cluster, "StepIds": [run.id]}
            return Call("emr", "CancelSteps", {**cancelled, "StepCancellationOption": "SEND_INTERRUPT"})
        # A canceled step ends only spark-submit. The driver, a YARN process, would keep writing.
        return stop_step_call(self.cluster, self.role, self.names, self._started_by(run))

    def stop(self, call: Call) -> None:
        parameters: Any = call.parameters
        if call.operation == "CancelSteps":
            self.session.emr.cancel_steps(**parameters)
        else:
            self.start(call)

    def _started_by(self, run: JobRun) -> Sequence[str]:
        step = self.session.emr.describe_step(ClusterId=self.cluster, StepId=run.id)["Step"]
        applications = _yarn_applications(step)
        if not applications:
            raise NoWayToStop(
                "EMR does not say yet which YARN application the step has started",
                where=f"{self.name}, step {run.id}",
                remedy="Try again in a minute, or add a step of command-runner.jar with the arguments yarn "
                "application -kill and the application's id, which is in the step's log. Canceling the step "
                "is not enough, because its application would keep running.",
            )
        return applications

    @cached_property
    def _description(self) -> ClusterTypeDef:
        try:
            return self.session.emr.describe_cluster(ClusterId=self.cluster)["Cluster"]
        except ClientError as error:
            if error.response["Error"].get("Code") != "InvalidRequestException":
                raise
            raise self._gone(
                "the EMR cluster does not exist", error.response["Error"].get("Message")
            ) from error

    def _own(self, steps: Sequence[StepSummaryTypeDef]) -> Iterator[JobRun]:
        prefix = f"{self.names.resource}-"
        return (self._run(step) for step in steps if step.get("Name", "").startswith(prefix))

    def _gone(self, what: str, found: str | None) -> NothingToRunOn:
        return NothingToRunOn(
            what,
            where=f"{self.name}, of stack {self.names.stack('processing')}",
            found=found,
            remedy="It cannot be started again, and cdk deploy alone does not notice that it is gone. "
            "Destroy the stack, which holds no data, and recreate it with cdk deploy --all.",
        )

    def _run(self, step: StepTypeDef | StepSummaryTypeDef) -> JobRun:
        status = step["Status"]
        timeline = status.get("Timeline", {})
        ended = timeline.get("EndDateTime")
        return JobRun(
            id=step["Id"],
            name=step["Name"],
            kind="step",
            state=_STATES.get(status["State"], "failed"),
            aws_state=status["State"],
            created=timeline["CreationDateTime"].astimezone(UTC),
            ended=ended and ended.astimezone(UTC),
            reason=_reason(status),
            logs=self._logs(step),
        )

    def _logs(self, step: StepTypeDef | StepSummaryTypeDef) -> tuple[str, ...]:
        """The logs of spark-submit, and of the driver and the executors, which YARN keeps by application."""
        # EMR returns the folder in the old scheme s3n.
        _, _, place = self._description.get("LogUri", "").partition("://")
        if not place:
            return ()
        folder = f"s3://{place.rstrip('/')}/{self.cluster}"
        own = step["Status"].get("FailureDetails", {}).get("LogFile") or f"{folder}/steps/{step['Id']}/"
        return (own, *(f"{folder}/containers/{application}/" for application in _yarn_applications(step)))


def start_step_call(cluster: str, role: str, job: Job, addresses: Addresses, processing: Processing) -> Call:
    """Return the request that starts the job as a step with the runtime role."""
    return _step_call(cluster, role, job.name(addresses.lake), submit_arguments(job, addresses, processing))


def stop_step_call(cluster: str, role: str, names: AwsNames, applications: Sequence[str]) -> Call:
    """Return the request for the step that ends YARN applications."""
    kill = ("yarn", "application", "-kill", *applications)
    return _step_call(cluster, role, f"{names.resource}-{STOP}", kill)


def _step_call(cluster: str, role: str, name: str, arguments: Sequence[str]) -> Call:
    """Return the request for a step. A cluster with runtime roles refuses a step without one."""
    step = {
        "Name": name,
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": list(arguments)},
    }
    return Call("emr", "AddJobFlowSteps", {"JobFlowId": cluster, "Steps": [step], "ExecutionRoleArn": role})


def _yarn_applications(step: StepTypeDef | StepSummaryTypeDef) -> Sequence[str]:
    # This field is newer than the EMR client's types. Only DescribeStep returns it.
    found: Mapping[str, Any] = {**step}
    applications: Sequence[str] = found.get("AdditionalInfo", {}).get("ResourceManagerApplicationIds", ())
    return applications


def _reason(status: StepStatusTypeDef) -> str | None:
    details = status.get("FailureDetails", {})
    texts = (
        details.get("Reason"),
        details.get("Message"),
        status.get("StateChangeReason", {}).get("Message"),
    )
    return "; ".join(dict.fromkeys(text for text in texts if text)) or None


def _reason_of_end(status: ClusterStatusTypeDef) -> str:
    why, ended = status.get("StateChangeReason", {}), status.get("Timeline", {}).get("EndDateTime")
    since = f" since {moment(ended.astimezone(UTC))}" if ended else ""
    return ": ".join(filter(None, (f"{status.get('State')}{since}", why.get("Code"), why.get("Message"))))
