"""When something runs on AWS on a schedule, and for how long at most."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator

from tributary.contract.entries import Duration, expecting, matching

_CRON_FIELD = r"[A-Za-z0-9*?,/#LW-]+"
Schedule = Annotated[
    str,
    matching(
        rf"cron\({_CRON_FIELD}( {_CRON_FIELD}){{5}}\)|rate\([1-9][0-9]* (minute|hour|day)s?\)",
        'a schedule of EventBridge Scheduler, such as "cron(0 5 * * ? *)" or "rate(12 hours)"',
    ),
]
TimeZone = Annotated[
    str, matching(r"[A-Za-z]+([/_+-][A-Za-z0-9]+)*", 'a time zone, such as "UTC" or "Europe/Berlin"')
]


def _run_time(duration: timedelta) -> timedelta:
    if not timedelta(minutes=5) <= duration <= timedelta(hours=8):
        raise expecting('from "5m" to "8h", which CodeBuild offers')
    return duration


RunTime = Annotated[Duration, AfterValidator(_run_time)]
"""How long AWS CodeBuild may take for a run."""
