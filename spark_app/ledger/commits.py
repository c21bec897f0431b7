"""Ledgers in a table's commits: the metadata keys that hold them, and the commits that have one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.timeline import Timeline
from spark_app.ledger.ledger import LEDGER_KEY, RETYPED_KEY, Ledger


@dataclass(frozen=True)
class LedgerCommit:
    """A completed commit that has a ledger: its instant, the ledger, and the number of rows written.

    `partitions` are the paths of the partitions that the commit wrote to. They are empty in an unpartitioned
    table."""

    instant: str
    ledger: Ledger
    rows_upserted: int
    rows_deleted: int
    partitions: frozenset[str]


def commit_metadata(ledger: Ledger) -> Mapping[str, str]:
    """Return the metadata that records the ledger in a commit."""
    return {LEDGER_KEY: ledger.to_json()}


def replacement_metadata(ledger: Ledger, retyped: Sequence[str]) -> Mapping[str, str]:
    """Return the metadata of a commit that replaces all files and gives the `retyped` columns other types."""
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
