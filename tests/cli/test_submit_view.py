"""A waiting person sees a job's latest state."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rich.console import Console

from tributary.cli.aws.job_view import job_view
from tributary.operations.aws.jobs import JobRun, elapsed_text

CREATED = datetime(2026, 11, 20, 10, tzinfo=UTC)
RUN = JobRun("s-1", "tributary-shop-ingest", "step", "waiting", "PENDING", CREATED, None, None, ())


def test_a_terminal_shows_one_line_with_the_latest_state() -> None:
    screen = io.StringIO()
    with job_view(Console(file=screen, force_terminal=True, width=100)) as show:
        show(RUN)
        show(replace(RUN, state="ended", aws_state="COMPLETED", ended=CREATED + timedelta(minutes=61)))
    last = screen.getvalue().rpartition("tributary-shop-ingest")[2]
    assert "COMPLETED" in last
    assert "1:01:00" in last


def test_a_log_gets_a_line_for_each_new_state() -> None:
    log = io.StringIO()
    with job_view(Console(file=log, width=40)) as show:
        for state in ("PENDING", "PENDING", "RUNNING", "RUNNING"):
            show(replace(RUN, aws_state=state))
    assert [line.split()[2] for line in log.getvalue().splitlines()] == ["PENDING", "RUNNING"]


def test_the_time_of_a_job_that_aws_s_clock_begins_later_is_not_negative() -> None:
    assert elapsed_text(replace(RUN, created=datetime.now(UTC) + timedelta(minutes=1))) == "0:00:00"
