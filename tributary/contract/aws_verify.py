"""`[aws.verify]`: the job on AWS that compares the lake with its databases on a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from tributary.contract.entries import Entry, Problem
from tributary.contract.schedules import RunTime, Schedule, TimeZone

if TYPE_CHECKING:
    from tributary.contract.aws import Network


class VerifyJob(Entry):
    """A job that AWS CodeBuild runs on a schedule in the lake's network. `[verify]` says what a run compares.

    time_limit  after which CodeBuild ends a run
    """

    schedule: Schedule = "rate(1 hour)"
    time_zone: TimeZone = "UTC"
    time_limit: RunTime = timedelta(hours=1)


def verify_problems(network: Network, *, has_databases: bool) -> Iterator[Problem]:
    """Yield why no such job can run for a lake in this network."""
    if not has_databases:
        what = "a stream of items tells no position, so its tables cannot be verified"
        yield Problem(
            "[aws.verify]", what, "a section", "no such section: tributary reconcile --aws compares them"
        )
    elif network.vpc is None and not network.nat_gateways:
        what = "a run installs Python packages, and asks services that have no endpoint in the network"
        yield Problem("[aws.network].nat_gateways", what, "0", "1 or more with [aws.verify]")
