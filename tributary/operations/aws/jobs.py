"""The lake's jobs on AWS, on any service: which may run at the same time, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

from tributary.aws.spark_submit import Addresses, Job
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import StopRun

State = Literal["waiting", "running", "ended", "cancelled", "failed"]
"""A job's state in Tributary's terms. `ended` means success."""

STOP = "stop"
"""The suffix in the name of a job that stops another one."""


class JobRefused(TributaryError):
    """A job that would write the same tables as a running one."""


class JobFailed(TributaryError):
    """A job that failed or was stopped."""


class NoWayToStop(TributaryError):
    """A job that a person must stop by hand."""


class NothingToRunOn(TributaryError):
    """The cluster or application that runs the jobs is gone."""


@dataclass(frozen=True)
class JobRun:
    """One job as AWS reports it.

    kind       what AWS calls it: step, or job run
    aws_state  in AWS's own words
    reason     why it is in that state, if AWS says so
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
    """A request as the service's API describes it. Nothing happens until it is sent."""

    service: str
    operation: str
    parameters: Mapping[str, Any]


class JobPlace(Protocol):
    """The service that runs one lake's jobs."""

    @property
    def name(self) -> str:
        """The kind of service, and its id."""

    def require_usable(self) -> None:
        """Check that jobs can run. Raises NothingToRunOn."""

    def start_call(self, job: Job, addresses: Addresses) -> Call:
        """Return the request that starts the job."""

    def start(self, call: Call) -> str:
        """Send the request, and return the id of the started job."""

    def read(self, job_id: str) -> JobRun: ...

    def active(self) -> Iterator[JobRun]:
        """Yield the lake's jobs that have not ended."""

    def recent(self) -> Iterator[JobRun]:
        """Yield the lake's latest jobs, not necessarily with all active ones."""

    def stop_call(self, run: JobRun) -> Call:
        """Return the request that ends an active job. Raises NoWayToStop."""

    def stop(self, call: Call) -> None:
        """Send the request, and return before the job has ended."""


def refusal(place: JobPlace, name: str) -> JobRefused | None:
    """Return why the job `name` must not be started, or None if it may be started.

    A table has one writer at a time, so a lake runs one job at a time, and beside it one that derives tables.
    """
    active = [run for run in place.active() if derives(run.name) == derives(name)]
    if not active:
        return None
    # Of several active jobs, the one with the requested name explains the refusal best.
    run = next((run for run in active if run.name == name), active[0])
    return JobRefused(
        f"{run.name} has not ended, and a table has one writer at a time",
        where=place.name,
        found=f"{run.kind} {run.id}, {run.aws_state} since {moment(run.created)}",
        remedy=StopRun(),
    )


def derives(name: str) -> bool:
    """Return whether the job with this name writes derived tables alone."""
    return name.endswith("-derive")


def read_stoppable(place: JobPlace) -> tuple[JobRun, ...]:
    """Return the active jobs, except those that stop another one."""
    return tuple(run for run in place.active() if not run.name.endswith(f"-{STOP}"))


def wait_for(
    place: JobPlace,
    job_id: str,
    is_enough: Callable[[JobRun], bool],
    show: Callable[[JobRun], None],
    sleep: Callable[[], None],
) -> JobRun:
    """Return the job once `is_enough` accepts its state, or once it has ended in any way."""
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


def elapsed_text(run: JobRun) -> str:
    """Return the time from the job's submission to its end, or to now."""
    elapsed = (run.ended or datetime.now(UTC)) - run.created
    return str(max(timedelta(), timedelta(seconds=int(elapsed.total_seconds()))))
