"""Show the status of a deployed lake to a person, or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tributary.cli.aws.job_view import run_facts
from tributary.cli.aws.remedy_words import remedy_words
from tributary.cli.left_out_view import left_out_facts, print_left_out
from tributary.cli.orphan_view import orphan_text
from tributary.cli.outcome_view import outcome_facts, print_outcome
from tributary.cli.rendering import output, print_table
from tributary.cli.steps_view import print_steps
from tributary.operations.aws.connectors import Connector
from tributary.operations.aws.jobs import elapsed_text, moment
from tributary.operations.aws.status import LakeStatus, TableState
from tributary.operations.verify.view import (
    SNAPSHOT_ON_AWS,
    examples_of,
    sentence,
    verification_facts,
    verified_text,
)


def status_facts(found: LakeStatus) -> dict[str, Any]:
    return {
        "is_well": found.is_well,
        "connectors": [{**asdict(one), "is_running": one.is_well} for one in found.connectors],
        "place": found.place,
        "place_problem": None if found.place_problem is None else found.place_problem.text(remedy_words),
        "jobs": [run_facts(run) for run in found.jobs],
        "tables": [
            {
                "table": str(one.table),
                "fresh_seconds": one.fresh_seconds,
                "events_behind": one.behind,
                "bronze_events_behind": one.bronze_behind,
                **(
                    left_out_facts(one.left_out) if one.left_out else outcome_facts(one.outcome, remedy_words)
                ),
                "state": one.state,
                "orphan": None if one.orphan is None else one.orphan.reason,
                "verified": verification_facts(one.verified, SNAPSHOT_ON_AWS),
            }
            for one in found.tables
        ],
        "steps": None if found.steps is None else asdict(found.steps),
    }


def print_status(found: LakeStatus) -> None:
    """Print three tables, and a paragraph for each problem."""
    if found.connectors:
        rows = [
            (one.name, _state_text(one), _count(one.workers), _count(one.tasks)) for one in found.connectors
        ]
        print_table(("connector", "state", "workers", "tasks"), rows, (False, False, True, True))
        output.print()
    if found.jobs:
        runs = [
            (run.name, run.id, run.aws_state, moment(run.created), elapsed_text(run)) for run in found.jobs
        ]
        print_table(("job", "id", "state", "since", "for"), runs, (False, False, False, False, True))
    else:
        output.print(f"No job runs on {found.place}.", highlight=False)
    if found.tables:
        output.print()
        print_table(
            ("table", "state", "fresh", "events behind", "bronze behind", "verified"),
            [_table_row(one) for one in found.tables],
            (False, False, True, True, True, False),
        )
    _print_problems(found)
    print_steps(found.steps)


def _print_problems(found: LakeStatus) -> None:
    for connector in found.connectors:
        if connector.reason is not None:
            _print_paragraph(f"{connector.name} is {connector.state}: {connector.reason}")
    if found.place_problem is not None:
        _print_paragraph(found.place_problem.text(remedy_words))
    if found.last_failure is not None:
        _print_paragraph(found.last_failure.text(remedy_words))
    for table in found.tables:
        if table.left_out is not None:
            output.print()
            print_left_out(table.left_out, output)
        elif table.outcome is not None and table.state != "kept":
            print_outcome(table.table, table.outcome, remedy_words)
        elif table.orphan is not None and table.orphan.state != "kept":
            output.print()
            output.print(orphan_text(table.orphan, " --aws"), markup=False, highlight=False, soft_wrap=True)
        if table.verified is not None and table.verified.differences:
            found_text = sentence(table.verified, SNAPSHOT_ON_AWS)
            _print_paragraph("\n".join([found_text, *examples_of(table.verified)]))


def _table_row(one: TableState) -> tuple[str, ...]:
    fresh = "-" if one.fresh_seconds is None else f"{one.fresh_seconds:,.1f} s"
    behind = (_count(one.behind), _count(one.bronze_behind))
    return str(one.table), one.state, fresh, *behind, verified_text(one.verified)


def _state_text(connector: Connector) -> str:
    if not connector.failed_tasks:
        return connector.state
    of = "task has" if connector.failed_tasks == 1 else "tasks have"
    return f"{connector.state}, {connector.failed_tasks} {of} failed"


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _print_paragraph(text: str) -> None:
    output.print()
    output.print(text, style="red", markup=False, highlight=False, soft_wrap=True)
