"""Remedies in the words of the command, for the lake on this machine."""

from __future__ import annotations

import shlex
from typing import assert_never

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
    "event too large": "docs/operate.md#a-row-is-too-large-for-kafka",
    "older state": "docs/reading.md#in-spark-sql",
    "snapshot": "docs/operate.md",
    "topic recreated": "docs/operate.md#a-topic-was-deleted-and-recreated",
}


def remedy_words(remedy: Remedy) -> str:
    """Return what to do about a lake on this machine."""
    match remedy:
        case Advice(text):
            return text
        case BringUp():
            return "To start the pipeline, run tributary up."
        case CheckStatus():
            return "To see what runs, run tributary status."
        case EditLakeFile(change):
            return f"In lake.toml, {change}."
        case Ingest(events_from, table):
            source = "" if events_from is None else f" --from {events_from}"
            tables = "" if table is None else f" --tables {shlex.quote(table)}"
            return f"To bring the lake up to date, run tributary ingest{source}{tables}."
        case ListTables():
            return "To see which tables there are, run tributary tables."
        case NameLakeFile():
            return (
                "Name it with --lake, or change to the folder with lake.toml. To write one for a database, "
                "run tributary init postgresql://USER@HOST/DATABASE."
            )
        case OpenEpoch(table):
            return (
                f"To continue at the beginning of the new topic, run tributary new-epoch {_named(table)}. "
                f"{RUNBOOKS['topic recreated']} says what to do before."
            )
        case ReadRunbook(runbook):
            return f"{RUNBOOKS[runbook]} says how."
        case RebuildTable(table):
            return f"To rebuild the table, run tributary rebuild {_named(table)}."
        case ShowQuarantine(table):
            return f"To see why events are in quarantine, run tributary quarantine list {_named(table)}."
        case StopRun():
            return "Wait until it has ended, or stop it with Ctrl-C."
        case TakeSnapshot(source):
            return (
                f"To take a new snapshot, run tributary up --resnapshot {source or 'SOURCE'}. "
                f"{RUNBOOKS['snapshot']} says what to do after that."
            )
        case _:
            assert_never(remedy)


def _named(table: str | None) -> str:
    return "TABLE" if table is None else shlex.quote(table)
