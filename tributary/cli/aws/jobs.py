"""The lake's jobs on AWS, whatever they run on: which may run at a time, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from tributary.aws.spark_submit import Addresses, Job
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import StopRun

State = Literal["waiting", "running", "ended", "cancelled", "failed"]
"""`ended`: as it should."""

STOP = "stop"
"""What the name of a job ends with that ends another one."""


class JobRefused(TributaryError):
    """A job that would write the tables that another one is writing."""


class JobFailed(TributaryError):
    """A job that did not end as it should."""


class NoWayToStop(TributaryError):
    """A job that has to be ended by hand."""


class NothingToRunOn(TributaryError):
    """The cluster or application that the jobs run on is gone."""


@dataclass(frozen=True)
class JobRun:
    """One job as AWS tells of it.

    kind       what AWS calls it: step, or job run
    aws_state  in AWS's own words
    reason     why it is in that state, where AWS says so
    logs       addresses of files or folders in S3
    """

    id: str
    name: str
    kind: Literal["step", "job run"]
    state: State
    aws_state: str
    created: datetime
    ended: datetime | None
    reason: str | None
    logs: tuple[str, ...]

    @property
    def is_active(self) -> bool:
        return self.state in ("waiting", "running")


@dataclass(frozen=True)
class Call:
    """A request as the service's API describes it; without effect until it is sent."""

    service: str
    operation: str
    parameters: Mapping[str, Any]


class JobPlace(Protocol):
    """What the jobs of one lake run on."""

    @property
    def name(self) -> str:
        """What it is, and its id."""

    def require_usable(self) -> None:
        """Raises NothingToRunOn."""

    def start_call(self, job: Job, addresses: Addresses) -> Call:
        """The request that starts the job."""

    def start(self, call: Call) -> str:
        """The id of the job that the request has started."""

    def read(self, job_id: str) -> JobRun: ...

    def active(self) -> Iterator[JobRun]:
        """The lake's jobs that have not ended."""

    def recent(self) -> Iterator[JobRun]:
        """The lake's latest jobs, the active ones not all among them."""

    def stop_call(self, run: JobRun) -> Call:
        """The request that ends the job, which is active. Raises NoWayToStop."""

    def stop(self, call: Call) -> None:
        """Returns before the job has ended."""


def refusal(place: JobPlace, name: str) -> JobRefused | None:
    """Why the job that would be called `name` may not be started; None where it may.

    A table has one writer at a time, so no job starts beside another one of the lake.
    """
    active = list(place.active())
    if not active:
        return None
    # Where several are there, the one that is asked for a second time tells most.
    run = next((run for run in active if run.name == name), active[0])
    return JobRefused(
        f"{run.name} has not ended, and a table has one writer at a time",
        where=place.name,
        found=f"{run.kind} {run.id}, {run.aws_state} since {moment(run.created)}",
        remedy=StopRun(),
    )


def read_stoppable(place: JobPlace) -> tuple[JobRun, ...]:
    """The active jobs, but for what ends another one."""
    return tuple(run for run in place.active() if not run.name.endswith(f"-{STOP}"))


def wait_for(
    place: JobPlace,
    job_id: str,
    is_enough: Callable[[JobRun], bool],
    show: Callable[[JobRun], None],
    sleep: Callable[[], None],
) -> JobRun:
    """The job as it is when it has come far enough, or has ended in whatever way."""
    while True:
        run = place.read(job_id)
        show(run)
        if is_enough(run) or not run.is_active:
            return run
        sleep()


def failure(place: str, run: JobRun) -> JobFailed:
    return JobFailed(
        f"the {run.kind} {run.name} is {run.aws_state}",
        where=f"{place}, {run.kind} {run.id}",
        found=run.reason,
        remedy=f"Its log is in {' and '.join(run.logs)}" if run.logs else None,
    )


def moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
