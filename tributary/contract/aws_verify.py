"""`[aws.verify]`: the job on AWS that compares the lake with its databases on a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from tributary.contract.entries import Problem
from tributary.contract.schedules import RunTime, Schedule, ScheduledRuns
from tributary.contract.source import Source

if TYPE_CHECKING:
    from tributary.contract.aws import Network


class VerifyJob(ScheduledRuns):
    """A job that AWS CodeBuild runs in the lake's network. `[verify]` says what a run compares."""

    schedule: Schedule = "rate(1 hour)"
    time_limit: RunTime = timedelta(minutes=50)


def verify_problems(network: Network, sources: Iterable[Source]) -> Iterator[Problem]:
    """Yield why no such job can run for a lake in this network."""
    if not any(source.is_verifiable for source in sources):
        what = "no source of the lake can be verified part by part"
        expected = "no such section: tributary reconcile --aws compares whole tables"
        yield Problem("[aws.verify]", what, "a section", expected)
    elif network.vpc is None and not network.nat_gateways:
        what = "a run installs Python packages, and asks services that have no endpoint in the network"
        yield Problem("[aws.network].nat_gateways", what, "0", "1 or more with [aws.verify]")
