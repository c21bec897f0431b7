"""How a ledger stands in a table's commits: under which keys of their metadata, and which commit has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.timeline import Timeline
from spark_app.ledger.ledger import LEDGER_KEY, RETYPED_KEY, Ledger


@dataclass(frozen=True)
class LedgerCommit:
    """A completed commit that has a ledger: its instant, the ledger, and the rows that it wrote.

    `partitions` are the paths of the partitions that it wrote to; empty in a table without any."""

    instant: str
    ledger: Ledger
    rows_upserted: int
    rows_deleted: int
    partitions: frozenset[str]


def commit_metadata(ledger: Ledger) -> Mapping[str, str]:
    """Return what a commit records of the ledger."""
    return {LEDGER_KEY: ledger.to_json()}


def replacement_metadata(ledger: Ledger, retyped: Sequence[str]) -> Mapping[str, str]:
    """Return what a commit records that replaces all files, and gives the `retyped` columns other types."""
    return {**commit_metadata(ledger), RETYPED_KEY: json.dumps(list(retyped))}


def ledger_commits(
    table: HudiTable, timeline: Timeline, known: Set[str] = frozenset()
) -> Iterator[LedgerCommit]:
    """Read the commits that have a ledger, the last one first, except the `known` instants.

    Raises `LedgerError` at a ledger of another format version."""
    for commit in table.commits_with(LEDGER_KEY, timeline, known):
        yield LedgerCommit(
            instant=commit.instant,
            ledger=Ledger.from_json(commit.text),
            rows_upserted=commit.rows_upserted,
            rows_deleted=commit.rows_deleted,
            partitions=commit.partitions,
        )


def last_commit(table: HudiTable) -> LedgerCommit | None:
    """Read the commit with a ledger that completed last. Raises `LedgerError`."""
    return next(ledger_commits(table, table.timeline()), None)
