"""Start a follow job of the Spark app again after it has died, unless a person stopped it.

EventBridge calls the function for each failed job. It sends the very request of the dead job again. Each
time it reports to CloudWatch how many jobs have died within an hour.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

import boto3

METRIC = "FollowDeaths"
"""How many follow jobs of a lake have died within an hour."""

_WINDOW = timedelta(hours=1)
_LISTED = timedelta(hours=3)
"""How far back job runs are listed: all that died within the window but the first began in it."""
_PAUSES = (0.0, 60.0, 300.0)
"""Seconds before the first, the second and each further start, so that what killed the job can end."""

State = Literal["active", "failed", "other"]


@dataclass(frozen=True)
class Request:
    """What the rule hands over.

    prefix    of the names of the lake's jobs
    role      ARN under which the jobs run
    restarts  how many deaths within an hour are followed by a start
    place     id of the EMR cluster or the EMR Serverless application
    run       id of the step or job run that has died
    """

    lake: str
    namespace: str
    prefix: str
    role: str
    restarts: int
    place: str
    run: str


@dataclass(frozen=True)
class Run:
    """A job of the lake. `ended` is None while it is active."""

    id: str
    name: str
    state: State
    created: datetime
    ended: datetime | None


@dataclass(frozen=True)
class Decision:
    """A decision for or against a new start, with the reason. `deaths` counts the last hour's."""

    starts: bool
    why: str
    deaths: int


class Jobs(Protocol):
    """The service that runs the lake's jobs."""

    def read(self, run: str) -> Run: ...

    def others(self) -> Iterable[Run]:
        """Return the active jobs, and the jobs of the last hours."""

    def start_again(self, run: str) -> str:
        """Send the request of this job again, and return the id of the new one."""

    def is_usable(self) -> bool: ...


def decide(request: Request, died: Run, others: Sequence[Run]) -> Decision:
    """Decide from the jobs that AWS lists whether the job that died is started again."""
    follow, stop = f"{request.prefix}-follow", f"{request.prefix}-stop"
    if died.name != follow or died.state != "failed" or died.ended is None:
        return Decision(False, "it is no follow job that has failed", 0)
    stops = [run.created for run in others if run.name == stop]
    if _was_stopped(died, stops):
        return Decision(False, "a person stopped it", 0)
    deaths = 1 + sum(
        run.id != died.id
        and run.name == follow
        and run.state == "failed"
        and run.ended is not None
        and died.ended - _WINDOW < run.ended <= died.ended
        and not _was_stopped(run, stops)
        for run in others
    )
    ours = f"{request.prefix}-"
    active = [run for run in others if run.state == "active" and run.name.startswith(ours)]
    if running := [run.name for run in active if run.name != stop]:
        return Decision(False, f"{running[0]} is active, and a table has one writer at a time", deaths)
    if deaths > request.restarts:
        return Decision(False, f"{deaths} jobs have died within an hour, so a person has to look", deaths)
    return Decision(True, f"death {deaths} within an hour", deaths)


def _was_stopped(run: Run, stops: Iterable[datetime]) -> bool:
    """Tell whether somebody submitted a stop while the job was active."""
    return run.ended is not None and any(run.created <= stop <= run.ended for stop in stops)


def serve(
    request: Request,
    jobs: Jobs,
    report: Callable[[Mapping[str, Any]], None],
    sleep: Callable[[float], None],
) -> Decision:
    """Start the job again if that is right. Look once more after a pause: a person may have acted."""
    died = jobs.read(request.run)
    first = decide(request, died, list(jobs.others()))
    if first.deaths:
        report(_metric(request, first.deaths))
    decision = first
    if first.starts and (pause := _PAUSES[min(first.deaths, len(_PAUSES)) - 1]):
        sleep(pause)
        decision = decide(request, died, list(jobs.others()))
    if decision.starts and not jobs.is_usable():
        decision = Decision(False, "what runs the jobs has ended", decision.deaths)
    new = jobs.start_again(request.run) if decision.starts else None
    report({"run": request.run, "started": new, "why": decision.why})
    return decision


def _metric(request: Request, deaths: int) -> Mapping[str, Any]:
    """Return a line of a log from which CloudWatch takes the metric (embedded metric format)."""
    directive = {
        "Namespace": request.namespace,
        "Dimensions": [["Lake"]],
        "Metrics": [{"Name": METRIC, "Unit": "Count"}],
    }
    now = int(time.time() * 1000)
    return {
        "_aws": {"Timestamp": now, "CloudWatchMetrics": [directive]},
        "Lake": request.lake,
        METRIC: deaths,
    }


_ACTIVE_STEPS = ("PENDING", "RUNNING", "CANCEL_PENDING")
_ACTIVE_RUNS = ("SUBMITTED", "PENDING", "QUEUED", "SCHEDULED", "RUNNING", "CANCELLING")


def _state(of_aws: str, active: Sequence[str]) -> State:
    if of_aws in active:
        return "active"
    return "failed" if of_aws == "FAILED" else "other"


@dataclass(frozen=True)
class EmrSteps:
    """Steps of an EMR cluster. `emr` is boto3's client."""

    emr: Any
    cluster: str
    role: str

    def read(self, run: str) -> Run:
        return self._run(self.emr.describe_step(ClusterId=self.cluster, StepId=run)["Step"])

    def others(self) -> Iterable[Run]:
        # EMR lists the latest steps first, some fifty of them.
        found = {
            step["Id"]: step
            for states in ({}, {"StepStates": list(_ACTIVE_STEPS)})
            for step in self.emr.list_steps(ClusterId=self.cluster, **states)["Steps"]
        }
        return [self._run(step) for step in found.values()]

    def start_again(self, run: str) -> str:
        died = self.emr.describe_step(ClusterId=self.cluster, StepId=run)["Step"]
        config = died["Config"]
        step = {
            "Name": died["Name"],
            "ActionOnFailure": "CONTINUE",
            "HadoopJarStep": {"Jar": config["Jar"], "Args": config["Args"]},
        }
        added = self.emr.add_job_flow_steps(JobFlowId=self.cluster, Steps=[step], ExecutionRoleArn=self.role)
        return str(added["StepIds"][0])

    def is_usable(self) -> bool:
        cluster = self.emr.describe_cluster(ClusterId=self.cluster)["Cluster"]
        return bool(cluster["Status"]["State"] in ("RUNNING", "WAITING"))

    def _run(self, step: Mapping[str, Any]) -> Run:
        status = step["Status"]
        timeline = status.get("Timeline", {})
        state = _state(status["State"], _ACTIVE_STEPS)
        ended = None if state == "active" else timeline.get("EndDateTime")
        return Run(step["Id"], step["Name"], state, timeline["CreationDateTime"], ended)


@dataclass(frozen=True)
class ServerlessRuns:
    """Job runs of an EMR Serverless application. `emr` is boto3's client."""

    emr: Any
    application: str
    role: str

    def read(self, run: str) -> Run:
        return self._run(self._found(run), run)

    def others(self) -> Iterable[Run]:
        found = {
            run["id"]: run
            for which in (
                {"createdAtAfter": datetime.now(UTC) - _LISTED},
                {"states": list(_ACTIVE_RUNS)},
            )
            for run in self.emr.list_job_runs(applicationId=self.application, **which)["jobRuns"]
        }
        return [self._run(run, run["id"]) for run in found.values()]

    def start_again(self, run: str) -> str:
        died = self._found(run)
        started = self.emr.start_job_run(
            applicationId=self.application,
            # Of two calls for one death, only the first one starts a job.
            clientToken=f"restart-{run}",
            executionRoleArn=self.role,
            name=died["name"],
            mode=died.get("mode", "STREAMING"),
            executionTimeoutMinutes=died.get("executionTimeoutMinutes", 0),
            jobDriver=died["jobDriver"],
        )
        return str(started["jobRunId"])

    def is_usable(self) -> bool:
        application = self.emr.get_application(applicationId=self.application)["application"]
        return bool(application["state"] != "TERMINATED")

    def _found(self, run: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.emr.get_job_run(applicationId=self.application, jobRunId=run)
        job_run: Mapping[str, Any] = found["jobRun"]
        return job_run

    def _run(self, run: Mapping[str, Any], run_id: str) -> Run:
        state = _state(run["state"], _ACTIVE_RUNS)
        ended = None if state == "active" else run["updatedAt"]
        return Run(run_id, run.get("name", run_id), state, run["createdAt"], ended)


def handle(event: Mapping[str, Any], context: object) -> None:  # noqa: ARG001
    """Handle a failed job. Lambda calls this function, and again if it raises."""
    request = Request(**{**event, "restarts": int(event["restarts"])})
    is_cluster = request.place.startswith("j-")
    jobs: Jobs = (
        EmrSteps(boto3.client("emr"), request.place, request.role)
        if is_cluster
        else ServerlessRuns(boto3.client("emr-serverless"), request.place, request.role)
    )
    serve(request, jobs, lambda line: print(json.dumps(line), flush=True), time.sleep)
