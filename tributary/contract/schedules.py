"""What AWS CodeBuild runs on a schedule: when, and for how long at most."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from tributary.contract.entries import Duration, Entry, expecting, matching

_CRON_FIELD = r"[A-Za-z0-9*?,/#LW-]+"


def _one_day_field(schedule: str) -> str:
    if schedule.startswith("cron("):
        _, _, of_month, _, of_week, _ = schedule.removeprefix("cron(").removesuffix(")").split(" ")
        if (of_month == "?") == (of_week == "?"):
            raise expecting(
                "a ? for the day of the month or for the day of the week, and not for both: "
                '"cron(0 5 * * ? *)" or "cron(0 5 ? * MON-FRI *)"'
            )
    return schedule


Schedule = Annotated[
    str,
    matching(
        rf"cron\({_CRON_FIELD}( {_CRON_FIELD}){{5}}\)|rate\([1-9][0-9]* (minute|hour|day)s?\)",
        'a schedule of EventBridge Scheduler, such as "cron(0 5 * * ? *)" or "rate(12 hours)"',
    ),
    AfterValidator(_one_day_field),
]
"""When a job runs. See "Cron-based schedules" in the user guide of EventBridge Scheduler."""
TimeZone = Annotated[
    str, matching(r"[A-Za-z]+([/_+-][A-Za-z0-9]+)*", 'a time zone, such as "UTC" or "Europe/Berlin"')
]


def _run_time(duration: timedelta) -> timedelta:
    if not timedelta(minutes=5) <= duration <= timedelta(hours=8):
        raise expecting('from "5m" to "8h", which CodeBuild offers')
    return duration


RunTime = Annotated[Duration, AfterValidator(_run_time)]
"""How long AWS CodeBuild may take for a run."""


class ScheduledRuns(Entry):
    """When a job runs. A run that is still active keeps the next one from starting.

    time_limit  after which CodeBuild ends a run
    """

    schedule: Schedule
    time_zone: TimeZone = "UTC"
    time_limit: RunTime = timedelta(hours=1)

    @model_validator(mode="after")
    def _ends_before_the_next(self) -> Self:
        rate = re.fullmatch(r"rate\(([0-9]+) (minute|hour|day)s?\)", self.schedule)
        if rate is not None and timedelta(**{f"{rate[2]}s": int(rate[1])}) < self.time_limit:
            raise expecting(f'a time_limit that ends a run before the next one: less than "{self.schedule}"')
        return self
