"""Remedies in the words of the command, for a deployed lake."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from tributary.contract.errors import TributaryError
from tributary.contract.remedies import (
    Advice,
    BringUp,
    CheckStatus,
    EditLakeFile,
    Ingest,
    ListTables,
    NameLakeFile,
    OpenEpoch,
    ReadRunbook,
    RebuildTable,
    Remedy,
    Runbook,
    ShowQuarantine,
    StopRun,
    TakeSnapshot,
)

RUNBOOKS: dict[Runbook, str] = {
    "event too large": "docs/operate-aws.md#event-too-large",
    "older state": "docs/reading.md#in-spark-sql",
    "snapshot": "docs/operate-aws.md",
    "topic recreated": "docs/operate-aws.md#topic-recreated",
}


@contextmanager
def worded_for_aws() -> Iterator[None]:
    """Word the remedies of an error that leaves the context for a deployed lake."""
    try:
        yield
    except TributaryError as error:
        error.remedies = tuple(Advice(remedy_words(remedy)) for remedy in error.remedies)
        raise


def remedy_words(remedy: Remedy) -> str:
    """Return what to do about a deployed lake."""
    match remedy:
        case Advice(text):
            return text
        case BringUp():
            return "To deploy what is missing, run cdk deploy --all."
        case CheckStatus():
            return "To see what runs, run tributary status --aws."
        case EditLakeFile(change):
            return f"In the lake file, {change}, and deploy the change with cdk deploy --all."
        case Ingest(events_from, _):
            source = "" if events_from is None else f" --from {events_from}"
            return f"To bring the lake up to date, run tributary submit ingest{source}."
        case ListTables():
            return "To see which tables there are, run tributary status --aws."
        case NameLakeFile():
            return (
                "Name it with --lake (for cdk: -c lake=FILE), or change to the folder with lake.toml. For a "
                "database without a lake file, copy the one of this folder's demo."
            )
        case OpenEpoch(table):
            return (
                "To continue at the beginning of the new topic, run tributary submit new-epoch "
                f"{_named(table)}. {RUNBOOKS['topic recreated']} says what to do before."
            )
        case ReadRunbook(runbook):
            return f"{RUNBOOKS[runbook]} says how."
        case RebuildTable(table):
            return f"To rebuild the table, run tributary submit rebuild {_named(table)}."
        case ShowQuarantine():
            return "docs/operate-aws.md#quarantine says how to see why events are in quarantine."
        case StopRun():
            return "Wait until it has ended, or stop it with tributary submit stop."
        case TakeSnapshot():
            return f"{RUNBOOKS['snapshot']} says how to take a new snapshot."
        case _:
            assert_never(remedy)


def _named(table: str | None) -> str:
    return "TABLE" if table is None else shlex.quote(table)
