"""How a job looks while a person waits for it, and what remedies say where the lake is on AWS."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from tributary.cli.aws.job_view import elapsed_text, job_view
from tributary.cli.aws.jobs import JobRun
from tributary.cli.aws.remedies import remedy_on_aws

CREATED = datetime(2026, 11, 20, 10, tzinfo=UTC)
RUN = JobRun("s-1", "tributary-shop-ingest", "step", "waiting", "PENDING", CREATED, None, None, ())


def test_on_a_terminal_the_one_line_shows_the_latest_state() -> None:
    screen = io.StringIO()
    with job_view(Console(file=screen, force_terminal=True, width=100)) as show:
        show(RUN)
        show(replace(RUN, state="ended", aws_state="COMPLETED", ended=CREATED + timedelta(minutes=61)))
    last = screen.getvalue().rpartition("tributary-shop-ingest")[2]
    assert "COMPLETED" in last
    assert "1:01:00" in last


def test_in_a_log_there_is_a_line_for_each_new_state() -> None:
    log = io.StringIO()
    with job_view(Console(file=log, width=40)) as show:
        for state in ("PENDING", "PENDING", "RUNNING", "RUNNING"):
            show(replace(RUN, aws_state=state))
    assert [line.split()[2] for line in log.getvalue().splitlines()] == ["PENDING", "RUNNING"]


def test_the_time_of_a_job_that_aws_s_clock_begins_later_is_not_negative() -> None:
    assert elapsed_text(replace(RUN, created=datetime.now(UTC) + timedelta(minutes=1))) == "0:00:00"


@pytest.mark.parametrize(
    ("here", "on_aws"),
    [
        (None, None),
        ("Rebuild the table (tributary rebuild): …", "Rebuild the table (tributary submit rebuild): …"),
        ("tributary ingest --follow does it.", "tributary submit follow does it."),
        ("tributary ingest --from bronze.", "tributary submit ingest --from bronze."),
        ("Go on with tributary new-epoch.", "Go on with tributary submit new-epoch."),
        ("tributary tables lists what there is.", "tributary status --aws lists what there is."),
    ],
)
def test_a_remedy_names_the_command_for_a_deployed_lake(here: str | None, on_aws: str | None) -> None:
    assert remedy_on_aws(here) == on_aws
